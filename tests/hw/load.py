# SPDX-License-Identifier: Apache-2.0
"""One GPU process with a known kind of load, for tests/hw/measure.py.

usage: load.py gemm|copy|spin|hold SECONDS [DUTY]
Prints "ready" when the GPU is set up, then at the end "units N seconds S".
"""
import sys
import time

import torch

kind, seconds = sys.argv[1], float(sys.argv[2])
duty = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
device = torch.device("cuda")
a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
b = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
small = torch.zeros(32, device=device)
source = torch.empty(1 << 28, dtype=torch.uint8, device=device)
target = torch.empty_like(source)


def unit():
    if kind == "gemm":
        torch.mm(a, b)
    elif kind == "copy":
        target.copy_(source)
    elif kind == "spin":
        small.add_(1)


for _ in range(20):
    unit()
torch.cuda.synchronize()
print("ready", flush=True)

units, begin = 0, time.monotonic()
while time.monotonic() - begin < seconds:
    if kind == "hold":
        time.sleep(0.1)
        continue
    busy = time.monotonic()
    while time.monotonic() - busy < 0.05:
        for _ in range(8):
            unit()
        torch.cuda.synchronize()
        units += 8
    if duty < 1.0:
        time.sleep(0.05 / duty - 0.05)
print("units", units, "seconds", time.monotonic() - begin, flush=True)
