# SPDX-License-Identifier: Apache-2.0
"""A limit of processes that is used up, as by a fork bomb of a tenant: no thread can be made, at the start or later."""

import json
import os
import resource
import shutil
import socket
import subprocess
import unittest

import harness

NODE = """
gpus: [{model: H200}, {model: A10}]
processes:
  - {pid: 4101, name: train, gpus: 0, memory: 40GiB, load: gemm, owner: {pod: train-0, namespace: ml}}
  - {pid: 4102, name: serve, gpus: 1, memory: 4GiB, load: gemm, owner: {pod: serve-0, namespace: ml}}
"""
USER = 1_000_000 + os.getpid()  # of nobody else; the limit does not hold for root
REFUSED = "no thread can be made"


class ThreadsTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o777)
        self.control = harness.Control(self.folder)
        self.scenario = self.write("scenario.yaml", NODE)
        # The build may be in a folder that only root enters, such as /root.
        self.program = shutil.copy(harness.BINARY, self.folder)
        (self.folder / "sim").mkdir()
        self.library = shutil.copy(harness.SIM / "libnvidia-ml.so.1", self.folder / "sim")
        self.user = ("setpriv", f"--reuid={USER}", "--clear-groups") if os.geteuid() == 0 else ()

    def start(self, *arguments, most=None, ready=True):
        through = (*self.user, "prlimit", f"--nproc={most}") if most else self.user
        return harness.Ledger(*harness.FAST, *arguments, through=through, scenario=self.scenario, ready=ready,
                              environment=self.control.environment, program=self.program)

    def start_on_a_node(self, most):
        """With a kubelet that accepts connections and says nothing."""
        return harness.Ledger(*harness.FAST, "--backend=nvml", f"--nvml-library={self.library}",
                              f"--pod-resources-socket={self.folder}/kubelet.sock", "--pod-source=none", ready=False,
                              program=self.program, through=(*self.user, "prlimit", f"--nproc={most}:"))

    def serves(self, ledger):
        """Whether it starts: its sampler has made a cycle. Else it has ended."""
        def started():
            metrics = harness.metrics_at(ledger.port)
            return metrics and metrics.total("gpu_ledger_sample_duration_seconds_count") > 0
        harness.wait_until(lambda: not ledger.alive() or started(), "an end or a start")
        return ledger.alive()

    def allow(self, ledger, allowed):
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        own = 1 if not allowed else "unlimited" if most == resource.RLIM_INFINITY else most
        subprocess.run([*self.user, "prlimit", f"--pid={ledger.child.pid}", f"--nproc={own}:"], check=True,
                       timeout=harness.NET)

    def reason(self, ledger, source):
        sources = json.loads(ledger.get("/api/v1/snapshot").text)["sources"]
        return next(each.get("reason", "") for each in sources if each["source"] == source)

    def test_what_needs_a_thread_later_fails_and_comes_back(self):
        self.control.say("do: gpu_lost, gpu: 1")
        push = f"--push-url=http://localhost:{harness.free_port()}/api/v1/write"  # a name that is looked up
        with self.start(push, "--push-interval=1s") as ledger:
            energy = lambda: ledger.metrics().value("gpu_ledger_device_energy_joules_total", gpu="0")
            up = lambda: ledger.metrics().total("gpu_ledger_device_up", gpu="1")
            self.allow(ledger, False)
            self.control.say()
            harness.wait_until(lambda: ledger.metrics().find("gpu_ledger_source_errors_total", source="nvml",
                                                             code="no_thread"), "the GPU without a thread")
            harness.wait_until(lambda: REFUSED in self.reason(ledger, "push"), "the name that is not looked up")
            self.assertEqual(up(), 0)
            before = energy()
            harness.wait_until(lambda: energy() > before, "the other GPU's joules")
            self.assert_balanced(ledger.pass_cycles(5))
            self.allow(ledger, True)
            harness.wait_until(lambda: up() == 1, "the GPU")
            harness.wait_until(lambda: REFUSED not in self.reason(ledger, "push"), "the name")
            self.assertEqual(ledger.stop(), 0, ledger.log())

    def test_a_start_without_a_thread_says_which(self):
        files = (f"--textfile={self.folder}/gpu.prom", f"--state-file={self.folder}/state",
                 "--push-url=http://127.0.0.1:1/write")
        missed = set()
        # Others of the user would count too.
        for most in range(1, 40) if self.user else [1]:
            with self.subTest(most=most), self.start(*files, most=most, ready=False) as ledger:
                if self.serves(ledger):
                    self.assertEqual(ledger.stop(), 0, ledger.log())
                    break
                said = [line for line in ledger.log().splitlines() if REFUSED in line]
                self.assertEqual((ledger.stop(), len(said)), (1, 1), ledger.log())
                self.assertTrue(said[0].startswith("gpu-ledger: "), said[0])
                missed.add(said[0].split(": ")[1])
        else:
            self.assertFalse(self.user, "no limit was enough")
        self.assertIn("the watch for signals", missed)
        if self.user:
            self.assertLessEqual({"nvml", "--state-file", "push", "the HTTP server", "the sampler"}, missed)

    def test_grpc_begins_once_there_is_room_for_its_threads(self):
        if not self.user:
            self.skipTest("others of the user would count too")
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{self.folder}/kubelet.sock")
            os.chmod(f"{self.folder}/kubelet.sock", 0o777)
            silent.listen()
            for most in range(1, 40):
                with self.subTest(most=most), self.start_on_a_node(most) as ledger:
                    if not self.serves(ledger):
                        said = ledger.log()
                        continue
                    harness.wait_until(lambda: REFUSED in self.reason(ledger, "pod-resources"), "gRPC without threads")
                    self.allow(ledger, True)
                    harness.wait_until(lambda: "no server answers" in self.reason(ledger, "pod-resources"), "gRPC")
                    self.assertEqual(ledger.stop(), 0, ledger.log())
                    return
        self.fail(f"no limit was enough: {said}")


if __name__ == "__main__":
    unittest.main()
