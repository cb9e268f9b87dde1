#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays validate.py without a GPU: stubs stand for the driver, the program and the loads; a second lasts a twentieth.

usage: dry_run.py [SET...]   (6, 7 and 8 unless told)
Checks also that the sets are what README.md says: how long, how many at once, how much memory. Standard library only.
"""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import types

FASTER = 20
HERE = pathlib.Path(__file__).resolve()
FAILS = {"kmeans", "video"}  # kinds that do not work: their jobs are left out, the rest is played
JOULES_PER_SECOND = 200
KNOWN, UNKNOWN = "--exact-time=on", "--unknown"  # flags of the stub program


def stub_load(kind, _, log):
    """Speaks as loads.py does and counts a unit every 10 ms of its work."""
    print("imported", flush=True)
    units = 0
    with open(log, "w", buffering=1) as out:
        for line in sys.stdin:
            command, *rest = line.split()
            if command == "context" and kind in FAILS:
                sys.exit("out of memory, say")
            end = time.monotonic() + (float(rest[0]) if command == "work" else 0.0)
            end = float(rest[0]) if command == "work_until" else end
            while True:
                out.write(f"{time.monotonic():.4f} {' '.join([str(units)] * len(kind.split('+')))}\n")
                if time.monotonic() >= end:
                    break
                time.sleep(0.01)
                units += kind != "hold"
            print("ready" if command == "context" else "done", flush=True)


def stub_program(command, trace, *flags):
    if command == "record":
        if UNKNOWN in flags:
            sys.exit("no such flag")
        signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
        with gzip.open(trace, "wt") as out:
            out.write('{"t":0,"k":"device","uuid":"GPU-1"}\n')
        print('msg="recording"', flush=True)
        time.sleep(60)
    print(json.dumps({"device": {"measured_joules": 1, "idle_joules": 0, "unattributed_joules": 0}, "processes": [
        {"pid": 1, "static_joules": 0, "dynamic_joules": 1, "standard_error_joules": 0}]}))


def stub_driver(children):
    """Lists every child: validate.py asks only whether its own are there."""
    millijoules = lambda _: int(time.monotonic() * FASTER) * 1000 * JOULES_PER_SECOND
    listed = lambda _: [types.SimpleNamespace(pid=child.pid) for child in children]
    return types.SimpleNamespace(
        nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=lambda _: None, nvmlDeviceGetName=lambda _: b"stub",
        nvmlSystemGetDriverVersion=lambda: "0", nvmlDeviceGetTotalEnergyConsumption=millijoules,
        nvmlDeviceGetComputeRunningProcesses=listed, nvmlDeviceGetMPSComputeRunningProcesses=listed, NVMLError=OSError)


def at_once(jobs):
    return max(sum(job.at <= other.at < job.until for job in jobs) for other in jobs)


def check_shape(scenarios, number):
    for scenario in scenarios:
        assert 28 <= scenario.seconds() <= 45, scenario.name
        assert at_once(scenario.jobs) * 11.5 < 100, scenario.name  # GiB: gpu.py's bound and a context
        assert not scenario.mps or len(scenario.jobs) == 3, scenario.name
    seconds = sum(scenario.seconds() + 6 for scenario in scenarios)
    print(f"set {number}: {len(scenarios)} scenarios, about {seconds:.0f} s and the calibration")
    assert seconds + 115 < 505


def play(number):
    os.environ["VALIDATION_SET"] = number
    sys.path.insert(0, str(HERE.parent))
    import processes
    sys.modules["pynvml"] = stub_driver(processes._children)
    import validate
    check_shape(validate.SCENARIOS, number)
    for name in ("CALIBRATION_SECONDS", "SHORTEST_WORK_SECONDS", "SETTLE_SECONDS", "REST_SECONDS", "REST_WATCH_SECONDS"):
        setattr(validate, name, getattr(validate, name) / FASTER)
    validate.SCENARIOS = [s._replace(jobs=[j._replace(at=j.at / FASTER, until=j.until / FASTER) for j in s.jobs])
                          for s in validate.SCENARIOS]
    processes.LOADS = HERE
    with tempfile.TemporaryDirectory() as out:
        program = pathlib.Path(out) / "program"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}" "$@"\n')
        program.chmod(0o755)
        daemon = pathlib.Path(out) / "nvidia-cuda-mps-control"
        daemon.write_text('#!/bin/sh\n[ "$1" = -f ] && exec sleep 60\nexit 0\n')
        daemon.chmod(0o755)
        os.environ["PATH"] = out + os.pathsep + os.environ["PATH"]
        sys.argv = ["validate.py", str(program), out, UNKNOWN if number == "7" else KNOWN]
        validate.main()
        check_results(validate, pathlib.Path(out), processes._children)


def check_results(validate, out, children):
    table = json.loads((out / "table.json").read_text())
    names = [row["name"] for row in table["scenarios"]]
    print("recorded:", *names, "| skipped:", table["skipped"])
    assert table["record_flags"] == [flag for flag in sys.argv[3:] if flag == KNOWN]
    assert len(names) == len(validate.SCENARIOS) and not table["skipped"]
    with tarfile.open(out / "recordings.tar.gz") as tar:
        assert len(tar.getnames()) == 2 * len(names)
        for name in names:
            truth = json.load(tar.extractfile(name + ".truth.json"))
            assert all(p["load"] and p["pid"] and p["joules"] for p in truth["processes"]), name
            print(f"  {name:14s}", *(f"{p['load']} {p['start']:.2f}-{p['end']:.2f}" for p in truth["processes"]))
    assert all(child.process.poll() is not None for child in children), "somebody still runs"


def main():
    if len(sys.argv) > 3 and sys.argv[3].endswith(".log"):
        return stub_load(*sys.argv[1:])
    if len(sys.argv) > 2 and sys.argv[1] in ("record", "replay"):
        return stub_program(*sys.argv[1:])
    if len(sys.argv) == 2:
        return play(sys.argv[1])
    for number in sys.argv[1:] or ("6", "7", "8"):
        subprocess.run([sys.executable, "-B", str(HERE), number], check=True, timeout=300)


if __name__ == "__main__":
    main()
