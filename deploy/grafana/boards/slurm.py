# SPDX-License-Identifier: Apache-2.0
"""Slurm jobs: who spends what, by job and step."""

from grafana import lines, stat, table
from queries import COST, PRICE, RULES, board, by, choose, gained, kwh_of_watts, rate, recorded, row_link

JOB = "cluster, slurm_job_id"


def served(name):
    """Without $job: the label job of these series is Slurm's number too, until the version after this one."""
    return choose(name, "cluster", "slurm_job_id")


def watts():
    return recorded("node_slurm_job:gpu_ledger_power_watts:rate5m", "slurm_job_id")


def totals():
    energy = f"sum({kwh_of_watts(watts())})"
    hours = f"sum({gained(served('gpu_ledger_slurm_job_gpu_seconds_total'))}) / 3600"
    return "Jobs, in the time chosen", [
        stat("Power of Slurm jobs", "Mean over five minutes.", f"sum({watts()})", "watt"),
        stat("Energy of Slurm jobs", f"Of running and ended jobs. {RULES}", energy, "kwatth"),
        stat(f"{COST} of Slurm jobs", f"At the price of now. {RULES}", f"sum({by('cluster', kwh_of_watts(watts()))} {PRICE})"),
        stat("GPU hours of Slurm jobs", "Time in which their processes worked on a GPU. Absent on MIG.", hours),
        stat("Slurm jobs that draw power", "Jobs with energy in the last five minutes.",
             f"count({by(JOB, watts() + ' > 0')}) or vector(0)"),
        stat("Nodes with Slurm jobs", "Nodes on which a job drew power in the last five minutes.",
             f"count({by('cluster, node, instance', watts() + ' > 0')}) or vector(0)"),
    ]


def over_time():
    hours = by("slurm_job_id", rate(served("gpu_ledger_slurm_job_gpu_seconds_total")))
    nodes = by("node, instance", watts())
    told = (f"{rate(served('gpu_ledger_slurm_job_energy_joules_total'))} * on (cluster, node, instance, slurm_job_id, step, gpu) "
            f"group_left (account, user_name) {served('gpu_ledger_slurm_job_info')}")
    return "Over time", [
        lines("Power by Slurm job", "The 20 that draw most.", (f"topk(20, {by('slurm_job_id', watts())})", "{{slurm_job_id}}"),
              unit="watt", stacked=True),
        lines("GPU time by Slurm job", "Seconds of work per second: 1 is one GPU always at work. The 20 largest.",
              (f"topk(20, {hours})", "{{slurm_job_id}}"), stacked=True),
        lines("Power by Slurm account", "Without a name: jobs of nodes without the prolog of deploy/slurm. The 20 largest.",
              (f"topk(20, {by('account', told)})", "{{account}}"), unit="watt", stacked=True),
        lines("Power of Slurm jobs by user", "The 20 whose jobs draw most.",
              (f"topk(20, {by('user_name', told)})", "{{user_name}}"), unit="watt", stacked=True),
        lines("Power of Slurm jobs by node", "The 20 nodes whose jobs draw most.",
              (f"topk(20, {nodes})", "{{node}} {{instance}}"), unit="watt", stacked=True, width=24),
    ]


def jobs():
    energy = by(JOB, kwh_of_watts(watts()))
    hours = by(JOB, gained(served("gpu_ledger_slurm_job_gpu_seconds_total"))) + " / 3600"
    step = "cluster, slurm_job_id, step, node, instance, gpu"
    joules = by(step, gained(served("gpu_ledger_slurm_job_energy_joules_total")))
    error = by(step, served("gpu_ledger_slurm_job_energy_standard_error_joules"))
    return "Jobs", [
        table("Slurm jobs by energy", "In the time chosen, at the price of now.", ("kWh", "kwatth", energy),
              (COST, "none", f"{energy} {PRICE}"), ("GPU hours", "none", hours)),
        table("Steps of Slurm jobs", "In the time chosen; the error is that of all the step ever spent. Click on a node to "
              "open it.", ("Energy", "joule", joules), ("± one standard error", "joule", error),
              links={"node": row_link("slurm", "node", "node")}),
    ]


def make():
    return board("slurm", "Energy, GPU time and cost of Slurm jobs and their steps. " + RULES, "24h",
                 totals(), over_time(), jobs())
