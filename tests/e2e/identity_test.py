"""Who gets the bill when somebody calls his cgroups by others' names."""

import time
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
    def test_the_outermost_that_a_tenant_could_not_have_made_pays(self):
        text = NODE % (", ".join(["{model: A100-40GB}"] * 7), WEB, POD_UID, "c" * 64)
        for gpu, path in FORGED.items():
            text += f"  - {{pid: {6000 + gpu}, name: tenant, gpus: {gpu}, memory: 1GiB, load: gemm, "
            text += f'owner: {{cgroup: "{path}"}}}}\n'
        with harness.Ledger(*harness.FAST, scenario=self.write("node.yaml", text)) as ledger:
            time.sleep(2)
            metrics = ledger.metrics()
            self.assert_balanced(metrics)
            paid = {}
            for name in NAMES:
                for labels, joules in metrics.find(name):
                    who = {key: labels[key] for key in WHO if labels.get(key)}
                    if joules > 0:
                        paid.setdefault(int(labels["gpu"]), []).append((name.split("_")[2], who))
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
            for labels, _ in metrics.find("my_gpu_process_active", process_name="tenant"):
                self.assertNotEqual(labels.get("container_id"), WEB, "an id that anybody may write is shown as a fact")


if __name__ == "__main__":
    unittest.main()
