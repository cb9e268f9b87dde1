# SPDX-License-Identifier: Apache-2.0
"""Who gets the bill when somebody calls his cgroups by others' names, and when there are more processes than open files."""

import os
import shutil
import subprocess
import unittest

import harness

WEB = "a" * 64
MINE = "b" * 64
POD_UID = "11112222-3333-4444-5555-666677778888"
POD = f"/kubepods/burstable/pod{POD_UID}/{'c' * 64}"
JOB = "/system.slice/slurmstepd.scope/job_70520/step_0/user/task_0"

# One GPU each, so that every joule is measured. The victims only hold memory on the last one.
FORGED = {
    0: "/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + WEB + ".scope",
    1: f"/docker/{MINE}{JOB}",
    2: f"/docker/{MINE}{POD}",
    3: f"/system.slice/mine.service{JOB}",
    4: f"/system.slice/mine.service{POD}",
    5: f"{JOB.replace('70520', '4')}{POD}",
}
NODE = """
gpus: [%s]
processes:
  - {pid: 5001, name: web, gpus: 6, memory: 1GiB, load: idle, owner: {docker: web, id: %s}}
  - {pid: 5002, name: pod, gpus: 6, memory: 1GiB, load: idle,
     owner: {namespace: ml, pod: train-0, pod_uid: %s, container_id: %s}}
  - {pid: 5003, name: job, gpus: 6, memory: 1GiB, load: idle, owner: {slurm: "70520"}}
"""
NAMES = [f"gpu_ledger_{kind}_energy_joules_total" for kind in ("pod", "slurm_job", "container", "host")]
WHO = ("namespace", "pod", "job", "container_id", "container", "unit", "user")


class IdentityTest(harness.Case):
    @staticmethod
    def who_paid(metrics):
        """{GPU: [(kind of owner, labels)]}"""
        paid = {}
        for name in NAMES:
            for labels, joules in metrics.find(name):
                who = {key: labels[key] for key in WHO if labels.get(key)}
                if joules > 0:
                    paid.setdefault(int(labels["gpu"]), []).append((name.split("_")[2], who))
        return paid

    def test_the_outermost_that_a_tenant_could_not_have_made_pays(self):
        text = NODE % (", ".join(["{model: A100-40GB}"] * 7), WEB, POD_UID, "c" * 64)
        for gpu, path in FORGED.items():
            text += f"  - {{pid: {6000 + gpu}, name: tenant, gpus: {gpu}, memory: 1GiB, load: gemm, "
            text += f'owner: {{cgroup: "{path}"}}}}\n'
        with harness.Ledger(*harness.FAST, scenario=self.write("node.yaml", text)) as ledger:
            harness.wait_until(lambda: FORGED.keys() <= self.who_paid(ledger.metrics()).keys(), "all of them to pay")
            ledger.pass_cycles(3)
            metrics = ledger.metrics()
            self.assert_balanced(metrics)
            paid = self.who_paid(metrics)
            mine = {"unit": "mine.service"}
            container = {"container_id": MINE}
            expected = {
                0: ("host", {"user": "1000"}), 1: ("container", container), 2: ("container", container),
                3: ("host", mine), 4: ("host", mine), 5: ("slurm", {"job": "4"}),
            }
            for gpu, (kind, who) in expected.items():
                with self.subTest(FORGED[gpu]):
                    found = [(k, {key: v for key, v in w.items() if key in who}) for k, w in paid[gpu]]
                    self.assertEqual(found, [(kind, who)] * len(found), paid[gpu])
            tenants = metrics.find("my_gpu_process_active", process_name="tenant")
            self.assertTrue(tenants)
            for labels, _ in tenants:
                self.assertNotEqual(labels.get("container_id"), WEB, "an id that anybody may write is shown as a fact")

    def test_more_processes_than_open_files(self):
        if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" or not shutil.which("prlimit"):
            self.skipTest("needs the host's pid namespace and prlimit")
        children = []
        self.addCleanup(lambda: [(child.kill(), child.wait()) for child in children])
        for _ in range(300):
            children.append(subprocess.Popen(["sleep", "3600"]))
        text = "gpus: [{model: H200}]\nprocesses:\n"
        for child in children:
            text += f"  - {{pid: {child.pid}, real: true, name: sleep, gpus: 0, memory: 64MiB, load: idle}}\n"
        ends = lambda metrics: len([1 for _, value in metrics.find("my_gpu_process_active") if value == 0])
        with harness.Ledger(*harness.FAST, "--proc-root=/proc/", f"--state-file={self.folder / 'state'}",
                            f"--textfile={self.folder / 'gpu.prom'}", scenario=self.write("crowd.yaml", text),
                            through=("prlimit", "--nofile=256:256")) as ledger:
            for _ in range(10):
                ledger.pass_cycles(1)
                metrics = ledger.metrics()
                self.assertEqual(len(metrics.find("my_gpu_process_active", process_name="sleep")), len(children))
                self.assertEqual(ends(metrics), 0, "the living are taken for dead")
                for source in ("state-file", "textfile", "proc"):
                    self.assertEqual(metrics.value("gpu_ledger_source_up", source=source), 1, source)
            open_files = len(os.listdir(f"/proc/{ledger.child.pid}/fd"))
            self.assertLess(open_files, 200, "nothing is left for connections")
            for child in (children[0], children[-1]):
                child.kill()
                child.wait()
            harness.wait_until(lambda: ends(ledger.metrics()) == 2, "both ends to be noticed")

    def test_the_soft_limit_of_open_files_is_raised(self):
        if not shutil.which("prlimit"):
            self.skipTest("needs prlimit")
        with harness.Ledger(through=("prlimit", "--nofile=256:4096")) as ledger:
            with open(f"/proc/{ledger.child.pid}/limits", encoding="utf-8") as limits:
                (line,) = [line for line in limits if line.startswith("Max open files")]
            self.assertEqual(line.split()[3], "4096")


if __name__ == "__main__":
    unittest.main()
