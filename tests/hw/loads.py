# SPDX-License-Identifier: Apache-2.0
"""One GPU process whose work is counted, for tests/hw/validate.py.

usage: loads.py KIND DUTY LOG
KIND: conv attention fp32 gelu gather train matvec copy spin hold, and those of models_a.py and models_b.py;
      A+B: one process that does both, in turns
DUTY: steady | cycle:ON:PERIOD | burst:SEED (seconds) | requests:SEED:RATE:MOST (a second; of 1 to MOST units each)
      | turns:SECONDS (of one kind, then of the next)

Prints "imported" once Python is ready; the GPU is not touched yet. Then obeys lines on its standard input:
  context       makes its context and warms up, prints "ready"
  work SECONDS, work_until MOMENT (of CLOCK_MONOTONIC)  works, prints "done"
and exits at the end of the input. LOG gets "T UNITS..." lines: CLOCK_MONOTONIC and the units of work of each kind finished
since the start, the warming up included, so that lines between two moments say what was done between them.
"""
import collections
import random
import sys
import time

import torch

import gpu
import models_a
import models_b
from gpu import GPU, random_tensor

BATCH_SECONDS = 0.02  # what is handed to the GPU at once: short beside every duty, long beside a launch
LOG_SECONDS = 0.1
MOST_UNITS_PER_BATCH = 2000
MOST_LATE_SECONDS = 1.0  # requests that would have waited longer were given up by those who asked


def make_conv():
    """A 3x3 convolution of a ResNet's middle, on the tensor cores."""
    images = random_tensor(64, 256, 56, 56).to(memory_format=torch.channels_last)
    weights = random_tensor(256, 256, 3, 3).to(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(images, weights, padding=1)


def make_attention():
    query, key, value = (random_tensor(2, 16, 4096, 128) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value)


def make_fp32():
    """A matrix product on the plain FP32 units."""
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (random_tensor(4096, 4096, dtype=torch.float32) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def make_gelu():
    """Element by element over more than the cache holds: memory and special functions."""
    x = random_tensor(1 << 25)
    return lambda: torch.nn.functional.gelu(torch.nn.functional.gelu(x).mul_(1.01))


def make_gather():
    """Rows of a big table at random places."""
    table = random_tensor(1 << 22, 128)
    rows = torch.randint(0, 1 << 22, (1 << 19,), device=GPU)
    return lambda: torch.index_select(table, 0, rows)


def make_train():
    """Real steps: forward, backward, optimizer, in many small kernels."""
    layers = []
    for _ in range(3):
        layers += [torch.nn.Linear(2048, 2048), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).to(device=GPU, dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    inputs, wanted = random_tensor(4096, 2048), random_tensor(4096, 2048)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    return step


def make_matvec():
    """One token through eight layers: every weight is read for one product."""
    layers = [random_tensor(8192, 8192) for _ in range(8)]
    token = random_tensor(8192)
    outs = [torch.empty(8192, device=GPU, dtype=torch.bfloat16) for _ in layers]

    def decode():
        for layer, out in zip(layers, outs):
            torch.mv(layer, token, out=out)

    return decode


def make_copy():
    """To the GPU and back over the bus; the SMs have nothing to do."""
    host = torch.empty(1 << 25, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(1 << 25, dtype=torch.uint8, device=GPU)

    def there_and_back():
        device.copy_(host, non_blocking=True)
        host.copy_(device, non_blocking=True)

    return there_and_back


def make_spin():
    """Tiny kernels, as many as can be launched: busy by every utilization figure, and nearly no work."""
    small = torch.zeros(32, device=GPU)
    return lambda: small.add_(1)


def make_hold():
    held = torch.zeros(1 << 32, dtype=torch.uint8, device=GPU)
    return lambda: held  # keeps it alive


def kinds():
    """All that work; the older ones have no tiny shapes for a CPU."""
    places = (models_a, models_b) if gpu.ON_CPU else (sys.modules[__name__], models_a, models_b)
    return [name[5:] for place in places for name, thing in vars(place).items()
            if name.startswith("make_") and name not in ("make_hold", "make_decoder") and callable(thing)]


def maker(kind):
    for place in (sys.modules[__name__], models_a, models_b):
        if hasattr(place, "make_" + kind):
            return getattr(place, "make_" + kind)
    sys.exit(f"loads.py: no kind {kind}")


def requests(duty):
    """Endless (seconds after the one before, units)."""
    _, seed, rate, most = duty.split(":")
    chance = random.Random(int(seed))
    while True:
        yield chance.expovariate(float(rate)), chance.randint(1, int(most))


def duty_phases(duty):
    """Endless (on seconds, off seconds)."""
    kind, *numbers = duty.split(":")
    if kind == "steady":
        while True:
            yield 3600.0, 0.0
    elif kind == "cycle":
        on, period = (float(n) for n in numbers)
        while True:
            yield on, period - on
    elif kind == "turns":
        while True:
            yield float(numbers[0]), 0.0
    elif kind == "burst":
        chance = random.Random(int(numbers[0]))
        while True:
            yield chance.uniform(0.05, 0.6), min(2.5, chance.expovariate(1 / 0.7))
    else:
        sys.exit(f"loads.py: no duty {duty}")


class Worker:
    """Keeps two batches in the GPU's queue and counts those that are finished."""

    def __init__(self, kind, duty, log_path):
        self.kinds = kind.split("+")
        self.now = 0  # which of them
        self.turns = duty.startswith("turns:")
        self.requests = requests(duty) if duty.startswith("requests:") else None
        self.phases = duty_phases(duty)
        self.log_file = open(log_path, "w", buffering=1)
        self.finished = [0] * len(self.kinds)
        self.logged = 0.0
        self.queue = collections.deque()

    def log(self, force=False):
        now = time.monotonic()
        if force or now - self.logged >= LOG_SECONDS:
            self.log_file.write(f"{now:.4f} {' '.join(str(units) for units in self.finished)}\n")
            self.logged = now

    def make_context(self):
        gpu.start()
        self.units = [maker(kind)() for kind in self.kinds]
        gpu.finish()
        self.log(force=True)
        if self.kinds != ["hold"]:
            self.batches = [self.warm_up(which) for which in range(len(self.kinds))]

    def warm_up(self, which):
        """How many units are a batch."""
        # The first finds and loads its kernels; the others tell how long a unit takes.
        began, timed = 0.0, 8
        for i in range(timed + 1):
            if i == 1:
                gpu.finish()
                began = time.monotonic()
            self.units[which]()
        gpu.finish()
        each = max(1e-7, (time.monotonic() - began) / timed)
        self.finished[which] += timed + 1
        self.log(force=True)
        return int(min(MOST_UNITS_PER_BATCH, max(1, BATCH_SECONDS / each)))

    def take_oldest(self):
        event, which, units = self.queue.popleft()
        event.synchronize()
        self.finished[which] += units
        self.log()

    def hand_over(self, units):
        for _ in range(units):
            self.units[self.now]()
        self.queue.append((gpu.mark(), self.now, units))
        if len(self.queue) >= 2:
            self.take_oldest()

    def drain(self):
        while self.queue:
            self.take_oldest()
        self.log(force=True)

    def work_until(self, end):
        while time.monotonic() < end:
            self.hand_over(self.batches[self.now])
        self.drain()

    def serve_until(self, end):
        due = time.monotonic()
        for gap, units in self.requests:
            due = max(due + gap, time.monotonic() - MOST_LATE_SECONDS)
            time.sleep(max(0.0, min(due, end) - time.monotonic()))
            if time.monotonic() >= end:
                return
            self.log(force=True)
            while units > 0 and time.monotonic() < end:
                self.hand_over(min(units, self.batches[self.now]))
                units -= self.batches[self.now]
            self.drain()

    def work(self, end):
        if self.kinds == ["hold"]:
            time.sleep(max(0.0, end - time.monotonic()))
        if self.requests:
            self.serve_until(end)
        while time.monotonic() < end:
            on, off = next(self.phases)
            self.log(force=True)
            self.work_until(min(end, time.monotonic() + on))
            time.sleep(max(0.0, min(off, end - time.monotonic())))
            if self.turns:
                self.now = (self.now + 1) % len(self.kinds)
        self.log(force=True)


def main():
    kind, duty, log_path = sys.argv[1:]
    worker = Worker(kind, duty, log_path)
    print("imported", flush=True)
    for line in sys.stdin:
        command, *rest = line.split()
        answer = "done"
        if command == "context":
            worker.make_context()
            answer = "ready"
        elif command == "work":
            worker.work(time.monotonic() + float(rest[0]))
        elif command == "work_until":
            worker.work(float(rest[0]))
        else:
            sys.exit(f"loads.py: no command {command}")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
