# SPDX-License-Identifier: Apache-2.0
"""The textfile as node_exporter's collector finds it."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time
import unittest

import harness

NODE_EXPORTER = shutil.which("prometheus-node-exporter")
OURS = "gpu_ledger_device_energy_joules_total"
HOLDER_AND_WORKER = """
seed: 1
gpus: [{model: H200}, {model: H200}]
processes:
  - {pid: 1001, gpus: 0, memory: 8GiB, load: idle, owner: {namespace: ml, pod: a, container: main}}
  - {pid: 1002, gpus: 1, memory: 4GiB, load: gemm, owner: none}
"""


class NodeExporter(harness.Program):
    def __init__(self, folder):
        self.port = harness.free_port()
        super().__init__([
            NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{self.port}", "--collector.disable-defaults",
            "--collector.textfile", f"--collector.textfile.directory={folder}"])
        harness.wait_until(self.answers, "node_exporter")

    def answers(self):
        try:
            return harness.get(self.port).status == 200
        except OSError:
            return False

    def metrics(self):
        return harness.Metrics(harness.get(self.port).text)


class TextfileTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.assertTrue(NODE_EXPORTER, "prometheus-node-exporter is missing; tools/setup.sh --test installs it")
        self.folder.chmod(0o755)
        self.file = self.folder / "gpu.prom"
        self.epoch = int(time.time()) - 50  # the node goes on between two passes

    def others(self):
        """What else is in the folder; while a program writes, its next file may be among it."""
        return sorted(path.name for path in self.folder.iterdir() if path != self.file)

    def assert_alone(self):
        self.assertEqual(self.others(), [])
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o644)

    def test_one_pass_sees_work_on_every_engine(self):
        scenario = self.write("video.yaml", "seed: 1\ngpus: [{model: A10}]\nprocesses:\n" + "".join(
            f"  - {{pid: {pid}, gpus: 0, memory: 1GiB, owner: none, load: {{kind: idle, {engine}: 60, duty: steady}}}}\n"
            for pid, engine in ((1001, "encoder"), (1002, "decoder"), (1003, "busy"), (1004, "memory"))))
        done = subprocess.run([harness.BINARY, "once", "--backend=sim", f"--sim-scenario={scenario}"], text=True,
                              capture_output=True, timeout=harness.NET, env=harness.clean_environment(
                                  {"GPU_LEDGER_SIM_EPOCH": str(self.epoch)}))
        self.assertEqual(done.returncode, 0, done.stderr)
        status = {labels["pid"]: labels["status"] for labels, _ in harness.Metrics(done.stdout).find("gpu_process_info")}
        self.assertEqual(status, {"gpu0_1001": "active", "gpu0_1002": "active", "gpu0_1003": "active",
                                  "gpu0_1004": "unknown"})

    def test_serve_writes_after_every_scan_and_removes_at_the_end(self):
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger, NodeExporter(self.folder) as node:
            harness.wait_until(self.file.exists, "the textfile")
            self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o644)
            inode = self.file.stat().st_ino
            harness.wait_until(lambda: self.file.stat().st_ino != inode, "the next file to be renamed over it")
            for _ in range(20):
                seen = node.metrics()
                self.assertEqual(seen.value("node_textfile_scrape_error"), 0)
                self.assertTrue(seen.find(OURS))
                self.assert_balanced(seen)
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_once_leaves_its_file(self):
        old_mask = os.umask(0o077)
        try:
            subprocess.run([harness.BINARY, "once", "--backend=sim", f"--textfile={self.file}"], check=True,
                           env=harness.clean_environment(), timeout=harness.NET, capture_output=True)
        finally:
            os.umask(old_mask)
        self.assert_alone()
        with NodeExporter(self.folder) as node:
            seen = node.metrics()
            self.assertEqual(seen.value("node_textfile_scrape_error"), 0)
            self.assertTrue(seen.find("gpu_process_info"))
            self.assertGreater(seen.total(OURS), 0)
            self.assert_balanced(seen)

    def test_a_container_expects_the_gpus_it_was_given(self):
        for given, expects in ((None, True), ("all", True), ("GPU-0,GPU-1", False)):
            environment = harness.clean_environment({"NVIDIA_VISIBLE_DEVICES": given} if given else None)
            done = subprocess.run([harness.BINARY, "once", "--backend=sim"], env=environment, capture_output=True, text=True,
                                  check=True, timeout=harness.NET)
            self.assertEqual("\ngpu_ledger_gpus_expected " in done.stdout, expects, given)
            self.assertIn("\ngpu_ledger_gpus_visible ", done.stdout)

    def test_once_prints_without_a_textfile(self):
        done = subprocess.run([harness.BINARY, "once", "--backend=sim"], env=harness.clean_environment(),
                              timeout=harness.NET, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = harness.Metrics(done.stdout)
        self.assert_balanced(printed)
        self.assertTrue(printed.find("my_gpu_process_sm_utilization_ratio"))

    def test_what_is_no_regular_file_is_refused_and_left_alone(self):
        os.mkfifo(self.folder / "fifo")
        (self.folder / "link").symlink_to(self.folder / "elsewhere")
        names = ["fifo", "link"]
        try:
            os.mknod(self.folder / "full", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
            names.append("full")
        except PermissionError:
            pass  # not root
        for name in names:
            kind = (self.folder / name).lstat()
            for command in (["once"], ["serve", f"--listen-address=127.0.0.1:{harness.free_port()}"]):
                done = subprocess.run(
                    [harness.BINARY, *command, "--backend=sim", "--sample-interval=200ms",
                     f"--textfile={self.folder / name}"], env=harness.clean_environment(),
                    timeout=harness.NET, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1, name)
                self.assertIn(f"cannot write {self.folder / name}: ", done.stderr)
                self.assertEqual((self.folder / name).lstat().st_ino, kind.st_ino, "replaced or removed")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted(names))

    def test_a_full_disk_at_the_start_does_not_end_serve(self):
        place = self.folder / "place"
        place.mkdir()
        # A small disk of its own, full, in a mount namespace that ends with the program.
        run = ["unshare", "--mount", "--propagation=private", "sh", "-c",
               'mount -t tmpfs -o size=1m tmpfs "$0" && { head -c 2M /dev/zero > "$0/filler" 2> /dev/null; exec "$@"; }', place]
        if subprocess.run([*run, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        file = place / "gpu.prom"
        done = subprocess.run([*run, harness.BINARY, "once", "--backend=sim", "--sample-interval=200ms", f"--textfile={file}"],
                              env=harness.clean_environment(), timeout=harness.NET, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot write {file}: No space left on device", done.stderr)
        with harness.Ledger(f"--textfile={file}", *harness.FAST, through=run) as ledger:
            up = lambda: ledger.metrics().value("gpu_ledger_source_up", source="textfile")
            harness.wait_until(lambda: up() == 0, "that it says so")
            self.assertGreater(ledger.metrics().total("gpu_ledger_source_errors_total", source="textfile"), 0)
            self.assertIn("No space left on device", ledger.log())
            inside = pathlib.Path(f"/proc/{ledger.child.pid}/root{place}")
            (inside / "filler").unlink()
            harness.wait_until(lambda: up() == 1, "the disk to be used again")
            self.assert_balanced(harness.Metrics((inside / "gpu.prom").read_text(encoding="utf-8")))

    def node_in_file(self):
        """--node-name of the program that wrote the file; None: there is none."""
        try:
            return harness.Metrics(self.file.read_text(encoding="utf-8")).find("gpu_ledger_build_info")[0][0]["node"]
        except FileNotFoundError:
            return None

    def test_one_of_several_programs_writes_the_file(self):
        serve = lambda node: harness.Ledger(f"--textfile={self.file}", f"--node-name={node}", *harness.FAST)
        up = lambda ledger: ledger.metrics().value("gpu_ledger_source_up", source="textfile", node=ledger.node)
        used = f"{self.file} is used by another gpu-ledger"
        with serve("one") as one:
            harness.wait_until(self.file.exists, "the textfile")
            with serve("two") as two:
                one.node, two.node = "one", "two"
                harness.wait_until(lambda: up(two) == 0, "the second to notice the first")
                self.assertIn(used, two.log())
                two.pass_cycles(3)
                self.assertEqual((self.node_in_file(), up(one)), ("one", 1))
                done = subprocess.run([harness.BINARY, "once", "--backend=sim", "--sample-interval=200ms",
                                       f"--textfile={self.file}"], env=harness.clean_environment(), timeout=harness.NET,
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(used, done.stderr)
                one.stop(signal.SIGKILL)
                harness.wait_until(lambda: self.node_in_file() == "two" and up(two) == 1, "the second to write it")
                with NodeExporter(self.folder) as node:
                    self.assertEqual(node.metrics().value("node_textfile_scrape_error"), 0, "the lock is no textfile")
                with serve("three") as three:  # an update: the new one is there before the old one ends
                    three.node = "three"
                    harness.wait_until(lambda: up(three) == 0, "the third to notice the second")
                    self.assertEqual(two.stop(), 0, two.log())
                    harness.wait_until(lambda: self.node_in_file() == "three" and up(three) == 1, "the third to write it")
                    self.assertEqual(three.stop(), 0, three.log())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_where_nothing_can_be_locked_the_file_is_written_all_the_same(self):
        (self.folder / "gpu.prom.lock").mkdir()
        self.once(f"--textfile={self.file}")
        self.assertTrue(self.file.exists())

    def test_beside_the_older_file(self):
        """What docs/migration.md and decision 0011 say of two files in one folder."""
        older = self.folder / "gpu_processes.prom"
        older.write_text('# HELP gpu_process_count Number of them\n# TYPE gpu_process_count gauge\n'
                         'gpu_process_count{gpu="0"} 77\nolder_only 1\n', encoding="utf-8")
        subprocess.run([harness.BINARY, "once", "--backend=sim", f"--textfile={self.folder}/gpu-ledger.prom"], check=True,
                       env=harness.clean_environment(), timeout=harness.NET, capture_output=True)
        with NodeExporter(self.folder) as node:
            node.metrics()
            seen = node.metrics()
            self.assertEqual(seen.value("node_textfile_scrape_error"), 0)
            self.assertNotEqual(seen.value("gpu_process_count", gpu="0"), 77, "ours, which comes first by name")
            self.assertEqual(seen.value("older_only"), 1)
            self.assertGreater(seen.value("promhttp_metric_handler_errors_total", cause="gathering"), 0)
            self.assertIn("gpu_process_count", node.log())
            # The step: the older CronJob is deleted, then its file.
            older.unlink()
            counted = node.metrics().value("promhttp_metric_handler_errors_total", cause="gathering")
            seen = node.metrics()
            self.assertLessEqual(seen.value("promhttp_metric_handler_errors_total", cause="gathering"), counted)
            self.assertEqual(seen.find("older_only"), [])

    def once(self, *arguments):
        done = subprocess.run([harness.BINARY, "once", "--backend=sim", "--sample-interval=500ms", *map(str, arguments)],
                              env=harness.clean_environment({"GPU_LEDGER_SIM_EPOCH": str(self.epoch)}),
                              timeout=harness.NET, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return harness.Metrics(done.stdout)

    def statuses(self, seen):
        return {labels["pid"]: labels["status"] for labels, _ in seen.find("gpu_process_info")}

    def test_one_short_look_calls_nobody_idle(self):
        # What is set for serve, in a file for both.
        config = self.write("c.yaml", "idle-interval: 500ms\n")
        seen = self.once(f"--config={config}", f"--sim-scenario={self.write('s.yaml', HOLDER_AND_WORKER)}")
        for name in ("gpu_idle_process_idle_seconds", "gpu_idle_process_idle_memory_bytes", "gpu_idle_memory_total_bytes",
                     "gpu_ledger_pod_idle_memory_bytes", "gpu_ledger_allocation_idle_seconds"):
            self.assertEqual(seen.find(name), [], name)
        self.assertEqual(self.statuses(seen), {"gpu0_1001": "unknown", "gpu1_1002": "active"})
        self.assertEqual(len(seen.find("gpu_idle_process_memory_used_bytes")), 2)

    def test_with_a_state_file_idleness_is_known_from_pass_to_pass(self):
        passes = [self.once(f"--state-file={self.folder}/state", f"--sim-scenario={self.write('s.yaml', HOLDER_AND_WORKER)}")
                  for _ in range(3)]
        self.assertEqual(passes[0].find("gpu_idle_process_idle_seconds", pid="1001"), [], "one pass is too little")
        idle = [one.value("gpu_idle_process_idle_seconds", pid="1001") for one in passes[1:]]
        self.assertGreater(idle[0], 0.5, "it began in the pass before")
        self.assertGreater(idle[1], idle[0] + 0.4)
        self.assertEqual(passes[2].value("gpu_idle_memory_total_bytes", gpu="0"), 8 << 30)
        self.assertEqual(passes[2].value("gpu_idle_process_idle_seconds", pid="1002"), 0)
        self.assertEqual(self.statuses(passes[2]), {"gpu0_1001": "idle", "gpu1_1002": "active"})

    def test_its_rights_are_a_setting(self):
        subprocess.run([harness.BINARY, "once", "--backend=sim", f"--textfile={self.file}", "--textfile-mode=0640",
                        "--sample-interval=200ms"], check=True, env=harness.clean_environment(),
                       timeout=harness.NET, capture_output=True)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o640)

    def test_what_a_killed_program_left_goes_at_the_next_start(self):
        (self.folder / ".gpu.prom.a1B2c3").write_text("half", encoding="utf-8")
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger:
            harness.wait_until(self.file.exists, "the textfile")
            self.assertNotIn(".gpu.prom.a1B2c3", self.others())
            ledger.stop()

    def test_a_killed_program_leaves_no_half_file(self):
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger:
            harness.wait_until(self.file.exists, "the textfile")
            ledger.stop(signal.SIGKILL)
        whole = harness.Metrics(self.file.read_text(encoding="utf-8"))
        self.assert_balanced(whole)


if __name__ == "__main__":
    unittest.main()
