# SPDX-License-Identifier: Apache-2.0
"""Wrong use and a world that does not play along: one clear line, the right exit code, nothing half-written."""

import os
import re
import socket
import subprocess
import unittest

import harness

SIM = "--backend=sim"
LOG_LINE = re.compile(r"^ts=\S+ level=(debug|info|warn) ")


class BadInputTest(harness.Case):
    def refuse(self, code, *arguments, says=(), environment=None, commands=("serve", "once"),
               may_log=True):
        """Every command ends with that code and one line that names the given words."""
        for command in commands:
            flags = [command, *(str(argument) for argument in arguments)]
            if command == "serve" and not any("listen-address" in flag for flag in flags):
                flags.append("--listen-address=127.0.0.1:0")
            with self.subTest(arguments=flags):
                done = subprocess.run([harness.BINARY, *flags], capture_output=True, text=True,
                                      timeout=harness.NET, env=harness.clean_environment(environment))
                lines = [line for line in done.stderr.splitlines() if not (may_log and LOG_LINE.match(line))]
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertTrue(lines[0].startswith("gpu-ledger: "), lines[0])
                self.assertLess(len(lines[0]), 400, lines[0])
                for word in says:
                    self.assertIn(str(word), lines[0])
                self.assertEqual(done.stdout, "")

    def test_wrong_use(self):
        self.refuse(2, "--sampel-interval=1s", says=["--sampel-interval", "--sample-interval"])
        self.refuse(2, "--sample-interval=5", says=["--sample-interval", '"5"', "500ms"])
        self.refuse(2, "--sample-interval=-1s", says=["--sample-interval"])
        self.refuse(2, "--log-level=loud", says=["--log-level", "loud", "debug"])
        self.refuse(2, "--backend=magic", says=["--backend", "magic", "nvml"])
        self.refuse(2, "--dcgm-address=localhost", says=["--dcgm-address", "--backend=dcgm"])
        self.refuse(2, "--dcgm-exporter-url=localhost:9400", says=["--dcgm-exporter-url", "http://"])
        self.refuse(2, "--dcgm-exporter-url=http://a/", "--dcgm-exporter-file=/b", says=["not together"],
                    commands=["serve"])
        self.refuse(2, "--dcgm-exporter-file=/b", says=["--dcgm-exporter-file", "command once"], commands=["once"])
        self.refuse(2, "--metrics-path=metrics", says=["--metrics-path"])
        self.refuse(2, "--metric-prefix=1x", says=["--metric-prefix"])
        self.refuse(2, "--listen-address=nonsense", says=["--listen-address", "nonsense"], commands=["serve"])
        self.refuse(2, says=["frobnicate", "gpu-ledger help"], commands=["frobnicate"])
        self.refuse(2, says=["GPU_LEDGER_SAMPLE_INTERVAL", "soon"],
                    environment={"GPU_LEDGER_SAMPLE_INTERVAL": "soon"})
        self.refuse(2, says=["POLL_INTERVAL"], environment={"POLL_INTERVAL": "often"})

    def test_broken_config_file(self):
        unknown = self.write("unknown.yaml", "sample-interval: 1s\nsampel: 1\n")
        self.refuse(2, f"--config={unknown}", says=[unknown, "sampel"])
        broken = self.write("broken.yaml", "sample-interval: [\n")
        self.refuse(2, f"--config={broken}", says=[broken])
        self.refuse(2, f"--config={self.folder}/missing.yaml", says=["missing.yaml"])

    def test_a_fifo_is_not_waited_for(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        self.refuse(2, f"--config={fifo}", says=["--config", fifo, "not a regular file"])
        self.refuse(1, SIM, f"--sim-scenario={fifo}", says=["--sim-scenario", fifo, "not a regular file"])

    def test_variables_that_are_no_setting_are_said(self):
        done = subprocess.run([harness.BINARY, "once", SIM], capture_output=True, text=True, timeout=harness.NET,
                              env=harness.clean_environment({"GPU_LEDGER_SAMPEL_INTERVAL": "1s"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU_LEDGER_SAMPEL_INTERVAL", done.stderr)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refuse(1, SIM, f"--listen-address={address}", says=[address], commands=["serve"])

    def test_no_driver(self):
        self.refuse(1, "--backend=nvml", f"--nvml-library={self.folder}/libnvidia-ml.so.1",
                    says=[f"{self.folder}/libnvidia-ml.so.1"])

    def test_a_file_that_is_no_library(self):
        library = self.write("libnvidia-ml.so.1", "not a library\n")
        self.refuse(1, "--backend=nvml", f"--nvml-library={library}", says=[library])

    def test_library_without_symbols(self):
        library = harness.SIM / "broken" / "libnvidia-ml.so.1"
        self.assertTrue(library.exists(), f"{library} was not built")
        self.refuse(1, "--backend=nvml", f"--nvml-library={library}", says=[library, "nvml"])

    def test_unreadable_proc(self):
        library = harness.SIM / "libnvidia-ml.so.1"
        self.refuse(1, "--backend=nvml", f"--nvml-library={library}", f"--proc-root={self.folder}/nothing",
                    says=["--proc-root", f"{self.folder}/nothing"])

    def test_no_gpu(self):
        scenario = self.write("none.yaml", "gpus: []\n")
        self.refuse(1, SIM, f"--sim-scenario={scenario}", says=["GPU"])
        self.refuse(1, SIM, "--gpu-devices=77", says=["77"])

    def test_unwritable_textfile(self):
        self.refuse(1, SIM, f"--textfile={self.folder}/missing/gpu.prom", says=[f"{self.folder}/missing"],
                    may_log=False)
        self.refuse(1, SIM, f"--textfile={self.folder}", says=[self.folder])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_broken_scenario(self):
        bad = self.write("bad.yaml", "gpus:\n  - model: H9000\n")
        self.refuse(1, SIM, f"--sim-scenario={bad}", says=[f"{bad}:2", "H200"])
        not_yaml = self.write("worse.yaml", "gpus: [\n")
        self.refuse(1, SIM, f"--sim-scenario={not_yaml}", says=[not_yaml])
        self.refuse(1, SIM, f"--sim-scenario={self.folder}/missing.yaml", says=["missing.yaml"])

    def test_broken_trace(self):
        trace = self.write("cut.jsonl", '{"format": ')
        self.refuse(1, SIM, f"--sim-scenario={trace}", says=[trace])
        packed = self.folder / "cut.jsonl.gz"
        whole = (harness.SOURCE / "tests/data/h200/holders.jsonl.gz").read_bytes()
        packed.write_bytes(whole[:len(whole) // 2])
        self.refuse(1, SIM, f"--sim-scenario={packed}", says=[packed])

    def test_broken_web_config(self):
        web = self.write("web.yml", "tls_server_config:\n  cert_fil: x\n")
        self.refuse(1, SIM, f"--web-config-file={web}", says=[web, "cert_fil"], commands=["serve"])
        for half in ("", "\0" * 300, "basic_auth_users:\n"):
            self.refuse(1, SIM, f"--web-config-file={self.write('web.yml', half)}", says=[web], commands=["serve"])
        self.refuse(1, SIM, f"--web-config-file={self.folder}/none.yml", commands=["serve"],
                    says=[f"--web-config-file: cannot read {self.folder}/none.yml: No such file"])

    def test_state_file_without_its_folder(self):
        done = subprocess.run([harness.BINARY, "once", SIM, f"--state-file={self.folder}/none/state"], text=True,
                              capture_output=True, timeout=harness.NET, env=harness.clean_environment())
        self.assertIn(f"{self.folder}/none/state: No such file or directory; create the folder", done.stderr)

    def test_nothing_is_left_behind(self):
        environment = {"TMPDIR": str(self.folder)}
        bad = self.write("bad.yaml", "gpus:\n  - model: H9000\n")
        self.refuse(1, SIM, f"--sim-scenario={bad}", environment=environment)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refuse(1, SIM, f"--listen-address={address}", f"--textfile={self.folder}/gpu.prom",
                        commands=["serve"], environment=environment)
        self.assertEqual(os.listdir(self.folder), ["bad.yaml"])

    def test_the_simulator_where_nothing_can_be_written(self):
        """As in a container with a read-only root, where /dev/shm is all that can be written to; and without that."""
        def run(*closed):
            mounts = " && ".join(f"mount --bind {at} {at} && mount -o remount,ro,bind {at}" for at in closed)
            return subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-c", mounts + ' && exec "$0" once "$1"',
                                   harness.BINARY, SIM], capture_output=True, text=True, timeout=harness.NET,
                                  env={k: v for k, v in harness.clean_environment().items() if k != "TMPDIR"})
        if subprocess.run(["unshare", "--mount", "--propagation=private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        shared = run("/tmp")
        self.assertEqual(shared.returncode, 0, shared.stderr)
        self.assertTrue(harness.Metrics(shared.stdout).find("gpu_ledger_pod_energy_joules_total"))
        nowhere = run("/tmp", "/dev/shm")
        (line,) = nowhere.stderr.splitlines()
        self.assertEqual(nowhere.returncode, 1)
        for word in ("--backend=sim", "/tmp", "/dev/shm", "Read-only file system", "TMPDIR"):
            self.assertIn(word, line)


if __name__ == "__main__":
    unittest.main()
