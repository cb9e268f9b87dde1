# SPDX-License-Identifier: Apache-2.0
"""Who spends energy and money: everything, by namespace, by pod."""

from grafana import lines, stat, table
from queries import COST, ONE_NODE, PRICE, RULES, board, by, in_range, kwh_of_watts, line_link, recorded, row_link


def totals():
    minutes = lambda what: f"sum({in_range(recorded(f'cluster:gpu_ledger_{what}:minute'))})"
    return "All of it, in the time chosen", [
        stat("Power of all GPUs", "What all GPUs draw now, mean over five minutes.",
             f"sum({recorded('cluster:gpu_ledger_power_watts:rate5m')})", "watt"),
        stat("Energy of all GPUs", f"Measured at the GPUs in the time chosen. {RULES}", minutes("energy_kwh"), "kwatth"),
        stat(f"{COST} of all GPUs", f"Energy with PUE and the price of each minute. {RULES}", minutes("cost")),
        stat("CO2e of all GPUs", f"Energy with PUE and the CO2e per kWh of each minute. {RULES}",
             minutes("co2e_grams"), "massg"),
        stat("GPUs in the fleet", "GPUs that an exporter sees, also lost ones.",
             f"sum({recorded('cluster:gpu_ledger_gpus:sum')})"),
        stat("Nodes in the fleet", "Nodes with an exporter that is scraped.",
             f"count({recorded('node:gpu_ledger_gpus:count')})"),
    ]


def spenders():
    spent = lambda what: by("cluster, namespace",
                            in_range(recorded(f"namespace:gpu_ledger_{what}:minute", "namespace")))
    pods = by("cluster, namespace, pod",
              kwh_of_watts(recorded("node_pod:gpu_ledger_power_watts:rate5m", "namespace")))
    idle = by("cluster, namespace", recorded("namespace:gpu_ledger_idle_memory_bytes:sum", "namespace"))
    days = by("namespace", f"sum_over_time({recorded('namespace:gpu_ledger_cost:hour', 'namespace')}[1d])")
    watts = by("namespace", recorded("namespace:gpu_ledger_power_watts:rate5m", "namespace"))
    owners = by("owner, reason", recorded("cluster_owner:gpu_ledger_power_watts:rate5m"))
    nodes = by("node, instance", recorded("node:gpu_ledger_power_watts:rate5m"))
    to_team, to_pod = row_link("fleet", "team", "namespace"), row_link("fleet", "pod", "namespace", "pod")
    return "Who spends it", [
        lines("Power by namespace", "Power of the pods of each namespace. Click on one to open it.",
              (watts, "{{namespace}}"), unit="watt", stacked=True, links=[line_link("fleet", "team", "namespace")]),
        lines("Where every watt goes", "The sum is what the GPUs drew. Reasons belong to nobody.",
              (owners, "{{owner}} {{reason}}"), unit="watt", stacked=True),
        table("Namespaces by energy", f"In the time chosen; idle memory is that of now. {RULES}",
              ("kWh", "kwatth", spent("energy_kwh")), (COST, "none", spent("cost")),
              ("CO2e", "massg", spent("co2e_grams")), ("GPU hours", "none", spent("gpu_hours")),
              ("Idle memory now", "bytes", idle), links={"namespace": to_team}),
        table("The 50 most expensive pods", "In the time chosen, at the price of now. Click on a pod to open it.",
              ("kWh", "kwatth", f"topk(50, {pods})"), (COST, "none", f"topk(50, {pods} {PRICE})"),
              links={"namespace": to_team, "pod": to_pod}),
        lines(f"{COST} per day by namespace", "Of the 24 hours before. Choose some weeks.", (days, "{{namespace}}"),
              stacked=True, bars=True, interval="1d", links=[line_link("fleet", "team", "namespace")]),
        lines("The 20 hungriest nodes", "Power of all GPUs of a node. Click on one to open it.",
              (f"topk(20, {nodes})", ONE_NODE), unit="watt", links=[line_link("fleet", "node", "node")]),
    ]


def make():
    return board("fleet", "Energy and cost by namespace and pod. " + RULES, "24h", totals(), spenders())
