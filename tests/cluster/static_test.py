# SPDX-License-Identifier: Apache-2.0
"""A kubelet without a control plane: static pods, named by the container runtime and by the kubelet alone."""

import contextlib
import json
import pathlib
import unittest

import harness
import manifests
import parts
from scenario import DEVICES, SHARED, Scenario
from stage import NODE, Stage

# How long a container sleeps tells which it is.
PODS = {("default", "one"): {"first": 7000001, "second": 7000002}, ("other", "two"): {"main": 7000003}}
stage = scenario = None
curtain = contextlib.ExitStack()


def setUpModule():
    global stage, scenario
    stage = curtain.enter_context(Stage(DEVICES, alone=True))
    try:
        for (namespace, name), containers in PODS.items():
            sleepers = [manifests.sleeper(container, seconds=seconds) for container, seconds in containers.items()]
            (stage.manifests / f"{name}.json").write_text(json.dumps(manifests.pod(namespace, name, sleepers)))
        scenario = Scenario(stage.folder / "scenario.yaml")
        for containers in PODS.values():
            for seconds in containers.values():
                scenario.add(parts.wait_for(lambda: pid_of(seconds), f"sleep {seconds}"), SHARED)
        scenario.write()
    except BaseException:
        curtain.close()
        raise


def tearDownModule():
    curtain.close()


def pid_of(seconds):
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"/bin/busybox\0sleep\0{seconds}\0".encode():
                return int(path.parent.name)
    return None


class StaticPodsTest(unittest.TestCase):
    def check(self, source):
        driver = harness.SIM / "libnvidia-ml.so.1"
        port = harness.free_port()
        command = [harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={driver}", f"--pod-source={source}",
                   f"--listen-address=127.0.0.1:{port}", *harness.FAST]
        with harness.Program(command, {**scenario.environment(), "NODE_NAME": NODE}) as ledger:
            for (namespace, name), containers in PODS.items():
                for container, seconds in containers.items():
                    expected = {"pod": f"{name}-{NODE}", "namespace": namespace, "container": container}
                    pid = pid_of(seconds)

                    def is_named():
                        self.assertTrue(ledger.alive(), ledger.log())
                        found = harness.Metrics(harness.get(port).text).find("my_gpu_process_active", pid=str(pid))
                        return found and expected.items() <= found[0][0].items() and "pod_uid" in found[0][0]

                    try:
                        parts.wait_for(is_named, f"{pid} as {expected}")
                    except parts.Failure as error:
                        self.fail(f"{error}\n{ledger.log()}")
            up = harness.Metrics(harness.get(port).text).value("gpu_ledger_source_up", source=source)
            self.assertEqual(up, 1)

    def test_1_the_kubelet_names_them(self):
        self.check("pods-api")

    def test_2_the_runtime_names_them_without_a_kubelet(self):
        stage.kill_kubelet()
        self.check("cri")


if __name__ == "__main__":
    unittest.main(verbosity=2)
