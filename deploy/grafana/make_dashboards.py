#!/usr/bin/env python3
"""Makes the dashboards beside it: `python3 deploy/grafana/make_dashboards.py`. A test fails while they are old."""

import pathlib

from grafana import dashboard, lines, stat, table, variable

FOLDER = pathlib.Path(__file__).resolve().parent

CLUSTER = variable("cluster", "Cluster", "node:gpu_ledger_gpus:count", "cluster")
NAMESPACE = variable("namespace", "Namespace", 'namespace:gpu_ledger_power_watts:rate5m{cluster=~"$cluster"}',
                     "namespace")
NODE = variable("node", "Node", "gpu_ledger_build_info", "node")
INSTANCE = variable("instance", "Instance", 'gpu_ledger_build_info{node=~"$node"}', "instance")
GPU = variable("gpu", "GPU", 'gpu_ledger_device_info{node=~"$node",instance=~"$instance"}', "gpu")

PRICE = "* on () group_left () (gpu_ledger:pue * gpu_ledger:price_per_kwh)"
RULES = "From recording.rules.yml; price, CO2e and PUE are in parameters.rules.yml."
ONE_GPU = "{{node}} GPU {{gpu}}"
ONE_NODE = "{{node}} {{instance}}"
ONE_PROCESS = "GPU {{gpu}} {{pod}} {{process_name}} {{pid}}"


def in_cluster(name, more=""):
    return f'{name}{{cluster=~"$cluster"{more}}}'


def in_namespace(name):
    return f'{name}{{cluster=~"$cluster",namespace=~"$namespace"}}'


def on_node(name):
    return f'{name}{{node=~"$node",instance=~"$instance"}}'


def on_gpu(name):
    return f'{name}{{node=~"$node",instance=~"$instance",gpu=~"$gpu"}}'


def by(labels, query, how="sum"):
    return f"{how} by ({labels}) ({query})"


def rate(series):
    return f"rate({series}[$__rate_interval])"


def in_range(series):
    return f"sum_over_time({series}[$__range])"


def fleet_totals():
    minutes = lambda what: f"sum({in_range(in_cluster(f'cluster:gpu_ledger_{what}:minute'))})"
    return "All of it, in the time chosen", [
        stat("Power now", f"sum({in_cluster('cluster:gpu_ledger_power_watts:rate5m')})", "watt"),
        stat("Energy", minutes("energy_kwh"), "kwatth", about=RULES),
        stat("Cost", minutes("cost"), about=RULES),
        stat("CO2e", minutes("co2e_grams"), "massg", about=RULES),
        stat("GPUs", f"sum({in_cluster('cluster:gpu_ledger_gpus:sum')})"),
        stat("Nodes", f"count({in_cluster('node:gpu_ledger_gpus:count')})"),
    ]


def fleet_spenders():
    spent = lambda what: by("cluster, namespace", in_range(in_namespace(f"namespace:gpu_ledger_{what}:minute")))
    pods = by("cluster, namespace, pod", in_range(in_namespace("node_pod:gpu_ledger_power_watts:rate5m"))) + " / 60000"
    idle = by("cluster, namespace", in_namespace("namespace:gpu_ledger_idle_memory_bytes:sum"))
    days = by("namespace", f"sum_over_time({in_namespace('namespace:gpu_ledger_cost:hour')}[1d])")
    watts = by("namespace", in_namespace("namespace:gpu_ledger_power_watts:rate5m"))
    owners = by("owner, reason", in_cluster("cluster_owner:gpu_ledger_power_watts:rate5m"))
    nodes = by("node, instance", in_cluster("node:gpu_ledger_power_watts:rate5m"))
    return "Who spends it", [
        lines("Power by namespace", (watts, "{{namespace}}"), unit="watt", stacked=True),
        lines("Where every watt goes", (owners, "{{owner}} {{reason}}"), unit="watt", stacked=True,
              about="The sum is what the GPUs drew. Reasons belong to nobody."),
        table("Namespaces", ("kWh", "kwatth", spent("energy_kwh")), ("Cost", "none", spent("cost")),
              ("CO2e", "massg", spent("co2e_grams")), ("GPU hours", "none", spent("gpu_hours")),
              ("Idle memory now", "bytes", idle)),
        table("The 50 most expensive pods", ("kWh", "kwatth", f"topk(50, {pods})"),
              ("Cost", "none", f"topk(50, {pods} {PRICE})")),
        lines("Cost per day", (days, "{{namespace}}"), stacked=True, bars=True, interval="1d",
              about="Of the 24 hours before. Choose some weeks."),
        lines("The 20 hungriest nodes", (f"topk(20, {nodes})", ONE_NODE), unit="watt"),
    ]


def node_now():
    used, there = on_gpu("gpu_idle_device_memory_used_bytes"), on_gpu("gpu_idle_device_memory_total_bytes")
    lost = on_gpu("gpu_ledger_device_unattributed_joules_total")
    all_of_it = on_gpu("gpu_ledger_device_energy_joules_total")
    return "Now", [
        stat("Power", f"sum({on_gpu('gpu_ledger_device_power_watts')})", "watt"),
        stat("GPUs that answer", f"sum({on_gpu('gpu_ledger_device_up')})"),
        stat("Processes", f"sum({on_gpu('gpu_process_count')})"),
        stat("Memory used", f"sum({used}) / sum({there})", "percentunit"),
        stat("Memory held idle", f"sum({on_gpu('gpu_idle_memory_total_bytes')})", "bytes"),
        stat("Energy that nobody used", f"sum(increase({lost}[$__range])) / sum(increase({all_of_it}[$__range]))",
             "percentunit"),
    ]


def node_gpus():
    labels = "node, instance, gpu, uuid, model, driver, mig_mode, energy_source"
    info = by(labels, on_gpu("gpu_ledger_device_info"), "max")
    return "GPUs", [
        lines("Power", (on_gpu("gpu_ledger_device_power_watts"), ONE_GPU), unit="watt"),
        lines("Utilisation", (on_gpu("gpu_idle_device_utilization_percent"), ONE_GPU), unit="percent",
              about="Absent where a GPU cannot say, as with MIG before Hopper."),
        lines("Memory", (on_gpu("gpu_idle_device_memory_used_bytes"), ONE_GPU), unit="bytes"),
        lines("Temperature", (on_gpu("gpu_idle_device_temperature_celsius"), ONE_GPU), unit="celsius"),
        table("GPUs", ("There", "none", info), height=7),
    ]


def node_processes():
    labels = "instance, gpu, pid, process_name, namespace, pod, container"
    energy = on_gpu("my_gpu_process_energy_joules_total")
    nobody = by("gpu, reason", rate(on_gpu("gpu_ledger_device_unattributed_joules_total"))) + " > 0"
    of_process = lambda what: by(labels, on_gpu(f"my_gpu_process_{what}"))
    idle = f'label_replace({on_gpu("gpu_idle_process_idle_seconds")}, "process_name", "$1", "process", "(.+)")'
    return "Processes", [
        lines("Power by process", (by("gpu, pod, process_name, pid", rate(energy)), ONE_PROCESS),
              (nobody, "GPU {{gpu}} nobody: {{reason}}"), unit="watt", stacked=True, width=24, height=10,
              about="Processes and what belongs to nobody: together what the GPUs drew."),
        lines("Memory by process", (on_gpu("my_gpu_process_memory_used_bytes"), ONE_PROCESS), unit="bytes",
              stacked=True),
        lines("SM utilisation by process", (on_gpu("my_gpu_process_sm_utilization_ratio"), ONE_PROCESS),
              unit="percentunit"),
        table("Processes", ("Watts", "watt", by(labels, rate(energy))),
              ("Energy", "joule", of_process("energy_joules_total")),
              ("± one standard error", "joule", of_process("energy_standard_error_joules")),
              ("GPU time", "s", of_process("gpu_seconds_total")),
              ("SM", "percentunit", of_process("sm_utilization_ratio")),
              ("Memory", "bytes", of_process("memory_used_bytes")), ("Idle for", "s", by(labels, idle)), height=12),
    ]


def waste_now():
    idle = in_cluster("node_owner:gpu_ledger_power_watts:rate5m", ',owner="nobody",reason="idle"')
    nobody = f"sum({in_range(idle)}) / 60000"
    held, there = in_cluster("gpu_idle_memory_total_bytes"), in_cluster("gpu_idle_device_memory_total_bytes")
    return "Now", [
        stat("Memory held idle by pods", f"sum({in_namespace('namespace:gpu_ledger_idle_memory_bytes:sum')})", "bytes"),
        stat("Of all GPU memory", f"sum({held}) / sum({there})", "percentunit",
             about="Held by all idle processes, also those without a pod."),
        stat("GPUs given away", f"sum({in_namespace('namespace:gpu_ledger_gpus_given:sum')})",
             about="With MIG instances and replicas."),
        stat("Given, unused for an hour",
             f"sum({in_namespace('namespace:gpu_ledger_gpus_unused1h:sum')}) or vector(0)"),
        stat("Energy of GPUs nobody held", nobody, "kwatth"),
        stat("Its cost", f"({nobody}) {PRICE}", about=RULES),
    ]


def waste_over_time():
    idle = by("namespace", in_namespace("namespace:gpu_ledger_idle_memory_bytes:sum"))
    return "Over time", [
        lines("Idle memory by namespace", (idle, "{{namespace}}"), unit="bytes", stacked=True),
        lines("GPUs given and GPUs at work", (f"sum({in_namespace('namespace:gpu_ledger_gpus_given:sum')})", "given"),
              (f"sum({in_namespace('namespace:gpu_ledger_gpu_hours:minute')}) * 60", "at work"),
              about="At work: how many GPUs' worth of time. Several pods may share one GPU."),
    ]


def waste_whom_to_ask():
    process = "cluster, node, instance, namespace, pod, gpu, pid, process"
    idle = f"{in_namespace('gpu_idle_process_idle_seconds')} > 60"
    memory = f"{in_namespace('gpu_idle_process_idle_memory_bytes')} and gpu_idle_process_idle_seconds > 60"
    given = by("cluster, node, instance, namespace, pod, container, gpu",
               f"{in_namespace('gpu_ledger_allocation_idle_seconds')} > 60", "max")
    return "Whom to ask", [
        table("Idle holders", ("Idle for", "s", by(process, idle, "max")),
              ("Memory", "bytes", by(process, memory, "max"))),
        table("Given and not used", ("Unused for", "s", given)),
    ]


def health_now():
    owners = ("gpu_ledger_(pod|slurm_job|container|host|unknown_owner)_energy_joules_total|gpu_ledger_closed_energy_joules"
              "|gpu_ledger_device_unattributed_joules_total")
    booked = f'{{__name__=~"{owners}",node=~"$node",instance=~"$instance"}}'
    measured = on_node("gpu_ledger_device_energy_joules_total")
    balance = f"max(abs({by('node, instance, gpu', measured)} - {by('node, instance, gpu', booked)}))"
    silent = lambda name: f"count({on_node(name)} == 0) or vector(0)"
    return "Now", [
        stat("Exporters that answer", f"count({on_node('gpu_ledger_build_info')})"),
        stat("That do not", 'count(up{job=~".*gpu-ledger.*"} == 0) or vector(0)', bad_above=1),
        stat("GPUs that do not answer", silent("gpu_ledger_device_up"), bad_above=1),
        stat("Sources that do not answer", silent("gpu_ledger_source_up"), bad_above=1),
        stat("Age of the oldest sample", f"max(time() - {on_node('gpu_ledger_snapshot_timestamp_seconds')})", "s",
             bad_above=180),
        stat("Books: largest difference", balance, "joule", bad_above=0.01,
             about="Measured less booked energy of any GPU."),
    ]


def health_gpus():
    xids = by("node, instance, gpu, uuid, xid", on_node("gpu_ledger_xid_errors_total"), "max")
    nobody = by("reason", rate(on_node("gpu_ledger_device_unattributed_joules_total")))
    one = "node, instance, gpu, uuid"
    # Rows from Ampere on, pages before.
    pending = f"{on_node('gpu_ledger_row_remap_pending')} or {on_node('gpu_ledger_retired_pages_pending')}"
    replaced = f"{on_node('gpu_ledger_remapped_rows')} or {on_node('gpu_ledger_retired_pages')}"
    errors = on_node("gpu_ledger_ecc_errors_total").replace("}", ',type="uncorrected",scope="aggregate"}')
    links = by("node, gpu, kind", rate(on_node("gpu_ledger_nvlink_errors_total")))
    held_back = by("reason", on_node("gpu_ledger_throttle_active"))
    hottest = by("node, gpu, sensor", on_node("gpu_ledger_temperature_celsius"), "max")
    return "GPUs", [
        table("Xid errors", ("Count", "none", xids), width=12),
        lines("Energy by reason that belongs to nobody", (nobody, "{{reason}}"), unit="watt", height=9,
              about="unseen, exporter_down and anomaly should be 0."),
        table("Memory", ("Errors not corrected, in its life", "none", by(one, errors)),
              ("Rows or pages replaced", "none", by(one, replaced)),
              ("Waits for a reset", "none", by(one, pending, "max")), width=12,
              about="A GPU that could not replace a row sends the alert GpuLedgerMemoryWorn."),
        lines("GPUs that are held back", (held_back, "{{reason}}"), height=9,
              about="sw_power_cap is a GPU at its power limit. Heat and hw_ reasons want a look at the machine."),
        lines("The 10 hottest", (f"topk(10, {hottest})", "{{node}} GPU {{gpu}} {{sensor}}"), unit="celsius"),
        lines("NVLink errors", (links, "{{node}} GPU {{gpu}} {{kind}}"), unit="cps"),
    ]


def health_exporter():
    cycle = by("le", rate(on_node("gpu_ledger_sample_duration_seconds_bucket")))
    versions = by("version", on_node("gpu_ledger_build_info"), "count")
    simulated = by("node, instance", on_node("gpu_ledger_simulated"), "max")
    sources = by("node, instance, source", on_node("gpu_ledger_source_up"), "max")
    errors = by("source, code", rate(on_node("gpu_ledger_source_errors_total")))
    unnamed = by("node, instance", on_node("gpu_ledger_processes_without_owner"))
    # process_* is a name that every exporter uses.
    own = lambda query: f"topk(10, {query} and on (instance, node) gpu_ledger_build_info)"
    return "The exporter", [
        table("Sources", ("Answers", "none", sources), width=12),
        lines("Errors of sources", (errors, "{{source}} {{code}}"), unit="cps", height=9),
        lines("Time of a cycle, 99 %", (f"histogram_quantile(0.99, {cycle})", "all"), unit="s"),
        lines("Processes without a name", (unnamed, ONE_NODE)),
        lines("CPU", (own(rate(on_node("process_cpu_seconds_total"))), ONE_NODE), unit="percentunit", width=8),
        lines("Memory", (own(on_node("process_resident_memory_bytes")), ONE_NODE), unit="bytes", width=8),
        lines("Series", (f"topk(10, {on_node('gpu_ledger_series')})", ONE_NODE), width=8),
        table("Versions", ("Nodes", "none", versions), width=12, height=6),
        table("Simulated", ("Simulated", "none", simulated), width=12, height=6,
              about="Numbers from here are made up. Empty where all GPUs are real."),
    ]


def fleet():
    return dashboard("gpu-ledger-fleet", "GPU ledger / Fleet", "Energy and cost by namespace and pod. " + RULES, "24h",
                     [CLUSTER, NAMESPACE], [fleet_totals(), fleet_spenders()])


def node():
    return dashboard("gpu-ledger-node", "GPU ledger / Node", "GPUs and processes of one node.", "1h",
                     [NODE, INSTANCE, GPU], [node_now(), node_gpus(), node_processes()])


def waste():
    about = "Memory held without work, GPUs given and not used, energy that nobody used."
    return dashboard("gpu-ledger-waste", "GPU ledger / Waste", about, "24h", [CLUSTER, NAMESPACE],
                     [waste_now(), waste_over_time(), waste_whom_to_ask()])


def health():
    return dashboard("gpu-ledger-health", "GPU ledger / Health", "Is what the others show to be trusted?", "6h",
                     [NODE, INSTANCE], [health_now(), health_gpus(), health_exporter()])


def main():
    for make in (fleet, node, waste, health):
        (FOLDER / f"{make.__name__}.json").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
