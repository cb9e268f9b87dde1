# SPDX-License-Identifier: Apache-2.0
"""Exact time on the simulated node: on where it can be had, off with a reason where not, gone when nobody wants it."""

import json
import os
import re
import signal
import statistics
import subprocess
import unittest

import harness

SHARED = """
gpus: [{model: H200}]
processes:
  - {pid: 501, gpus: 0, memory: 1GiB, load: {kind: gemm, weight: 2}, owner: none}
  - {pid: 502, gpus: 0, memory: 1GiB, load: {kind: spin, weight: 1}, owner: none}
"""

# The simulated GPUs, but the real device nodes and rights. The nodes are not there, or do not know these GPUs.
REAL_DOOR = ("--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1", "--no-kubernetes-enabled", *harness.FAST)
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-sys_admin") if os.geteuid() == 0 else ()


def exact_of(ledger, gpu):
    gpus = json.loads(ledger.get("/api/v1/snapshot").text)["gpus"]
    return next(one for one in gpus if one["index"] == gpu).get("exact_time")


def wait_until_trusted(ledger, gpu=0):
    harness.wait_until(lambda: (exact_of(ledger, gpu) or {}).get("trusted"), f"exact time of GPU {gpu}")


class ExactTimeTest(harness.Case):
    def test_nothing_of_it_is_there_when_off(self):
        with harness.Ledger("--exact-time=off", *harness.FAST) as ledger:
            self.assertNotRegex(ledger.get("/metrics").text, "exact_time|switch")
            self.assertIsNone(exact_of(ledger, 0))

    def test_the_default_node_shows_it_and_says_where_not_and_why(self):
        with harness.Ledger("--exact-time=on", *harness.FAST) as ledger:
            for gpu in (0, 3, 4):
                wait_until_trusted(ledger, gpu)
            metrics = ledger.metrics()
            for gpu, on in (("0", 1), ("1", 0), ("2", 0), ("3", 1), ("4", 1)):
                self.assertEqual(metrics.value("gpu_ledger_exact_time", gpu=gpu), on, f"GPU {gpu}")
                self.assertEqual(metrics.value("gpu_ledger_exact_time_lost_records_total", gpu=gpu), 0)
            self.assertIn("MIG", exact_of(ledger, 1)["reason"])
            self.assertIn("MPS", exact_of(ledger, 2)["reason"])
            self.assert_balanced(metrics)
            ledger.pass_cycles(5)
            for gpu in range(5):
                lines = [line for line in ledger.log().splitlines() if f"exact time of GPU {gpu} is" in line]
                self.assertEqual(len(lines), 1, lines)

    def test_by_default_it_is_on_and_where_not_no_word_is_lost(self):
        with harness.Ledger(*harness.FAST) as ledger:
            wait_until_trusted(ledger)
            ledger.pass_cycles(2)
            self.assertEqual(ledger.metrics().value("gpu_ledger_exact_time", gpu="0"), 1)
            self.assertEqual(ledger.metrics().value("gpu_ledger_exact_time", gpu="2"), 0)
            self.assertIn("MPS", exact_of(ledger, 2)["reason"])
            self.assertNotIn("split by samples", ledger.log())

    def test_without_the_right_it_is_off_without_a_word_unless_asked_for(self):
        with harness.Ledger(*REAL_DOOR, through=WITHOUT_RIGHTS) as ledger:
            ledger.pass_cycles(2)
            self.assertNotRegex(ledger.get("/metrics").text, "exact_time|_switches")
            self.assertNotIn("exact time", ledger.log())
        with harness.Ledger(*REAL_DOOR, "--exact-time=on", through=WITHOUT_RIGHTS) as ledger:
            harness.wait_until(lambda: "exact time of GPU 0 is off" in ledger.log(), "a warning")
            self.assertRegex(ledger.log(), "level=warn .*exact time of GPU 0 is off")
            self.assertEqual(ledger.metrics().value("gpu_ledger_exact_time", gpu="0"), 0)

    def test_the_budget_makes_pauses(self):
        with harness.Ledger("--exact-time-budget=0.0001%", *harness.FAST, scenario=self.write("shared.yaml", SHARED)) as ledger:
            wait_until_trusted(ledger)
            passed = []

            def stands():
                passed.append(exact_of(ledger, 0)["records"])
                ledger.pass_cycles(3)
                return passed[-1] > 0 and exact_of(ledger, 0)["records"] == passed[-1]

            harness.wait_until(stands, "no more records")
            self.assertTrue(exact_of(ledger, 0)["trusted"], "in a pause too")

    def test_two_that_are_never_apart_are_told_apart(self):
        with harness.Ledger("--exact-time=on", *harness.FAST, scenario=self.write("shared.yaml", SHARED)) as ledger:
            wait_until_trusted(ledger)
            before = exact_of(ledger, 0)
            by_process = lambda: [metrics.value("my_gpu_process_switches_total", pid=pid) for metrics in
                                  [ledger.metrics()] for pid in ("501", "502")]
            harness.wait_until(lambda: exact_of(ledger, 0)["switches"] - before["switches"] > 500, "switches")
            harness.wait_until(lambda: min(by_process()) > 100, "switches of both")
            self.assertGreater(exact_of(ledger, 0)["switch_seconds"], before["switch_seconds"])
            by_process = by_process()
            self.assertAlmostEqual(by_process[0] / by_process[1], 1, delta=0.1)

    def test_sigusr1_ends_it_and_sigusr2_begins_it_again(self):
        with harness.Ledger("--exact-time=on", *harness.FAST, scenario=self.write("shared.yaml", SHARED)) as ledger:
            wait_until_trusted(ledger)
            before = ledger.metrics()
            ledger.send(signal.SIGUSR1)
            harness.wait_until(lambda: ledger.get("/readyz").status == 503, "/readyz to say 503")
            tasks = subprocess.run(["sh", "-c", f"cat /proc/{ledger.child.pid}/task/*/comm"], capture_output=True,
                                   text=True, check=True).stdout
            self.assertNotIn("switch-trace", tasks)
            ledger.send(signal.SIGUSR2)
            wait_until_trusted(ledger)
            self.assertGreaterEqual(ledger.metrics().value("gpu_ledger_device_switches_total"),
                                    before.value("gpu_ledger_device_switches_total"))
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())

    def test_a_gpu_that_is_lost_while_traced_loses_no_joule(self):
        control = harness.Control(self.folder)
        with harness.Ledger("--exact-time=on", *harness.FAST, scenario=self.write("lost.yaml", SHARED),
                            environment=control.environment) as ledger:
            wait_until_trusted(ledger)
            control.say("do: gpu_lost, gpu: 0")
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_device_up") == 0, "the GPU to be lost")
            self.assert_balanced(ledger.pass_cycles(2))
            control.say()
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_device_up") == 1, "the GPU to be back")
            wait_until_trusted(ledger)
            self.assert_balanced(ledger.metrics())

    def test_a_driver_that_is_not_known_is_left_alone(self):
        text = SHARED + 'driver: "999.10.1"\n'
        with harness.Ledger("--exact-time=on", *harness.FAST, scenario=self.write("driver.yaml", text)) as ledger:
            harness.wait_until(lambda: "999.10.1" in (exact_of(ledger, 0) or {}).get("reason", ""), "the reason")
            self.assertEqual(ledger.metrics().value("gpu_ledger_exact_time"), 0)
            self.assertEqual(len(re.findall("is off, its time is split by samples", ledger.log())), 1)

    def test_a_recording_has_it_and_a_replay_can_do_without(self):
        trace = self.write("trace.jsonl", "")
        scenario = self.write("shared.yaml", SHARED)

        def resident():
            """Milliseconds of each bin, by pid, from the lines that are whole. A file beside it grows until the recording ends."""
            file = max((path for path in self.folder.iterdir() if trace.name in path.name), key=lambda p: p.stat().st_size)
            times = {}
            for text in file.read_text(encoding="utf-8").split("\n")[:-1]:
                line = json.loads(text)
                for pid, values in line["p"] if line["k"] == "residency" else []:
                    times.setdefault(pid, []).extend(values)
            return times

        with harness.Program([harness.BINARY, "record", trace, "--backend=sim", f"--sim-scenario={scenario}",
                              "--exact-time=on"]) as record:
            harness.wait_until(lambda: sum(resident().get(501, [])) > 1500, "a time on the GPU")
            code = record.stop(signal.SIGINT)
            self.assertEqual(code, 0, record.log())
        times = {pid: statistics.median(values) for pid, values in resident().items()}
        # Not their sums: on a busy machine the simulated kernel may bring some records too late for their bins.
        self.assertAlmostEqual(times[501] / times[502], 2, delta=0.15)
        for flags in ([], ["--exact-time=off"]):
            subprocess.run([harness.BINARY, "replay", trace, *flags], check=True, capture_output=True)

    def test_doctor_says_what_can_be_had(self):
        def doctor(*flags):
            done = subprocess.run([harness.BINARY, "doctor", "--listen-address=127.0.0.1:0", *flags],
                                  capture_output=True, text=True, check=False, env=harness.clean_environment())
            return [line for line in done.stdout.splitlines() if " exact time: " in line]

        gain = "; with exact time, .* half as many joules"
        self.assertRegex(doctor("--backend=sim", "--exact-time=off")[0], f"^ok .*: off, by --exact-time=off{gain}")
        self.assertRegex(doctor(*REAL_DOOR)[0], f"^ok .*GPU 0, .*: off: .*{gain}")
        self.assertRegex(doctor(*REAL_DOOR, "--exact-time=on")[0], "^FAIL .*GPU 0, .*: off: ")
        for flags, missing in (("--exact-time=on", "warn"), ("--exact-time=auto", "ok")):
            said = "\n".join(doctor("--backend=sim", flags))
            self.assertRegex(said, "(?m)^ok .*GPU 0, 3, 4, 5 can be traced")
            self.assertRegex(said, f"(?m)^{missing} .*GPU 2: off: MPS")
            self.assertNotIn("joules", said, "under MPS it would gain nothing")


if __name__ == "__main__":
    unittest.main()
