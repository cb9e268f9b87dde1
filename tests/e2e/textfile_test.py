"""The textfile as node_exporter's collector finds it."""

import os
import shutil
import signal
import stat
import subprocess
import unittest

import harness

NODE_EXPORTER = shutil.which("prometheus-node-exporter")
OURS = "gpu_ledger_device_energy_joules_total"


class NodeExporter(harness.Program):
    def __init__(self, folder):
        self.port = harness.free_port()
        super().__init__([
            NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{self.port}", "--collector.disable-defaults",
            "--collector.textfile", f"--collector.textfile.directory={folder}"])
        harness.wait_until(self.answers, 10, "node_exporter")

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

    def assert_alone(self):
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.file.name])
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o644)

    def test_serve_writes_after_every_scan_and_removes_at_the_end(self):
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger, NodeExporter(self.folder) as node:
            harness.wait_until(self.file.exists, 5, "the textfile")
            self.assert_alone()
            inode = self.file.stat().st_ino
            harness.wait_until(lambda: self.file.stat().st_ino != inode, 5, "the next file to be renamed over it")
            for _ in range(20):
                seen = node.metrics()
                self.assertEqual(seen.value("node_textfile_scrape_error"), 0)
                self.assertTrue(seen.find(OURS))
                self.assert_balanced(seen)
            code, _ = ledger.stop()
            self.assertEqual(code, 0, ledger.log())
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_once_leaves_its_file(self):
        old_mask = os.umask(0o077)
        try:
            subprocess.run([harness.BINARY, "once", "--backend=sim", f"--textfile={self.file}"], check=True,
                           env=harness.clean_environment(), timeout=20 * harness.SLOW, capture_output=True)
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
                                  check=True, timeout=30 * harness.SLOW)
            self.assertEqual("\ngpu_ledger_gpus_expected " in done.stdout, expects, given)
            self.assertIn("\ngpu_ledger_gpus_visible ", done.stdout)

    def test_once_prints_without_a_textfile(self):
        done = subprocess.run([harness.BINARY, "once", "--backend=sim"], env=harness.clean_environment(),
                              timeout=20 * harness.SLOW, capture_output=True, text=True)
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
            for command in ("once", "serve"):
                done = subprocess.run(
                    [harness.BINARY, command, "--backend=sim", f"--listen-address=127.0.0.1:{harness.free_port()}",
                     "--sample-interval=200ms", f"--textfile={self.folder / name}"], env=harness.clean_environment(),
                    timeout=20 * harness.SLOW, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1, name)
                self.assertIn(f"cannot write {self.folder / name}: ", done.stderr)
                self.assertEqual((self.folder / name).lstat().st_ino, kind.st_ino, "replaced or removed")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted(names))

    def test_its_rights_are_a_setting(self):
        subprocess.run([harness.BINARY, "once", "--backend=sim", f"--textfile={self.file}", "--textfile-mode=0640",
                        "--sample-interval=200ms"], check=True, env=harness.clean_environment(),
                       timeout=20 * harness.SLOW, capture_output=True)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o640)

    def test_what_a_killed_program_left_goes_at_the_next_start(self):
        (self.folder / ".gpu.prom.a1B2c3").write_text("half", encoding="utf-8")
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger:
            harness.wait_until(self.file.exists, 5, "the textfile")
            self.assert_alone()
            ledger.stop()

    def test_a_killed_program_leaves_no_half_file(self):
        with harness.Ledger(f"--textfile={self.file}", *harness.FAST) as ledger:
            harness.wait_until(self.file.exists, 5, "the textfile")
            ledger.stop(signal.SIGKILL)
        whole = harness.Metrics(self.file.read_text(encoding="utf-8"))
        self.assert_balanced(whole)


if __name__ == "__main__":
    unittest.main()
