#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who gets the joules on a real GPU, with loads whose true cost is measured. See README.md here.

usage: [VALIDATION_SET=1..21] validate.py PROGRAM OUT_DIR [FLAGS OF record...]
The flags, such as --exact-time=on, are for recording only; where the program does not know them it records without.
Leaves table.json and recordings.tar.gz in OUT_DIR. Bounded to 8 minutes and 45 seconds; changes no setting of the card.
"""
import bisect
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pynvml

import recordings
from processes import Child, Load, end_all
from scenarios import SETS, with_kinds, working_kinds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "accuracy"))
from scoring import run_replay, score  # noqa: E402

MOST_SECONDS = 505  # and some for ending the children and packing
CALIBRATION_SECONDS = 4.0
SHORTEST_WORK_SECONDS = 1.2  # however long its context took
SETTLE_SECONDS = 0.6  # clocks follow the work with some delay
STARTUP_SECONDS = 90  # the first import of a cold machine
CONTEXT_SECONDS = 60  # a first context, with the libraries it loads
WARMING_SECONDS = 3
REST_SECONDS = 1.8  # the clocks and the heat go down
REST_WATCH_SECONDS = 3.5
BEGAN = time.monotonic()
RULES = ("adaptive", "utilization")
SCENARIOS = SETS[os.environ.get("VALIDATION_SET", "1")]


class OutOfTime(BaseException):
    """Not an Exception, so that no scenario takes it for a failure of its own."""


def say(*words):
    print(f"[{time.monotonic() - BEGAN:6.1f}]", *words, flush=True)


def time_left():
    return MOST_SECONDS - (time.monotonic() - BEGAN)


class Meter:
    """The GPU's own counter, read where it moves: it is refreshed every 100 ms only."""

    def __init__(self):
        pynvml.nvmlInit()
        self.gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.knows_our_pids = False

    def edge(self):
        first = pynvml.nvmlDeviceGetTotalEnergyConsumption(self.gpu)
        for _ in range(2000):
            now = pynvml.nvmlDeviceGetTotalEnergyConsumption(self.gpu)
            if now != first:
                return time.monotonic(), now / 1000
            time.sleep(0.001)
        raise RuntimeError("the energy counter does not move")

    def watch(self, seconds):
        """(begin, end, joules)"""
        begin, joules = self.edge()
        time.sleep(seconds)
        end, later = self.edge()
        return begin, end, later - joules

    def watts(self, seconds):
        begin, end, joules = self.watch(seconds)
        return joules / (end - begin)

    def pids(self):
        return {p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(self.gpu)}

    def has_mps_client(self, pid):
        ask = getattr(pynvml, "nvmlDeviceGetMPSComputeRunningProcesses", None)  # not in every binding
        return ask is None or pid in {p.pid for p in ask(self.gpu)}

    def name_of(self, load, before):
        """The load's pid as the driver says it: another one where we run in a pid namespace."""
        listed = self.pids()
        new = listed - before
        if load.pid not in listed and len(new) == 1:
            load.pid = new.pop()
        elif load.pid not in listed:
            say(f"WARNING: the driver does not list pid {load.pid} ({load.kind})")


def units_at(points, moment):
    """Linear between two lines of a load's log."""
    i = bisect.bisect_left(points, (moment, 0))
    if i == 0:
        return points[0][1]
    if i == len(points):
        return points[-1][1]
    (t0, u0), (t1, u1) = points[i - 1][:2], points[i][:2]
    return u0 + (u1 - u0) * (moment - t0) / (t1 - t0) if t1 > t0 else u1


def ask_all(loads, command, answer, seconds):
    """Those that answer; the others are ended with a line."""
    good = {}
    for kind, load in loads.items():
        try:
            if command:
                load.tell(command)
            good[kind] = load
        except OSError as error:
            leave_out(load, error)
    for kind, load in list(good.items()):
        try:
            load.expect(answer, seconds)
        except RuntimeError as error:
            leave_out(load, error)
            del good[kind]
    return good


def leave_out(load, error):
    say(f"{load.kind} is left out: {error}")
    load.kill()


def start_all(kinds, folder, meter):
    """One load of each kind, with its context; those that fail are left out."""
    loads = ask_all({kind: Load(kind, "steady", folder) for kind in kinds}, None, "imported", STARTUP_SECONDS)
    say("imported")
    loads = ask_all(loads, "context", "ready", CONTEXT_SECONDS)
    listed = meter.pids()
    meter.knows_our_pids = all(load.pid in listed for load in loads.values())
    say("contexts made")
    return loads


def measure(meter, load, table):
    """Its units and joules while it works alone: (begin, end, joules)."""
    try:
        load.tell(f"work {SETTLE_SECONDS + CALIBRATION_SECONDS + 0.4}")
        time.sleep(SETTLE_SECONDS)
        table[load.kind] = meter.watch(CALIBRATION_SECONDS)
        load.expect("done", 20)
    except (RuntimeError, OSError) as error:
        leave_out(load, error)
        table.pop(load.kind, None)


def cost(load, begin, end, joules, resident):
    points = load.points()
    units = units_at(points, end) - units_at(points, begin)
    dynamic = max(0.0, joules - resident * (end - begin))
    say(f"  {load.kind:10s} {dynamic / (end - begin):6.1f} W above resident, {units / (end - begin):10.1f} units/s")
    return {"joules_per_unit": dynamic / units, "units_per_second": units / (end - begin),
            "dynamic_watts": dynamic / (end - begin)}


def calibrate(meter, folder):
    """Joules per unit of each kind, alone at work, above the watts of contexts that do nothing."""
    loads = start_all(working_kinds(SCENARIOS) + ["hold"], folder, meter)
    kinds = [kind for kind in loads if kind != "hold"]
    if not kinds:
        raise RuntimeError("no load works")
    # Leakage grows with heat: nobody is measured on a cold GPU.
    ask_all({kinds[0]: loads[kinds[0]]}, f"work {WARMING_SECONDS}", "done", 20)
    time.sleep(REST_SECONDS)
    before, measured = meter.watts(REST_WATCH_SECONDS), {}
    say(f"resident {before:.1f} W")
    for kind in kinds:
        measure(meter, loads[kind], measured)
    time.sleep(REST_SECONDS)
    after = meter.watts(REST_WATCH_SECONDS)
    for load in loads.values():
        load.close()
    end_all(loads.values(), 5)
    say(f"resident {before:.1f} W before, {after:.1f} W after")
    resident, table = (before + after) / 2, {}
    for kind, (begin, end, joules) in measured.items():
        try:
            table[kind] = cost(loads[kind], begin, end, joules, resident)
        except ArithmeticError:
            say(f"{kind} is left out: it finished nothing")
    if "hold" in loads:
        table["hold"] = {"joules_per_unit": 0.0, "units_per_second": 0.0, "dynamic_watts": 0.0}
    return {"resident_watts": resident, "resident_watts_before": before, "resident_watts_after": after, "kinds": table}


class Mps:
    """A daemon of our own in a private directory; clients find it by their environment."""

    def __init__(self, folder):
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps")}
        (folder / "mps").mkdir(exist_ok=True)

    def start(self):
        self.daemon = Child(["nvidia-cuda-mps-control", "-f"], {**os.environ, **self.environment})
        time.sleep(2)
        if self.daemon.process.poll() is not None:
            raise RuntimeError("nvidia-cuda-mps-control ended: " + self.daemon.last_words())

    def stop(self):
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 2\n", text=True, timeout=10, capture_output=True,
                           env={**os.environ, **self.environment})
        except (OSError, subprocess.TimeoutExpired) as error:
            say("MPS did not quit:", error)


def start_recording(program, trace, flags):
    """The recorder and the moment its clock began: it says so right after."""
    recorder = Child([program, "record", str(trace), *flags], os.environ)
    recorder.expect_containing('msg="recording"', 20)
    return recorder, time.monotonic()


def accepted(program, flags, folder):
    """The flags, or none where the program cannot record with them."""
    if not flags:
        return flags
    try:
        recorder, _ = start_recording(program, folder / "try.jsonl.gz", flags)
        time.sleep(1)
        stop_recording(recorder)
        return flags
    except (RuntimeError, OSError) as error:
        say("recording without", *flags, "because:", error)
        return []


def stop_recording(recorder):
    recorder.process.send_signal(signal.SIGINT)
    if recorder.wait(15) != 0:
        raise RuntimeError("record failed: " + recorder.last_words())


def make_contexts(loads, meter):
    """All at once where the driver says our pids; else one by one, to see which is new."""
    for group in [loads] if meter.knows_our_pids else [[load] for load in loads]:
        before = meter.pids()
        for load in group:
            load.tell("context")
        for load in group:
            load.expect("ready", 30)
        for load in group:
            meter.name_of(load, before)


def play(scenario, loads, meter, zero):
    """Sends every load to work at its time; returns those that worked when all are gone."""
    todo, worked = sorted(zip(scenario.jobs, loads), key=lambda pair: pair[0].at), []
    for at, pairs in itertools.groupby(todo, key=lambda pair: pair[0].at):
        pairs = list(pairs)
        time.sleep(max(0.0, zero + at - time.monotonic()))
        if time.monotonic() > zero + scenario.seconds():
            say(scenario.name, "is late:", *(job.kind for job, _ in pairs), "left out")
            continue
        make_contexts([load for _, load in pairs], meter)
        soonest = time.monotonic() + SHORTEST_WORK_SECONDS
        for job, load in pairs:
            if scenario.mps and not meter.has_mps_client(load.pid):
                raise RuntimeError("a client came, but not by MPS")
            load.finish_at(max(zero + job.until, soonest))
            worked.append((job, load))
    for job, load in worked:
        load.wait(max(1.0, zero + job.until - time.monotonic()) + 20)
    return [load for _, load in worked]


def run_scenario(scenario, loads, meter, program, flags, folder):
    trace = folder / f"{scenario.name}.jsonl.gz"
    for load in loads:
        load.expect("imported", STARTUP_SECONDS)
    recorder, zero = start_recording(program, trace, flags)
    try:
        worked = play(scenario, loads, meter, zero)
        time.sleep(1.5)
        stop_recording(recorder)
    finally:
        recorder.kill()
    return trace, zero, worked


def judge(row, trace, truth, program):
    """A recording is kept also where the program of today cannot replay it."""
    try:
        for rule in RULES:
            row[rule] = score(truth, run_replay(program, trace, f"--attribution={rule}"))
        report(row)
    except Exception as error:
        say(row["name"], "recorded, but not judged:", error)


def report(row):
    adaptive, plain = row["adaptive"], row["utilization"]
    say(f"{row['name']:22s} adaptive {adaptive['misattributed_percent']:6.2f} %  utilization "
        f"{plain['misattributed_percent']:6.2f} %  within 2 se {adaptive['within']}/{adaptive['of']}  truth/counter "
        f"{adaptive['truth_over_counter']}  lost {adaptive['lost_joules']} J")


def spawn(scenario, mps, folder):
    return [Load(job.kind, job.duty, folder, mps.environment if scenario.mps else {}) for job in scenario.jobs]


def plan(kinds, results):
    """The scenarios that can be played with the kinds that were measured."""
    todo = []
    for scenario in SCENARIOS:
        if with_kinds(scenario, kinds):
            todo.append(with_kinds(scenario, kinds))
        else:
            results["skipped"].append({"name": scenario.name, "why": "its loads do not work"})
            say(scenario.name, "skipped: its loads do not work")
    return todo


def run_one(scenario, loads, meter, program, flags, mps, folder, results):
    try:
        if scenario.mps:
            mps.start()
        trace, zero, worked = run_scenario(scenario, loads, meter, program, flags, folder)
        truth = recordings.write_truth(scenario, worked, zero, results["calibration"], folder)
        recordings.hide_uuid(trace)
        results["scenarios"].append({"name": scenario.name, "mps": scenario.mps})
        judge(results["scenarios"][-1], trace, truth, program)
    except Exception as error:
        results["skipped"].append({"name": scenario.name, "why": str(error)})
        say(scenario.name, "FAILED:", error)
    finally:
        end_all(loads)
        if scenario.mps:
            mps.stop()


def run_all(program, out, flags, folder, results):
    meter = Meter()
    for name, value in (("gpu", pynvml.nvmlDeviceGetName(meter.gpu)), ("driver", pynvml.nvmlSystemGetDriverVersion())):
        results[name] = value.decode() if isinstance(value, bytes) else value
    results["record_flags"] = flags = accepted(program, flags, folder)
    results["calibration"] = calibrate(meter, folder)
    mps, todo = Mps(folder), plan(results["calibration"]["kinds"], results)
    ready = spawn(todo[0], mps, folder) if todo else []
    for i, scenario in enumerate(todo):
        loads = ready
        # Importing takes seconds of CPU and no GPU: the next ones do it while these work.
        ready = spawn(todo[i + 1], mps, folder) if i + 1 < len(todo) else []
        if time_left() < scenario.seconds() + 15:
            results["skipped"].append({"name": scenario.name, "why": "out of time"})
            say(scenario.name, "skipped: out of time")
            end_all(loads)
            continue
        say(scenario.name, "begins")
        run_one(scenario, loads, meter, program, flags, mps, folder, results)
        save(out, folder, results)


def save(out, folder, results):
    rows = results["scenarios"]
    for rule in RULES:
        percents = [row[rule]["misattributed_percent"] for row in rows
                    if rule in row and not row["name"].endswith("never_alone")]
        if percents:
            results[f"{rule}_mean_percent"] = round(sum(percents) / len(percents), 3)
            results[f"{rule}_worst_percent"] = max(percents)
    (out / "table.json").write_text(json.dumps(results, indent=1) + "\n")
    recordings.pack(folder, [row["name"] for row in rows], out / "recordings.tar.gz")


def raise_out_of_time(*_):
    raise OutOfTime


def main():
    program, out, flags = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    results = {"date": time.strftime("%Y-%m-%d"), "scenarios": [], "skipped": []}
    signal.signal(signal.SIGALRM, raise_out_of_time)
    signal.alarm(MOST_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            run_all(program, out, flags, folder, results)
        except OutOfTime:
            say("OUT OF TIME")
        finally:
            signal.alarm(0)
            save(out, folder, results)
            end_all()
    judged = [row for row in results["scenarios"] if all(rule in row for rule in RULES)]
    for row in judged:
        report(row)
    say("mean", results.get("adaptive_mean_percent"), "% adaptive,", results.get("utilization_mean_percent"), "% utilization")
    lost = [row for row in judged if float(row["adaptive"]["lost_joules"]) != 0]
    return 1 if lost or not results["scenarios"] else 0


if __name__ == "__main__":
    sys.exit(main())
