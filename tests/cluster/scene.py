# SPDX-License-Identifier: Apache-2.0
"""What plays on the stage: pods that work on simulated GPUs, and a gpu-ledger for every source of pod names."""

import dataclasses
import json
import os
import pathlib
import signal

import harness
import manifests
from parts import Failure, wait_for
from scenario import SHARED, UUIDS, Scenario
from stage import NODE

PODS_API, POD_RESOURCES, RUNTIME = "/var/lib/kubelet/pods-api", "/var/lib/kubelet/pod-resources", "/run/containerd"
MAY_LIST_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
MAY_ASK_KUBELET = [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}]


@dataclasses.dataclass(frozen=True)
class Setup:
    """A DaemonSet of ours."""
    flag: str                # --pod-source
    source: str              # that must come up, as gpu_ledger_source_up calls it
    folders: tuple = ()      # of the node, beside the kubelet's pod-resources
    rights: list = None      # of its service account; None: it has not even a token


SETUPS = {
    "pods-api": Setup("pods-api", "pods-api", (PODS_API,)),
    "apiserver": Setup("apiserver", "apiserver", (), MAY_LIST_PODS),
    "kubelet": Setup("kubelet", "kubelet", (), MAY_ASK_KUBELET),
    "cri": Setup("cri", "cri", (RUNTIME,)),
    "auto": Setup("auto", "pods-api", (PODS_API,)),
    "auto-older": Setup("auto", "apiserver", (), MAY_LIST_PODS),  # as with a kubelet that has no Pods API
    "denied": Setup("apiserver", "apiserver", (), []),
}
NAMED = [name for name in SETUPS if name != "denied"]


@dataclasses.dataclass(frozen=True)
class Truth:
    """A container's first process, by what the API server and containerd say of it."""
    pid: int
    pod: str
    namespace: str
    container: str
    pod_uids: tuple  # a static pod has two: the kubelet's own and that of its mirror in the API
    container_id: str


class Scene:
    def __init__(self, stage):
        self.stage, self.api = stage, stage.api
        self.folder = stage.folder / "driver"
        self.folder.mkdir()
        self.scenario = Scenario(self.folder / "scenario.yaml")
        self.ports = {name: 9400 + index for index, name in enumerate(SETUPS)}
        self.working = []  # a Truth for each process on a GPU
        self.start_workloads()
        self.start_ledgers()

    def start_workloads(self):
        for name in ("team-a", "team-b", "gpu-ledger"):
            self.api.create(manifests.namespace(name))
            wait_for(lambda: self.api.get("ServiceAccount", "default", name), "a default service account")
        # The GPU's container is not the first of its pod.
        train = [manifests.sleeper("logger"), manifests.sleeper("trainer", {"nvidia.com/gpu": 1})]
        serve = [manifests.sleeper("server", {"nvidia.com/gpu.shared": 1})]
        for namespace, name, containers in (("team-a", "train", train), ("team-b", "serve", serve)):
            spec, labels = manifests.pod_spec(containers), {"tier": "gold", "hidden": "yes"}
            self.api.create(manifests.workload("Deployment", namespace, name, spec, labels, replicas=2))
        self.api.create(manifests.pod("team-b", "owner", [manifests.sleeper("main", {"nvidia.com/gpu": 1})]))
        static = manifests.pod("team-a", "static", [manifests.sleeper("main")])
        (self.stage.manifests / "static.json").write_text(json.dumps(static))

        for pod in self.api.running_pods("app=train", 2, "team-a"):
            self.work_in(pod, "trainer")
        for pod in self.api.running_pods("app=serve", 2, "team-b"):
            self.work_in(pod, "server")
        self.work_in(self.api.running_pod("team-a", f"static-{NODE}"), "main", SHARED, "fp32")
        self.api.running_pod("team-b", "owner")
        self.scenario.write()

    def start_ledgers(self):
        for name, setup in SETUPS.items():
            for document in manifests.account(f"ledger-{name}", setup.rights):
                self.api.create(document)
            self.api.create(manifests.ledger(
                f"ledger-{name}", self.ports[name], [f"--pod-source={setup.flag}", "--pod-labels=tier"],
                [str(self.folder), POD_RESOURCES, *setup.folders], self.scenario.environment(),
                token=setup.rights is not None))
        for name in SETUPS:
            self.api.running_pods(f"app=ledger-{name}", 1, "gpu-ledger")
            wait_for(lambda: harness.get(self.ports[name], "/readyz").status == 200, f"a snapshot of {name}")

    # Processes

    def truth(self, pod, container):
        meta = pod["metadata"]
        status = next(one for one in pod["status"]["containerStatuses"] if one["name"] == container)
        container_id = status["containerID"].removeprefix("containerd://")
        pid = self.stage.main_pids().get(container_id)
        if not pid:
            raise Failure(f"containerd runs no {container_id}")
        own = meta.get("annotations", {}).get("kubernetes.io/config.hash")
        uids = (meta["uid"], own) if own else (meta["uid"],)
        return Truth(pid, meta["name"], meta["namespace"], container, uids, container_id)

    def work_in(self, pod, container, gpu=None, load="gemm"):
        """From now on the container's process works on its GPU, or on the given one."""
        truth = self.truth(pod, container)
        self.scenario.add(truth.pid, given_gpu(truth.pid) if gpu is None else gpu, load)
        self.working.append(truth)
        return truth

    def end_work(self, truth):
        self.scenario.end(truth.pid)
        self.working.remove(truth)

    def reload(self, *names):
        """Writes the scenario and lets ledgers open the driver again, which reads it."""
        self.scenario.write()
        for name in names:
            (pod,) = self.api.running_pods(f"app=ledger-{name}", 1, "gpu-ledger")
            pid = self.truth(pod, "gpu-ledger").pid
            os.kill(pid, signal.SIGUSR1)
            wait_for(lambda: self.get(name, "/readyz").status != 200, f"{name} to let go of the driver")
            os.kill(pid, signal.SIGUSR2)
            wait_for(lambda: self.get(name, "/readyz").status == 200, f"{name} to take the driver back")

    # Ledgers

    def get(self, name, path="/metrics"):
        return harness.get(self.ports[name], path)

    def metrics(self, name):
        answer = self.get(name)
        if answer.status != 200:
            raise Failure(f"{name} answered {answer.status}")
        return harness.Metrics(answer.text)

    def log(self, name, lines=15):
        """What a ledger said, from the kubelet's files."""
        said = []
        for path in sorted(pathlib.Path("/var/log/pods").glob(f"gpu-ledger_ledger-{name}-*/*/*.log")):
            said += path.read_text(errors="replace").splitlines()
        return "\n".join(said[-lines:])


def given_gpu(pid):
    """The index of the GPU that the device plugin wrote into a process's environment."""
    entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    device = next(one for one in entries if one.startswith("NVIDIA_VISIBLE_DEVICES=")).partition("=")[2]
    return UUIDS.index(device.partition("::")[0])
