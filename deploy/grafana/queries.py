# SPDX-License-Identifier: Apache-2.0
"""What the dashboards share: their names and variables, how a query chooses series, and how they link to each other."""

from grafana import annotation, dashboard, data_link, header_link, variable

# Every dashboard with its variables. Those in ONE open on one value and are never handed a list.
BOARDS = {
    "fleet": ("cluster", "job", "namespace", "currency"),
    "team": ("cluster", "job", "team", "namespace", "currency"),
    "pod": ("cluster", "job", "namespace", "pod", "currency"),
    "node": ("cluster", "job", "node", "instance", "gpu"),
    "slurm": ("cluster", "job", "slurm_job_id", "currency"),
    "waste": ("cluster", "job", "namespace", "currency"),
    "tokens": ("cluster", "job", "namespace", "model", "idle", "currency"),
    "health": ("cluster", "job", "node", "instance"),
}
ONE = {("pod", "namespace"), ("pod", "pod"), ("node", "node"), ("tokens", "idle")}
TITLES = {"slurm": "Slurm jobs"}
NEED_RULES = ("fleet", "team", "slurm", "waste", "tokens")  # the others show raw series

PRICE = '* on (cluster) group_left () cluster:gpu_ledger_price_per_kwh:with_pue{cluster=~"$cluster"}'
CO2E = '* on (cluster) group_left () cluster:gpu_ledger_co2e_grams_per_kwh:with_pue{cluster=~"$cluster"}'
RULES = "From node.rules.yml and fleet.rules.yml; price, CO2e and PUE are in parameters.rules.yml."
COST = "Cost in $currency"
ONE_GPU = "{{node}} GPU {{gpu}}"
ONE_NODE = "{{node}} {{instance}}"


def choose(name, *labels, **exactly):
    """The series of a name for which the variables of these labels are chosen, and these labels are as given."""
    chosen = [f'{label}=~"${label}"' for label in labels] + [f'{label}="{value}"' for label, value in exactly.items()]
    return f"{name}{{{','.join(chosen)}}}"


def raw(name, *labels, **exactly):
    """What a node serves: it has the job of its scrape."""
    return choose(name, "cluster", "job", *labels, **exactly)


def recorded(name, *labels, **exactly):
    """What the recording rules make: it has no job."""
    return choose(name, "cluster", *labels, **exactly)


def either(name, older, select, on="cluster, job, instance, gpu"):
    """Our own name of a number, or an older exporter's where only that is served."""
    return f"({select(name)} or on ({on}) {select(older)})"


def of_process(what, select, how=lambda series: series):
    """my_gpu_process_* or, with the collector process-native, gpu_ledger_process_*; never both."""
    return f"({how(select(f'my_gpu_process_{what}'))} or {how(select(f'gpu_ledger_process_{what}'))})"


def busy(select):
    """The part of the time in which a process works on its GPU. With the collector process-native it is GPU time per second."""
    return f"({select('my_gpu_process_sm_utilization_ratio')} or {rate(select('gpu_ledger_process_gpu_seconds_total'))})"


def held_idle(select):
    """Memory of idle processes; without the collector idle, those of pods."""
    return f"(sum({select('gpu_idle_memory_total_bytes')}) or sum({select('gpu_ledger_pod_idle_memory_bytes')}))"


def by(labels, query, how="sum"):
    return f"{how} by ({labels}) ({query})"


def rate(series):
    return f"rate({series}[$__rate_interval])"


def in_range(series):
    return f"sum_over_time({series}[$__range])"


def kwh_of_watts(series):
    """The energy of watts that were recorded every minute."""
    return f"{in_range(series)} / 60000"


def gained(series):
    return f"increase({series}[$__range])"


def all_nodes(board):
    return "node:gpu_ledger_gpus:count" if board in NEED_RULES else "gpu_ledger_build_info"


NAMESPACES = {
    "pod": raw("gpu_ledger_pod_energy_joules_total"),
    "team": recorded("team:gpu_ledger_power_watts:rate5m", "team"),
    "tokens": recorded("pod_model:gpu_ledger_tokens:rate5m"),
}
VARIABLES = {
    "cluster": lambda board: ("Cluster", all_nodes(board), "cluster"),
    "job": lambda board: ("Job", choose("gpu_ledger_build_info", "cluster"), "job"),
    "namespace": lambda board: ("Namespace", NAMESPACES.get(board, recorded("namespace:gpu_ledger_power_watts:rate5m")),
                                "namespace"),
    "team": lambda board: ("Team", recorded("team:gpu_ledger_power_watts:rate5m"), "team"),
    "pod": lambda board: ("Pod", raw("gpu_ledger_pod_energy_joules_total", "namespace"), "pod"),
    "node": lambda board: ("Node", raw("gpu_ledger_build_info"), "node"),
    "instance": lambda board: ("Instance", raw("gpu_ledger_build_info", "node"), "instance"),
    "gpu": lambda board: ("GPU", raw("gpu_ledger_device_info", "node", "instance"), "gpu"),
    "slurm_job_id": lambda board: ("Slurm job", recorded("node_slurm_job:gpu_ledger_power_watts:rate5m"), "slurm_job_id"),
    "model": lambda board: ("Model", recorded("pod_model:gpu_ledger_tokens:rate5m", "namespace"), "model"),
    "idle": lambda board: ("Idle", recorded("pod:gpu_ledger_power_watts:rate5m"), "idle"),
    "currency": lambda board: ("Currency", "gpu_ledger:currency:info", "currency"),
}


def variables_of(board):
    made = []
    for name in BOARDS[board]:
        label, metric, of = VARIABLES[name](board)
        made.append(variable(name, label, metric, of, single=name == "currency" or (board, name) in ONE,
                             every=".+" if name in ("job", "instance") else ".*", hide=name == "currency"))
    return made


def url(board, here, **values):
    """The address of a dashboard: with the variables that both have as they are chosen here, and with these values."""
    common = [name for name in BOARDS[board] if name in BOARDS[here] and name not in values and name != "currency"
              and ((board, name) not in ONE or (here, name) in ONE)]
    parts = [f"${{{name}:queryparam}}" for name in ("datasource", *common)]
    return f"/d/gpu-ledger-{board}?" + "&".join(parts + [f"var-{name}={value}" for name, value in values.items()])


def row_link(here, board, *labels):
    """From a cell of a table to a dashboard, with the values of these columns."""
    values = {label: f"${{__data.fields.{label}}}" for label in labels}
    return data_link(f"Open this {board}", url(board, here, **values))


def line_link(here, board, *labels):
    """From a line of a graph, with the values of these labels of its series."""
    values = {label: f"${{__field.labels.{label}}}" for label in labels}
    return data_link(f"Open this {board}", url(board, here, **values))


# Whose GPUs an Xid must be on to be shown; on the other dashboards those of all chosen nodes are.
WHOSE = {
    "pod": raw("gpu_ledger_pod_energy_joules_total", "namespace", "pod"),
    "team": raw("gpu_ledger_pod_energy_joules_total", "namespace"),
    "slurm": choose("gpu_ledger_slurm_job_energy_joules_total", "cluster", "slurm_job_id"),
}


def events(board):
    """Xid errors at the time at which they happened, and alerts while they fire, of what is chosen."""
    places = [name for name in ("node", "gpu", "namespace", "pod") if name in BOARDS[board]]
    xids = raw("gpu_ledger_xid_last_seen_timestamp_seconds", *[name for name in places if name in ("node", "gpu")])
    if board in WHOSE:
        xids = f"({xids} and on (instance, gpu) {WHOSE[board]})"
    alerts = ['alertname=~"GpuLedger.+"', 'alertstate="firing"', 'cluster=~"$cluster"']
    # An alert about a whole node has no gpu.
    alerts += ['gpu=~"|$gpu"' if name == "gpu" else f'{name}=~"${name}"' for name in places]
    return [
        annotation("Xid errors", f"{xids} * 1000", "red", "Xid {{xid}}", "{{node}} GPU {{gpu}} {{uuid}}", value_is_time=True),
        annotation("Alerts", f"ALERTS{{{','.join(alerts)}}}", "orange", "{{alertname}}",
                   "{{severity}} {{node}} GPU {{gpu}} {{namespace}} {{pod}}"),
    ]


def title_of(board):
    return "GPU ledger / " + TITLES.get(board, board.capitalize())


def board(name, about, since, *rows):
    links = [header_link(title_of(other), url(other, name)) for other in BOARDS if other != name]
    return dashboard(f"gpu-ledger-{name}", title_of(name), about, since, variables_of(name), events(name), links, rows)
