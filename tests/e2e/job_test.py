# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger job` and Slurm's prolog and epilog, with the environment that Slurm gives them. tests/slurm has a real Slurm."""

import json
import os
import stat
import subprocess
import unittest

import harness

SCRIPTS = harness.SOURCE / "deploy" / "slurm"
FAKE = """#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
%s
"""


def job(*arguments):
    return subprocess.run([harness.BINARY, "job", *map(str, arguments)], capture_output=True, text=True, timeout=harness.NET,
                          env=harness.clean_environment(), check=False)


class JobTest(harness.Case):
    def test_report(self):
        with harness.Ledger(*harness.FAST) as ledger:
            url = f"--url=http://127.0.0.1:{ledger.port}"
            harness.wait_until(lambda: ledger.metrics().total(
                "gpu_ledger_slurm_job_energy_joules_total", slurm_job_id="70411") > 1, "some joules")
            shown = job("70411", url)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            for part in ("Slurm job 70411", "(simulated)", "chemistry", "ana (uid 2001)", "runs", "Step"):
                self.assertIn(part, shown.stdout)
            told = job("70411", url, "--format=json", "--price-per-kwh=1000")
            self.assertEqual(told.stdout.count("\n"), 1)
            report = json.loads(told.stdout)
            (step,) = report["steps"]
            self.assertEqual((report["account"], report["partition"], step["step"]), ("chemistry", "gpu", "0"))
            joules = report["energy_joules"]
            self.assertAlmostEqual(joules["alone"] + joules["shared"], joules["total"], places=6)
            self.assertAlmostEqual(report["energy_cost"], joules["total"] / 3600, places=6)
            self.assertRegex(job("70411", url, "--format=line").stdout, r"^gpu_energy_joules=[0-9.]+ .*gpu_seconds=[0-9.]+.*\n$")
            nobody = job("1", url)
            self.assertEqual((nobody.returncode, nobody.stdout), (1, ""))
            self.assertRegex(nobody.stderr, rf"^gpu-ledger: http://127.0.0.1:{ledger.port}: no process of job 1 was seen.*"
                                            r"--owner-retention.*\n$")

    def test_wrong_use(self):
        for arguments, code, words in (
            (["7_1"], 2, "is not a job number"),
            (["7", "--url=none"], 2, "needs a running exporter"),
            (["7", f"--url=http://127.0.0.1:{harness.free_port()}"], 1, "is gpu-ledger serving there?"),
            (["7", "--format=xml"], 2, "text, json or line"),
            (["7", "--price-per-kwh=cheap"], 2, "is not an amount"),
            (["7", "--wait=1h"], 2, "is not between"),
            ([], 2, "needs an argument"),
        ):
            with self.subTest(arguments=arguments):
                done = job(*arguments)
                self.assertEqual(done.returncode, code)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def script(self, name, **variables):
        """Runs a script of deploy/slurm as slurmd would; what it says in the log is in `calls`."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(exist_ok=True)
        for program, answer in {"logger": "", "squeue": f"echo {variables.pop('nodes', 1)}", "sacctmgr": "exit 0",
                                **variables.pop("programs", {})}.items():
            path = bin_folder / program
            path.write_text(FAKE % answer)
            path.chmod(0o755)
        self.calls = self.folder / "calls"
        self.calls.write_text("")
        environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "CALLS": str(self.calls), "PROGRAM": str(harness.BINARY),
                       "JOB_DIR": str(self.folder / "jobs"), "JOB_FILE": str(self.folder / "log" / "jobs.jsonl"), **variables}
        done = subprocess.run([str(SCRIPTS / name)], env=environment, capture_output=True, text=True, timeout=harness.NET, check=False)
        self.assertEqual(done.returncode, 0, "a failing script would drain the node")
        return done

    def test_prolog(self):
        slurm = {"SLURM_JOB_ID": "12", "SLURM_JOB_ACCOUNT": "physics", "SLURM_JOB_PARTITION": "gpu", "SLURM_JOB_USER": "ana",
                 "SLURM_JOB_UID": "2001", "SLURM_JOB_GPUS": "0,1"}
        os.umask(0o077)
        self.addCleanup(os.umask, 0o022)
        self.script("prolog.sh", **slurm)
        path = self.folder / "jobs" / "12"
        lines = path.read_text().splitlines()
        self.assertEqual(lines[:5], ["account=physics", "partition=gpu", "user=ana", "uid=2001", "gpus=0,1"])
        self.assertRegex(lines[5], r"^start=\d{10}$")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o644, "the exporter may be another user")
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o755)
        self.assertEqual(os.listdir(path.parent), ["12"])
        before = path.read_text()
        self.script("prolog.sh", **{**slurm, "SLURM_JOB_ACCOUNT": "other"})
        self.assertEqual(path.read_text(), before, "of a later step")
        for wrong in ("", "../etc", "1;2"):
            self.script("prolog.sh", **{**slurm, "SLURM_JOB_ID": wrong})
            self.assertEqual(os.listdir(path.parent), ["12"])
            self.assertIn("logger", self.calls.read_text())
        self.write("file", "")
        self.script("prolog.sh", **slurm, JOB_DIR=str(self.folder / "file" / "x"))
        self.assertIn("cannot write", self.calls.read_text())

    def test_epilog(self):
        node = "gpus: [{model: A100-40GB}]\nprocesses:\n" \
               "  - {pid: 4200, name: job, gpus: 0, memory: 1GiB, load: gemm, owner: {slurm: '12', step: '0'}}\n"
        log = self.folder / "log" / "jobs.jsonl"
        control = harness.Control(self.folder)
        with harness.Ledger(*harness.FAST, scenario=self.write("node.yaml", node), environment=control.environment) as ledger:
            harness.wait_until(lambda: ledger.metrics().total("gpu_ledger_slurm_job_energy_joules_total") > 1, "joules")
            control.say("do: process_exit, pid: 4200")
            slurm = {"SLURM_JOB_ID": "12", "SLURM_CLUSTER_NAME": "loop", "SLURMD_NODENAME": "node1", "SLURM_JOB_GPUS": "0",
                     "GPU_LEDGER_URL": f"http://127.0.0.1:{ledger.port}"}
            (self.folder / "jobs").mkdir()
            (self.folder / "jobs" / "12").touch()
            self.script("epilog.sh", **slurm)
            line = json.loads(log.read_text())
            self.assertEqual((line["slurm_cluster"], line["slurm_node"], line["slurm_job_id"], line["running"]),
                             ("loop", "node1", "12", False))
            self.assertEqual(line["energy_joules"]["total"],
                             ledger.metrics().total("gpu_ledger_slurm_job_energy_joules_total"))
            self.assertEqual(os.listdir(self.folder / "jobs"), [])
            self.assertRegex(self.calls.read_text(), r"^logger .*job 12: gpu_energy_joules=[^\n]*\n$", "one line, no comment")

            slurm["JOB_WAIT"] = "0s"
            self.script("epilog.sh", **slurm, JOB_COMMENT="admin")
            self.assertRegex(self.calls.read_text(), r"(?m)^sacctmgr .*jobid=12 set AdminComment=gpu_energy_joules=")
            self.script("epilog.sh", **slurm, JOB_COMMENT="admin", nodes=2)
            self.assertNotIn("sacctmgr", self.calls.read_text())
            self.assertIn("ran on 2 nodes", self.calls.read_text())
            self.script("epilog.sh", **slurm, JOB_COMMENT="admin", programs={"sacctmgr": "exit 1"})
            self.assertIn("refused", self.calls.read_text())
            self.assertEqual(len(log.read_text().splitlines()), 4)
        # Without an exporter, without a program, without a GPU, without a job.
        for change, said in (({}, "is gpu-ledger serving there?"), ({"PROGRAM": "/nowhere"}, "no report"),
                             ({"SLURM_JOB_GPUS": ""}, ""), ({"SLURM_JOB_ID": "x"}, "not a job number")):
            self.script("epilog.sh", **{**slurm, **change})
            self.assertIn(said, self.calls.read_text())
        self.assertEqual(len(log.read_text().splitlines()), 4)


if __name__ == "__main__":
    unittest.main()
