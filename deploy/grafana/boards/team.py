# SPDX-License-Identifier: Apache-2.0
"""What one team spends and wastes: namespaces, and pods with the label team (--pod-labels=team)."""

from grafana import lines, stat, table
from queries import (COST, PRICE, RULES, board, by, in_range, kwh_of_watts, line_link, raw, recorded, rate,
                     row_link)

WHOM = "Of the team and the namespaces chosen. A team is the pods' label team, which --pod-labels=team reads."
POD = "cluster, namespace, pod"


def of_team(query, labels="namespace"):
    """A query by pod, for the pods of the team alone: those that had its label in the time chosen, and for All every pod."""
    pods = raw("gpu_ledger_pod_info", "namespace").replace("}", ',label_team=~"$team"}')
    return by(labels, f"{query} * on (cluster, namespace, pod) group_left () "
                      f"{by(POD, f'last_over_time({pods}[$__range])', 'max')}")


def totals():
    minutes = lambda what: f"sum({in_range(recorded(f'team:gpu_ledger_{what}:minute', 'team', 'namespace'))})"
    idle = of_team(by(POD, raw("gpu_ledger_pod_idle_memory_bytes", "namespace")), "cluster")
    unused = by(POD, raw("gpu_ledger_allocation_idle_seconds", "namespace") + " > 3600", "count")
    return "The team, in the time chosen", [
        stat("Power of the team", WHOM, f"sum({recorded('team:gpu_ledger_power_watts:rate5m', 'team', 'namespace')})",
             "watt"),
        stat("Energy of the team", f"{WHOM} {RULES}", minutes("energy_kwh"), "kwatth"),
        stat(f"{COST} of the team", f"With PUE and the price of each minute. {RULES}", minutes("cost")),
        stat("CO2e of the team", f"With PUE and the CO2e per kWh of each minute. {RULES}", minutes("co2e_grams"), "massg"),
        stat("Idle memory of the team", "GPU memory that its idle processes hold now.", f"sum({idle})", "bytes"),
        stat("GPUs of the team unused for an hour", "Given by Kubernetes to its pods, which do not work on them.",
             f"sum({of_team(unused, 'cluster')}) or vector(0)", bad_above=1),
    ]


def over_time():
    watts = by("namespace", recorded("team:gpu_ledger_power_watts:rate5m", "team", "namespace"))
    teams = by("team", recorded("team:gpu_ledger_power_watts:rate5m", "team", "namespace"))
    days = by("namespace", f"sum_over_time({recorded('team:gpu_ledger_cost:minute', 'team', 'namespace')}[1d])")
    pods = of_team(by(POD, recorded("node_pod:gpu_ledger_power_watts:rate5m", "namespace")), POD)
    return "Over time", [
        lines("Power of the team by namespace", WHOM, (watts, "{{namespace}}"), unit="watt", stacked=True),
        lines("Power by team", "Pods without the label have no name here.", (teams, "{{team}}"), unit="watt", stacked=True),
        lines(f"{COST} per day of the team", "Of the 24 hours before. Choose some weeks.", (days, "{{namespace}}"),
              stacked=True, bars=True, interval="1d"),
        lines("The team's 20 hungriest pods", "Click on one to open it.", (f"topk(20, {pods})", "{{namespace}} {{pod}}"),
              unit="watt", links=[line_link("team", "pod", "namespace", "pod")]),
    ]


def pods():
    energy = of_team(by(POD, kwh_of_watts(recorded("node_pod:gpu_ledger_power_watts:rate5m", "namespace"))), POD)
    idle = of_team(by(POD, raw("gpu_ledger_pod_idle_memory_bytes", "namespace")), POD)
    at_work = of_team(by(POD, rate(raw("gpu_ledger_pod_gpu_seconds_total", "namespace"))), POD)
    where = by("cluster, namespace, pod, node", in_range(recorded("node_pod:gpu_ledger_power_watts:rate5m", "namespace")))
    return "Pods", [
        table("Pods of the team", "In the time chosen, at the price of now. Click on a pod to open it.",
              ("kWh", "kwatth", energy), (COST, "none", f"{energy} {PRICE}"),
              ("GPUs at work now", "none", at_work), ("Idle memory now", "bytes", idle),
              links={"pod": row_link("team", "pod", "namespace", "pod")}),
        table("Nodes of the namespaces' pods", "Where they spent energy in the time chosen. Click on a node to open it.",
              ("kWh", "kwatth", f"{where} / 60000"),
              links={"pod": row_link("team", "pod", "namespace", "pod"), "node": row_link("team", "node", "node")}),
    ]


def make():
    return board("team", "Energy, cost and waste of one team. " + WHOM, "24h", totals(), over_time(), pods())
