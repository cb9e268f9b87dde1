#!/usr/bin/env python3
"""Makes the dashboards beside it: `python3 deploy/grafana/make_dashboards.py`. A test fails while they are out of date."""

import pathlib

from grafana import dashboard, lines, stat, table, variable

FOLDER = pathlib.Path(__file__).resolve().parent

CLUSTER = variable("cluster", "Cluster", "node:gpu_ledger_gpus:count", "cluster")
NAMESPACE = variable("namespace", "Namespace", 'namespace:gpu_ledger_power_watts:rate5m{cluster=~"$cluster"}', "namespace")
NODE = variable("node", "Node", "gpu_ledger_build_info", "node")
INSTANCE = variable("instance", "Instance", 'gpu_ledger_build_info{node=~"$node"}', "instance")
GPU = variable("gpu", "GPU", 'gpu_ledger_device_info{node=~"$node",instance=~"$instance"}', "gpu")

IN_CLUSTER = 'cluster=~"$cluster"'
IN_NAMESPACE = 'cluster=~"$cluster",namespace=~"$namespace"'
ON_NODE = 'node=~"$node",instance=~"$instance"'
ON_GPU = 'node=~"$node",instance=~"$instance",gpu=~"$gpu"'

PRICE = "* on () group_left () (gpu_ledger:pue * gpu_ledger:price_per_kwh)"
RULES = "From recording.rules.yml; price, CO2e and PUE are in parameters.rules.yml."


def spent(what):
    return f"sum by (cluster, namespace) (sum_over_time(namespace:gpu_ledger_{what}:minute{{{IN_NAMESPACE}}}[$__range]))"


def fleet():
    watts_of_pod = f"node_pod:gpu_ledger_power_watts:rate5m{{{IN_NAMESPACE}}}"
    kwh_of_pod = f"sum by (cluster, namespace, pod) (sum_over_time({watts_of_pod}[$__range])) / 60000"
    of_cluster = lambda what: f"sum(sum_over_time(cluster:gpu_ledger_{what}:minute{{{IN_CLUSTER}}}[$__range]))"
    return dashboard("gpu-ledger-fleet", "GPU ledger / Fleet", "Energy and cost by namespace and pod. " + RULES, "24h",
                     [CLUSTER, NAMESPACE], [
        ("All of it, in the time chosen", [
            stat("Power now", f"sum(cluster:gpu_ledger_power_watts:rate5m{{{IN_CLUSTER}}})", "watt"),
            stat("Energy", of_cluster("energy_kwh"), "kwatth", about=RULES),
            stat("Cost", of_cluster("cost"), "none", about=RULES),
            stat("CO2e", of_cluster("co2e_grams"), "massg", about=RULES),
            stat("GPUs", f"sum(cluster:gpu_ledger_gpus:sum{{{IN_CLUSTER}}})"),
            stat("Nodes", f"count(node:gpu_ledger_gpus:count{{{IN_CLUSTER}}})"),
        ]),
        ("Who spends it", [
            lines("Power by namespace",
                  (f"sum by (namespace) (namespace:gpu_ledger_power_watts:rate5m{{{IN_NAMESPACE}}})", "{{namespace}}"),
                  unit="watt", stacked=True),
            lines("Where every watt goes",
                  (f"sum by (owner, reason) (cluster_owner:gpu_ledger_power_watts:rate5m{{{IN_CLUSTER}}})", "{{owner}} {{reason}}"),
                  unit="watt", stacked=True, about="The sum is what the GPUs drew. Reasons belong to nobody."),
            table("Namespaces", ("kWh", "kwatth", spent("energy_kwh")), ("Cost", "none", spent("cost")),
                  ("CO2e", "massg", spent("co2e_grams")), ("GPU hours", "none", spent("gpu_hours")),
                  ("Idle memory now", "bytes",
                   f"sum by (cluster, namespace) (namespace:gpu_ledger_idle_memory_bytes:sum{{{IN_NAMESPACE}}})")),
            table("The 50 most expensive pods", ("kWh", "kwatth", f"topk(50, {kwh_of_pod})"),
                  ("Cost", "none", f"topk(50, {kwh_of_pod} {PRICE})")),
            lines("Cost per day",
                  (f"sum by (namespace) (sum_over_time(namespace:gpu_ledger_cost:hour{{{IN_NAMESPACE}}}[1d]))", "{{namespace}}"),
                  stacked=True, bars=True, interval="1d", about="Of the 24 hours before. Choose some weeks."),
            lines("The 20 hungriest nodes",
                  (f"topk(20, sum by (node, instance) (node:gpu_ledger_power_watts:rate5m{{{IN_CLUSTER}}}))", "{{node}} {{instance}}"),
                  unit="watt"),
        ]),
    ])


def node():
    labels = "instance, gpu, pid, process_name, namespace, pod, container"
    of_process = lambda what: f"sum by ({labels}) (my_gpu_process_{what}{{{ON_GPU}}})"
    one_process = "GPU {{gpu}} {{pod}} {{process_name}} {{pid}}"
    return dashboard("gpu-ledger-node", "GPU ledger / Node", "GPUs and processes of one node.", "1h", [NODE, INSTANCE, GPU], [
        ("Now", [
            stat("Power", f"sum(gpu_ledger_device_power_watts{{{ON_GPU}}})", "watt"),
            stat("GPUs that answer", f"sum(gpu_ledger_device_up{{{ON_GPU}}})"),
            stat("Processes", f"sum(gpu_process_count{{{ON_GPU}}})"),
            stat("Memory used", f"sum(gpu_idle_device_memory_used_bytes{{{ON_GPU}}}) / sum(gpu_idle_device_memory_total_bytes{{{ON_GPU}}})",
                 "percentunit"),
            stat("Memory held idle", f"sum(gpu_idle_memory_total_bytes{{{ON_GPU}}})", "bytes"),
            stat("Energy that nobody used", f'sum(increase(gpu_ledger_device_unattributed_joules_total{{{ON_GPU}}}[$__range]))'
                 f" / sum(increase(gpu_ledger_device_energy_joules_total{{{ON_GPU}}}[$__range]))", "percentunit"),
        ]),
        ("GPUs", [
            lines("Power", (f"gpu_ledger_device_power_watts{{{ON_GPU}}}", "{{node}} GPU {{gpu}}"), unit="watt"),
            lines("Utilisation", (f"gpu_idle_device_utilization_percent{{{ON_GPU}}}", "{{node}} GPU {{gpu}}"), unit="percent",
                  about="Absent where a GPU cannot say, as with MIG before Hopper."),
            lines("Memory", (f"gpu_idle_device_memory_used_bytes{{{ON_GPU}}}", "{{node}} GPU {{gpu}}"), unit="bytes"),
            lines("Temperature", (f"gpu_idle_device_temperature_celsius{{{ON_GPU}}}", "{{node}} GPU {{gpu}}"), unit="celsius"),
            table("GPUs", ("There", "none",
                           f"max by (node, instance, gpu, uuid, model, driver, mig_mode, energy_source) (gpu_ledger_device_info{{{ON_GPU}}})"),
                  height=7),
        ]),
        ("Processes", [
            lines("Power by process", (f"sum by (gpu, pod, process_name, pid) (rate(my_gpu_process_energy_joules_total{{{ON_GPU}}}[$__rate_interval]))",
                                       one_process),
                  (f"sum by (gpu, reason) (rate(gpu_ledger_device_unattributed_joules_total{{{ON_GPU}}}[$__rate_interval])) > 0",
                   "GPU {{gpu}} nobody: {{reason}}"), unit="watt", stacked=True, width=24, height=10,
                  about="Processes and what belongs to nobody: together what the GPUs drew."),
            lines("Memory by process", (f"my_gpu_process_memory_used_bytes{{{ON_GPU}}}", one_process), unit="bytes", stacked=True),
            lines("SM utilisation by process", (f"my_gpu_process_sm_utilization_ratio{{{ON_GPU}}}", one_process), unit="percentunit"),
            table("Processes", ("Watts", "watt", f"sum by ({labels}) (rate(my_gpu_process_energy_joules_total{{{ON_GPU}}}[$__rate_interval]))"),
                  ("Energy", "joule", of_process("energy_joules_total")),
                  ("± one standard error", "joule", of_process("energy_standard_error_joules")),
                  ("GPU time", "s", of_process("gpu_seconds_total")), ("SM", "percentunit", of_process("sm_utilization_ratio")),
                  ("Memory", "bytes", of_process("memory_used_bytes")),
                  ("Idle for", "s", f'sum by ({labels}) (label_replace(gpu_idle_process_idle_seconds{{{ON_GPU}}}, "process_name", "$1", "process", "(.+)"))'),
                  height=12),
        ]),
    ])


def waste():
    nobody = f'sum(sum_over_time(node_owner:gpu_ledger_power_watts:rate5m{{{IN_CLUSTER},owner="nobody",reason="idle"}}[$__range])) / 60000'
    idle_labels = "cluster, node, instance, namespace, pod, gpu, pid, process"
    given_labels = "cluster, node, instance, namespace, pod, container, gpu"
    return dashboard("gpu-ledger-waste", "GPU ledger / Waste", "Memory held without work, GPUs given and not used, energy that nobody used.",
                     "24h", [CLUSTER, NAMESPACE], [
        ("Now", [
            stat("Memory held idle by pods", f"sum(namespace:gpu_ledger_idle_memory_bytes:sum{{{IN_NAMESPACE}}})", "bytes"),
            stat("Of all GPU memory", f"sum(gpu_idle_memory_total_bytes{{{IN_CLUSTER}}}) / sum(gpu_idle_device_memory_total_bytes{{{IN_CLUSTER}}})",
                 "percentunit", about="Held by all idle processes, also those without a pod."),
            stat("GPUs given away", f"sum(namespace:gpu_ledger_gpus_given:sum{{{IN_NAMESPACE}}})",
                 about="With MIG instances and replicas."),
            stat("Given, unused for an hour", f"sum(namespace:gpu_ledger_gpus_unused1h:sum{{{IN_NAMESPACE}}}) or vector(0)"),
            stat("Energy of GPUs nobody held", nobody, "kwatth"),
            stat("Its cost", f"({nobody}) {PRICE}", about=RULES),
        ]),
        ("Over time", [
            lines("Idle memory by namespace", (f"sum by (namespace) (namespace:gpu_ledger_idle_memory_bytes:sum{{{IN_NAMESPACE}}})", "{{namespace}}"),
                  unit="bytes", stacked=True),
            lines("GPUs given and GPUs at work", (f"sum(namespace:gpu_ledger_gpus_given:sum{{{IN_NAMESPACE}}})", "given"),
                  (f"sum(namespace:gpu_ledger_gpu_hours:minute{{{IN_NAMESPACE}}}) * 60", "at work"),
                  about="At work: how many GPUs' worth of time. Several pods may share one GPU."),
        ]),
        ("Whom to ask", [
            table("Idle holders", ("Idle for", "s", f"max by ({idle_labels}) (gpu_idle_process_idle_seconds{{{IN_NAMESPACE}}} > 60)"),
                  ("Memory", "bytes", f"max by ({idle_labels}) (gpu_idle_process_idle_memory_bytes{{{IN_NAMESPACE}}} and gpu_idle_process_idle_seconds > 60)")),
            table("Given and not used", ("Unused for", "s", f"max by ({given_labels}) (gpu_ledger_allocation_idle_seconds{{{IN_NAMESPACE}}} > 60)")),
        ]),
    ])


def health():
    owners = "gpu_ledger_(pod|slurm_job|container|host)_energy_joules_total|gpu_ledger_device_unattributed_joules_total"
    balance = (f"max(abs(sum by (node, instance, gpu) (gpu_ledger_device_energy_joules_total{{{ON_NODE}}})"
               f' - sum by (node, instance, gpu) ({{__name__=~"{owners}",{ON_NODE}}})))')
    return dashboard("gpu-ledger-health", "GPU ledger / Health", "Is what the others show to be trusted?", "6h", [NODE, INSTANCE], [
        ("Now", [
            stat("Exporters that answer", f"count(gpu_ledger_build_info{{{ON_NODE}}})"),
            stat("That do not", 'count(up{job=~".*gpu-ledger.*"} == 0) or vector(0)', bad_above=1),
            stat("GPUs that do not answer", f"count(gpu_ledger_device_up{{{ON_NODE}}} == 0) or vector(0)", bad_above=1),
            stat("Sources that do not answer", f"count(gpu_ledger_source_up{{{ON_NODE}}} == 0) or vector(0)", bad_above=1),
            stat("Age of the oldest sample", f"max(time() - gpu_ledger_snapshot_timestamp_seconds{{{ON_NODE}}})", "s", bad_above=180),
            stat("Books: largest difference", balance, "joule", bad_above=0.01, about="Measured less booked energy of any GPU."),
        ]),
        ("GPUs", [
            table("Xid errors", ("Count", "none", f"max by (node, instance, gpu, uuid, xid) (gpu_ledger_xid_errors_total{{{ON_NODE}}})"), width=12),
            lines("Energy by reason that belongs to nobody",
                  (f"sum by (reason) (rate(gpu_ledger_device_unattributed_joules_total{{{ON_NODE}}}[$__rate_interval]))", "{{reason}}"),
                  unit="watt", height=9, about="unseen, exporter_down and anomaly should be 0."),
        ]),
        ("The exporter", [
            table("Sources", ("Answers", "none", f"max by (node, instance, source) (gpu_ledger_source_up{{{ON_NODE}}})"), width=12),
            lines("Errors of sources", (f"sum by (source, code) (rate(gpu_ledger_source_errors_total{{{ON_NODE}}}[$__rate_interval]))",
                                        "{{source}} {{code}}"), unit="cps", height=9),
            lines("Time of a cycle, 99 %", (f"histogram_quantile(0.99, sum by (le) (rate(gpu_ledger_sample_duration_seconds_bucket{{{ON_NODE}}}[$__rate_interval])))",
                                            "all"), unit="s"),
            lines("Processes without a name", (f"sum by (node, instance) (gpu_ledger_processes_without_owner{{{ON_NODE}}})", "{{node}} {{instance}}")),
            lines("CPU", (f"topk(10, rate(process_cpu_seconds_total{{{ON_NODE}}}[$__rate_interval])"
                          " and on (instance, node) gpu_ledger_build_info)", "{{node}} {{instance}}"), unit="percentunit", width=8),
            lines("Memory", (f"topk(10, process_resident_memory_bytes{{{ON_NODE}}} and on (instance, node) gpu_ledger_build_info)",
                             "{{node}} {{instance}}"), unit="bytes", width=8),
            lines("Series", (f"topk(10, gpu_ledger_series{{{ON_NODE}}})", "{{node}} {{instance}}"), width=8),
            table("Versions", ("Nodes", "none", f"count by (version) (gpu_ledger_build_info{{{ON_NODE}}})"), width=12, height=6),
            table("Simulated", ("Simulated", "none", f"max by (node, instance) (gpu_ledger_simulated{{{ON_NODE}}})"), width=12, height=6,
                  about="Numbers from here are made up. Empty where all GPUs are real."),
        ]),
    ])


def main():
    for make in (fleet, node, waste, health):
        (FOLDER / f"{make.__name__}.json").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
