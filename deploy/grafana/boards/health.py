# SPDX-License-Identifier: Apache-2.0
"""Whether GPUs are well, and whether what the other dashboards show is to be trusted."""

from grafana import lines, stat, table
from queries import ONE_NODE, board, by, line_link, rate, raw, row_link

OWNERS = ("gpu_ledger_(pod|slurm_job|container|host|unknown_owner)_energy_joules_total|gpu_ledger_closed_energy_joules"
          "|gpu_ledger_device_unattributed_joules_total")
TO_NODE = [line_link("health", "node", "node")]
ROW_TO_NODE = {"node": row_link("health", "node", "node")}


def on_node(name, **exactly):
    return raw(name, "node", "instance", **exactly)


def now():
    # Without $job: the label job of Slurm's series is Slurm's number too, until the version after this one.
    booked = f'{{__name__=~"{OWNERS}",cluster=~"$cluster",node=~"$node",instance=~"$instance"}}'
    measured = on_node("gpu_ledger_device_energy_joules_total")
    balance = f"max(abs({by('node, instance, gpu', measured)} - {by('node, instance, gpu', booked)}))"
    silent = lambda name: f"count({on_node(name)} == 0) or vector(0)"
    # Of all targets those that are called gpu-ledger, and those that were one in the last day.
    known = (on_node("up", job=".*gpu-ledger.*").replace('job="', 'job=~"')
             + f" or last_over_time({on_node('gpu_ledger_build_info')}[1d])")
    down = f"count({on_node('up')} == 0 and on (cluster, job, instance) ({known})) or vector(0)"
    return "Now", [
        stat("Exporters that answer", "Nodes with a running gpu-ledger that Prometheus scrapes.",
             f"count({on_node('gpu_ledger_build_info')})"),
        stat("Exporters that do not answer", "Targets that cannot be scraped; the alert is GpuLedgerDown.", down, bad_above=1),
        stat("GPUs that do not answer", "Lost to the driver; the alert is GpuLedgerDeviceDown.",
             silent("gpu_ledger_device_up"), bad_above=1),
        stat("Sources that do not answer", "Driver, kubelet, container engines and others that gpu-ledger reads.",
             silent("gpu_ledger_source_up"), bad_above=1),
        stat("Age of the oldest sample", "Of any node; the alert GpuLedgerStale fires at three minutes.",
             f"max(time() - {on_node('gpu_ledger_snapshot_timestamp_seconds')})", "s", bad_above=180),
        stat("Largest difference of the books", "Measured less booked energy of any GPU. It is 0 but for rounding.",
             balance, "joule", bad_above=0.01),
    ]


def gpus():
    xids = by("node, instance, gpu, uuid, xid", on_node("gpu_ledger_xid_errors_total"), "max")
    nobody = by("reason", rate(on_node("gpu_ledger_device_unattributed_joules_total")))
    one = "node, instance, gpu, uuid"
    # Rows from Ampere on, pages before.
    pending = f"{on_node('gpu_ledger_row_remap_pending')} or {on_node('gpu_ledger_retired_pages_pending')}"
    replaced = f"{on_node('gpu_ledger_remapped_rows')} or {on_node('gpu_ledger_retired_pages')}"
    errors = on_node("gpu_ledger_ecc_errors_total", type="uncorrected", scope="aggregate")
    links = by("node, gpu, kind", rate(on_node("gpu_ledger_nvlink_errors_total")))
    held_back = by("reason", on_node("gpu_ledger_throttle_active"))
    hottest = by("node, gpu, sensor", on_node("gpu_ledger_temperature_celsius"), "max")
    return "GPUs", [
        table("Xid errors by GPU", "That the driver reported. 13, 31, 43, 45, 68 and 109 are mostly faults of a program.", ("Count", "none", xids), width=12, links=ROW_TO_NODE),
        lines("Energy by reason that belongs to nobody", "unseen, exporter_down and anomaly should be 0.",
              (nobody, "{{reason}}"), unit="watt", height=9),
        table("Faulty memory by GPU", "A GPU that could not replace a row sends the alert GpuLedgerMemoryWorn.",
              ("Errors not corrected, in its life", "none", by(one, errors)),
              ("Rows or pages replaced", "none", by(one, replaced)),
              ("Waits for a reset", "none", by(one, pending, "max")), width=12, links=ROW_TO_NODE),
        lines("GPUs that are held back", "sw_power_cap is a GPU at its power limit. Heat and hw_ reasons want a look at the "
              "machine.", (held_back, "{{reason}}"), height=9),
        lines("The 10 hottest GPUs", "By the sensor of the GPU and of its memory.",
              (f"topk(10, {hottest})", "{{node}} GPU {{gpu}} {{sensor}}"), unit="celsius", links=TO_NODE),
        lines("NVLink errors by GPU", "Few CRC errors are normal; replays and recoveries are not.",
              (links, "{{node}} GPU {{gpu}} {{kind}}"), unit="cps", links=TO_NODE),
    ]


def exporter():
    cycle = by("le", rate(on_node("gpu_ledger_sample_duration_seconds_bucket")))
    versions = by("version", on_node("gpu_ledger_build_info"), "count")
    simulated = by("node, instance", on_node("gpu_ledger_simulated"), "max")
    sources = by("node, instance, source", on_node("gpu_ledger_source_up"), "max")
    errors = by("source, code", rate(on_node("gpu_ledger_source_errors_total")))
    unnamed = by("node, instance", on_node("gpu_ledger_processes_without_owner"))
    # process_* is a name that every exporter uses.
    own = lambda query: f"topk(10, {query} and on (instance, node) {on_node('gpu_ledger_build_info')})"
    return "The exporter", [
        table("Sources by node", "1 while a source answers. The page of the node says why one does not.",
              ("Answers", "none", sources), width=12, links=ROW_TO_NODE),
        lines("Errors of sources", "Failed requests per second, by source and code.", (errors, "{{source}} {{code}}"),
              unit="cps", height=9),
        lines("Time of a sampling cycle, 99 %", "From the first driver call to the published numbers, of all nodes.",
              (f"histogram_quantile(0.99, {cycle})", "all"), unit="s"),
        lines("Processes without a name", "In a pod or container whose name no source told.", (unnamed, ONE_NODE),
              links=TO_NODE),
        lines("CPU of the exporter", "Of one core; the 10 nodes that need most.",
              (own(rate(on_node("process_cpu_seconds_total"))), ONE_NODE), unit="percentunit", width=8),
        lines("Memory of the exporter", "Resident; the 10 nodes that need most.",
              (own(on_node("process_resident_memory_bytes")), ONE_NODE), unit="bytes", width=8),
        lines("Series of the exporter", "In one scrape; the 10 nodes that have most.",
              (f"topk(10, {on_node('gpu_ledger_series')})", ONE_NODE), width=8),
        table("Versions of gpu-ledger", "How many nodes run which.", ("Nodes", "none", versions), width=12, height=6),
        table("Simulated nodes", "Numbers from here are made up. Empty where all GPUs are real.",
              ("Simulated", "none", simulated), width=12, height=6),
    ]


def make():
    return board("health", "Are the GPUs well, and is what the others show to be trusted?", "6h", now(), gpus(), exporter())
