# SPDX-License-Identifier: Apache-2.0
"""The simulated GPUs of the stage and who works on them: processes that really run here."""

import time

UUIDS = [f"GPU-5a6e0000-0000-4000-8000-00000000000{index}" for index in range(4)]
SHARED = 2  # the GPU that is offered in replicas
DEVICES = {
    "nvidia.com/gpu": [uuid for index, uuid in enumerate(UUIDS) if index != SHARED],
    "nvidia.com/gpu.shared": [f"{UUIDS[SHARED]}::{replica}" for replica in range(4)],
}


class Scenario:
    """A file for the simulated driver. It may be written anew while programs read it: what was, stays as it was, so
    that a driver that is opened again goes on where it was closed."""

    def __init__(self, path):
        self.path, self.epoch, self.processes = path, int(time.time()), {}
        self.write()

    def now(self):
        return round(time.time() - self.epoch, 1)

    def add(self, pid, gpu, load="gemm"):
        self.processes[pid] = {"gpu": gpu, "load": load, "start": self.now(), "end": None}

    def end(self, pid):
        self.processes[pid]["end"] = self.now()

    def write(self):
        lines = ["seed: 3", "gpus:", *(f"  - {{model: H200, uuid: {uuid}}}" for uuid in UUIDS)]
        if self.processes:
            lines.append("processes:")
        for pid, one in self.processes.items():
            end = "" if one["end"] is None else f", end: {one['end']}"
            lines.append(f"  - {{pid: {pid}, real: true, gpus: {one['gpu']}, memory: 2GiB, load: {one['load']}, "
                         f"start: {one['start']}{end}}}")
        self.path.write_text("\n".join(lines) + "\n")

    def environment(self):
        return {"NVML_SIM_SCENARIO": str(self.path), "GPU_LEDGER_SIM_EPOCH": str(self.epoch)}
