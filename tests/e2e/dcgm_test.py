# SPDX-License-Identifier: Apache-2.0
"""--backend=dcgm: the real program with a simulated libdcgm over the simulated driver."""

import pathlib
import subprocess
import unittest

import harness

SCENARIO = """
gpus:
  - {model: A100-80GB, accounting: true}
  - {model: H200}
processes:
  - {pid: 4101, name: train, gpus: [0], memory: 40GiB, load: gemm, owner: {pod: train-0, namespace: ml}}
  - {pid: 4102, name: serve, gpus: [0], memory: 20GiB, load: decode, owner: {pod: serve-0, namespace: ml}}
  - {pid: 4103, name: batch, gpus: [1], memory: 10GiB, load: fp32, owner: {docker: batch}}
  - {pid: 4200, name: short, gpus: [1], memory: 1GiB, load: fp32, start: 1, repeat: {every: 1.5, lives: 0.4}}
"""
DEVICE = "gpu_ledger_device_energy_joules_total"


class Ledger(harness.Ledger):
    """Not the simulated backend: both libraries are named, and both are loaded as NVIDIA's would be."""

    def __init__(self, folder, *arguments, nvml=True, ready=True, node=SCENARIO, pace=harness.FAST):
        root = folder / "node"
        root.mkdir(exist_ok=True)
        (root / "proc").mkdir(exist_ok=True)
        self.control = folder / "control"
        scenario = folder / "scenario.yaml"
        scenario.write_text(node, encoding="utf-8")
        driver = harness.SIM / "libnvidia-ml.so.1" if nvml else pathlib.Path("/nowhere/libnvidia-ml.so.1")
        environment = {"NVML_SIM_SCENARIO": str(scenario), "DCGM_SIM_CONTROL": str(self.control),
                       "GPU_LEDGER_SIM_ROOT": str(root)}
        self.port = harness.free_port()
        harness.Program.__init__(self, [
            harness.BINARY, "serve", "--backend=dcgm", f"--listen-address=127.0.0.1:{self.port}",
            f"--nvml-library={driver}", f"--dcgm-library={harness.SIM / 'dcgm/libdcgm.so.4'}",
            f"--proc-root={root / 'proc'}", "--kubernetes-enabled=false", *pace, *arguments], environment)
        if ready:
            harness.wait_until(self.is_ready, "a first snapshot")

    def tell(self, **settings):
        """Changes the engine's ways, all at once."""
        beside = self.control.with_suffix(".new")
        beside.write_text("".join(f"{name} {value}\n" for name, value in settings.items()), encoding="utf-8")
        beside.rename(self.control)


class DcgmTest(harness.Case):
    def engine(self, metrics):
        return metrics.value("gpu_ledger_source_up", source="dcgm")

    def watch(self, ledger, cycles):
        """Every scrape must be good, no counter may fall. The last one."""
        seen = ledger.metrics()
        for _ in range(cycles):
            ledger.pass_cycles(1)
            metrics = ledger.metrics()
            self.assert_balanced(metrics)
            self.assert_never_fell(seen, metrics)
            seen = metrics
        return seen

    def test_beside_nvml(self):
        with Ledger(self.folder, "--collector.driver-calls") as ledger:
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 1, "the engine")
            metrics = self.watch(ledger, 10)
            self.assertEqual(metrics.value("gpu_ledger_source_up", source="nvml"), 1)
            # What the engine says of the device over a process's life, a thousand megajoules, is nobody's.
            booked = metrics.find("my_gpu_process_energy_joules_total")
            self.assertTrue(booked)
            for labels, joules in booked:
                self.assertLess(joules, metrics.value(DEVICE, gpu=labels["gpu"]))
            self.assertTrue(metrics.find("gpu_ledger_driver_call_duration_seconds_count",
                                         call="dcgmEntitiesGetLatestValues"))
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())

    def test_the_engine_dies_and_comes_back(self):
        with Ledger(self.folder) as ledger:
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 1, "the engine")
            ledger.tell(dead=1)
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 0, "its death")
            before = ledger.metrics().value(DEVICE, gpu="0")
            after = self.watch(ledger, 5)
            self.assertGreater(after.value(DEVICE, gpu="0"), before, "sampling goes on by NVML")
            self.assertGreater(after.total("gpu_ledger_source_errors_total", source="dcgm"), 0)
            ledger.tell(dead=0)
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 1, "its return")

    def test_an_engine_that_hangs_holds_up_nothing(self):
        with Ledger(self.folder) as ledger:
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 1, "the engine")
            ledger.tell(hang=60)  # minutes: longer than any wait here
            harness.wait_until(lambda: self.engine(ledger.metrics()) == 0, "that it hangs")
            before = ledger.metrics().value(DEVICE, gpu="0")
            self.assertGreater(self.watch(ledger, 5).value(DEVICE, gpu="0"), before)
            code = ledger.stop()
            self.assertEqual(code, 0, ledger.log())

    def test_alone(self):
        with Ledger(self.folder, nvml=False) as ledger:
            both = {"4101", "4102"}
            here = lambda: {labels["pid"] for labels, _ in ledger.metrics().find("my_gpu_process_active", gpu="0")}
            harness.wait_until(lambda: here() == both, "both")
            charged = lambda: ledger.metrics().total("my_gpu_process_energy_joules_total", gpu="1", pid="4103")
            harness.wait_until(lambda: charged() > 0, "joules of the one that is often alone")
            metrics = self.watch(ledger, 10)
            self.assertIn("by DCGM alone", ledger.log())
            self.assertEqual(self.engine(metrics), 1)
            self.assertFalse(metrics.find("gpu_ledger_source_up", source="nvml"))
            for gpu in ("0", "1"):
                self.assertGreater(metrics.value(DEVICE, gpu=gpu), 0)
                self.assertGreater(metrics.value("gpu_ledger_device_power_watts", gpu=gpu), 0)
            # Two at once on GPU 0, and nobody to say which of them works.
            unseen = metrics.value("gpu_ledger_device_unattributed_joules_total", gpu="0", reason="unseen")
            self.assertGreater(unseen, 0)
            ledger.tell(dead=1)
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_device_up", gpu="0") == 0, "the GPUs down")
            ledger.tell(dead=0)
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_device_up", gpu="0") == 1, "them back")
            self.watch(ledger, 5)

    def test_alone_those_who_take_turns_pay(self):
        """By time; how exactly is in the unit tests, where time is exact."""
        node = "gpus: [{model: A100-80GB}]\nprocesses:\n" + "".join(
            f"  - {{pid: {pid}, name: job, gpus: [0], memory: 4GiB, load: gemm, start: {start}, "
            "repeat: {every: 3, lives: 1.4}}\n" for pid, start in ((4101, 1), (4102, 2.5)))
        with Ledger(self.folder, nvml=False, node=node) as ledger:
            charged = lambda: {labels["pid"] for labels, joules in
                               ledger.metrics().find("my_gpu_process_energy_joules_total") if joules > 0}
            harness.wait_until(lambda: charged() == {"4101", "4102"}, "both to pay")

    def test_alone_nobody_is_charged_for_two(self):
        node = """
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, name: train, gpus: [0], memory: 40GiB, load: gemm}
  - {pid: 4102, name: serve, gpus: [0], memory: 20GiB, load: decode}
"""
        with Ledger(self.folder, nvml=False, node=node) as ledger:
            harness.wait_until(lambda: len(ledger.metrics().find("my_gpu_process_active", gpu="0")) == 2, "both")
            metrics = self.watch(ledger, 15)
            self.assertEqual(metrics.total("my_gpu_process_energy_joules_total", gpu="0"), 0)
            self.assertGreater(metrics.value(DEVICE, gpu="0"), 0)

    def test_the_log_says_why_an_engine_cannot_be_reached(self):
        (self.folder / "control").write_text("dead 1\n", encoding="utf-8")
        with Ledger(self.folder) as ledger:
            harness.wait_until(lambda: "127.0.0.1:5555" in ledger.log(), "the reason in the log")
            self.assertIn("is nv-hostengine running?", ledger.log())

    def doctor(self, *arguments, nvml="libnvidia-ml.so.1", **control):
        (self.folder / "control").write_text("".join(f"{key} {value}\n" for key, value in control.items()))
        (self.folder / "scenario.yaml").write_text(SCENARIO)
        environment = {"NVML_SIM_SCENARIO": str(self.folder / "scenario.yaml"),
                       "DCGM_SIM_CONTROL": str(self.folder / "control")}
        done = subprocess.run([
            harness.BINARY, "doctor", "--backend=dcgm", f"--listen-address=127.0.0.1:{harness.free_port()}",
            f"--nvml-library={harness.SIM / nvml}", "--kubernetes-enabled=false", "--docker-socket=",
            "--podman-socket=", *(arguments or [f"--dcgm-library={harness.SIM / 'dcgm/libdcgm.so.4'}"])],
            env=harness.clean_environment(environment), capture_output=True, text=True, timeout=harness.NET)
        lines = dict(line[6:].split(": ", 1) for line in done.stdout.splitlines())
        levels = {line[6:].split(": ", 1)[0]: line[:4].strip() for line in done.stdout.splitlines()}
        self.assertIn("dcgm", lines, done.stdout)
        return done.returncode, levels, lines

    def test_doctor(self):
        _, levels, lines = self.doctor()
        self.assertEqual(levels["dcgm"], "ok", lines)
        self.assertIn("2 GPUs", lines["dcgm"])
        for wrong, says in (({"dead": 1}, "is nv-hostengine running?"), ({"no_nvml": 1}, "nvidia-smi must work"),
                            ({"library_major": 5}, "DCGM 5"), ({"hang": 1}, "restart nv-hostengine")):
            with self.subTest(wrong=wrong):
                code, levels, lines = self.doctor(**wrong)
                self.assertEqual((code, levels["dcgm"]), (1, "FAIL"), lines)
                self.assertIn(says, lines["dcgm"])
        code, levels, lines = self.doctor("--dcgm-library=/nowhere/libdcgm.so.4")
        self.assertEqual((code, levels["dcgm"]), (1, "FAIL"), lines)
        code, levels, lines = self.doctor(nvml="nowhere.so")
        self.assertEqual((levels["driver"], levels["dcgm"]), ("warn", "ok"), "DCGM alone will do")
        self.assertIn("DCGM alone does not report which", lines["driver"])

    def test_nobody_there(self):
        (self.folder / "control").write_text("dead 1\n", encoding="utf-8")
        with Ledger(self.folder, nvml=False, ready=False) as ledger:
            harness.wait_until(lambda: not ledger.alive(), "its end")
            self.assertEqual(ledger.child.returncode, 1)
            self.assertIn("no GPU, neither by DCGM", ledger.log())

    def test_a_library_of_another_version(self):
        (self.folder / "control").write_text("library_major 5\n", encoding="utf-8")
        with Ledger(self.folder, ready=False) as ledger:
            harness.wait_until(lambda: not ledger.alive(), "its end")
            self.assertEqual(ledger.child.returncode, 1)
            said = [line for line in ledger.log().splitlines() if "DCGM 5" in line]
            self.assertEqual(len(said), 1, ledger.log())


if __name__ == "__main__":
    unittest.main()
