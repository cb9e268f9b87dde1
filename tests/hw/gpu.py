# SPDX-License-Identifier: Apache-2.0
"""Where the loads run: the GPU, or, to try them out, the CPU with tiny shapes (LOADS_DEVICE=cpu)."""
import contextlib
import os

import torch

GPU = os.environ.get("LOADS_DEVICE", "cuda")
ON_CPU = GPU == "cpu"
MOST_BYTES = 11 << 30  # of one process: eight of them and their contexts stay below 100 GiB


def size(full, tiny):
    return tiny if ON_CPU else full


def random_tensor(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=GPU, dtype=dtype)


def random_rows(most, *shape):
    return torch.randint(0, most, shape, device=GPU)


def build(make_model, dtype=torch.float32):
    """A model made where it will run: filling its weights on the CPU would take seconds."""
    with contextlib.nullcontext() if ON_CPU else torch.device(GPU):
        return make_model().to(dtype)


def start():
    """Makes the context."""
    if ON_CPU:
        return
    torch.cuda.init()
    part = MOST_BYTES / torch.cuda.get_device_properties(0).total_memory
    if part < 1:
        torch.cuda.set_per_process_memory_fraction(part)


def finish():
    """Waits until everything asked for is done."""
    if not ON_CPU:
        torch.cuda.synchronize()


class _AlreadyDone:
    def synchronize(self):
        pass


def mark():
    """A point in the queue that can be waited for."""
    if ON_CPU:
        return _AlreadyDone()
    event = torch.cuda.Event()
    event.record()
    return event
