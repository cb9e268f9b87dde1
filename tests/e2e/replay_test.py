# SPDX-License-Identifier: Apache-2.0
"""record and replay, as a user runs them: on the simulated node, and on what is no trace."""

import gzip
import json
import os
import re
import signal
import subprocess
import unittest

import harness

TRACES = harness.SOURCE / "tests/data/h200"
LOG_LINE = re.compile(r"^ts=\S+ level=(debug|info|warn) ")


class ReplayTest(harness.Case):
    def run_ledger(self, *arguments, environment=None):
        return subprocess.run([harness.BINARY, *(str(argument) for argument in arguments)], capture_output=True,
                              text=True, timeout=harness.NET, env=harness.clean_environment(environment))

    def replay(self, trace, *flags):
        done = self.run_ledger("replay", trace, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def refuse(self, code, *arguments, says):
        done = self.run_ledger(*arguments)
        lines = [line for line in done.stderr.splitlines() if not LOG_LINE.match(line)]
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(lines), 1, done.stderr)
        for word in says:
            self.assertIn(str(word), lines[0])
        self.assertEqual(done.stdout, "")

    def assert_exact(self, result):
        device = result["device"]
        booked = sum(p["static_joules"] + p["dynamic_joules"] for p in result["processes"])
        self.assertAlmostEqual(device["measured_joules"],
                               booked + device["idle_joules"] + device["unattributed_joules"], places=5)

    def test_settings_reach_the_ledger(self):
        trace = TRACES / "two_staggered.jsonl.gz"
        plain = self.replay(trace)
        self.assert_exact(plain)
        self.assertEqual(len(plain["processes"]), 2)
        nobody = self.replay(trace, "--attribution=measured-only")
        self.assert_exact(nobody)
        self.assertGreater(nobody["device"]["unattributed_joules"], 1000)
        self.assertEqual(sum(p["shared_joules"] for p in nobody["processes"]), 0)
        separate = self.replay(trace, "--static-power=separate", "--gpu-idle-power=100")
        self.assert_exact(separate)
        self.assertGreater(separate["device"]["unattributed_joules"], 1000)
        self.assertEqual(self.replay(trace, "--sample-interval=500ms")["device"]["measured_joules"],
                         plain["device"]["measured_joules"])

    def test_a_recording_of_the_simulated_node_replays(self):
        trace = self.folder / "gpu.jsonl.gz"
        done = self.run_ledger("record", trace, "--backend=sim", "--for=3s", "--gpu-devices=2",
                               "--exact-time=off", environment={"TMPDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["gpu.jsonl.gz"])
        kinds = {json.loads(line)["k"] for line in gzip.open(trace)}
        self.assertEqual(kinds, {"device", "energy", "util", "procs", "mps", "process", "state", "gpm", "power"})
        result = self.replay(trace)
        self.assert_exact(result)
        self.assertGreater(result["device"]["measured_joules"], 100)
        self.assertGreater(len(result["processes"]), 1)

    def names_in(self, form):
        trace = self.folder / f"{form}.jsonl"
        done = self.run_ledger("record", trace, "--backend=sim", "--for=1s", "--gpu-devices=2", f"--record-names={form}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_exact(self.replay(trace))
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
        listed = {pid for line in lines if line["k"] == "procs" for pid, _ in line["p"]}
        return listed, {line["pid"]: line for line in lines if line["k"] == "process"}

    def test_a_recording_names_processes_as_it_is_told(self):
        listed, plain = self.names_in("plain")
        self.assertEqual(listed, plain.keys())
        named = [line for line in plain.values() if line["owner"].get("pod")]
        self.assertTrue(named, plain)
        _, hashed = self.names_in("hashed")
        self.assertEqual(plain.keys(), hashed.keys())
        for pid, line in plain.items():
            self.assertEqual(line["owner"]["kind"], hashed[pid]["owner"]["kind"])
            self.assertRegex(hashed[pid]["name"], "^[0-9a-f]{16}$")
            texts = {line["name"], *(text for key, text in line["owner"].items() if key != "kind")}
            self.assertFalse(texts & {hashed[pid]["name"], *hashed[pid]["owner"].values()}, hashed[pid])
        _, none = self.names_in("none")
        self.assertEqual(none, {})

    def test_a_recording_without_a_proc_has_no_names(self):
        trace = self.folder / "a.jsonl"
        done = self.run_ledger("record", trace, "--backend=sim", "--for=1s", f"--proc-root={self.folder}/none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("recording without names", done.stderr)
        self.assertNotIn('"process"', trace.read_text())

    def test_a_signal_ends_a_recording_in_order(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            trace = self.folder / f"gpu-{number}.jsonl"
            with harness.Program([harness.BINARY, "record", trace, "--backend=sim", "--gpu-devices=1"]) as program:
                written = lambda: [path for path in self.folder.glob(f"*gpu-{number}*") if path.stat().st_size > 0]
                harness.wait_until(written, "its first lines")
                self.assertFalse(trace.exists(), "it has its name before it is whole")
                code = program.stop(number)
            self.assertEqual(code, 0)
            self.assert_exact(self.replay(trace))

    def test_what_is_no_trace(self):
        folder = self.folder
        self.refuse(1, "replay", folder / "missing.jsonl", says=["missing.jsonl", "No such file"])
        self.refuse(1, "replay", folder, says=[folder])
        text = self.write("notes.jsonl", "not a trace\n")
        self.refuse(1, "replay", text, says=[f"{text}:1:"])
        empty = self.write("empty.jsonl", "")
        self.refuse(1, "replay", empty, says=[empty])
        cut = folder / "cut.jsonl.gz"
        whole = (TRACES / "holders.jsonl.gz").read_bytes()
        cut.write_bytes(whole[:len(whole) // 2])
        self.refuse(1, "replay", cut, says=[cut, "unpacked"])
        self.refuse(2, "replay", says=["replay", "FILE"])

    def test_where_no_trace_can_be(self):
        folder = self.folder
        self.refuse(1, "record", folder / "none/gpu.jsonl", "--backend=sim", says=["none/gpu.jsonl", "No such file"])
        self.refuse(1, "record", folder, "--backend=sim", says=[folder])
        self.refuse(1, "record", folder / "a.jsonl", "--backend=sim", "--gpu-devices=0,1", says=["--gpu-devices"])
        self.refuse(1, "record", folder / "a.jsonl", "--backend=sim", "--gpu-devices=77", says=["77"])
        self.refuse(1, "record", folder / "a.jsonl", "--backend=nvml", f"--nvml-library={folder}/libnvidia-ml.so.1",
                    says=["libnvidia-ml.so.1"])
        self.assertEqual(os.listdir(folder), [])
        fifo, link = folder / "fifo", folder / "link"
        os.mkfifo(fifo)
        link.symlink_to("/dev/null")
        for path in (fifo, link):
            self.refuse(1, "record", path, "--backend=sim", "--for=1s", says=[path])
        self.assertTrue(fifo.is_fifo() and link.is_symlink(), "replaced")
        self.assertEqual(sorted(os.listdir(folder)), ["fifo", "link"])


if __name__ == "__main__":
    unittest.main()
