# SPDX-License-Identifier: Apache-2.0
"""Recordings with their truth, in the form of tests/data/h200, for validate.py."""
import gzip
import json
import tarfile


def joules_over_time(points, zero, joules_per_unit):
    """Cumulative [[t, J]]; a stretch without work keeps its two ends only."""
    curve = [[round(moment - zero, 2), round(sum(n * joules for n, joules in zip(units, joules_per_unit)), 1)]
             for moment, *units in points]
    return [p for i, p in enumerate(curve)
            if not 0 < i < len(curve) - 1 or not curve[i - 1][1] == p[1] == curve[i + 1][1]]


def write_truth(scenario, loads, zero, calibration, folder):
    processes = []
    for load in loads:
        points = load.points()
        if not points:
            raise RuntimeError(f"load {load.kind} logged nothing")
        costs = [calibration["kinds"][kind]["joules_per_unit"] for kind in load.kind.split("+")]
        processes.append({"pid": load.pid, "load": load.kind, "start": round(points[0][0] - zero, 3),
                          "end": round(points[-1][0] - zero, 3),
                          "joules": joules_over_time(points, zero, costs)})
    truth = {"name": scenario.name, "mps": scenario.mps, "resident_watts": round(calibration["resident_watts"], 1),
             "processes": processes}
    (folder / f"{scenario.name}.truth.json").write_text(json.dumps(truth, separators=(",", ":")))
    return truth


def hide_uuid(trace):
    """A recording that is kept names no one's hardware."""
    first, _, rest = gzip.decompress(trace.read_bytes()).partition(b"\n")
    device = json.loads(first)
    device["uuid"] = "GPU-00000000-0000-0000-0000-000000000000"
    first = json.dumps(device, separators=(",", ":")).encode()
    trace.write_bytes(gzip.compress(first + b"\n" + rest, mtime=0))


def pack(folder, names, archive):
    with tarfile.open(archive, "w:gz") as tar:
        for name in names:
            for suffix in (".jsonl.gz", ".truth.json"):
                tar.add(folder / (name + suffix), arcname=name + suffix)
