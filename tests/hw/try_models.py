#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every load work? Prints milliseconds a unit and the memory it takes.

usage: [LOADS_DEVICE=cpu] try_models.py [KIND...]
With LOADS_DEVICE=cpu the shapes are tiny and no GPU is needed: only the code is tried.
"""
import gc
import sys
import time

import torch

import gpu
import loads

UNITS = 5


def plain_attention(query, key, value):
    """For a PyTorch before 2.0, to try the models out only."""
    return (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(-1) @ value


def try_one(kind):
    unit = loads.maker(kind)()
    unit()
    gpu.finish()
    began = time.monotonic()
    for _ in range(UNITS):
        unit()
    gpu.finish()
    took = (time.monotonic() - began) / UNITS
    most = 0 if gpu.ON_CPU else torch.cuda.max_memory_reserved()
    print(f"{kind:10s} {1000 * took:8.2f} ms a unit  {most / 2**30:6.2f} GiB", flush=True)


def main():
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        torch.nn.functional.scaled_dot_product_attention = plain_attention
    kinds, failed = sys.argv[1:] or loads.kinds(), []
    gpu.start()
    for kind in kinds:
        try:
            try_one(kind)
        except Exception as error:
            failed.append(kind)
            print(f"{kind:10s} FAILED: {type(error).__name__}: {str(error)[:300]}", flush=True)
        gc.collect()
        if not gpu.ON_CPU:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
