# SPDX-License-Identifier: Apache-2.0
"""One pod: what it draws, where, and how sure that is."""

from grafana import lines, stat, table
from queries import CO2E, COST, PRICE, board, busy, by, gained, of_process, raw, rate, row_link

PRESENT = "At the price, PUE and CO2e of now (parameters.rules.yml)."


def mine(name, **exactly):
    return raw(name, "namespace", "pod", **exactly)


def totals():
    joules = gained(mine("gpu_ledger_pod_energy_joules_total"))
    estimated = gained(mine("gpu_ledger_pod_energy_joules_total", energy_estimated="true"))
    seconds = gained(mine("gpu_ledger_pod_gpu_seconds_total"))
    return "$namespace / $pod, in the time chosen", [
        stat("Power of the pod", "Mean power of its processes now.",
             f"sum({rate(mine('gpu_ledger_pod_energy_joules_total'))})", "watt"),
        stat("Energy of the pod", "Of its running and ended processes.", f"sum({joules}) / 3.6e6", "kwatth"),
        stat("Estimated part of the pod's energy", "Spent while it shared a GPU, so divided by the model; the rest is "
             "measured.", f"sum({estimated}) / sum({joules})", "percentunit"),
        stat(f"{COST} of the pod", PRESENT, f"sum({by('cluster', joules)} / 3.6e6 {PRICE})"),
        stat("CO2e of the pod", PRESENT, f"sum({by('cluster', joules)} / 3.6e6 {CO2E})", "massg"),
        stat("GPU hours of the pod", "Time in which its processes worked on a GPU. Absent on MIG.",
             f"sum({seconds}) / 3600", "none"),
    ]


def over_time():
    energy = by("container, node, gpu", rate(mine("gpu_ledger_pod_energy_joules_total")))
    kinds = by("energy_estimated", rate(mine("gpu_ledger_pod_energy_joules_total")))
    at_work = by("node, gpu", rate(mine("gpu_ledger_pod_gpu_seconds_total")))
    memory = by("node, gpu, process_name, pid", of_process("memory_used_bytes", mine))
    sm = by("node, gpu, process_name, pid", busy(mine))
    held = by("node, gpu, container", mine("gpu_ledger_pod_idle_memory_bytes"))
    process = "{{node}} GPU {{gpu}} {{process_name}} {{pid}}"
    return "Over time", [
        lines("Power of the pod by container and GPU", "Their sum is the pod's power.",
              (energy, "{{container}} {{node}} GPU {{gpu}}"), unit="watt", stacked=True),
        lines("Power of the pod, measured and estimated", "Estimated (true) is while it shares a GPU with others.",
              (kinds, "estimated: {{energy_estimated}}"), unit="watt", stacked=True),
        lines("GPU time of the pod", "Seconds of work per second: 1 is one GPU always at work. Absent on MIG.",
              (at_work, "{{node}} GPU {{gpu}}"), stacked=True),
        lines("SM utilization of the pod's processes", "Absent where the GPU does not report it by process.",
              (sm, process), unit="percentunit"),
        lines("GPU memory of the pod's processes", "What each process holds.", (memory, process), unit="bytes", stacked=True),
        lines("Memory that the pod holds idle", "GPU memory of its processes that do not work.",
              (held, "{{container}} {{node}} GPU {{gpu}}"), unit="bytes"),
    ]


def places():
    one = "cluster, node, instance, gpu, container"
    joules = by(one, gained(mine("gpu_ledger_pod_energy_joules_total")))
    error = by(one, mine("gpu_ledger_pod_energy_standard_error_joules"))
    hours = by(one, gained(mine("gpu_ledger_pod_gpu_seconds_total"))) + " / 3600"
    process = "cluster, node, instance, gpu, container, pid, process_name"
    return "Where", [
        table("GPUs of the pod", "In the time chosen; the error is that of all it ever spent. Click on a node to open it.",
              ("Energy", "joule", joules), ("± one standard error", "joule", error), ("GPU hours", "none", hours),
              links={"node": row_link("pod", "node", "node")}),
        table("Processes of the pod", "Running ones, and ended ones for --metric-retention.",
              ("Watts", "watt", by(process, of_process("energy_joules_total", mine, rate))),
              ("Memory", "bytes", by(process, of_process("memory_used_bytes", mine))),
              ("SM", "percentunit", by(process, busy(mine))),
              links={"node": row_link("pod", "node", "node")}),
    ]


def make():
    return board("pod", "What one pod spends, on which GPUs, and how sure that is.", "6h", totals(), over_time(), places())
