# SPDX-License-Identifier: Apache-2.0
"""Ending, reading settings again, letting the GPU go and taking it back."""

import pathlib
import signal
import socket
import unittest

import harness

DEVICE_GAUGES = ("gpu_ledger_device_power_watts", "gpu_idle_device_temperature_celsius")


class SignalsTest(harness.Case):
    def test_sigterm_ends_at_once_also_with_a_slow_client(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with harness.Ledger() as ledger, socket.create_connection(("127.0.0.1", ledger.port)) as slow:
                slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
                idle = socket.create_connection(("127.0.0.1", ledger.port))
                self.addCleanup(idle.close)
                code = ledger.stop(number)  # both clients are still there
                self.assertEqual(code, 0, ledger.log())

    def test_sigterm_right_after_the_start(self):
        for pause in (0, 0.01, 0.05):
            with harness.Ledger(ready=False) as ledger:
                harness.moment(pause)
                code = ledger.stop()
                # Before main() has set its handler the signal's own effect is the answer.
                self.assertIn(code, (0, -signal.SIGTERM), ledger.log())

    def test_sigterm_while_the_driver_hangs_at_the_start(self):
        control = harness.Control(self.folder)
        control.say("do: hang, call: nvmlDeviceGetPowerUsage")
        scenario = self.write("hanging.yaml", "gpus: [{model: A10}]\n")
        with harness.Ledger(scenario=scenario, ready=False, environment=control.environment) as ledger:
            control.wait_for_hang("nvmlDeviceGetPowerUsage")
            code = ledger.stop()  # the call hangs still
            self.assertEqual(code, 0, ledger.log())

    def test_sigterm_with_all_at_once_that_holds_it_up(self):
        """Clients that are slow, a receiver that is silent, and a driver that is slow, hangs or cannot be closed."""
        power = "call: nvmlDeviceGetPowerUsage"
        for fault in (f"do: slow, {power}, ms: 900", f"do: hang, {power}", "do: hang, call: nvmlShutdown"):
            control = harness.Control(self.folder)
            control.say()
            scenario = self.write("slow.yaml", "gpus: [{model: A10}]\n")
            with self.subTest(fault), socket.create_server(("127.0.0.1", 0)) as silent, harness.Ledger(
                    f"--push-url=http://127.0.0.1:{silent.getsockname()[1]}/api/v1/write", "--push-interval=1s",
                    f"--textfile={self.folder}/gpu.prom", f"--state-file={self.folder}/state",
                    scenario=scenario, environment=control.environment) as ledger:
                for words in (b"GET /metrics HTTP/1.1\r\nHost: ", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2000):
                    slow = socket.create_connection(("127.0.0.1", ledger.port))
                    self.addCleanup(slow.close)
                    slow.setblocking(False)
                    slow.send(words)
                harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_push_queue_samples"), "a queue")
                control.say(fault, f"do: tell, {power}")
                if fault.startswith("do: slow"):
                    control.wait("called nvmlDeviceGetPowerUsage")  # it is in this call
                if fault == f"do: hang, {power}":
                    harness.wait_until(lambda: not ledger.metrics().value("gpu_ledger_device_up"), "a lost GPU")
                code = ledger.stop()  # what hangs does so still
                self.assertEqual(code, 0, ledger.log())
                self.assertFalse((self.folder / "gpu.prom").exists(), "the textfile is left")
                (self.folder / "state").unlink()

    def test_sighup_reads_the_config_file_again(self):
        config = self.write("config.yaml", "metric-retention: 5m\nlog-level: info\n")
        with harness.Ledger(f"--config={config}", *harness.FAST) as ledger:
            self.assertTrue(ledger.metrics().find("gpu_ledger_build_info"))
            before = ledger.metrics()
            config.write_text("metric-retention: 5m\nlog-level: debug\ncollector.idle: false\n", encoding="utf-8")
            ledger.send(signal.SIGHUP)
            harness.wait_until(lambda: not ledger.metrics().find("gpu_idle_memory_total_bytes"),
                               "the idle collector to go")
            self.assert_never_fell(before, ledger.metrics(), gone_allowed=("my_gpu_process", ))

    def test_sighup_takes_what_is_live_and_says_what_takes_a_restart(self):
        config = self.write("config.yaml", "node-name: one\n")
        with harness.Ledger(f"--config={config}", *harness.FAST) as ledger:
            self.assertFalse(ledger.metrics().find("gpu_ledger_series_left_out", node="two"))
            config.write_text("node-name: two\nmax-series: 50\ncollector: {idle: false, processlist: false}\n",
                              encoding="utf-8")
            ledger.send(signal.SIGHUP)
            harness.wait_until(lambda: ledger.metrics().total("gpu_ledger_series_left_out") > 0, "fewer series")
            self.assertFalse(ledger.metrics().find("gpu_process_info"))
            self.assertFalse(ledger.metrics().find("gpu_ledger_build_info", node="two"))
            restart = [line for line in ledger.log().splitlines() if "takes effect after a restart" in line]
            self.assertEqual(len(restart), 1, restart)
            self.assertIn("node-name", restart[0])

    def test_sighup_with_a_broken_file_keeps_the_old_settings(self):
        config = self.write("config.yaml", "collector.idle: false\n")
        with harness.Ledger(f"--config={config}", *harness.FAST) as ledger:
            config.write_text("collector.idle: [\n", encoding="utf-8")
            ledger.send(signal.SIGHUP)
            harness.wait_until(lambda: str(config) in ledger.log(), "a line about the broken file")
            ledger.pass_cycles(2)
            self.assertTrue(ledger.alive())
            self.assertFalse(ledger.metrics().find("gpu_idle_memory_total_bytes"))

    def test_processes_outlive_a_pause_that_is_longer_than_their_retention(self):
        energy = lambda metrics: metrics.total("my_gpu_process_energy_joules_total", pid="41001")
        with harness.Ledger(*harness.FAST, "--metric-retention=1s") as ledger:
            harness.wait_until(lambda: energy(ledger.metrics()) > 0, "energy of a process")
            before = ledger.metrics()
            ledger.send(signal.SIGUSR1)
            harness.wait_until(lambda: ledger.metrics().value("my_gpu_process_active", pid="41001") == 0,
                               "the process to be out of sight")
            at = lambda: ledger.metrics().value("gpu_ledger_snapshot_timestamp_seconds")
            began = at()
            harness.wait_until(lambda: at() > began + 1.5, "cycles after its retention")
            self.assertGreaterEqual(energy(ledger.metrics()), energy(before))
            ledger.send(signal.SIGUSR2)
            harness.wait_until(lambda: ledger.metrics().value("my_gpu_process_active", pid="41001") == 1,
                               "the process again")
            after = ledger.metrics()
            self.assertGreater(energy(after), energy(before), "it pays for the pause")
            self.assert_balanced(after)

    def test_sigusr1_lets_the_gpu_go_and_sigusr2_takes_it_back(self):
        # Not with exact time, whose simulated device nodes are in the driver's library: it would stay loaded.
        with harness.Ledger("--exact-time=off", *harness.FAST) as ledger:
            before = ledger.pass_cycles(4)
            for name in DEVICE_GAUGES:
                self.assertTrue(before.find(name), name)
            ledger.send(signal.SIGUSR1)
            harness.wait_until(lambda: ledger.get("/readyz").status == 503, "/readyz to say 503")
            released = ledger.metrics()
            self.assertEqual(released.value("gpu_ledger_source_up", source="nvml"), 0)
            for name in DEVICE_GAUGES:
                self.assertFalse(released.find(name), name)
            self.assert_never_fell(before, released)
            self.assert_balanced(released)
            mapped = pathlib.Path(f"/proc/{ledger.child.pid}/maps").read_text(encoding="utf-8")
            self.assertNotIn("libnvidia-ml", mapped, "the driver's library is still loaded")

            ledger.send(signal.SIGUSR2)
            harness.wait_until(lambda: ledger.get("/readyz").status == 200, "/readyz to say 200")
            after = ledger.metrics()
            self.assertEqual(after.value("gpu_ledger_source_up", source="nvml"), 1)
            self.assertTrue(after.find("gpu_ledger_device_power_watts"))
            self.assert_never_fell(released, after)
            self.assert_balanced(after)


if __name__ == "__main__":
    unittest.main()
