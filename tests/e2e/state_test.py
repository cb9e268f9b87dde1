# SPDX-License-Identifier: Apache-2.0
"""The ledger's memory over kill -9, a clean end, and files that are no memory at all."""

import json
import re
import signal
import stat
import subprocess
import time
import unittest
import zlib

import harness

# Times are seconds since the epoch that both programs are told, so the node goes on while none of them runs.
NODE = """
seed: 1
gpus: [{model: H200}, {model: A100-40GB}, {model: L4}, {model: T4}]
processes:
  - {pid: 4101, name: alone, gpus: 0, memory: 9GiB, load: gemm, owner: {namespace: ml, pod: train-0, container: main}}
  - {pid: 4102, name: first, gpus: 1, memory: 2GiB, load: train, owner: {namespace: ml, pod: a, container: main}}
  - {pid: 4103, name: second, gpus: 1, memory: 2GiB, load: serve, owner: {docker: chat}}
  - {pid: 4104, name: mortal, gpus: 2, memory: 2GiB, load: fp32, end: %d, owner: {slurm: "7", step: "0"}}
"""
NEVER = 10**6
GAP = 30  # seconds
REASONS = ("idle", "static", "unseen", "exporter_down", "anomaly")  # as the state file lists them
DEVICE = "gpu_ledger_device_energy_joules_total"
REASON = "gpu_ledger_device_unattributed_joules_total"
OPENED = "gpu_ledger_books_opened_timestamp_seconds"
RUN = "gpu_ledger_books_run"
ENERGY = "my_gpu_process_energy_joules_total"
OF_THE_PROGRAM = ("gpu_ledger_sample_duration", "gpu_ledger_driver_call", "gpu_ledger_source_errors", "process_",
                  *harness.OF_THE_TRACE)


class StateTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "state"
        self.recent = self.folder / "state.recent"
        self.epoch = time.time() - 50
        self.scenario = self.write("node.yaml", NODE % NEVER)

    def start(self, *arguments):
        return harness.Ledger(f"--state-file={self.file}", *harness.FAST, *arguments, scenario=self.scenario,
                              environment={"GPU_LEDGER_SIM_EPOCH": f"{self.epoch:.3f}"})

    def run_for_a_while(self, ledger):
        harness.wait_until(lambda: ledger.metrics().value(DEVICE, gpu="0") > 500, "some joules")
        return ledger.metrics()

    def kept(self):
        """The newer one of the two files: its devices."""
        states = [json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
                  for path in (self.file, self.recent) if path.exists()]
        return max(states, key=lambda state: state["number"])["devices"]

    def joules_kept(self):
        """{GPU: {reason or pid: joules}}, in the order of the scenario; "measured" are all of a GPU."""
        uuids = {labels["gpu"]: labels["uuid"] for labels, _ in self.named.find("gpu_ledger_device_info")}
        books = {}
        for device in self.kept():
            (gpu,) = [gpu for gpu, uuid in uuids.items() if uuid == device["uuid"]]
            book = books[gpu] = {"measured": device["measured_uj"] / 1e6}
            book.update({reason: joules / 1e6 for reason, joules in zip(REASONS, device["unattributed_uj"])})
            for process in device["processes"]:
                pid = str(process["pid"])
                book[pid] = book.get(pid, 0) + sum(process["booked"][:2]) / 1e6
        return books

    def change_kept(self, change):
        for path in (self.file, self.recent):
            if not path.exists():
                continue
            _, _, body = path.read_text(encoding="utf-8").partition("\n")
            body = change(body)
            checksum = zlib.crc32(f"3{body}".encode())  # of the version too
            path.write_text(f"gpu-ledger-state 3 crc32:{checksum:08x} {len(body)}\n{body}", encoding="ascii")

    def let_time_pass(self, seconds):
        """For the node, and for the wall clock: what was kept is as much older."""
        self.epoch -= seconds
        self.change_kept(lambda body: re.sub(
            r'"wall_ns":(\d+)', lambda found: f'"wall_ns":{int(found[1]) - seconds * 10**9}', body))

    def assert_goes_on(self, before, after):
        self.assert_balanced(after)
        kept = {key: value for key, value in before.counters().items() if not key[0].startswith(OF_THE_PROGRAM)}
        self.assertGreater(len(kept), 12)
        now = after.counters()
        for key, value in kept.items():
            if value > 0:
                self.assertIn(key, now, "vanished")
                self.assertGreaterEqual(now[key], value, f"{key} fell")

    def test_what_is_shown_is_kept_before(self):
        """So that no counter falls, whenever it is killed. But it does not wait for ever, and on a busy machine a write may
        come late."""
        with self.start() as ledger:
            in_time = 0
            for _ in range(10):
                ledger.pass_cycles(1)
                self.named = ledger.metrics()
                shown = self.named.value(DEVICE, gpu="0")
                in_time += self.joules_kept()["0"]["measured"] > shown - 1e-3
            self.assertGreater(in_time, 5)

    def kill(self, ledger):
        """What the last scrape had, and what was kept at the very end: cycles may have come in between."""
        self.named = shown = ledger.metrics()
        harness.wait_until(lambda: self.joules_kept()["0"]["measured"] > shown.value(DEVICE, gpu="0") - 1e-3,
                           "what was shown to be kept")
        ledger.stop(signal.SIGKILL)
        return shown, self.joules_kept()

    def test_kill_9_loses_nothing_and_the_gap_is_booked(self):
        with self.start() as ledger:
            self.run_for_a_while(ledger)
            shown, before = self.kill(ledger)
        # The mortal ends in the gap, and the driver's last samples of its GPU still name it afterwards.
        self.write("node.yaml", NODE % (time.time() - self.epoch + GAP - 1))
        self.let_time_pass(GAP)
        with self.start() as ledger:
            after = ledger.metrics()
            self.assert_goes_on(shown, after)
            self.check_the_gap(before, after)
            # The same in every later look.
            ledger.pass_cycles(3)
            later = ledger.metrics()
            self.assertEqual(later.value("my_gpu_process_active", pid="4104"), 0)
            self.assert_goes_on(after, later)
            self.check_the_gap(before, later)

    def check_the_gap(self, before, after):
        reasons = lambda gpu: {reason: after.total(REASON, gpu=gpu, reason=reason) for reason in REASONS}
        reasons_before = lambda gpu: {reason: before[gpu][reason] for reason in REASONS}
        grown = {gpu: after.value(DEVICE, gpu=gpu) - before[gpu]["measured"] for gpu in "0123"}
        # At full load an H200 draws hundreds of watts, and an idle T4 its ten.
        self.assertGreater(grown["0"], 200 * GAP)
        self.assertGreater(grown["3"], 5 * GAP)
        # Alone before and after: all of it, and the gap as estimated, for nobody looked.
        self.assertAlmostEqual(after.total(ENERGY, pid="4101") - before["0"]["4101"], grown["0"], places=3)
        self.assertGreater(after.value(ENERGY, pid="4101", energy_estimated="true"), 200 * GAP)
        self.assertEqual(reasons("0"), reasons_before("0"))
        # Two who shared: estimated, and nothing left over.
        shared = after.total(ENERGY, gpu="1") - before["1"]["4102"] - before["1"]["4103"]
        self.assertAlmostEqual(shared, grown["1"], places=3)
        # Nobody lived through it, and nobody is there after it.
        for gpu in "23":
            down = reasons(gpu)["exporter_down"] - before[gpu]["exporter_down"]
            idle = reasons(gpu)["idle"] - before[gpu]["idle"]
            self.assertGreater(down, 5 * GAP)
            self.assertAlmostEqual(down + idle, grown[gpu], places=3)
        self.assertAlmostEqual(after.total(ENERGY, pid="4104"), before["2"]["4104"], places=3)

    def test_a_state_that_could_not_be_read_back_does_not_end_the_start(self):
        def fill(body):
            state = json.loads(body)
            device = state["devices"][0]
            device["unattributed_uj"][0] += 2**60 - device["measured_uj"]  # the most that is read
            device["measured_uj"] = 2**60
            return json.dumps(state, separators=(",", ":"))

        with self.start() as ledger:
            self.run_for_a_while(ledger)
            ledger.stop()
        self.change_kept(fill)
        with self.start() as ledger:
            # The first snapshot tells what was before its state was kept.
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_source_up", source="state-file") == 0,
                               "the state file to fail")
            self.assertGreater(
                ledger.metrics().value("gpu_ledger_source_errors_total", source="state-file", code="unreadable"), 0)
            self.assertIn("a count is too high", ledger.log())
            self.assertEqual(ledger.stop(), 0, ledger.log())
        # The first cycle may have nothing to add yet, and is kept then.
        state = json.loads(self.file.read_text(encoding="utf-8").partition("\n")[2])
        self.assertEqual(state["devices"][0]["measured_uj"], 2**60)

    def test_killed_again_and_again(self):
        shown = None
        for _ in range(4):
            with self.start() as ledger:
                if shown:
                    self.assert_goes_on(shown, ledger.metrics())
                ledger.pass_cycles(2)
                shown, _ = self.kill(ledger)

    def test_a_clean_end_leaves_one_file(self):
        with self.start() as ledger:
            before = self.run_for_a_while(ledger)
            self.assertTrue(self.recent.exists())
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["node.yaml", "state"])
        with self.start() as ledger:
            after = ledger.metrics()
            self.assert_goes_on(before, after)
            said = json.loads(ledger.get("/api/v1/snapshot").text)["gpus"][3]
        self.assertEqual(len(before.find(OPENED)), 4)
        self.assertEqual(after.find(OPENED), before.find(OPENED))
        self.assertEqual([{value for _, value in page.find(RUN)} for page in (before, after)], [{1}, {2}])
        self.assertEqual((said["books_opened_seconds"], said["books_run"]), (after.value(OPENED, gpu="3"), 2))
        with harness.Ledger(*harness.FAST, scenario=self.scenario) as ledger:  # without --state-file
            anew = ledger.metrics()
        self.assertEqual({value for _, value in anew.find(RUN)}, {1})
        for gpu in "0123":
            self.assertGreater(anew.value(OPENED, gpu=gpu), after.value(OPENED, gpu=gpu))

    def test_once_adds_up(self):
        def once():
            done = subprocess.run(
                [harness.BINARY, "once", "--backend=sim", f"--sim-scenario={self.scenario}", "--sample-interval=200ms",
                 f"--state-file={self.file}"], capture_output=True, text=True, timeout=harness.NET, check=True,
                env=harness.clean_environment({"GPU_LEDGER_SIM_EPOCH": f"{self.epoch:.3f}"}))
            return harness.Metrics(done.stdout)

        before = once()
        self.let_time_pass(GAP)
        after = once()
        self.assert_goes_on(before, after)
        self.assertGreater(after.value(DEVICE, gpu="0"), before.value(DEVICE, gpu="0") + GAP * 200)
        self.assertEqual([page.value(RUN, gpu="0") for page in (before, after)], [1, 2], "each pass is a run")

    def test_a_file_that_is_no_state_is_set_aside(self):
        for text in ("", "not ours\n", '{"number": 1, "devices": []}', "gpu-ledger-state 99 from the future\n"):
            self.file.write_text(text, encoding="utf-8")
            with self.start() as ledger:
                self.assert_balanced(ledger.metrics())
                self.assertEqual(ledger.metrics().value("gpu_ledger_source_up", source="state-file"), 1)
                self.assertEqual(len(re.findall("starts without this state", ledger.log())), 1, ledger.log())
                ledger.stop()
            aside = list(self.folder.glob("state.broken-*"))
            self.assertEqual(len(aside), 1)
            self.assertEqual(aside[0].read_text(encoding="utf-8"), text)
            aside[0].unlink()

    def test_a_folder_that_goes_away_costs_the_memory_only(self):
        place = self.folder / "place"
        place.mkdir()
        self.file = place / "state"
        up = lambda: ledger.metrics().value("gpu_ledger_source_up", source="state-file")
        with self.start() as ledger:
            self.assertEqual(up(), 1)
            before = self.run_for_a_while(ledger)
            place.rename(self.folder / "elsewhere")
            harness.wait_until(lambda: up() == 0, "the state file to fail")
            harness.wait_until(lambda: ledger.metrics().value(DEVICE, gpu="0") > before.value(DEVICE, gpu="0") + 200,
                               "the books to go on")
            (self.folder / "elsewhere").rename(place)
            harness.wait_until(lambda: up() == 1, "the state file to work again")
            last, _ = self.kill(ledger)
        with self.start() as ledger:
            self.assert_goes_on(last, ledger.metrics())

    def test_one_file_has_one_keeper(self):
        with self.start() as ledger:
            before = self.run_for_a_while(ledger)
            done = subprocess.run(
                [harness.BINARY, "once", "--backend=sim", f"--state-file={self.file}"], capture_output=True, text=True,
                timeout=harness.NET, check=False, env=harness.clean_environment())
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("another gpu-ledger", done.stderr)
            self.assert_goes_on(before, ledger.metrics())
            before, _ = self.kill(ledger)
        with self.start() as ledger:  # what was killed holds nothing
            self.assert_goes_on(before, ledger.metrics())

    def second(self, path):
        return subprocess.run(
            [harness.BINARY, "once", "--backend=sim", f"--state-file={path}", "--sample-interval=200ms"],
            capture_output=True, text=True, timeout=harness.NET, check=False, env=harness.clean_environment())

    def test_a_link_lets_nobody_else_in(self):
        with self.start() as ledger:
            self.run_for_a_while(ledger)
            (self.folder / "link").symlink_to(self.file)
            done = self.second(self.folder / "link")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("a symbolic link", done.stderr)
            self.assertTrue((self.folder / "link").is_symlink())
        other = self.folder / "other"
        (self.folder / "other.lock").symlink_to(self.folder / "elsewhere")
        done = self.second(other)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cannot lock", done.stderr)

    def test_of_two_writers_one_stops_where_the_lock_was_removed(self):
        up = lambda ledger: ledger.metrics().value("gpu_ledger_source_up", source="state-file")
        with self.start() as first:
            self.run_for_a_while(first)
            (self.folder / "state.lock").unlink()
            harness.wait_until((self.folder / "state.lock").exists, "the lock, made anew")
            self.assertEqual(self.second(self.file).returncode, 1, "the first still keeps it")
            self.assertEqual(up(first), 1)
            # A second one that comes at the very moment: the first must give way, for only one can go on.
            first.freeze()
            (self.folder / "state.lock").unlink()
            with self.start() as second:
                first.send(signal.SIGCONT)
                harness.wait_until(lambda: up(first) == 0, "the first to stop writing")
                first.stop()
                self.assertEqual(up(second), 1)
                self.assertTrue(self.recent.exists(), "not the first one's to remove")
                before, _ = self.kill(second)
        with self.start() as third:
            self.assert_goes_on(before, third.metrics())

    def test_nobody_else_may_read_it(self):
        with self.start() as ledger:
            for path in (self.file, self.recent):
                harness.wait_until(path.exists, "the file")
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            ledger.stop()
        with self.start("--state-file-mode=0644") as ledger:
            harness.wait_until(self.recent.exists, "the file")
            self.assertEqual(stat.S_IMODE(self.recent.stat().st_mode), 0o644)

    def test_a_wrong_path_is_said_at_the_start(self):
        for path, why in ((self.folder / "none" / "state", "none"), (self.folder, "Is a directory")):
            done = subprocess.run(
                [harness.BINARY, "serve", "--backend=sim", f"--listen-address=127.0.0.1:{harness.free_port()}",
                 f"--state-file={path}"], capture_output=True, text=True, timeout=harness.NET, check=False,
                env=harness.clean_environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--state-file: ", done.stderr)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
