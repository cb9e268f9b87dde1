#!/usr/bin/env python3
"""Checks who gets the joules on a real GPU, with loads whose true cost is measured. See README.md here.

usage: validate.py PROGRAM OUT_DIR [FLAGS OF record...]
Leaves table.json and recordings.tar.gz in OUT_DIR. Bounded to 8 minutes and 30 seconds; changes no setting of the card.
"""
import bisect
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import pynvml

import recordings
from processes import Child, Load, end_all

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "accuracy"))
from scoring import run_replay, score  # noqa: E402

MOST_SECONDS = 490
CALIBRATION_SECONDS = 4.0
SHORTEST_WORK_SECONDS = 1.2  # however long its context took
SETTLE_SECONDS = 0.6  # clocks follow the work with some delay
STARTUP_SECONDS = 90  # the first import of a cold machine
BEGAN = time.monotonic()


class OutOfTime(Exception):
    pass


class Job(NamedTuple):
    kind: str
    duty: str
    at: float
    until: float


class Scenario(NamedTuple):
    name: str
    jobs: list
    mps: bool = False
    together: bool = False  # begin to work at one moment

    def seconds(self):
        return max(job.until for job in self.jobs)


SHORT_KINDS = ("conv", "gather", "fp32", "attention", "matvec", "gelu", "conv", "fp32")
SCENARIOS = (
    Scenario("v_conv_gather", [Job("conv", "steady", 2, 24), Job("gather", "steady", 12, 36)]),
    Scenario("v_three_kinds", [Job("gelu", "steady", 2, 37), Job("fp32", "steady", 9, 26), Job("attention", "burst:3", 17, 35)]),
    Scenario("v_short_beside_train", [Job("train", "steady", 2, 38)]
             + [Job(kind, "steady", 7 + 3.5 * i, 9.5 + 3.5 * i) for i, kind in enumerate(SHORT_KINDS)]),
    Scenario("v_duty_30", [Job("attention", "steady", 2, 34), Job("gather", "cycle:0.3:1.0", 10, 37)]),
    Scenario("v_never_alone", [Job("attention", "steady", 2, 34), Job("matvec", "steady", 2, 34)], together=True),
    Scenario("v_holders", [Job("hold", "steady", 2, 37), Job("hold", "steady", 3, 36), Job("copy", "steady", 5, 32),
                           Job("spin", "steady", 12, 28), Job("matvec", "burst:7", 18, 36)]),
    Scenario("v_mps", [Job("fp32", "steady", 2, 28), Job("matvec", "cycle:1:2", 9, 36), Job("train", "steady", 16, 37)], mps=True),
    Scenario("v_equal_kinds", [Job("conv", "steady", 2, 24), Job("conv", "steady", 11, 36)]),
)
# Other companies of the same kinds, for a look with fresh eyes after a change: VALIDATION_SET=2.
SCENARIOS_2 = (
    Scenario("w_gelu_attention", [Job("gelu", "steady", 2, 26), Job("attention", "steady", 14, 36)]),
    Scenario("w_train_matvec", [Job("train", "steady", 2, 37), Job("matvec", "burst:5", 9, 30), Job("spin", "steady", 20, 35)]),
    Scenario("w_short_beside_matvec", [Job("matvec", "steady", 2, 38)]
             + [Job(kind, "steady", 8 + 3.5 * i, 10.5 + 3.5 * i) for i, kind in enumerate(SHORT_KINDS[:7])]),
    Scenario("w_spin_gather", [Job("spin", "steady", 2, 37), Job("gather", "cycle:0.5:2.0", 10, 33)]),
    Scenario("w_never_alone", [Job("train", "steady", 2, 34), Job("spin", "steady", 2, 34)], together=True),
    Scenario("w_equal_fp32", [Job("fp32", "steady", 2, 37), Job("fp32", "steady", 12, 30)]),
    Scenario("w_mps", [Job("gelu", "cycle:0.6:1.5", 2, 30), Job("spin", "steady", 9, 36), Job("conv", "burst:4", 16, 37)], mps=True),
)
# And others again: longer, with more neighbours, and one that comes back (VALIDATION_SET=3).
SCENARIOS_3 = (
    Scenario("x_conv_train", [Job("conv", "steady", 2, 40), Job("train", "cycle:0.4:1.6", 8, 44)]),
    Scenario("x_four_kinds", [Job("matvec", "steady", 2, 46), Job("gelu", "steady", 8, 30), Job("fp32", "burst:4", 14, 40),
                              Job("gather", "steady", 24, 44)]),
    Scenario("x_comes_back", [Job("attention", "steady", 2, 40), Job("spin", "steady", 9, 17), Job("spin", "steady", 25, 34)]),
    Scenario("x_short_beside_gelu", [Job("gelu", "steady", 2, 38)]
             + [Job(kind, "steady", 6 + 3.8 * i, 8.6 + 3.8 * i) for i, kind in enumerate(reversed(SHORT_KINDS))]),
    Scenario("x_equal_attention", [Job("attention", "steady", 2, 38), Job("attention", "steady", 10, 30)]),
    Scenario("x_mps", [Job("matvec", "steady", 2, 36), Job("fp32", "burst:3", 9, 38), Job("gather", "steady", 18, 34)], mps=True),
    Scenario("x_never_alone", [Job("fp32", "steady", 2, 30), Job("gather", "steady", 2, 30)], together=True),
)
# As people share a GPU: serving beside training, two newcomers at once, one after the other (VALIDATION_SET=4).
SCENARIOS_4 = (
    Scenario("y_train_serve", [Job("train", "steady", 2, 42), Job("matvec", "cycle:0.4:1.0", 8, 42)]),
    Scenario("y_two_newcomers", [Job("gelu", "steady", 2, 44), Job("conv", "steady", 8, 44), Job("attention", "steady", 11, 34)]),
    Scenario("y_handover", [Job("fp32", "steady", 2, 20), Job("gather", "steady", 11, 33), Job("conv", "steady", 26, 44)]),
    Scenario("y_bursts", [Job("attention", "burst:5", 2, 42), Job("train", "steady", 8, 40)]),
    Scenario("y_short_beside_conv", [Job("conv", "steady", 2, 38)]
             + [Job(kind, "steady", 6 + 4.2 * i, 8.8 + 4.2 * i)
                for i, kind in enumerate(("matvec", "attention", "gelu", "gather", "fp32", "gelu", "matvec"))]),
    Scenario("y_mps", [Job("train", "steady", 2, 32), Job("gather", "cycle:0.5:1.5", 8, 38), Job("attention", "steady", 17, 38)],
             mps=True),
    Scenario("y_never_alone", [Job("conv", "steady", 2, 30), Job("gelu", "steady", 2, 30)], together=True),
)
# The other way round: the uneven ones are there first (VALIDATION_SET=5).
SCENARIOS_5 = (
    Scenario("z_serve_conv", [Job("matvec", "cycle:0.5:1.2", 2, 37), Job("conv", "steady", 8, 34)]),
    Scenario("z_burst_newcomer", [Job("fp32", "steady", 2, 37), Job("attention", "burst:4", 8, 35)]),
    Scenario("z_three", [Job("train", "steady", 2, 38), Job("gather", "steady", 11, 38), Job("gelu", "steady", 17, 33)]),
    Scenario("z_short_beside_attention", [Job("attention", "steady", 2, 35)]
             + [Job(kind, "steady", 6 + 4.6 * i, 8.9 + 4.6 * i)
                for i, kind in enumerate(("gelu", "matvec", "conv", "fp32", "gather", "matvec"))]),
    Scenario("z_mps", [Job("fp32", "steady", 2, 28), Job("conv", "steady", 8, 36), Job("matvec", "cycle:0.6:1.4", 17, 36)],
             mps=True),
)
SCENARIOS = {"2": SCENARIOS_2, "3": SCENARIOS_3, "4": SCENARIOS_4, "5": SCENARIOS_5}.get(os.environ.get("VALIDATION_SET"), SCENARIOS)


def say(*words):
    print(f"[{time.monotonic() - BEGAN:6.1f}]", *words, flush=True)


def time_left():
    return MOST_SECONDS - (time.monotonic() - BEGAN)


class Meter:
    """The GPU's own counter, read where it moves: it is refreshed every 100 ms only."""

    def __init__(self):
        pynvml.nvmlInit()
        self.gpu = pynvml.nvmlDeviceGetHandleByIndex(0)

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
    (t0, u0), (t1, u1) = points[i - 1], points[i]
    return u0 + (u1 - u0) * (moment - t0) / (t1 - t0) if t1 > t0 else u1


def calibrate(meter, folder):
    """Joules per unit of each kind, alone at work, above the watts of contexts that do nothing."""
    kinds = ["conv", "attention", "fp32", "gelu", "gather", "train", "matvec", "copy", "spin"]
    loads = {kind: Load(kind, "steady", folder) for kind in kinds + ["hold"]}
    for load in loads.values():
        load.expect("imported", STARTUP_SECONDS)
    say("imported")
    for load in loads.values():
        load.tell("context")
    for load in loads.values():
        load.expect("ready", STARTUP_SECONDS)
    say("contexts made")
    loads["conv"].tell("work 3")  # leakage grows with heat: nobody is measured on a cold GPU
    loads["conv"].expect("done", 20)
    time.sleep(2)
    before, costs = meter.watts(4), {}
    say(f"resident {before:.1f} W")
    for kind in kinds:
        loads[kind].tell(f"work {SETTLE_SECONDS + CALIBRATION_SECONDS + 0.4}")
        time.sleep(SETTLE_SECONDS)
        costs[kind] = meter.watch(CALIBRATION_SECONDS)
        loads[kind].expect("done", 20)
    time.sleep(1.5)
    after = meter.watts(3)
    for load in loads.values():
        load.close()
    for load in loads.values():
        load.wait(15)
    resident, table = (before + after) / 2, {}
    for kind, (begin, end, joules) in costs.items():
        points = loads[kind].points()
        units = units_at(points, end) - units_at(points, begin)
        dynamic = max(0.0, joules - resident * (end - begin))
        table[kind] = {"joules_per_unit": dynamic / units, "units_per_second": units / (end - begin),
                       "dynamic_watts": dynamic / (end - begin)}
        say(f"  {kind:10s} {dynamic / (end - begin):6.1f} W above resident, {units / (end - begin):10.1f} units/s")
    table["hold"] = {"joules_per_unit": 0.0, "units_per_second": 0.0, "dynamic_watts": 0.0}
    say(f"resident {before:.1f} W before, {after:.1f} W after")
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


def make_context(load, meter):
    before = meter.pids()
    load.tell("context")
    load.expect("ready", 30)
    meter.name_of(load, before)


def play(scenario, loads, meter, zero):
    """Sends every load to work at its time; returns when all are gone."""
    todo = sorted(zip(scenario.jobs, loads), key=lambda pair: pair[0].at)
    for job, load in todo:
        time.sleep(max(0.0, zero + job.at - time.monotonic()))
        make_context(load, meter)
        if scenario.mps and not meter.has_mps_client(load.pid):
            raise RuntimeError("a client came, but not by MPS")
        if not scenario.together:
            load.finish_at(max(zero + job.until, time.monotonic() + SHORTEST_WORK_SECONDS))
    for job, load in todo:
        if scenario.together:
            load.finish_at(zero + job.until)
    for job, load in todo:
        load.wait(max(1.0, zero + job.until - time.monotonic()) + 20)


def run_scenario(scenario, loads, meter, program, flags, folder):
    trace = folder / f"{scenario.name}.jsonl.gz"
    for load in loads:
        load.expect("imported", STARTUP_SECONDS)
    recorder, zero = start_recording(program, trace, flags)
    play(scenario, loads, meter, zero)
    time.sleep(1.5)
    recorder.process.send_signal(signal.SIGINT)
    if recorder.wait(15) != 0:
        raise RuntimeError("record failed: " + recorder.last_words())
    return trace, zero


def judge(scenario, trace, truth, program):
    row = {"name": scenario.name, "mps": scenario.mps}
    for rule in ("adaptive", "utilization"):
        row[rule] = score(truth, run_replay(program, trace, f"--attribution={rule}"))
    return row


def report(row):
    adaptive, plain = row["adaptive"], row["utilization"]
    say(f"{row['name']:22s} adaptive {adaptive['misattributed_percent']:6.2f} %  utilization "
        f"{plain['misattributed_percent']:6.2f} %  within 2 se {adaptive['within']}/{adaptive['of']}  truth/counter "
        f"{adaptive['truth_over_counter']}  lost {adaptive['lost_joules']} J")


def run_all(program, out, flags, folder, results):
    meter = Meter()
    for name, value in (("gpu", pynvml.nvmlDeviceGetName(meter.gpu)), ("driver", pynvml.nvmlSystemGetDriverVersion())):
        results[name] = value.decode() if isinstance(value, bytes) else value
    results["calibration"] = calibrate(meter, folder)
    mps = Mps(folder)
    spawn = lambda s: [Load(j.kind, j.duty, folder, mps.environment if s.mps else {}) for j in s.jobs]
    ready = spawn(SCENARIOS[0])
    for i, scenario in enumerate(SCENARIOS):
        loads = ready
        # Importing takes seconds of CPU and no GPU: the next ones do it while these work.
        ready = spawn(SCENARIOS[i + 1]) if i + 1 < len(SCENARIOS) else []
        if time_left() < scenario.seconds() + 15:
            results["skipped"].append({"name": scenario.name, "why": "out of time"})
            say(scenario.name, "skipped: out of time")
            end_all(loads)
            continue
        say(scenario.name, "begins")
        try:
            if scenario.mps:
                mps.start()
            trace, zero = run_scenario(scenario, loads, meter, program, flags, folder)
            truth = recordings.write_truth(scenario, loads, zero, results["calibration"], folder)
            recordings.hide_uuid(trace)
            results["scenarios"].append(judge(scenario, trace, truth, program))
            report(results["scenarios"][-1])
        except (RuntimeError, OSError, subprocess.SubprocessError, pynvml.NVMLError) as error:
            results["skipped"].append({"name": scenario.name, "why": str(error)})
            say(scenario.name, "FAILED:", error)
        finally:
            end_all(loads)
            if scenario.mps:
                mps.stop()
            save(out, folder, results)


def save(out, folder, results):
    rows = results["scenarios"]
    for rule in ("adaptive", "utilization"):
        percents = [row[rule]["misattributed_percent"] for row in rows if not row["name"].endswith("never_alone")]
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
            end_all()
            save(out, folder, results)
    for row in results["scenarios"]:
        report(row)
    say("mean", results.get("adaptive_mean_percent"), "% adaptive,", results.get("utilization_mean_percent"), "% utilization")
    lost = [row for row in results["scenarios"] if float(row["adaptive"]["lost_joules"]) != 0]
    return 1 if lost or not results["scenarios"] else 0


if __name__ == "__main__":
    sys.exit(main())
