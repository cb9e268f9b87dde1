# SPDX-License-Identifier: Apache-2.0
"""What breaks on real nodes: a lost GPU, a driver reload, a counter that starts again."""

import time
import unittest

import harness

SCENARIO = """
gpus:
  - model: H200
  - model: A100-80GB
    counter_start_joules: 5000000
processes:
  - {pid: 4101, name: train, gpus: [0], memory: 40GiB, load: gemm, owner: {pod: train-0, namespace: ml}}
  - {pid: 4102, name: serve, gpus: [0], memory: 20GiB, load: decode, owner: {pod: serve-0, namespace: ml}}
  - {pid: 4103, name: batch, gpus: [1], memory: 10GiB, load: fp32, owner: {docker: batch}}
events:
"""
GPU_1 = {"gpu": "1"}


class FailuresTest(harness.Case):
    def watch(self, events, seconds):
        """Scrapes all through it; every scrape must be good and no counter may fall. Gives all of them back."""
        scenario = self.write("scenario.yaml", SCENARIO + "".join(f"  - {event}\n" for event in events))
        seen = []
        with harness.Ledger(*harness.FAST, scenario=scenario) as ledger:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                metrics = ledger.metrics()
                self.assert_balanced(metrics)
                if seen:
                    self.assert_never_fell(seen[-1], metrics)
                seen.append(metrics)
                time.sleep(0.1)
            code, _ = ledger.stop()
            self.assertEqual(code, 0, ledger.log())
        return seen

    def up(self, metrics, gpu):
        return metrics.value("gpu_ledger_device_up", gpu=gpu)

    def test_a_lost_gpu_goes_alone_and_comes_back(self):
        seen = self.watch(["{do: gpu_lost, gpu: 1, at: 2, until: 4}", "{do: xid, gpu: 0, xid: 31, at: 2}"], 7)
        lost = [metrics for metrics in seen if self.up(metrics, "1") == 0]
        self.assertTrue(lost, "GPU 1 was never seen lost")
        self.assertTrue(all(self.up(metrics, "0") == 1 for metrics in seen))
        for metrics in lost:
            self.assertFalse(metrics.find("gpu_ledger_device_power_watts", gpu="1"), "a lost GPU has no watts")
            self.assertTrue(metrics.find("gpu_ledger_device_energy_joules_total", gpu="1"))
        self.assertEqual(self.up(seen[-1], "1"), 1)
        gained = seen[-1].value("gpu_ledger_device_energy_joules_total", **GPU_1)
        self.assertGreater(gained, lost[-1].value("gpu_ledger_device_energy_joules_total", **GPU_1))
        self.assertGreater(seen[-1].total("gpu_ledger_source_errors_total"), 0)
        self.assertEqual(seen[-1].value("gpu_ledger_xid_errors_total", gpu="0", xid="31"), 1)

    def test_a_driver_reload_is_survived(self):
        seen = self.watch(["{do: driver_reload, at: 2, for: 2}"], 9)
        down = [metrics for metrics in seen if metrics.value("gpu_ledger_source_up", source="nvml") == 0]
        self.assertTrue(down, "the reload was never seen")
        self.assertEqual(seen[-1].value("gpu_ledger_source_up", source="nvml"), 1)
        for gpu in ("0", "1"):
            self.assertGreater(seen[-1].value("gpu_ledger_device_energy_joules_total", gpu=gpu),
                               down[-1].value("gpu_ledger_device_energy_joules_total", gpu=gpu))

    def test_a_counter_that_starts_again_is_no_negative_joule(self):
        seen = self.watch(["{do: counter_reset, gpu: 1, at: 3}"], 6)
        name = "gpu_ledger_device_energy_joules_total"
        energies = [metrics.value(name, **GPU_1) for metrics in seen]
        # 400 W is this GPU's limit: neither the 5 MJ it had counted nor its fall may show.
        self.assertLess(energies[-1] - energies[0], 400 * 10 * harness.SLOW)
        self.assertGreater(energies[-1], energies[0])


if __name__ == "__main__":
    unittest.main()
