# SPDX-License-Identifier: Apache-2.0
"""Jobs by sbatch in a real Slurm: series with account and user, `gpu-ledger job`, what prolog and epilog write.

The GPUs are simulated; the processes on them are the real ones of the jobs.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness
from stage import NODE, USERS, Stage, call, wait_for

JOB = """#!/bin/sh
echo $$ >/srv/jobs/$SLURM_JOB_ID.batch
srun --ntasks=1 sh -c 'echo $$ >/srv/jobs/$SLURM_JOB_ID.0; while [ ! -e /srv/jobs/stop.$SLURM_JOB_ID ]; do sleep 0.2; done'
"""
SHORT_JOB = "#!/bin/sh\ntrue\n"
SCENARIO = """
seed: 1
gpus: [{{model: A100-40GB}}, {{model: A100-40GB}}]
processes:
  - {{pid: {a_step}, gpus: 0, memory: 4GiB, load: gemm, end: 15, real: true}}
  - {{pid: {b_batch}, gpus: 1, memory: 1GiB, load: {{kind: train, busy: 30}}, end: 15, real: true}}
  - {{pid: {b_step}, gpus: 1, memory: 2GiB, load: {{kind: gemm, busy: 50}}, end: 15, real: true}}
"""
PORT = 9400  # the default, in a network of our own: the epilog needs no setting
FILE = pathlib.Path("/var/log/gpu-ledger/jobs.jsonl")


def submit(user, text, *flags):
    script = pathlib.Path("/srv/job.sh")
    script.write_text(text)
    script.chmod(0o755)
    answer = call("sbatch", "--parsable", "--output=/dev/null", "--chdir=/srv", *flags, script, user=USERS[user])
    return answer.split(";")[0]


def pid_of(job, step):
    path = pathlib.Path(f"/srv/jobs/{job}.{step}")
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text else None


def state_of(job):
    return call("sacct", "-n", "-X", "-P", "-j", job, "-o", "State")


def report(job, *flags):
    return subprocess.run([harness.BINARY, "job", job, *flags], capture_output=True, text=True, timeout=harness.NET,
                          env=harness.clean_environment(), check=False)


class SlurmTest(harness.Case):
    def test_jobs(self):
        with Stage() as stage:
            try:
                self.follow_two_jobs()
            except BaseException:
                stage.show_logs()
                raise

    def start_jobs(self):
        jobs = pathlib.Path("/srv/jobs")
        jobs.mkdir()
        jobs.chmod(0o777)
        a = submit("ana", JOB, "--gres=gpu:1", "--ntasks=1", "--job-name=a")
        b = submit("ben", JOB, "--gres=gpu:1", "--ntasks=1", "--job-name=b")
        pids = lambda: all(pid_of(job, step) for job in (a, b) for step in ("batch", "0"))
        wait_for(pids, "both jobs to run")
        return a, b

    def follow_two_jobs(self):
        pathlib.Path("/etc/default/gpu-ledger-slurm").write_text(
            f"PROGRAM={harness.BINARY}\nJOB_COMMENT=admin\nexport GPU_LEDGER_PRICE_PER_KWH=0.25\n")
        a, b = self.start_jobs()
        scenario = self.write("node.yaml", SCENARIO.format(
            a_step=pid_of(a, "0"), b_batch=pid_of(b, "batch"), b_step=pid_of(b, "0")))
        with harness.Ledger(*harness.FAST, "--proc-root=/proc/", "--slurm-job-dir=/run/gpu-ledger-jobs/",
                            port=PORT, scenario=scenario) as ledger:
            wait_for(lambda: len(ledger.metrics().find("gpu_ledger_slurm_job_info", slurm_job_id=b)) == 2,
                     "both steps on the second GPU")
            wait_for(lambda: ledger.metrics().total("gpu_ledger_slurm_job_energy_joules_total", slurm_job_id=b) > 300,
                     "some joules")
            self.check_series(ledger.metrics(), a, b)
            self.check_held(ledger, a, b)
            self.check_report(a, b)
            # They leave the GPUs (at `end`; the simulated driver does not look at real processes), then the jobs end.
            left = json.loads(report(a, "--format=json", "--wait=30s").stdout)
            self.assertFalse(left["running"], "it has waited")
            for job in (a, b):
                pathlib.Path(f"/srv/jobs/stop.{job}").touch()
            wait_for(lambda: state_of(a) == state_of(b) == "COMPLETED", "both jobs to end")
            wait_for(lambda: FILE.exists() and len(FILE.read_text().splitlines()) == 2, "what the epilogs write")
            self.check_epilog(ledger, a, b)
            wait_for(lambda: not self.held(ledger), "the GPUs to be free")
            # A job without a process on a GPU: nothing to tell, and the node stays.
            c = submit("ana", SHORT_JOB, "--gres=gpu:1")
            self.check_node_stays(c)
        # No exporter at all.
        d = submit("ben", SHORT_JOB, "--gres=gpu:1")
        self.check_node_stays(d)
        self.assertEqual(len(FILE.read_text().splitlines()), 2)
        self.assertEqual(os.listdir("/run/gpu-ledger-jobs"), [])

    def held(self, ledger):
        """{job: labels} of the GPUs that Slurm has given away."""
        return {labels["slurm_job_id"]: labels for labels, _ in ledger.metrics().find("gpu_ledger_slurm_allocation_info")}

    def check_held(self, ledger, a, b):
        held = self.held(ledger)
        self.assertEqual(set(held), {a, b})
        self.assertEqual({held[a]["gpu"], held[b]["gpu"]}, {"0", "1"})
        for job, user, account in ((a, "ana", "physics"), (b, "ben", "chemistry")):
            labels = held[job]
            self.assertEqual((labels["account"], labels["partition"], labels["user_name"], labels["uid"]),
                             (account, "short", user, str(USERS[user])))
            self.assertEqual(len(ledger.metrics().find("gpu_ledger_slurm_allocation_idle_seconds", slurm_job_id=job)), 1)

    def check_series(self, metrics, a, b):
        self.assert_balanced(metrics)
        for job, user, account, steps in ((a, "ana", "physics", {"0"}), (b, "ben", "chemistry", {"batch", "0"})):
            found = [labels for labels, _ in metrics.find("gpu_ledger_slurm_job_info", slurm_job_id=job)]
            self.assertEqual({labels["step"] for labels in found}, steps)
            for labels in found:
                self.assertEqual((labels["account"], labels["partition"], labels["user_name"], labels["uid"]),
                                 (account, "short", user, str(USERS[user])))

    def check_report(self, a, b):
        shown = report(a)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for part in (f"Slurm job {a}", "physics", "ana (uid 2001)", "runs", "Idle share", "on 1 GPU"):
            self.assertIn(part, shown.stdout)
        told = json.loads(report(b, "--format=json").stdout)
        self.assertEqual({step["step"] for step in told["steps"]}, {"batch", "0"})
        self.assertGreater(told["energy_standard_error_joules"], 0, "two processes share the GPU")
        self.assertEqual(told["job_gpus"], 1)
        self.assertTrue(0 <= told["idle_ratio"] < 1, told)
        nobody = report("999999")
        self.assertEqual(nobody.returncode, 1)
        self.assertRegex(nobody.stderr, r"no process of job 999999 was seen .*--owner-retention")

    def check_epilog(self, ledger, a, b):
        lines = {line["slurm_job_id"]: line for line in map(json.loads, FILE.read_text().splitlines())}
        self.assertEqual(set(lines), {a, b})
        print(FILE.read_text(), file=sys.stderr)
        metrics = ledger.metrics()
        self.assert_balanced(metrics)
        for job, user, account in ((a, "ana", "physics"), (b, "ben", "chemistry")):
            line = lines[job]
            self.assertEqual((line["slurm_cluster"], line["slurm_node"], line["account"], line["user_name"]),
                             ("loop", NODE, account, user))
            self.assertFalse(line["running"])
            self.assertGreater(line["energy_cost"], 0)
            # What the epilog wrote is what the counters stay at.
            joules = metrics.total("gpu_ledger_slurm_job_energy_joules_total", slurm_job_id=job)
            self.assertAlmostEqual(line["energy_joules"]["total"], joules, delta=0.001)
            self.assertTrue(metrics.find("gpu_ledger_slurm_job_info", slurm_job_id=job, account=account),
                            "the account stays when the file is gone")
            # The epilog writes it after the line in the file.
            fields = "User,Account,AdminComment,ConsumedEnergyRaw"
            ask = lambda job=job: call("sacct", "-n", "-X", "-P", "-j", job, "-o", fields)
            wait_for(lambda ask=ask: "gpu_energy_joules=" in ask(), f"the AdminComment of job {job}")
            comment = ask()
            self.assertTrue(comment.startswith(f"{user}|{account}|gpu_energy_joules={joules:.3f}"), comment)
            print(f"sacct of job {job}: {comment}", file=sys.stderr)

    def check_node_stays(self, job):
        wait_for(lambda: state_of(job) == "COMPLETED", f"job {job} to end")
        wait_for(lambda: call("sinfo", "-h", "-o", "%T") == "idle", "an idle node: a failing epilog would drain it")


if __name__ == "__main__":
    unittest.main()
