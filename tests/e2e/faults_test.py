# SPDX-License-Identifier: Apache-2.0
"""Drivers that hang, are slow or are replaced; programs that stop; jobs that are over at once; a disk that is full."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import harness

DEVICE = "gpu_ledger_device_energy_joules_total"
REASON = "gpu_ledger_device_unattributed_joules_total"
ENERGY = "my_gpu_process_energy_joules_total"
POD = "gpu_ledger_pod_energy_joules_total"
UNKNOWN = "gpu_ledger_unknown_owner_energy_joules_total"
ONE = """
gpus: [{model: H200}]
processes:
  - {pid: 4101, name: train, gpus: 0, memory: 40GiB, load: gemm, owner: {pod: train-0, namespace: ml}}
"""


class FaultsTest(harness.Case):
    def start(self, scenario, *arguments, ready=True):
        return harness.Ledger(*arguments, scenario=self.write("scenario.yaml", scenario), ready=ready)

    def source_up(self, ledger):
        return ledger.metrics().value("gpu_ledger_source_up", source="nvml")

    def test_a_driver_that_hangs_at_the_start_is_waited_for_while_it_serves(self):
        hangs = ONE + "latencies: [{call: nvmlInit_v2, ms: 16000}]\n"
        began = time.monotonic()
        with self.start(hangs, *harness.FAST, ready=False) as ledger:
            def said():
                try:
                    return ledger.get("/readyz").text
                except OSError:
                    return ""
            # A start that waits 10 s, and the driver answers after 16.
            harness.wait_until(lambda: "does not answer" in said(), 14, "that it says so")
            self.assertEqual(self.source_up(ledger), 0)
            self.assertFalse(ledger.metrics().find(DEVICE))
            sources = json.loads(ledger.get("/api/v1/snapshot").text)["sources"]
            self.assertIn("does not answer", next(s["reason"] for s in sources if s["source"] == "nvml"))
            self.assertIn("does not answer", ledger.log())
            harness.wait_until(ledger.is_ready, 12, "the driver")
            self.assertGreater(time.monotonic() - began, 15)
            harness.wait_until(lambda: ledger.metrics().total(ENERGY, pid="4101") > 100, 10, "joules")
            self.assert_balanced(ledger.metrics())
            code, _ = ledger.stop()
            self.assertEqual(code, 0, ledger.log())

    def test_sigterm_while_the_driver_hangs(self):
        with self.start(ONE + "latencies: [{call: nvmlInit_v2, ms: 30000}]\n", *harness.FAST, ready=False) as ledger:
            time.sleep(12)  # it serves by now
            code, took = ledger.stop()
            self.assertEqual(code, 0, ledger.log())
            self.assertLess(took, 2 * harness.SLOW)

    def test_a_search_for_gpus_that_hangs_later(self):
        hangs = ONE + "latencies: [{call: nvmlDeviceGetCount_v2, ms: 9000, from: 5, until: 5.5}]\n"
        with self.start(hangs, *harness.FAST) as ledger:
            before = ledger.metrics()
            harness.wait_until(lambda: self.source_up(ledger) == 0, 15, "that it hangs")
            down = ledger.metrics()
            self.assertEqual(down.value("gpu_ledger_device_up", gpu="0"), 0)
            self.assert_never_fell(before, down)
            harness.wait_until(lambda: self.source_up(ledger) == 1, 15, "that it answers")
            after = ledger.metrics()
            self.assert_never_fell(down, after)
            self.assert_balanced(after)
            # It lived through it, and nobody else was there.
            self.assertEqual(after.total(REASON, gpu="0"), before.total(REASON, gpu="0"))
            self.assertGreater(after.value(ENERGY, pid="4101", energy_estimated="true"), 1000)

    def test_a_slow_search_for_gpus_makes_no_anomaly(self):
        slow = ONE + "latencies: [{call: nvmlDeviceGetCount_v2, ms: 700}]\n"
        with self.start(slow, "--sample-interval=1s", "--process-scan-interval=3s") as ledger:
            first = ledger.metrics()
            time.sleep(13)
            last = ledger.metrics()
            self.assert_balanced(last)
            self.assertEqual(last.value(REASON, gpu="0", reason="anomaly"), 0)
            grown = last.value(DEVICE, gpu="0") - first.value(DEVICE, gpu="0")
            self.assertGreater(grown, 3000)
            self.assertAlmostEqual(last.total(ENERGY, pid="4101") - first.total(ENERGY, pid="4101"), grown, places=3)

    def test_a_stopped_program_charges_those_who_lived_through_it(self):
        node = ONE + "  - {pid: 4102, name: serve, gpus: 0, memory: 9GiB, load: decode, owner: {docker: chat}}\n"
        with self.start(node, *harness.FAST) as ledger:
            time.sleep(2)
            before = ledger.metrics()
            ledger.send(signal.SIGSTOP)
            time.sleep(12)
            ledger.send(signal.SIGCONT)
            time.sleep(1.5)
            after = ledger.metrics()
            self.assert_balanced(after)
            self.assert_never_fell(before, after)
            self.assertEqual(after.value(REASON, gpu="0", reason="exporter_down"), 0)
            grown = after.value(DEVICE, gpu="0") - before.value(DEVICE, gpu="0")
            self.assertGreater(grown, 3000)
            self.assertAlmostEqual(after.total(ENERGY, energy_estimated="true", gpu="0") -
                                   before.total(ENERGY, energy_estimated="true", gpu="0"), grown, delta=grown / 50)

    def test_another_driver_comes_while_it_runs(self):
        node = 'driver: "550.54.15"\n' + ONE + 'events: [{at: 3, do: driver_reload, for: 2, driver: "580.65.06"}]\n'
        driver = lambda metrics: metrics.find("gpu_ledger_device_info")[0][0]["driver"]
        with self.start(node, *harness.FAST) as ledger:
            before = ledger.metrics()
            self.assertEqual(driver(before), "550.54.15")
            harness.wait_until(lambda: self.source_up(ledger) == 0, 10, "the driver to go")
            harness.wait_until(lambda: driver(ledger.metrics()) == "580.65.06", 10, "the other driver")
            harness.wait_until(lambda: self.source_up(ledger) == 1, 5, "it to work")
            back = ledger.metrics()
            time.sleep(2)
            after = ledger.metrics()
            for earlier, later in ((before, back), (back, after)):
                self.assert_never_fell(earlier, later)
                self.assert_balanced(later)
            self.assertGreater(after.total(ENERGY, pid="4101"), back.total(ENERGY, pid="4101") + 100)

    def test_jobs_of_less_than_half_a_second_reach_their_pods(self):
        # Four pods, so that nobody can be inferred to hold the GPU alone; one of them is always about to come.
        jobs = "".join(
            f"  - {{pid: {5000 + 1000 * i}, name: job, gpus: 0, memory: 1GiB, load: gemm, start: {2 + 0.5 * i}, "
            f"repeat: {{every: 2, lives: 0.4}}, owner: {{pod: short-{i}, namespace: ml}}}}\n" for i in range(4))
        # A pod is there before its container begins, and after it has ended.
        pods = "".join(f"  - {{gpu: 0, owner: {{pod: short-{i}, namespace: ml}}}}\n" for i in range(4))
        with self.start("gpus: [{model: H200}]\nprocesses:\n" + jobs + "allocations:\n" + pods) as ledger:
            first = ledger.metrics()
            time.sleep(20)
            last = ledger.metrics()
            self.assert_balanced(last)
            grown = lambda name, **labels: last.total(name, **labels) - first.total(name, **labels)
            named, unknown = grown(POD), grown(UNKNOWN)
            host = grown("gpu_ledger_host_energy_joules_total")
            print(f"joules of jobs that live 0.4 s: {named:.0f} to pods, {unknown:.0f} unknown, {host:.0f} host")
            self.assertEqual(host, 0, "nobody ran on the host")
            self.assertGreater(named, 500)
            self.assertGreater(named / (named + unknown), 0.95)
            self.assertEqual({labels.get("pod") for labels, _ in last.find(POD)}, {f"short-{i}" for i in range(4)})

    def test_a_full_disk_costs_the_memory_only(self):
        place = self.folder / "place"
        place.mkdir()
        scenario = self.write("scenario.yaml", ONE)
        port = harness.free_port()
        # A small disk of its own, in a mount namespace that ends with the program.
        run = ["unshare", "--mount", "--propagation=private", "sh", "-c",
               'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"', place]
        if subprocess.run([*run, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        epoch = {"GPU_LEDGER_SIM_EPOCH": str(int(time.time()) - 50)}
        command = ["serve", "--backend=sim", f"--sim-scenario={scenario}", *harness.FAST]
        ledger = harness.Program([*run, harness.BINARY, *command, f"--listen-address=127.0.0.1:{port}",
                                  f"--state-file={place / 'state'}"], epoch)
        with ledger:
            def metrics():
                try:
                    return harness.Metrics(harness.get(port).text)
                except (OSError, AssertionError):
                    return harness.Metrics("")
            up = lambda: metrics().total("gpu_ledger_source_up", source="state-file")
            harness.wait_until(lambda: up() == 1, 15, "the program")
            inside = pathlib.Path(f"/proc/{ledger.child.pid}/root{place}")
            harness.wait_until(lambda: (inside / "state").exists(), 10, "a state")
            filler = inside / "filler"
            with open(filler, "wb", buffering=0) as full:
                try:
                    for _ in range(1000):
                        full.write(b"x" * 4096)
                except OSError:
                    pass
            harness.wait_until(lambda: up() == 0, 15, "that it says so")
            before = metrics()
            self.assertIn("No space left", ledger.log())
            # What was there is whole, and no half-written file stays behind.
            self.assertTrue((inside / "state").read_bytes().startswith(b"gpu-ledger-state "))
            harness.wait_until(lambda: metrics().value(DEVICE, gpu="0") > before.value(DEVICE, gpu="0") + 200, 10,
                               "the books to go on")
            filler.unlink()
            harness.wait_until(lambda: up() == 1, 20, "the disk to be used again")
            self.assertEqual({path.name for path in inside.iterdir()} - {"state", "state.recent", "state.lock"}, set())
            last = metrics()
            time.sleep(0.5)
            for name in ("state", "state.recent"):
                if (inside / name).exists():
                    shutil.copy(inside / name, self.folder / name)
            os.kill(ledger.child.pid, signal.SIGKILL)
            ledger.child.wait()
        with harness.Ledger(f"--state-file={self.folder / 'state'}", *harness.FAST, scenario=scenario,
                            environment=epoch) as again:
            after = again.metrics()
            self.assert_balanced(after)
            self.assertGreaterEqual(after.value(DEVICE, gpu="0"), last.value(DEVICE, gpu="0"))


if __name__ == "__main__":
    unittest.main()
