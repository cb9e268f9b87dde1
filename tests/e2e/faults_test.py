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
REFUSED = "gpu_ledger_device_refused_readings_total"
POWER = "gpu_ledger_device_power_watts"
ENERGY = "my_gpu_process_energy_joules_total"
POD = "gpu_ledger_pod_energy_joules_total"
UNKNOWN = "gpu_ledger_unknown_owner_energy_joules_total"
ONE = """
gpus: [{model: H200}]
processes:
  - {pid: 4101, name: train, gpus: 0, memory: 40GiB, load: gemm, owner: {pod: train-0, namespace: ml}}
"""


class FaultsTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.control = harness.Control(self.folder)

    def start(self, scenario, *arguments, ready=True):
        return harness.Ledger(*arguments, scenario=self.write("scenario.yaml", scenario), ready=ready,
                              environment=self.control.environment)

    def source_up(self, ledger):
        return ledger.metrics().value("gpu_ledger_source_up", source="nvml")

    def wait_until_it_says_so(self, ledger):
        """That the driver does not answer, after the 10 s that a start waits for it."""
        def said():
            try:
                return ledger.get("/readyz").text
            except OSError:
                return ""
        harness.wait_until(lambda: "does not answer" in said(), "that it says so")

    def test_a_driver_that_hangs_at_the_start_is_waited_for_while_it_serves(self):
        self.control.say("do: hang, call: nvmlInit_v2")
        with self.start(ONE, *harness.FAST, ready=False) as ledger:
            self.wait_until_it_says_so(ledger)
            self.assertEqual(self.source_up(ledger), 0)
            self.assertFalse(ledger.metrics().find(DEVICE))
            sources = json.loads(ledger.get("/api/v1/snapshot").text)["sources"]
            self.assertIn("does not answer", next(s["reason"] for s in sources if s["source"] == "nvml"))
            self.assertIn("does not answer", ledger.log())
            self.control.say()
            harness.wait_until(ledger.is_ready, "the driver")
            harness.wait_until(lambda: ledger.metrics().total(ENERGY, pid="4101") > 100, "joules")
            self.assert_balanced(ledger.metrics())
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())

    def test_sigterm_while_the_driver_hangs(self):
        # It hangs until it is told otherwise, and it is not: a program that ends did not wait for it.
        for serves in (False, True):
            self.control.say("do: hang, call: nvmlInit_v2")
            with self.subTest(serves=serves), self.start(ONE, *harness.FAST, ready=False) as ledger:
                self.control.wait("hangs nvmlInit_v2") if not serves else self.wait_until_it_says_so(ledger)
                code = ledger.stop()
                self.assertEqual(code, 0, ledger.log())

    def test_sigterm_while_one_gpu_hangs(self):
        """Until the end, or until just then, at many moments: its thread must not meet what the exit destroys."""
        two = ONE.replace("[{model: H200}]", "[{model: H200}, {model: A10}]")
        for pause in (None, *(step / 250 for step in range(16))):
            self.control.say()
            with self.subTest(pause=pause), self.start(two, *harness.FAST) as ledger:
                up = lambda gpu: ledger.metrics().value("gpu_ledger_device_up", gpu=gpu)
                self.control.say("do: hang, call: nvmlDeviceGetPowerUsage, gpu: 1")
                harness.wait_until(lambda: up("1") == 0, "that it hangs")
                self.assertEqual(up("0"), 1)
                ledger.send(signal.SIGTERM)
                if pause is not None:
                    harness.moment(pause)
                    self.control.say()
                code = ledger.stop()
                self.assertEqual(code, 0, ledger.log())
                self.assertIn("stopping", ledger.log().splitlines()[-1], "nothing is said of a crash")

    def test_a_search_for_gpus_that_hangs_later(self):
        with self.start(ONE, *harness.FAST) as ledger:
            before = ledger.metrics()
            self.control.say("do: hang, call: nvmlDeviceGetCount_v2")
            harness.wait_until(lambda: self.source_up(ledger) == 0, "that it hangs")
            down = ledger.metrics()
            self.assertEqual(down.value("gpu_ledger_device_up", gpu="0"), 0)
            self.assert_never_fell(before, down)
            self.assertEqual(self.source_up(ledger), 0, "nothing ended it")
            self.control.say()
            harness.wait_until(lambda: self.source_up(ledger) == 1, "that it answers")
            # It lived through it, and nobody else was there.
            harness.wait_until(lambda: ledger.metrics().total(ENERGY, pid="4101", energy_estimated="true") > 1000,
                               "the joules of that time")
            after = ledger.metrics()
            self.assert_never_fell(down, after)
            self.assert_balanced(after)
            self.assertEqual(after.total(REASON, gpu="0"), before.total(REASON, gpu="0"))

    def test_a_slow_search_for_gpus_makes_no_anomaly(self):
        self.control.say("do: slow, call: nvmlDeviceGetCount_v2, ms: 700")
        with self.start(ONE, "--sample-interval=1s", "--process-scan-interval=3s") as ledger:
            first = ledger.metrics()
            last = ledger.pass_cycles(9)
            self.assert_balanced(last)
            self.assertEqual(last.value(REASON, gpu="0", reason="anomaly"), 0)
            grown = last.value(DEVICE, gpu="0") - first.value(DEVICE, gpu="0")
            self.assertGreater(grown, 3000)
            self.assertAlmostEqual(last.total(ENERGY, pid="4101") - first.total(ENERGY, pid="4101"), grown, places=3)

    def test_a_false_reading_becomes_no_joules(self):
        node = ONE.replace("[{model: H200}]", "[{model: H200, counter_start_joules: 5000000000}, "
                                              "{model: H200, energy_counter: false}]")
        with self.start(node, *harness.FAST) as ledger:
            before = ledger.pass_cycles(5)
            for gpu, call, value in (("0", "nvmlDeviceGetTotalEnergyConsumption", 0),
                                     ("0", "nvmlDeviceGetTotalEnergyConsumption", 999999999999999),
                                     ("1", "nvmlDeviceGetPowerUsage", 0xffffffff)):
                refused = ledger.metrics().total(REFUSED, gpu=gpu)
                self.control.say(f"do: answer, call: {call}, gpu: {gpu}, value: {value}")
                harness.wait_until(lambda: ledger.metrics().total(REFUSED, gpu=gpu) > refused, "that it is refused")
                self.assertEqual(bool(ledger.metrics().find(POWER, gpu="1")), gpu != "1")
                self.control.say()
                at = ledger.metrics().value(DEVICE, gpu=gpu)
                harness.wait_until(lambda: ledger.metrics().value(DEVICE, gpu=gpu) > at, "joules")
            after = ledger.metrics()
            self.assert_never_fell(before, after)
            self.assert_balanced(after)
            for gpu in ("0", "1"):
                self.assertLess(after.value(DEVICE, gpu=gpu), 1e6)
                self.assertEqual(after.value(REASON, gpu=gpu, reason="anomaly"), 0)

    def test_a_stopped_program_charges_those_who_lived_through_it(self):
        node = ONE + "  - {pid: 4102, name: serve, gpus: 0, memory: 9GiB, load: decode, owner: {docker: chat}}\n"
        with self.start(node, *harness.FAST) as ledger:
            before = ledger.pass_cycles(9)
            ledger.freeze()
            stopped = time.monotonic()
            # Longer than the driver keeps its samples. The program's clock is the machine's.
            harness.wait_until(lambda: time.monotonic() > stopped + 11, "time to pass")
            ledger.send(signal.SIGCONT)
            after = ledger.pass_cycles(5)
            self.assert_balanced(after)
            self.assert_never_fell(before, after)
            self.assertEqual(after.value(REASON, gpu="0", reason="exporter_down"), 0)
            grown = after.value(DEVICE, gpu="0") - before.value(DEVICE, gpu="0")
            self.assertGreater(grown, 3000)
            self.assertAlmostEqual(after.total(ENERGY, energy_estimated="true", gpu="0") -
                                   before.total(ENERGY, energy_estimated="true", gpu="0"), grown, delta=grown / 50)

    def test_another_driver_comes_while_it_runs(self):
        driver = lambda metrics: metrics.find("gpu_ledger_device_info")[0][0]["driver"]
        with self.start('driver: "550.54.15"\n' + ONE, *harness.FAST) as ledger:
            before = ledger.metrics()
            self.assertEqual(driver(before), "550.54.15")
            self.control.say('do: driver_reload, driver: "580.65.06"')
            harness.wait_until(lambda: self.source_up(ledger) == 0, "the driver to go")
            self.control.say()
            harness.wait_until(lambda: driver(ledger.metrics()) == "580.65.06", "the other driver")
            harness.wait_until(lambda: self.source_up(ledger) == 1, "it to work")
            back = ledger.metrics()
            joules = lambda metrics: metrics.total(ENERGY, pid="4101")
            harness.wait_until(lambda: joules(ledger.metrics()) > joules(back) + 100, "joules from it")
            after = ledger.metrics()
            for earlier, later in ((before, back), (back, after)):
                self.assert_never_fell(earlier, later)
                self.assert_balanced(later)

    def test_jobs_between_two_samples_reach_their_pods(self):
        # Four pods, so that nobody can be inferred to hold the GPU alone. A pod is there before its container begins,
        # and after it has ended.
        pods = "".join(f"  - {{gpu: 0, owner: {{pod: short-{i}, namespace: ml}}}}\n" for i in range(4))
        watched = "nvmlDeviceGetComputeRunningProcesses_v3"
        tell = f"do: tell, call: {watched}"
        self.control.say(tell)
        with self.start("gpus: [{model: H200}]\nallocations:\n" + pods, "--sample-interval=4s",
                        "--process-scan-interval=4s") as ledger:
            first = ledger.metrics()
            for number in range(12):
                # It lives until it was glanced at. A cycle may look three times before it makes use of what it saw.
                self.control.say(tell, f"do: process_start, process: {{pid: {5000 + number}, name: job, gpus: 0, "
                                 f"memory: 1GiB, load: gemm, owner: {{pod: short-{number % 4}, namespace: ml}}}}")
                self.control.wait(f"called {watched}", 6)
                self.control.say(tell)
                self.control.wait(f"called {watched}")
            last = ledger.pass_cycles(1)
            self.assert_balanced(last)
            grown = lambda name, **labels: last.total(name, **labels) - first.total(name, **labels)
            named, unknown = grown(POD), grown(UNKNOWN)
            host = grown("gpu_ledger_host_energy_joules_total")
            print(f"joules of jobs that no sample saw: {named:.0f} to pods, {unknown:.0f} unknown, {host:.0f} host")
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
            metrics = lambda: harness.metrics_at(port) or harness.Metrics("")
            up = lambda: metrics().total("gpu_ledger_source_up", source="state-file")
            harness.wait_until(lambda: up() == 1, "the program")
            inside = pathlib.Path(f"/proc/{ledger.child.pid}/root{place}")
            harness.wait_until(lambda: (inside / "state").exists(), "a state")
            filler = inside / "filler"
            with open(filler, "wb", buffering=0) as full:
                try:
                    for _ in range(1000):
                        full.write(b"x" * 4096)
                except OSError:
                    pass
            harness.wait_until(lambda: up() == 0, "that it says so")
            before = metrics()
            self.assertIn("No space left", ledger.log())
            # What was there is whole, and no half-written file stays behind.
            self.assertTrue((inside / "state").read_bytes().startswith(b"gpu-ledger-state "))
            harness.wait_until(lambda: metrics().value(DEVICE, gpu="0") > before.value(DEVICE, gpu="0") + 200,
                               "the books to go on")
            filler.unlink()
            harness.wait_until(lambda: up() == 1, "the disk to be used again")
            self.assertEqual({path.name for path in inside.iterdir()} - {"state", "state.recent", "state.lock"}, set())
            last = metrics()
            # Every cycle writes its state before it is shown.
            count = "gpu_ledger_sample_duration_seconds_count"
            harness.wait_until(lambda: metrics().total(count) > last.total(count) + 1, "the next cycle")
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
