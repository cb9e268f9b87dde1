# SPDX-License-Identifier: Apache-2.0
"""The GPUs and processes of one node."""

from grafana import lines, stat, table
from queries import ONE_GPU, board, busy, by, either, gained, held_idle, line_link, of_process, rate, raw, row_link

ONE_PROCESS = "GPU {{gpu}} {{pod}} {{process_name}} {{pid}}"


def on_gpu(name, **exactly):
    return raw(name, "node", "instance", "gpu", **exactly)


def memory(what):
    return either(f"gpu_ledger_device_memory_{what}_bytes", f"gpu_idle_device_memory_{what}_bytes", on_gpu)


def now():
    used, there = memory("used"), memory("total")
    lost = gained(on_gpu("gpu_ledger_device_unattributed_joules_total"))
    all_of_it = gained(on_gpu("gpu_ledger_device_energy_joules_total"))
    return "Now", [
        stat("Power of the node's GPUs", "As the driver reports it at this moment.",
             f"sum({on_gpu('gpu_ledger_device_power_watts')})", "watt"),
        stat("GPUs that answer", "Lost ones do not count.", f"sum({on_gpu('gpu_ledger_device_up')})"),
        stat("Processes on GPUs", "One on two GPUs counts twice.",
             f"sum({on_gpu('gpu_process_count')}) or count({of_process('memory_used_bytes', on_gpu)})"),
        stat("GPU memory in use", "Of all memory of the GPUs chosen.", f"sum({used}) / sum({there})", "percentunit"),
        stat("GPU memory held idle", "By processes that do not work; without the collector idle, those of pods.",
             held_idle(on_gpu), "bytes"),
        stat("Energy that nobody used", "Share of the energy in the time chosen that belongs to no process: mostly that of "
             "idle GPUs.", f"sum({lost}) / sum({all_of_it})", "percentunit"),
    ]


def gpus():
    labels = "node, instance, gpu, uuid, model, driver, mig_mode, energy_source"
    info = by(labels, on_gpu("gpu_ledger_device_info"), "max")
    percent, older = f"{on_gpu('gpu_ledger_device_utilization_ratio')} * 100", on_gpu("gpu_idle_device_utilization_percent")
    return "GPUs", [
        lines("Power by GPU", "As the driver reports it, one value per scrape.",
              (on_gpu("gpu_ledger_device_power_watts"), ONE_GPU), unit="watt"),
        lines("Utilization by GPU", "Share of time in which any kernel ran. Absent where a GPU cannot say, as with MIG "
              "before Hopper.", (f"{percent} or on (cluster, job, instance, gpu) {older}", ONE_GPU), unit="percent"),
        lines("Memory by GPU", "GPU memory in use.", (memory("used"), ONE_GPU), unit="bytes"),
        lines("Temperature by GPU", "Of the GPU, not of its memory.",
              (on_gpu("gpu_ledger_temperature_celsius", sensor="gpu"), ONE_GPU), unit="celsius"),
        table("GPUs of the node", "What they are. energy_source is counter where the hardware counts its energy.",
              ("There", "none", info), height=7),
    ]


def processes():
    labels = "instance, gpu, pid, process_name, namespace, pod, container"
    watts = of_process("energy_joules_total", on_gpu, rate)
    nobody = by("gpu, reason", rate(on_gpu("gpu_ledger_device_unattributed_joules_total"))) + " > 0"
    of_each = lambda what: by(labels, of_process(what, on_gpu))
    idle = f'label_replace({on_gpu("gpu_idle_process_idle_seconds")}, "process_name", "$1", "process", "(.+)")'
    return "Processes", [
        lines("Power by process", "Processes and what belongs to nobody: together what the GPUs drew.",
              (by("gpu, namespace, pod, process_name, pid", watts), ONE_PROCESS),
              (nobody, "GPU {{gpu}} nobody: {{reason}}"), unit="watt", stacked=True, width=24, height=10,
              links=[line_link("node", "pod", "namespace", "pod")]),
        lines("Memory by process", "GPU memory that each process holds.",
              (of_process("memory_used_bytes", on_gpu), ONE_PROCESS), unit="bytes", stacked=True),
        lines("SM utilization by process", "Absent where the GPU does not report it by process.",
              (busy(on_gpu), ONE_PROCESS), unit="percentunit"),
        table("Processes on the node's GPUs", "Energy and GPU time since each began; its error is one standard error of the "
              "estimated part. Click on a pod to open it.", ("Watts", "watt", by(labels, watts)),
              ("Energy", "joule", of_each("energy_joules_total")),
              ("± one standard error", "joule", of_each("energy_standard_error_joules")),
              ("GPU time", "s", of_each("gpu_seconds_total")),
              ("SM", "percentunit", by(labels, busy(on_gpu))),
              ("Memory", "bytes", of_each("memory_used_bytes")), ("Idle for", "s", by(labels, idle)), height=12,
              links={"pod": row_link("node", "pod", "namespace", "pod")}),
    ]


def make():
    return board("node", "GPUs and processes of one node.", "1h", now(), gpus(), processes())
