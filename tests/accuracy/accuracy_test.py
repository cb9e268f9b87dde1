"""The books over recordings of a real H200, against what each process is known to have spent.

GPU_LEDGER_BINARY names the program, GPU_LEDGER_DATA the folder with the recordings.
"""
import json
import os
import pathlib
import sys
import unittest

from scoring import run_replay, run_series, score

PROGRAM = pathlib.Path(os.environ["GPU_LEDGER_BINARY"])
DATA = pathlib.Path(os.environ["GPU_LEDGER_DATA"])
SEVEN = ("two_staggered", "spin_vs_fp32", "three_mixed", "churn", "short_jobs", "holders", "power_capped")


def judge(folder, *flags):
    results = {}
    for truth_file in sorted((DATA / folder).glob("*.truth.json")):
        name = truth_file.name.removesuffix(".truth.json")
        books = run_replay(PROGRAM, truth_file.with_name(name + ".jsonl.gz"), *flags)
        results[name] = score(json.loads(truth_file.read_text()), books)
    return results


def table(results):
    lines = [f"{'recording':24s} misattributed   within 2 se   truth/counter"]
    for name, r in results.items():
        ratio = r["truth_over_counter"]
        lines.append(f"{name:24s} {r['misattributed_percent']:11.2f} %   {r['within']:5d} of {r['of']:2d}   "
                     f"{'-' if ratio is None else format(ratio, '13.3f')}")
    return "\n".join(lines)


class Recorded(unittest.TestCase):
    """What was recorded before the rule was made."""

    @classmethod
    def setUpClass(cls):
        cls.results = judge("h200")
        cls.table = table(cls.results)
        print(cls.table, file=sys.stderr)

    def percent(self, name):
        return self.results[name]["misattributed_percent"]

    def test_no_joule_is_lost(self):
        self.assertEqual(14, len(self.results))
        for rule in ("adaptive", "utilization", "measured-only"):
            for name, result in judge("h200", f"--attribution={rule}").items():
                self.assertEqual(0, float(result["lost_joules"]), f"{rule} {name}")

    def test_no_counter_falls(self):
        """Corrections of the past never show as a fall, in the sum nor in a part of it."""
        for trace in sorted((DATA / "h200").glob("*.jsonl.gz")):
            steps, books = run_series(PROGRAM, trace)
            self.assertGreater(len(steps), 10, trace.name)
            before = {}
            for t, processes in steps:
                now = {p["pid"]: (p["static_joules"], p["dynamic_joules"]) for p in processes}
                self.assertLessEqual(before.keys(), now.keys(), f"{trace.name} {t}")
                for pid, joules in before.items():
                    self.assertTrue(joules[0] <= now[pid][0] and joules[1] <= now[pid][1], f"{trace.name} {t} {pid}")
                before = now
            last = {p["pid"]: (p["static_joules"], p["dynamic_joules"]) for p in books["processes"]}
            self.assertEqual(last, before, trace.name)

    def test_shared_gpus(self):
        percents = [self.percent(name) for name in SEVEN]
        self.assertLessEqual(sum(percents) / len(percents), 5, self.table)
        self.assertLessEqual(max(percents), 10, self.table)

    def test_mps(self):
        self.assertLessEqual(self.percent("mps_mixed"), 15, self.table)

    def test_alone_there_is_nothing_to_split(self):
        for name in self.results:
            if name.startswith("solo_"):
                self.assertLess(self.percent(name), 0.001, name)

    def test_those_never_seen_apart_get_a_wide_error(self):
        for process in self.results["never_alone"]["processes"]:
            self.assertTrue(process["within"], process)

    def test_errors_are_honest(self):
        within = sum(r["within"] for r in self.results.values())
        processes = sum(r["of"] for r in self.results.values())
        outside = [(name, p) for name, r in self.results.items() for p in r["processes"] if not p["within"]]
        self.assertGreaterEqual(within / processes, 0.9, outside)

    def test_errors_are_no_excuse(self):
        """Where the split is good, so must be what is said of it: not a standard error of everything."""
        for name in SEVEN:
            given = sum(p["given_joules"] for p in self.results[name]["processes"])
            doubt = sum(p["standard_error_joules"] for p in self.results[name]["processes"])
            self.assertLess(doubt, 0.5 * given, name)

    def test_better_than_the_plain_formula(self):
        plain = judge("h200", "--attribution=utilization")
        for name in ("spin_vs_fp32", "churn", "mps_mixed"):
            self.assertLess(self.percent(name), plain[name]["misattributed_percent"] / 2, name)


@unittest.skipUnless((DATA / "h200_validation").is_dir(), "no validation recordings")
class Validation(unittest.TestCase):
    """Recorded after, with loads the rule had never met. It was mended where they showed it wrong (docs/attribution.md),
    so these are no independent proof any more, but they hold it to the same promises."""

    @classmethod
    def setUpClass(cls):
        cls.results = judge("h200_validation")
        cls.table = table(cls.results)
        print(cls.table, file=sys.stderr)

    def test_no_joule_is_lost(self):
        self.assertTrue(self.results)
        for name, result in self.results.items():
            self.assertEqual(0, float(result["lost_joules"]), name)

    def test_split(self):
        shared = {name: r["misattributed_percent"] for name, r in self.results.items()
                  if not name.endswith(("never_alone", "mps"))}
        self.assertLessEqual(sum(shared.values()) / len(shared), 5, self.table)
        self.assertLessEqual(max(shared.values()), 10, self.table)
        for name, result in self.results.items():
            if name.endswith("mps"):
                # A client that takes nearly all of the GPU from those who were known: the worst that is known.
                most = 20 if name == "y_mps" else 15
                self.assertLessEqual(result["misattributed_percent"], most, self.table)

    def test_errors_are_honest(self):
        within = sum(r["within"] for r in self.results.values())
        processes = sum(r["of"] for r in self.results.values())
        self.assertGreaterEqual(within / processes, 0.9, self.table)

    def test_what_the_rule_had_not_seen(self):
        """z_ was recorded last, and no change since was made for it or moves its figures."""
        unseen = {name: r for name, r in self.results.items() if name.startswith("z_")}
        self.assertEqual(5, len(unseen))
        self.assertLessEqual(unseen.pop("z_mps")["misattributed_percent"], 15, self.table)
        percents = [r["misattributed_percent"] for r in unseen.values()]
        self.assertLessEqual(sum(percents) / len(percents), 5, self.table)
        self.assertLessEqual(max(percents), 10, self.table)


if __name__ == "__main__":
    unittest.main()
