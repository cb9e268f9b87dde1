# SPDX-License-Identifier: Apache-2.0
"""What breaks on real nodes: a lost GPU, a driver reload, a counter that starts again."""

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
"""
GPU_1 = {"gpu": "1"}
DEVICE = "gpu_ledger_device_energy_joules_total"


class FailuresTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.control = harness.Control(self.folder)
        self.seen = []  # all scrapes
        self.ledger = harness.Ledger(*harness.FAST, scenario=self.write("scenario.yaml", SCENARIO),
                                     environment=self.control.environment)
        self.addCleanup(self.ledger.__exit__)

    def look(self):
        """Every scrape must be good, and no counter may fall."""
        metrics = self.ledger.metrics()
        self.assert_balanced(metrics)
        if self.seen:
            self.assert_never_fell(self.seen[-1], metrics)
        self.seen.append(metrics)
        return metrics

    def watch_until(self, condition, what):
        """The scrapes meanwhile; the last is the one that the condition holds for."""
        begin = len(self.seen)
        harness.wait_until(lambda: condition(self.look()), what)
        return self.seen[begin:]

    def watch_cycles(self, number):
        count = lambda metrics: metrics.value("gpu_ledger_sample_duration_seconds_count")
        end = count(self.look()) + number
        return self.watch_until(lambda metrics: count(metrics) >= end, f"{number} cycles")

    def end(self):
        code = self.ledger.stop()
        self.assertEqual(code, 0, self.ledger.log())

    def up(self, metrics, gpu):
        return metrics.value("gpu_ledger_device_up", gpu=gpu)

    def test_a_lost_gpu_goes_alone_and_comes_back(self):
        self.watch_cycles(3)
        self.control.say("do: gpu_lost, gpu: 1", "do: xid, gpu: 0, xid: 31")
        self.watch_until(lambda metrics: self.up(metrics, "1") == 0, "GPU 1 to be lost")
        lost = self.watch_cycles(5)
        self.control.say()
        for metrics in lost:
            self.assertEqual(self.up(metrics, "1"), 0)
            self.assertFalse(metrics.find("gpu_ledger_device_power_watts", gpu="1"), "a lost GPU has no watts")
            self.assertTrue(metrics.find(DEVICE, gpu="1"))
        before = lost[-1].value(DEVICE, gpu="1")
        self.watch_until(lambda metrics: self.up(metrics, "1") == 1, "GPU 1 to be back")
        last = self.watch_until(lambda metrics: metrics.value(DEVICE, gpu="1") > before, "joules of GPU 1")[-1]
        self.assertTrue(all(self.up(metrics, "0") == 1 for metrics in self.seen))
        self.assertGreater(last.total("gpu_ledger_source_errors_total"), 0)
        self.assertEqual(last.value("gpu_ledger_xid_errors_total", gpu="0", xid="31"), 1)
        self.end()

    def test_a_driver_reload_is_survived(self):
        works = lambda metrics: metrics.value("gpu_ledger_source_up", source="nvml") == 1
        self.watch_cycles(3)
        self.control.say("do: driver_reload")
        self.watch_until(lambda metrics: not works(metrics), "the driver to go")
        down = self.watch_cycles(5)
        self.assertFalse(any(works(metrics) for metrics in down))
        self.control.say()
        self.watch_until(works, "the driver to be back")
        for gpu in ("0", "1"):
            before = down[-1].value(DEVICE, gpu=gpu)
            self.watch_until(lambda metrics: metrics.value(DEVICE, gpu=gpu) > before, f"joules of GPU {gpu}")
        self.assertTrue(works(self.look()))
        self.end()

    def test_a_counter_that_starts_again_is_no_negative_joule(self):
        first = self.watch_cycles(5)[0]
        self.control.say("do: counter_reset, gpu: 1")
        harness.wait_until(lambda: self.control.began("do: counter_reset, gpu: 1"), "the counter to start again")
        last = self.watch_cycles(10)[-1]
        grown, seconds = (last.value(name, **labels) - first.value(name, **labels)
                          for name, labels in ((DEVICE, GPU_1), ("gpu_ledger_snapshot_timestamp_seconds", {})))
        # 400 W is this GPU's limit: neither the 5 MJ it had counted nor its fall may show.
        self.assertLess(grown, 400 * (seconds + 1))
        self.assertGreater(grown, 0)
        self.end()


if __name__ == "__main__":
    unittest.main()
