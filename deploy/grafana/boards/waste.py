# SPDX-License-Identifier: Apache-2.0
"""What is held or drawn without work, and whom to ask."""

from grafana import lines, stat, table
from queries import COST, PRICE, RULES, board, by, either, held_idle, kwh_of_watts, line_link, raw, recorded, row_link


def now():
    idle = recorded("node_owner:gpu_ledger_power_watts:rate5m", owner="nobody", reason="idle")
    nobody = f"sum({kwh_of_watts(idle)})"
    there = either("gpu_ledger_device_memory_total_bytes", "gpu_idle_device_memory_total_bytes", raw)
    given = recorded("namespace:gpu_ledger_gpus_given:sum", "namespace")
    unused = recorded("namespace:gpu_ledger_gpus_unused1h:sum", "namespace")
    return "Now", [
        stat("Memory held idle by pods", "GPU memory of pods whose processes do not work.",
             f"sum({recorded('namespace:gpu_ledger_idle_memory_bytes:sum', 'namespace')})", "bytes"),
        stat("Share of GPU memory held idle", "Held by all idle processes, also those without a pod; without "
             "the collector idle, by those of pods.", f"{held_idle(raw)} / sum({there})", "percentunit"),
        stat("GPUs given to pods", "That Kubernetes allocated, with MIG instances and replicas.", f"sum({given})"),
        stat("GPUs given and unused for an hour", "Nobody else can have them meanwhile.", f"sum({unused}) or vector(0)"),
        stat("Energy of GPUs nobody held", "Drawn in the time chosen by GPUs without a process.", nobody, "kwatth"),
        stat(f"{COST} of GPUs nobody held", f"At the price of now. {RULES}", f"sum({by('cluster', kwh_of_watts(idle))} {PRICE})"),
    ]


def over_time():
    idle = by("namespace", recorded("namespace:gpu_ledger_idle_memory_bytes:sum", "namespace"))
    return "Over time", [
        lines("Idle memory by namespace", "GPU memory of pods whose processes do not work.", (idle, "{{namespace}}"),
              unit="bytes", stacked=True, links=[line_link("waste", "team", "namespace")]),
        lines("GPUs given and GPUs at work", "At work: how many GPUs' worth of time. Several pods may share one GPU.",
              (f"sum({recorded('namespace:gpu_ledger_gpus_given:sum', 'namespace')})", "given"),
              (f"sum({recorded('namespace:gpu_ledger_gpu_hours:minute', 'namespace')}) * 60", "at work")),
    ]


def whom_to_ask():
    process = "cluster, node, instance, namespace, pod, gpu, pid, process"
    seconds = raw("gpu_idle_process_idle_seconds", "namespace")
    pods = f"{raw('gpu_ledger_pod_idle_memory_bytes', 'namespace')} > 0 unless on (cluster, job, instance) {seconds}"
    memory = f"{raw('gpu_idle_process_idle_memory_bytes', 'namespace')} and {seconds} > 60 or ({pods})"
    given = by("cluster, node, instance, namespace, pod, container, gpu",
               f"{raw('gpu_ledger_allocation_idle_seconds', 'namespace')} > 60", "max")
    links = {"pod": row_link("waste", "pod", "namespace", "pod"), "node": row_link("waste", "node", "node")}
    return "Whom to ask", [
        table("Idle holders of GPU memory", "Processes that hold memory and have not worked for a minute. Without the "
              "collector idle: pods that hold memory without work now.",
              ("Idle for", "s", by(process, f"{seconds} > 60", "max")), ("Memory", "bytes", by(process, memory, "max")),
              links=links),
        table("GPUs given and not used", "Containers that have not worked on their GPU for a minute.",
              ("Unused for", "s", given), links=links),
    ]


def make():
    about = "Memory held without work, GPUs given and not used, energy that nobody used."
    return board("waste", about, "24h", now(), over_time(), whom_to_ask())
