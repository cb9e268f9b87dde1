# SPDX-License-Identifier: Apache-2.0
"""A simulated node on which everything happens that may happen, at random times: the same for the same seed."""

import random

MODELS = ["H200", "H100", "A100-80GB", "L40S", "L4", "T4"]  # and one more, cut into MIG instances
MIG = len(MODELS)
LOADS = ["gemm", "train", "fp32", "decode", "serve", "spin", "copy"]
CALLS = ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetPowerUsage",
         "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetUtilizationRates",
         "nvmlDeviceGetMemoryInfo"]
FALSE = [("nvmlDeviceGetTotalEnergyConsumption", 0), ("nvmlDeviceGetTotalEnergyConsumption", 999999999999999),
         ("nvmlDeviceGetPowerUsage", 0xffffffff)]
PODS = 12  # names that come back again and again: an owner's account is kept for ever


def owner(chance, number):
    """Of a fixed set: one in three is no pod."""
    kind = number % 6
    if kind == 1:
        return f'{{slurm: "{8000 + number}", step: "0"}}'
    if kind == 3:
        return f"{{docker: box-{number}}}"
    if kind == 5 and chance.random() < 0.5:
        return f"{{systemd: job-{number}.service}}"
    return f"{{namespace: team-{number % 3}, pod: work-{number}, container: main}}"


def processes(chance, seconds):
    lines = []
    # These live through everything.
    for gpu in range(len(MODELS)):
        lines.append(f"  - {{pid: {1000 + gpu}, name: steady, gpus: {gpu}, memory: 2GiB, load: {LOADS[gpu % len(LOADS)]}, "
                     f"owner: {owner(chance, gpu)}}}")
    # Short lives, each with a pid of its own.
    for number in range(8):
        every = chance.uniform(2, 8)
        lines.append(f"  - {{pid: {100000 * (number + 1)}, name: short-{number}, gpus: {number % len(MODELS)}, memory: 512MiB, "
                     f"load: {chance.choice(LOADS)}, start: {chance.uniform(0, 3):.2f}, "
                     f"repeat: {{every: {every:.2f}, lives: {every * chance.uniform(0.2, 0.9):.2f}}}, "
                     f"owner: {owner(chance, number)}}}")
    # Pods that come, stay a while and go, some on two GPUs.
    pid = 2000
    for number in range(PODS):
        at = chance.uniform(0, 10)
        while at < seconds:
            end = at + chance.uniform(2, 40)
            gpus = chance.sample(range(len(MODELS)), chance.choice([1, 1, 1, 2]))
            lines.append(f"  - {{pid: {pid}, name: worker, gpus: {gpus}, memory: 1GiB, load: {chance.choice(LOADS)}, "
                         f"start: {at:.2f}, end: {end:.2f}, owner: {owner(chance, number)}}}")
            pid += 1
            at = end + chance.uniform(1, 20)
    return lines


def events(chance, seconds):
    """(at, line): every GPU has one fault at a time."""
    made = []

    def every(mean, write, seldom_longer_by=0):
        at = chance.expovariate(1 / mean) + 5
        while at < seconds:
            lasts = chance.uniform(0.5, 6)
            if seldom_longer_by and chance.random() < 0.25:
                lasts += seldom_longer_by
            made.append((at, write(at, lasts)))
            at += lasts + 1 + chance.expovariate(1 / mean)

    for gpu in range(len(MODELS)):
        every(60, lambda at, lasts, gpu=gpu: f"do: gpu_lost, gpu: {gpu}, until: {at + lasts:.2f}",
              seldom_longer_by=15)  # than --metric-retention in soak_test.py
        every(150, lambda at, lasts, gpu=gpu: f"do: counter_reset, gpu: {gpu}")
        every(90, lambda at, lasts, gpu=gpu: f"do: xid, gpu: {gpu}, xid: {chance.choice([13, 31, 43, 63, 79])}")
    every(45, lambda at, lasts: f"do: driver_reload, for: {min(lasts, 3):.2f}")
    every(12, lambda at, lasts: f"do: error, call: {chance.choice(CALLS)}, code: {chance.choice([999, 3, 15])}, "
                                f"gpu: {chance.randrange(len(MODELS))}, until: {at + lasts:.2f}")
    every(30, lambda at, lasts: "do: answer, call: {}, value: {}, ".format(*chance.choice(FALSE)) +
                                f"gpu: {chance.randrange(len(MODELS))}, until: {at + lasts:.2f}")
    at = 20.0
    while at + 20 < seconds:
        made.append((at, f"do: mig_create, gpu: {MIG}, gi: 5, ci: 0, profile: 2g.10gb"))
        made.append((at + 12, f"do: mig_destroy, gpu: {MIG}, gi: 5, ci: 0"))
        at += chance.uniform(20, 40)
    return [f"  - {{at: {at:.2f}, {line}}}" for at, line in sorted(made)]


def scenario(seed, seconds, slow=False):
    """slow: the driver takes its time; all else is the same, so that a program that is restarted finds the same node."""
    chance = random.Random(seed)
    lines = [f"seed: {seed}", "gpus:"]
    lines += [f"  - {{model: {model}, counter_start_joules: {1000 * i}}}" for i, model in enumerate(MODELS)]
    lines += ["  - {model: A100-40GB, mig: [{gi: 1, ci: 0, profile: 3g.20gb}]}", "processes:"]
    lines += [f"  - {{pid: 1900, name: slice, gpus: {MIG}, mig: {{gi: 1, ci: 0}}, memory: 4GiB, load: train, "
              "owner: {namespace: team-0, pod: slice-0, container: main}}"]
    lines += processes(chance, seconds)
    lines += ["events:", *events(chance, seconds)]
    if slow:
        lines += ["latencies:"] + [f"  - {{call: {call}, ms: 15}}" for call in CALLS[:4]]
    return "\n".join(lines) + "\n"
