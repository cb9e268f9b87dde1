# SPDX-License-Identifier: Apache-2.0
"""A whole cluster: processes get their pods' names from every source, whatever happens to pods and kubelet."""

import contextlib
import os
import signal
import sys
import time
import unittest

import manifests
import parts
from scenario import DEVICES, SHARED, UUIDS
from scene import MAY_LIST_PODS, NAMED, SETUPS, Scene
from stage import Stage

ACTIVE = "my_gpu_process_active"
POD_ENERGY = "gpu_ledger_pod_energy_joules_total"
scene = None
curtain = contextlib.ExitStack()


def setUpModule():
    global scene
    begin = time.monotonic()
    stage = curtain.enter_context(Stage(DEVICES))
    say(f"node ready after {time.monotonic() - begin:.1f} s")
    try:
        scene = Scene(stage)
    except BaseException:
        curtain.close()
        raise
    say(f"pods and {len(SETUPS)} ledgers run after {time.monotonic() - begin:.1f} s")


def tearDownModule():
    curtain.close()


def say(text):
    print(f"cluster: {text}", file=sys.stderr, flush=True)


class ClusterTest(unittest.TestCase):
    def eventually(self, name, condition, what):
        """The condition's value for the metrics of one ledger, once it is truthy."""
        last = []

        def look():
            last[:] = [scene.metrics(name)]
            return condition(last[0])

        try:
            return parts.wait_for(look, f"{what} with {name}")
        except parts.Failure as error:
            shown = [f"{labels} {value}" for labels, value in last[0].find(ACTIVE)] if last else []
            shown += [f"{labels} {value}" for labels, value in last[0].find("gpu_ledger_source_up")] if last else []
            self.fail("\n".join([str(error), *shown, "It said:", scene.log(name)]))

    def assert_named(self, name, truths):
        """Every process is there under its pod's name, and under no other.

        A source that is asked now and then may name it a moment late; what it spent until then stays with its pod_uid.
        """

        def is_named(metrics, truth):
            found = [labels for labels, active in metrics.find(ACTIVE, pid=str(truth.pid)) if active == 1]
            expected = {"pod": truth.pod, "namespace": truth.namespace, "container": truth.container,
                        "container_id": truth.container_id}
            return len(found) == 1 and expected.items() <= found[0].items() and found[0]["pod_uid"] in truth.pod_uids

        for truth in truths:
            self.eventually(name, lambda metrics: is_named(metrics, truth), f"{truth}")

    def assert_source(self, name, source, up):
        self.eventually(name, lambda metrics: metrics.find("gpu_ledger_source_up", source=source)
                        and metrics.value("gpu_ledger_source_up", source=source) == up,
                        f"source_up {source} {up}")

    def end_pod(self, namespace, name):
        for truth in [one for one in scene.working if (one.namespace, one.pod) == (namespace, name)]:
            scene.end_work(truth)
        scene.api.delete("Pod", name, namespace)

    # Tests run in the order of their names.

    def test_1_every_source_gives_the_right_names(self):
        for name in NAMED:
            with self.subTest(name):
                self.assert_source(name, SETUPS[name].source, 1)
                self.assert_named(name, scene.working)
                metrics = scene.metrics(name)
                self.assertEqual(metrics.total("gpu_ledger_processes_without_owner"), 0)
                for gpu, joules in metrics.imbalance().items():
                    self.assertLess(abs(joules), 0.001, f"the books of GPU {gpu}")
                for truth in scene.working:
                    self.eventually(name, lambda metrics: metrics.total(
                        POD_ENERGY, pod=truth.pod, namespace=truth.namespace, container=truth.container) > 0,
                        f"energy of {truth.pod}")

    def test_2_labels_of_pods_as_allowed(self):
        for name in NAMED:
            with self.subTest(name):
                found = self.eventually(name, lambda metrics: metrics.find("gpu_ledger_pod_info", namespace="team-b"),
                                        "pod_info")
                serve = [labels for labels, _ in found if labels["pod"].startswith("serve-")]
                self.assertEqual(len(serve), 2)
                for labels in serve:
                    self.assertIn("gold", labels.values())
                    self.assertNotIn("yes", labels.values(), "a label that was not asked for")

    def test_3_allocations(self):
        for name in ("pods-api", "apiserver", "cri"):
            with self.subTest(name):
                self.eventually(name, lambda metrics: len(metrics.find("gpu_ledger_allocation_info")) >= 5,
                                "allocations")
                metrics = scene.metrics(name)
                rows = [labels for labels, _ in metrics.find("gpu_ledger_allocation_info")]
                self.assertEqual(len(rows), 5, rows)
                self.assertEqual({row["uuid"] for row in rows if row["resource"] == "nvidia.com/gpu"},
                                 {uuid for index, uuid in enumerate(UUIDS) if index != SHARED})
                shared = [row for row in rows if row["resource"] == "nvidia.com/gpu.shared"]
                self.assertEqual({row["uuid"] for row in shared}, {UUIDS[SHARED]})
                self.assertEqual(len({row["replica"] for row in shared}), 2, shared)
                (owner,) = [row for row in rows if row["pod"] == "owner"]
                self.assertEqual((owner["namespace"], owner["container"]), ("team-b", "main"))

                def idle(pod):
                    found = scene.metrics(name).find("gpu_ledger_allocation_idle_seconds", pod=pod)
                    return found[0][1] if found else 0

                # Known once two evaluations of idleness are over.
                parts.wait_for(lambda: idle("owner") > 0, "idle seconds of a pod that was given a GPU and runs nothing")
                before = idle("owner")
                parts.wait_for(lambda: idle("owner") > before + 1, "idle seconds that grow")
                for truth in scene.working:
                    self.assertLess(idle(truth.pod), 2, f"{truth.pod} works")

    def test_4_without_rights_the_rest_goes_on(self):
        self.assert_source("denied", "apiserver", 0)
        self.eventually("denied", lambda metrics: metrics.find(
            "gpu_ledger_source_errors_total", source="apiserver", code="http_403"), "counted refusals")
        truth = scene.working[0]

        def energy():
            return scene.metrics("denied").total("my_gpu_process_energy_joules_total", pid=str(truth.pid))

        before = energy()
        parts.wait_for(lambda: energy() > before + 100, "energy that grows")
        (labels, _), = scene.metrics("denied").find(ACTIVE, pid=str(truth.pid))
        self.assertIn(labels["pod_uid"], truth.pod_uids)
        (pod,) = scene.api.running_pods("app=ledger-denied", 1, "gpu-ledger")
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)
        for document in manifests.account("ledger-denied", MAY_LIST_PODS):  # it asks again in a minute: see test 8
            scene.api.create(document)

    def test_5_a_pod_of_the_same_name_is_another_pod(self):
        names = ("pods-api", "apiserver", "kubelet", "cri")
        job = manifests.pod("team-a", "job", [manifests.sleeper("main", {"nvidia.com/gpu.shared": 1})])
        scene.api.create(job)
        self.addCleanup(self.end_pod, "team-a", "job")
        first = scene.work_in(scene.api.running_pod("team-a", "job"), "main")
        scene.reload(*names)
        for name in names:
            self.assert_named(name, [first])
        for name in names:
            parts.wait_for(lambda: scene.metrics(name).total(POD_ENERGY, pod="job", pod_uid=first.pod_uids[0]) > 0,
                           f"energy of the first pod by {name}")
        self.end_pod("team-a", "job")
        ended = time.time()
        scene.api.create(job)
        second = scene.work_in(scene.api.running_pod("team-a", "job"), "main")
        self.assertNotEqual(first.pod_uids, second.pod_uids)
        before = {name: scene.metrics(name) for name in names}
        scene.reload(*names)
        # For a minute after its end a process is still paid what it is owed by corrected estimates.
        time_of = lambda name: scene.metrics(name).value("gpu_ledger_snapshot_timestamp_seconds")
        for name in names:
            parts.wait_for(lambda: time_of(name) > ended + 62, "its last joules")
            with self.subTest(name):
                self.assert_named(name, [second])

                def energy(truth):
                    return scene.metrics(name).total(POD_ENERGY, pod="job", pod_uid=truth.pod_uids[0])

                spent = energy(first)
                self.assertGreater(spent, 0)
                second_spent = energy(second)
                parts.wait_for(lambda: energy(second) > second_spent + 100, "energy of the second pod")
                self.assertAlmostEqual(energy(first), spent, delta=0.001, msg="the first pod is gone and pays nothing")
                after = scene.metrics(name).counters()
                for key, value in before[name].counters().items():
                    self.assertGreaterEqual(after.get(key, value), value, f"{key} fell")

    def test_6_a_pod_that_ended_owns_nothing(self):
        names = ("pods-api", "apiserver", "cri")
        short = manifests.pod("team-a", "short", [manifests.sleeper("main", {"nvidia.com/gpu.shared": 1})],
                              restartPolicy="Never")
        scene.api.create(short)
        self.addCleanup(scene.api.delete, "Pod", "short", "team-a")
        truth = scene.truth(scene.api.running_pod("team-a", "short"), "main")
        for name in names:
            self.eventually(name, lambda metrics: metrics.find("gpu_ledger_allocation_info", pod="short"),
                            "an allocation")
        os.kill(truth.pid, signal.SIGKILL)
        parts.wait_for(lambda: scene.api.get("Pod", "short", "team-a")["status"]["phase"] == "Failed", "its end")
        for name in names:
            self.eventually(name, lambda metrics: not metrics.find("gpu_ledger_allocation_info", pod="short"),
                            "no allocation of a pod that ended")

    def test_7_the_kubelet_is_killed_and_comes_back(self):
        watching = {"pods-api": "pods-api", "kubelet": "kubelet", "auto": "pods-api"}
        before = {name: scene.metrics(name) for name in NAMED}
        scene.stage.kill_kubelet()
        for name, source in watching.items():
            self.assert_source(name, source, 0)
        for name in NAMED:
            self.assert_named(name, scene.working)  # nobody forgets while it is away
        scene.stage.start_kubelet()
        for name, source in watching.items():
            self.assert_source(name, source, 1)
        parts.wait_for(scene.stage.node_is_ready, "the node with its devices")
        scene.api.create(manifests.pod("team-b", "later", [manifests.sleeper("main", {"nvidia.com/gpu.shared": 1})]))
        later = scene.work_in(scene.api.running_pod("team-b", "later"), "main")
        scene.reload(*NAMED)
        for name in NAMED:
            with self.subTest(name):
                self.assert_named(name, [later, *scene.working])
                after = scene.metrics(name).counters()
                for key, value in before[name].counters().items():
                    self.assertGreaterEqual(after.get(key, value), value, f"{key} fell")

    def test_8_rights_that_came_later_are_found(self):
        self.assert_source("denied", "apiserver", 1)
        scene.reload("denied")
        self.assert_named("denied", scene.working)


if __name__ == "__main__":
    unittest.main(verbosity=2)
