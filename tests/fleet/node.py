# SPDX-License-Identifier: Apache-2.0
"""One of many simulated nodes: four GPUs and who uses them, different on every node."""

TEAMS = ["ml", "search", "research", "web", "vision"]
LOADS = ["gemm", "train", "decode", "serve", "fp32"]
MODELS = ["H200", "H100", "A100-80GB", "L40S"]


def pod(number, team, name, labels="{}"):
    return f"{{namespace: {team}, pod: {name}-{number}, container: main, labels: {labels}}}"


def scenario(number):
    """GPU 0 alone, GPU 1 shared by two pods, GPU 2 with an idle holder beside a Slurm job, GPU 3 given to nobody."""
    team, other = TEAMS[number % 5], TEAMS[(number + 1 + number // 5) % 5]
    load = lambda step: LOADS[(number + step) % 5]
    gpus = "\n".join(
        f"  - {{model: {MODELS[number % 4]}, counter_start_joules: {1000 * number + gpu}, "
        f"uuid: GPU-00000000-0000-4000-8000-{number:06d}{gpu:06d}}}"
        for gpu in range(4)
    )
    return f"""
seed: {number + 1}
gpus:
{gpus}
processes:
  - {{pid: 1001, name: python3, gpus: 0, memory: 30GiB, load: {load(0)}, owner: {pod(number, team, "train")}}}
  - {{pid: 1002, name: server, gpus: 1, memory: 8GiB, load: {load(1)}, owner: {pod(number, team, "serve")}}}
  - {{pid: 1003, name: worker, gpus: 1, memory: 8GiB, load: {load(2)}, owner: {pod(number, other, "batch")}}}
  - {{pid: 1004, name: notebook, gpus: 2, memory: 12GiB, load: idle, owner: {pod(number, other, "lab")}}}
  - {{pid: 1005, name: solver, gpus: 2, memory: 6GiB, load: {load(3)}, owner: {{slurm: "{7000 + number}", step: "0"}}}}
"""
