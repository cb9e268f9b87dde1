# SPDX-License-Identifier: Apache-2.0
"""Loads that count their units and can be asked at any moment how many they have done, for exact_time.py.

As a program: exact_loads.py KIND FILE. Writes "MOMENT UNITS" (CLOCK_MONOTONIC, finished units) to FILE, a fixed place
that the parent maps, and works until its input ends.
"""
import mmap
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile
import time

RECORD = struct.Struct("<QdQ")  # the number of the record, twice the same when whole; moment; units
SIZE = 64


class LoopLoad:
    """One load as its parent sees it."""

    _all = []

    def __init__(self, kind):
        self.file = tempfile.NamedTemporaryFile(suffix=".load")
        self.file.write(b"\0" * SIZE)
        self.file.flush()
        self.memory = mmap.mmap(self.file.fileno(), SIZE)
        self.process = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), kind, self.file.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        LoopLoad._all.append(self)

    def wait_until_ready(self, seconds=90):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline().strip() if ready else "nothing"
        if line != "ready":
            raise RuntimeError(f"a load said {line!r} where it should be ready")

    def units(self):
        """(moment, units finished by then), as the load wrote them together."""
        for _ in range(1000):
            number, moment, units = RECORD.unpack_from(self.memory, 0)
            again, = struct.unpack_from("<Q", self.memory, RECORD.size)
            if number == again and moment > 0:
                return moment, units
            time.sleep(0.001)
        raise RuntimeError("a load does not say what it has done")

    def stop(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=15)
        if self in LoopLoad._all:
            LoopLoad._all.remove(self)

    @staticmethod
    def kill_all():
        for load in list(LoopLoad._all):
            load.process.kill()


def start_loads(kinds):
    loads = [LoopLoad(kind) for kind in kinds]
    for load in loads:
        load.wait_until_ready()
    return loads


def stop_loads(loads):
    for load in loads:
        load.stop()


def make_unit(kind):
    """A function that queues one unit of work, and how many to queue at once."""
    import torch
    device = "cuda"
    if kind == "gemm":
        a, b = (torch.randn(4096, 4096, device=device, dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        return (lambda: torch.mm(a, b, out=out)), 1
    if kind == "fp32":
        torch.backends.cuda.matmul.allow_tf32 = False
        a, b = (torch.randn(2560, 2560, device=device) for _ in range(2))
        out = torch.empty_like(a)
        return (lambda: torch.mm(a, b, out=out)), 1
    if kind == "mem":
        source = torch.empty(1 << 29, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        return (lambda: target.copy_(source)), 1
    if kind == "spin":
        small = torch.zeros(32, device=device)

        def many():
            for _ in range(200):
                small.add_(1)
        return many, 1
    if kind == "ping":
        small = torch.zeros(1 << 20, device=device)

        def one():  # waits for each kernel, so that the GPU goes to the other one at once: thousands of switches a second
            small.add_(1)
            torch.cuda.synchronize()
        return one, 16
    if kind == "train":
        return make_train(torch, device), 4
    if kind == "resnet":
        return make_resnet(torch, device), 4
    sys.exit(f"exact_loads.py: no load {kind}")


def make_train(torch, device):
    """Steps of a small transformer: forward, backward, optimizer."""
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 4).to(device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    tokens = torch.randn(16, 512, 1024, device=device, dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(tokens).square().mean().backward()
        optimizer.step()
    return step


def make_resnet(torch, device):
    """A stack of residual blocks over images, as a service would run it."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                                      nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width))

        def forward(self, x):
            return torch.relu(x + self.body(x))

    model = nn.Sequential(nn.Conv2d(3, 128, 7, stride=4, padding=3), *[Block(128) for _ in range(8)])
    model = model.to(device=device, dtype=torch.bfloat16, memory_format=torch.channels_last).eval()
    images = torch.randn(32, 3, 224, 224, device=device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)

    def infer():
        with torch.no_grad():
            model(images)
    return infer


def work(kind, path):
    import torch
    unit, at_once = make_unit(kind)
    for _ in range(5):
        unit()
    torch.cuda.synchronize()
    memory = mmap.mmap(os.open(path, os.O_RDWR), SIZE)
    print("ready", flush=True)
    number = units = 0
    pending = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        # Two batches in the queue, so that the GPU never waits for Python.
        for _ in range(at_once):
            unit()
        event = torch.cuda.Event()
        event.record()
        pending.append(event)
        if len(pending) < 3:
            continue
        pending.pop(0).synchronize()
        units += at_once
        number += 1
        RECORD.pack_into(memory, 0, number, time.monotonic(), units)
        struct.pack_into("<Q", memory, RECORD.size, number)
    torch.cuda.synchronize()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2])
