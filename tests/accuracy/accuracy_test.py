# SPDX-License-Identifier: Apache-2.0
"""The books over recordings of a real H200, against what each process is known to have spent.

GPU_LEDGER_BINARY names the program, GPU_LEDGER_DATA the folder with the recordings.
"""
import concurrent.futures
import gzip
import json
import os
import pathlib
import sys
import unittest

import constants_table
import kin
import results_tables
from recordings import THREADS, judge, mean, percents, recordings, within
from scoring import run_series

PROGRAM = pathlib.Path(os.environ["GPU_LEDGER_BINARY"])
SETS = recordings(os.environ["GPU_LEDGER_DATA"])
COUNTS = {"seven": 7, "loops": 2, "real": 5, "validation": 25, "a": 7, "b": 7, "c": 7, "d": 3, "e": 2, "minutes": 9, "turning": 14,
          "mps": 14, "never_alone": 11, "solo": 5}
# Misattributed percent, mean and worst of a set: what the model had on 2026-11-18, and a fifth more is allowed.
# A change that makes it better lowers these figures.
FIGURES = {
    "seven": (2.21, 4.37),
    "loops": (4.38, 4.45),
    "real": (6.65, 10.48),
    "validation": (4.22, 13.26),
    "a": (4.15, 7.32),
    "b": (8.18, 14.92),
    "c": (9.13, 14.48),
    "d": (5.09, 6.58),
    "e": (4.66, 6.29),
    "minutes": (5.70, 10.31),
    "turning": (8.62, 27.82),
    "mps": (7.04, 20.85),
    "never_alone": (30.71, 63.72),
}
ALLOWED = 1.2
# By the context-switch trace.
TRACED_FIGURES = {"loops": (4.84, 6.02), "real": (3.73, 8.35), "a": (1.73, 4.04), "b": (2.54, 8.26), "c": (1.76, 5.07),
                  "d": (1.72, 3.29), "e": (1.08, 1.11), "minutes": (2.85, 6.03), "turning": (4.99, 12.84)}
# Known to be worse than by the plain formula: docs/attribution.md, limits. Whoever mends it takes the name out.
WORSE_THAN_PLAIN = {"turning"}


def judge_all(*flags, sets=SETS):
    return judge(lambda trace: [PROGRAM, "replay", trace, *flags], sets)


def has_residency(trace):
    with gzip.open(trace, "rt", encoding="utf-8") as lines:
        return any('"residency"' in line[:40] for line in lines)


def resident_seconds(trace):
    """{pid: seconds on the engine}, by the recording's own lines."""
    total = {}
    with gzip.open(trace, "rt", encoding="utf-8") as lines:
        for line in lines:
            if '"residency"' in line[:40]:
                for pid, milliseconds in json.loads(line)["p"]:
                    total[pid] = total.get(pid, 0) + sum(milliseconds) / 1000
    return total


def table(results):
    lines = [f"{'recording':28s} misattributed   within 2 se   truth/counter"]
    for name, of_set in results.items():
        for recording, r in of_set.items():
            ratio = r["truth_over_counter"]
            lines.append(f"{recording:28s} {r['misattributed_percent']:11.2f} %   {r['within']:5d} of {r['of']:2d}   "
                         f"{'-' if ratio is None else format(ratio, '13.3f')}")
        lines.append(f"{'= ' + name:28s} {mean(percents(of_set)):11.2f} %")
    return "\n".join(lines)


def compared(results):
    """Scores of the recordings in which the program compared its charges with a measured power."""
    return [r for of_set in results.values() for r in of_set.values() if r["comparisons"] > 0]


class OwnError:
    """What the program says of its error, against the true one: docs/self-check.md."""

    # By recording it may be far off: one to four comparisons of a few seconds each.
    FACTOR = 2
    MOST = FACTOR

    def test_own_error_is_the_true_one_within_a_factor_of_two(self):
        scores = compared(self.results)
        own = mean(r["own_percent"] for r in scores)
        true = {"all joules": mean(r["misattributed_percent"] for r in scores),
                "shared joules": mean(r["misattributed_percent"] / r["shared_ratio"] for r in scores)}
        print(f"own error {own:.2f} %, true {true}, {sum(r['comparisons'] for r in scores)} comparisons in "
              f"{len(scores)} recordings", file=sys.stderr)
        for of, error in true.items():
            with self.subTest(of=of):
                self.assertLess(own, self.MOST * error)
                self.assertGreater(own, error / self.FACTOR)

    def test_own_error_is_absent_without_a_comparison(self):
        for of_set in self.results.values():
            for name, r in of_set.items():
                self.assertEqual(r["comparisons"] > 0, r["own_percent"] is not None, name)


class BySamples(OwnError, unittest.TestCase):
    """Time by the driver's samples, which every GPU has."""

    @classmethod
    def setUpClass(cls):
        cls.results = judge_all("--exact-time=off")
        cls.plain = judge_all("--exact-time=off", "--attribution=utilization")
        cls.table = table(cls.results)
        print(cls.table, file=sys.stderr)

    def test_all_recordings_are_there(self):
        self.assertEqual(COUNTS, {name: len(of_set) for name, of_set in self.results.items()})

    def test_figures_of_every_set(self):
        for name, (usual_mean, usual_worst) in FIGURES.items():
            with self.subTest(set=name):
                found = percents(self.results[name])
                self.assertLessEqual(mean(found), ALLOWED * usual_mean)
                self.assertLessEqual(max(found), ALLOWED * usual_worst)

    def test_alone_there_is_nothing_to_split(self):
        for name, result in self.results["solo"].items():
            self.assertLess(result["misattributed_percent"], 0.001, name)

    def test_no_set_is_worse_than_by_the_plain_formula(self):
        for name, of_set in self.results.items():
            with self.subTest(set=name):
                ours, plain = mean(percents(of_set)), mean(percents(self.plain[name]))
                self.assertEqual(ours > plain, name in WORSE_THAN_PLAIN, f"{ours} against {plain}")

    def test_truth_is_within_two_standard_errors(self):
        inside, of = within(self.results)
        outside = [(name, p) for of_set in self.results.values() for name, r in of_set.items()
                   for p in r["processes"] if not p["within"]]
        self.assertGreaterEqual(inside / of, 0.9, outside)

    def test_those_never_seen_apart_get_a_wide_error(self):
        for process in self.results["never_alone"]["never_alone"]["processes"]:
            self.assertTrue(process["within"], process)

    def test_errors_are_no_excuse(self):
        """Where the split is good, so must be what is said of it: not a standard error of everything."""
        for name, result in self.results["seven"].items():
            given = sum(p["given_joules"] for p in result["processes"])
            error = sum(p["standard_error_joules"] for p in result["processes"])
            self.assertLess(error, 0.5 * given, name)

    def test_tables_of_the_page_are_up_to_date(self):
        """Every recording is in them: a set that is not in the tables is a result that nobody reads."""
        self.assertEqual(self.results.keys() - {"solo"}, results_tables.SETS.keys())
        page = results_tables.PAGE.read_text(encoding="utf-8")
        for name, wanted in {"sets": results_tables.sets_table(self.results, self.plain),
                             "recordings": results_tables.recordings_table(self.results, self.plain)}.items():
            found = results_tables.read_table(page, name)
            self.assertTrue(results_tables.same_figures(found, wanted), f"run results_tables.py PROGRAM\n{wanted}")
        intervals = results_tables.column(results_tables.read_table(page, "intervals"), results_tables.USUAL_INTERVAL)
        wanted = results_tables.interval_cells(self.results)
        self.assertEqual(len(wanted), len(intervals))
        for cell, of_results in zip(intervals, wanted):
            self.assertTrue(results_tables.same_figures(cell, of_results), f"run results_tables.py PROGRAM\n{wanted}")

    def test_no_joule_is_lost(self):
        every = {"adaptive": self.results, "utilization": self.plain,
                 "measured-only": judge_all("--attribution=measured-only")}
        for rule, results in every.items():
            for of_set in results.values():
                for name, result in of_set.items():
                    self.assertEqual(0, float(result["lost_joules"]), f"{rule} {name}")


class ByExactTime(OwnError, unittest.TestCase):
    """Time by the context-switch trace, where the recording has it (lines of k residency)."""

    # What is compared is the charge at that moment, before it is corrected: docs/self-check.md.
    MOST = 2.7

    @classmethod
    def setUpClass(cls):
        traced = {name: [trace for trace in traces if has_residency(trace)] for name, traces in SETS.items()}
        cls.results = judge_all("--exact-time=on", sets={name: traces for name, traces in traced.items() if traces})
        cls.table = table(cls.results)
        print("by exact time\n" + cls.table, file=sys.stderr)

    def test_figures_of_every_set(self):
        for name, (usual_mean, usual_worst) in TRACED_FIGURES.items():
            with self.subTest(set=name):
                found = percents(self.results[name])
                self.assertLessEqual(mean(found), ALLOWED * usual_mean)
                self.assertLessEqual(max(found), ALLOWED * usual_worst)

    def test_truth_is_within_two_standard_errors(self):
        inside, of = within(self.results)
        self.assertGreaterEqual(inside / of, 0.9, self.table)

    def test_who_turns_is_divided_better_than_by_the_plain_formula(self):
        plain = judge_all("--exact-time=off", "--attribution=utilization", sets={"turning": SETS["turning"]})
        self.assertLess(mean(percents(self.results["turning"])), mean(percents(plain["turning"])))

    def test_replicas_come_out_as_by_time_alone(self):
        self.assertLess(self.results["real"]["real_replicas"]["misattributed_percent"], 2.5)


    def test_gpu_seconds_are_the_times_on_the_engine(self):
        """In sum, and of nobody more than it was there; a second that is not traced goes by samples."""
        for name in ("h200_exact/loops_never_alone", "h200_real/c_crowd", "h200_real/a_crowd"):
            trace = pathlib.Path(os.environ["GPU_LEDGER_DATA"]) / (name + ".jsonl.gz")
            resident = resident_seconds(trace)
            booked = {p["pid"]: float(p["gpu_seconds"]) for p in run_series(PROGRAM, trace)[1]["processes"]}
            for pid, seconds in resident.items():
                self.assertLess(booked[pid], 1.02 * seconds + 0.05, f"{name} {pid}: nobody works longer than it is there")
            self.assertGreater(sum(booked.values()), 0.85 * sum(resident.values()), name)


class WithKin(unittest.TestCase):
    """The same with names of processes, made from the loads of the truth: kin.py."""

    @classmethod
    def setUpClass(cls):
        cls.sets = {name: traces for name, traces in SETS.items() if name != "solo"}
        cls.results = kin.judge_all(PROGRAM, cls.sets)
        cls.replicas = kin.with_replicas(cls.sets)
        cls.tables = kin.make_tables(cls.results, cls.sets)
        print("with kin\n" + cls.tables["replicas"], file=sys.stderr)

    def changes(self, by, replicas):
        """{recording: points that names change}, of the recordings with replicas or of the others."""
        named = {trace.name.removesuffix(".jsonl.gz") for traces in self.replicas.values() for trace in traces}
        without, with_names = self.results[by]
        return {recording: with_names[name][recording]["misattributed_percent"] - result["misattributed_percent"]
                for name, of_set in without.items() for recording, result in of_set.items()
                if (recording in named) == replicas}

    def test_kin_make_the_mean_no_worse(self):
        changes = self.changes("samples", replicas=True)
        self.assertGreater(len(changes), 20)
        self.assertLess(mean(changes.values()), 0, changes)

    def test_by_exact_time_kin_cost_little(self):
        """Times are known, so little is left to gain: docs/kin.md. Whoever makes it a gain sets the limit to 0."""
        changes = self.changes("exact", replicas=True)
        self.assertGreater(len(changes), 8)
        self.assertLess(mean(changes.values()), 0.2, changes)

    def test_names_without_replicas_change_nothing(self):
        for by in kin.BY:
            changes = self.changes(by, replicas=False)
            self.assertGreater(len(changes), 20)
            self.assertEqual({}, {recording: change for recording, change in changes.items() if change != 0})

    def test_no_joule_is_lost(self):
        for by in kin.BY:
            for of_set in self.results[by][1].values():
                for name, result in of_set.items():
                    self.assertEqual(0, float(result["lost_joules"]), f"{by} {name}")

    def test_tables_of_the_page_are_up_to_date(self):
        self.assertTrue(kin.is_up_to_date(self.tables), f"run kin.py PROGRAM\n{self.tables}")


class Counters(unittest.TestCase):
    def test_no_counter_falls(self):
        """Corrections of the past never show as a fall, in the sum nor in a part of it."""
        traces = [trace for of_set in SETS.values() for trace in of_set]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for trace, (steps, books) in zip(traces, pool.map(lambda trace: run_series(PROGRAM, trace), traces)):
                self.check(trace.name, steps, books)

    def check(self, name, steps, books):
        self.assertGreater(len(steps), 10, name)
        before = {}
        for t, processes in steps:
            now = {p["pid"]: (p["static_joules"], p["dynamic_joules"]) for p in processes}
            self.assertLessEqual(before.keys(), now.keys(), f"{name} {t}")
            for pid, joules in before.items():
                self.assertTrue(joules[0] <= now[pid][0] and joules[1] <= now[pid][1], f"{name} {t} {pid}")
            before = now
        last = {p["pid"]: (p["static_joules"], p["dynamic_joules"]) for p in books["processes"]}
        self.assertEqual(last, before, name)


class Docs(unittest.TestCase):
    def test_table_of_constants_is_up_to_date(self):
        self.assertEqual(0, constants_table.main(["--check"]))


if __name__ == "__main__":
    unittest.main()
