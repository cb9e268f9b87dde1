#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures --exact-time on a real GPU. See README.md here.

usage: exact_time.py PROGRAM OUT.json [--quick | --only NAME,NAME...] [--minutes 8.5]
Needs root, PyTorch (to make load) and nothing else. Ends by itself within the minutes, whatever happens.
"""
import argparse
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

from exact_loads import LoopLoad, start_loads, stop_loads
from exact_parts import Ledger, cpu_seconds, descriptors, driver_messages, reader_cpu_seconds


class Clock:
    """What is left of the time we were given."""

    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()


def mean_and_error(values):
    if len(values) < 2:
        return {"mean": values[0] if values else None, "standard_error": None, "n": len(values)}
    return {"mean": statistics.mean(values), "standard_error": statistics.stdev(values) / math.sqrt(len(values)),
            "n": len(values)}


def reader_cost(program, loads, seconds):
    """CPU of the thread that reads the trace, in percent of a core, and what it read meanwhile."""
    with Ledger(program, "--exact-time=on") as ledger:
        ledger.wait_until_trusted(20)
        before, began, cpu = ledger.exact_time(), time.monotonic(), reader_cpu_seconds(ledger.pid)
        whole = cpu_seconds(ledger.pid)
        time.sleep(seconds)
        after, took = ledger.exact_time(), time.monotonic() - began
        return {"processes": len(loads), "seconds": took,
                "reader_percent_of_a_core": 100 * (reader_cpu_seconds(ledger.pid) - cpu) / took,
                "program_percent_of_a_core": 100 * (cpu_seconds(ledger.pid) - whole) / took,
                "records_per_second": (after["records"] - before["records"]) / took,
                "switches_per_second": (after["switches"] - before["switches"]) / took,
                "lost_records": after["lost_records"] - before["lost_records"], "trusted": after["trusted"]}


def measure_reader(program, clock):
    results = {"idle": reader_cost(program, [], 12)}
    for name, kinds in (("one_process", ["gemm"]), ("eight_processes", ["gemm", "fp32", "mem", "spin"] * 2)):
        loads = start_loads(kinds)
        try:
            results[name] = reader_cost(program, kinds, 15)
        finally:
            stop_loads(loads)
    return results


def measure_slowdown(program, kinds, turns, seconds):
    """The loads and an exporter go on all the time; the trace is on in every other turn. What counts is each turn with the trace against
    the mean of the two without it around it, so that a GPU that gets warmer does not look slower."""
    loads = start_loads(kinds)
    rates = {"off": [], "on": []}
    records = []
    try:
        time.sleep(4)
        for turn in range(2 * turns + 1):
            traced = turn % 2 == 1
            with Ledger(program, "--exact-time=on" if traced else "--exact-time=off") as ledger:
                if traced:
                    ledger.wait_until_trusted(20)
                else:
                    time.sleep(1)
                records_before = ledger.exact_time() if traced else None
                before, began = [load.units() for load in loads], time.monotonic()
                time.sleep(seconds)
                after, took = [load.units() for load in loads], time.monotonic() - began
                if traced:
                    now = ledger.exact_time()
                    records.append({"switches_per_second": (now["switches"] - records_before["switches"]) / took,
                                    "lost_records": now["lost_records"]})
            rates["on" if traced else "off"].append([rate_of(b, a) for b, a in zip(before, after)])
    finally:
        stop_loads(loads)
    result = {"loads": kinds, "seconds_per_turn": seconds, "switches_per_second":
              statistics.mean(r["switches_per_second"] for r in records), "lost_records": sum(r["lost_records"] for r in records)}
    for i, kind in enumerate(kinds):
        slower = [100 * (1 - on[i] / ((rates["off"][n][i] + rates["off"][n + 1][i]) / 2)) for n, on in enumerate(rates["on"])]
        result[f"{i}_{kind}_slower_percent"] = mean_and_error(slower)
    return result


def rate_of(before, after):
    """Units per second between two (moment, units) of the load's own clock."""
    return (after[1] - before[1]) / (after[0] - before[0])


def measure_truth(program, kinds, seconds):
    """GPU seconds by the trace against the loads' own count: units x the time that a unit takes alone."""
    alone = {}
    for kind in sorted(set(kinds)):
        loads = start_loads([kind])
        time.sleep(1.5)
        before = loads[0].units()
        time.sleep(3)
        alone[kind] = 1 / rate_of(before, loads[0].units())
        stop_loads(loads)
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.jsonl"
        loads = start_loads(kinds)
        try:
            time.sleep(2)
            recording = subprocess.Popen([program, "record", str(trace), "--backend=nvml", "--exact-time=on",
                                          "--exact-time-budget=100%", f"--for={seconds + 3}s"], stderr=subprocess.PIPE, text=True)
            time.sleep(1.5)
            before = [load.units() for load in loads]
            time.sleep(seconds)
            after = [load.units() for load in loads]
            said = recording.communicate(timeout=30)[1]
        finally:
            stop_loads(loads)
        resident, known = {}, 0.0
        for line in open(trace):
            entry = json.loads(line)
            if entry["k"] != "residency" or not 2.0 < entry["t"] < seconds + 1.0:
                continue
            known += entry["w"] * max([len(ms) for _, ms in entry["p"]] + [len(entry.get("known", []))])
            for pid, ms in entry["p"]:
                resident[pid] = resident.get(pid, 0.0) + sum(ms) / 1e3
    span = [a[0] - b[0] for a, b in zip(after, before)]
    own = [(a[1] - b[1]) * alone[kind] / s for a, b, kind, s in zip(after, before, kinds, span)]
    traced = [resident.get(load.pid, 0.0) / known if known else None for load in loads]
    rows = [{"load": kind, "pid": load.pid, "share_by_its_own_count": o / sum(own),
             "share_by_the_trace": t / sum(traced) if known and sum(traced) else None, "resident_share": t}
            for kind, load, o, t in zip(kinds, loads, own, traced)]
    return {"seconds_known": known, "alone_seconds_per_unit": alone, "processes": rows, "said": said.strip()[-500:]}


def measure_kill(program):
    """SIGKILL in the middle of a trace: what is left, and does the GPU go on?"""
    loads = start_loads(["gemm", "fp32"])
    messages = driver_messages()
    try:
        time.sleep(2)
        before = [load.units() for load in loads]
        time.sleep(3)
        usual = [rate_of(b, load.units()) for b, load in zip(before, loads)]
        ledger = Ledger(program, "--exact-time=on")
        ledger.start()
        ledger.wait_until_trusted(20)
        held = descriptors(ledger.pid)
        os.kill(ledger.pid, signal.SIGKILL)
        ledger.process.wait(timeout=10)
        time.sleep(0.5)
        before = [load.units() for load in loads]
        time.sleep(3)
        afterwards = [rate_of(b, load.units()) for b, load in zip(before, loads)]
        with Ledger(program, "--exact-time=on") as again:
            again.wait_until_trusted(20)
            trusted_again = again.exact_time()["trusted"]
            before = again.exact_time()["records"]
            time.sleep(2)
            records = again.exact_time()["records"] - before
    finally:
        stop_loads(loads)
    fresh = start_loads(["gemm"])
    works = fresh[0].units()[1] > 0
    stop_loads(fresh)
    return {"nodes_held_before": held, "rate_after_percent_of_before": [100 * a / u for a, u in zip(afterwards, usual)],
            "next_reader_trusted": trusted_again, "next_reader_records_in_2_s": records, "new_process_works": works,
            "driver_messages": driver_messages()[len(messages):]}


def measure_two_readers(program):
    """Two exporters at once: both read everything."""
    loads = start_loads(["gemm", "fp32"])
    try:
        with Ledger(program, "--exact-time=on") as first, Ledger(program, "--exact-time=on", port=19502) as second:
            first.wait_until_trusted(20)
            second.wait_until_trusted(20)
            before = [ledger.exact_time() for ledger in (first, second)]
            time.sleep(8)
            after = [ledger.exact_time() for ledger in (first, second)]
    finally:
        stop_loads(loads)
    return {"switches": [a["switches"] - b["switches"] for a, b in zip(after, before)],
            "lost_records": [a["lost_records"] for a in after], "trusted": [a["trusted"] for a in after]}


def measure_release(program):
    """SIGUSR1 closes every node of the driver; SIGTERM ends within two seconds."""
    loads = start_loads(["gemm", "fp32"])
    try:
        ledger = Ledger(program, "--exact-time=on")
        ledger.start()
        ledger.wait_until_trusted(20)
        held = descriptors(ledger.pid)
        os.kill(ledger.pid, signal.SIGUSR1)
        time.sleep(3)
        released = descriptors(ledger.pid)
        os.kill(ledger.pid, signal.SIGUSR2)
        ledger.wait_until_trusted(20)
        took = ledger.stop()
    finally:
        stop_loads(loads)
    return {"nodes_while_tracing": held, "nodes_after_sigusr1": released, "stop_seconds": took}


def measure_loss(program, seconds):
    """One exporter traces all the time: thousands of switches a second, then a crowd, and round again."""
    end, told = time.monotonic() + seconds, []
    with Ledger(program, "--exact-time=on") as ledger:
        ledger.wait_until_trusted(20)
        began, before = time.monotonic(), ledger.exact_time()
        for turn in range(20):
            kinds = ["ping", "ping"] if turn % 2 == 0 else ["gemm", "fp32", "mem", "spin"] * 2
            if end - time.monotonic() < 40:
                break
            loads = start_loads(kinds)
            at, there = time.monotonic(), ledger.exact_time()
            time.sleep(max(1.0, min(75.0, end - time.monotonic() - 15)))
            now = ledger.exact_time()
            took = time.monotonic() - at
            stop_loads(loads)
            told.append({"loads": "+".join(kinds), "trusted": now["trusted"],
                         "switches_per_second": (now["switches"] - there["switches"]) / took,
                         "lost_records_while_they_work": now["lost_records"] - there["lost_records"],
                         "lost_records_by_their_end": ledger.exact_time()["lost_records"] - there["lost_records"]})
        after, took = ledger.exact_time(), time.monotonic() - began
        return {"seconds": took, "records": after["records"] - before["records"], "lost_records": after["lost_records"],
                "trusted_at_the_end": after["trusted"], "turns": told, "log": ledger.log()[-600:]}


def quick(program):
    """Does it work at all? About a minute."""
    results = {"truth": measure_truth(program, ["gemm", "fp32"], 12)}
    loads = start_loads(["gemm", "fp32"])
    try:
        with Ledger(program, "--exact-time=on") as ledger:
            ledger.wait_until_trusted(15)
            time.sleep(5)
            results["state"] = ledger.exact_time()
            results["log"] = ledger.log()[-1500:]
    finally:
        stop_loads(loads)
    return results


def print_table(results):
    def flat(prefix, value):
        if isinstance(value, dict) and set(value) == {"mean", "standard_error", "n"}:
            if value["mean"] is not None:
                error = "" if value["standard_error"] is None else f" +- {value['standard_error']:.3f}"
                yield prefix, f"{value['mean']:.3f}{error} (n={value['n']})"
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from flat(f"{prefix}.{key}" if prefix else key, inner)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, inner in enumerate(value):
                yield from flat(f"{prefix}[{i}]", inner)
        else:
            yield prefix, f"{value:.4f}" if isinstance(value, float) else str(value)
    for name, text in flat("", results):
        print(f"{name:70} {text}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="names of measurements, separated by commas")
    parser.add_argument("--minutes", type=float, default=8.5)
    options = parser.parse_args()
    clock = Clock(options.minutes)
    results = {"date": time.strftime("%Y-%m-%d"), "argv": sys.argv[1:]}
    # What each takes at most, in seconds: one that no longer fits is left out, and that is said.
    pairs = (["fp32", "mem"], ["mem", "spin"], ["fp32", "train"])  # none of them meets the power limit, alone or together
    plan = [
        ("quick", 70, lambda: quick(options.program)),
        ("reader", 100, lambda: measure_reader(options.program, clock)),
        ("slowdown_small_kernels", 110, lambda: measure_slowdown(options.program, ["gemm", "fp32"], 5, 5)),
        ("slowdown_real_models", 110, lambda: measure_slowdown(options.program, ["train", "resnet"], 5, 5)),
        ("kill", 50, lambda: measure_kill(options.program)),
        ("two_readers", 35, lambda: measure_two_readers(options.program)),
        ("release", 30, lambda: measure_release(options.program)),
        ("slowdown_gemm_alone", 75, lambda: measure_slowdown(options.program, ["gemm"], 3, 5)),
        ("slowdown_ping", 120, lambda: measure_slowdown(options.program, ["ping", "ping"], 5, 5)),
        ("truth", 180, lambda: [measure_truth(options.program, pair, 15) for pair in pairs]),
        ("loss", 120, lambda: measure_loss(options.program, clock.left() - 10)),
    ]
    wanted = ["quick"] if options.quick else options.only.split(",") if options.only else [name for name, *_ in plan[:-3]]
    plan = [entry for entry in plan if entry[0] in wanted]
    failed = 0
    for name, most, measure in plan:
        if clock.left() < most and not options.quick:
            results[name] = f"left out: {clock.left():.0f} s were left, it may take {most}"
            continue
        began = time.monotonic()
        try:
            results[name] = measure()
        except Exception:  # the other measurements are worth having without this one
            results[name] = {"failed": traceback.format_exc()[-1500:]}
            failed += 1
        results.setdefault("seconds", {})[name] = round(time.monotonic() - began, 1)
        pathlib.Path(options.out).write_text(json.dumps(results, indent=1))
        print(f"-- {name}: {results['seconds'][name]} s, {clock.left():.0f} s left", flush=True)
        print_table({name: results[name]})
    LoopLoad.kill_all()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
