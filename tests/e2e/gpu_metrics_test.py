# SPDX-License-Identifier: Apache-2.0
"""/gpu/metrics: the device view under the names of DCGM's exporters."""

import subprocess
import unittest

import harness
from prometheus_test import PROMETHEUS, PROMTOOL, Prometheus

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
BOTH = ("--collector.dcgm", "--collector.dcgm-modern")

# What NVIDIA's own dashboard for dcgm-exporter (number 12239) asks.
DASHBOARD = """
avg(DCGM_FI_DEV_GPU_TEMP)
sum(DCGM_FI_DEV_POWER_USAGE)
DCGM_FI_DEV_GPU_TEMP{gpu=~"0|1"}
DCGM_FI_DEV_POWER_USAGE{gpu=~"0|1"}
DCGM_FI_DEV_SM_CLOCK * 1000000
DCGM_FI_DEV_GPU_UTIL
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
DCGM_FI_DEV_FB_USED
""".strip().splitlines()


class GpuMetricsTest(harness.Case):
    def shown(self, ledger):
        answer = ledger.get("/gpu/metrics")
        self.assertEqual(answer.status, 200, answer.text)
        return harness.Metrics(answer.text)

    def test_both_formats_have_the_same_series(self):
        with harness.Ledger(*harness.FAST, *BOTH) as ledger:
            ledger.pass_cycles(5)
            plain = ledger.get("/gpu/metrics")
            other = ledger.get("/gpu/metrics", {"Accept": OPENMETRICS})
            self.assertTrue(plain.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            self.assertTrue(other.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"))
            self.assertTrue(other.text.endswith("# EOF\n"))
            names = lambda text: {key[0] for key in harness.Metrics(text).series}
            self.assertEqual(names(plain.text), names(other.text))
            self.assertFalse([name for name in names(ledger.get("/metrics").text) if name.lower().startswith("dcgm_")])
            self.assertTrue(ledger.get("/gpu/metrics", {"Accept": "image/png"}).headers["Content-Type"].startswith("text/plain"))

    def test_who_wants_none_gets_none(self):
        with harness.Ledger("--no-collector.dcgm") as ledger:
            answer = ledger.get("/gpu/metrics")
            self.assertEqual(answer.status, 404)
            self.assertIn("dcgm-modern", answer.text)

    def test_slow_readings_only_for_who_asks(self):
        scenario = self.write("older.yaml", "gpus: [{model: A100-80GB}, {model: H200}]\n")
        call = lambda ledger: ledger.metrics().find("gpu_ledger_driver_call_duration_seconds_count",
                                                    call="nvmlDeviceGetPcieThroughput")
        rates = lambda ledger: {labels["gpu"] for labels, _ in self.shown(ledger).find("dcgm_pcie_tx_throughput")}
        timed = (*harness.FAST, "--collector.driver-calls")
        with harness.Ledger(*timed, scenario=scenario) as ledger:
            harness.wait_until(lambda: rates(ledger), "what costs nothing")
            ledger.pass_cycles(3)
            self.assertEqual(rates(ledger), {"1"}, "the monitors of the newer GPU tell it")
            self.assertEqual(call(ledger), [])
        with harness.Ledger(*timed, "--dcgm-pcie-throughput", scenario=scenario) as ledger:
            harness.wait_until(lambda: rates(ledger) == {"0", "1"}, "both GPUs")
            self.assertGreater(call(ledger)[0][1], 0)

    def test_textfile_has_them_on_request(self):
        path = self.folder / "gpu.prom"
        once = lambda *more: subprocess.run([harness.BINARY, "once", "--backend=sim", *more], check=True, text=True,
                                            env=harness.clean_environment(), timeout=harness.NET,
                                            capture_output=True).stdout
        once(f"--textfile={path}")
        self.assertNotIn("dcgm_", path.read_text())
        once(f"--textfile={path}", "--textfile-dcgm", "--collector.dcgm-modern")
        written = harness.Metrics(path.read_text())
        self.assertTrue(written.find("dcgm_gpu_temp") and written.find("DCGM_FI_DEV_GPU_TEMP"))
        self.assert_balanced(written)
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=path.read_bytes(), capture_output=True,
                              timeout=harness.NET)
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        # One limit for the whole file, which node_exporter serves as one.
        fewer = ("--textfile-dcgm", "--collector.dcgm-modern", "--max-series=800")
        once(f"--textfile={path}", *fewer)
        for text in (path.read_text(), once(*fewer)):
            metrics = harness.Metrics(text)
            self.assertLessEqual(len(metrics.series), 800)
            self.assertGreater(metrics.total("gpu_ledger_series_left_out"), 0)
            self.assertTrue(metrics.find("dcgm_gpu_temp", gpu="0"))
        self.assertNotIn("dcgm_gpu_temp", once())
        self.assertIn("dcgm_gpu_temp", once("--textfile-dcgm"))
        with harness.Ledger(*harness.FAST, f"--textfile={path}", "--textfile-dcgm"):
            self.assertIn("\ndcgm_gpu_temp{", path.read_text())

    def test_parts_add_up_and_energy_never_falls(self):
        with harness.Ledger(*harness.FAST, *BOTH) as ledger:
            before = None
            for _ in range(10):
                ledger.pass_cycles(1)
                metrics = self.shown(ledger)
                for gpu in {labels["gpu"] for labels, _ in metrics.find("dcgm_gpu_temp")}:
                    for old, new in (("dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE"),
                                     ("dcgm_fb_used", "DCGM_FI_DEV_FB_USED"),
                                     ("dcgm_total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")):
                        self.assertAlmostEqual(metrics.total(old, gpu=gpu), metrics.total(new, gpu=gpu), delta=0.01)
                if before:
                    self.assert_never_fell(before, metrics)
                before = metrics
            pods = {labels["pod_name"] for labels, _ in before.find("dcgm_power_usage", gpu="0") if "pod_name" in labels}
            self.assertTrue(pods)
            instances = {labels["GPU_I_ID"] for labels, _ in before.find("DCGM_FI_DEV_FB_USED", gpu="1")
                         if "GPU_I_ID" in labels}
            self.assertEqual(instances, {"1", "5", "9"})

    def test_the_sum_is_the_hardwares_reading(self):
        scenario = self.write("shared.yaml", """
noise: 0
gpus: [{model: H100, counter_start_joules: 5000}]
processes:
  - {pid: 100, gpus: 0, memory: 8GiB, load: gemm, owner: {namespace: ml, pod: a, container: main}}
  - {pid: 200, gpus: 0, memory: 4GiB, load: decode, owner: {namespace: ml, pod: b, container: main}}
  - {pid: 300, gpus: 0, memory: 1GiB, load: idle}
""")
        with harness.Ledger("--sample-interval=1s", scenario=scenario) as ledger:
            ledger.pass_cycles(2)  # the first reading has nothing to be compared with
            # What the counter showed before the ledger began: the same, however often it is worked out.
            before = [self.joules_before(ledger) for _ in range(3)]
            self.assertGreaterEqual(before[0], 5000)
            for joules in before:
                self.assertAlmostEqual(joules, before[0], delta=0.001)
            metrics = self.shown(ledger)
            self.assertEqual(len(metrics.find("dcgm_power_usage")), 3)
            self.assertEqual(metrics.value("dcgm_fb_used", pod_name="a"), 8192)
            self.assertEqual(metrics.value("dcgm_fb_used", pod_name="b"), 4096)

    def joules_before(self, ledger):
        """Both pages of one and the same snapshot."""
        for _ in range(50):
            device, shown, again = ledger.metrics(), self.shown(ledger), ledger.metrics()
            when = lambda metrics: metrics.value("gpu_ledger_snapshot_timestamp_seconds")
            if when(device) == when(again):
                harness.wait_until(lambda: when(ledger.metrics()) > when(device), "another snapshot")
                measured = device.value("gpu_ledger_device_energy_joules_total")
                return shown.total("dcgm_total_energy_consumption") / 1000 - measured
        self.fail("every snapshot was gone before it could be read twice")

    def test_promtool_reads_it(self):
        with harness.Ledger(*harness.FAST, *BOTH) as ledger:
            ledger.pass_cycles(5)
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=ledger.get("/gpu/metrics").body,
                                  capture_output=True, timeout=harness.NET)
        # 3: what it has to say about names, which are older than its rules. 1: it cannot read it.
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        for line in (done.stdout + done.stderr).decode().splitlines():
            self.assertRegex(line.lower(), r"^dcgm_\S* .*(suffix|camel|name)")

    def test_prometheus_answers_the_dashboard(self):
        with harness.Ledger(*harness.FAST, *BOTH) as ledger:
            options = {"metrics_path": "/gpu/metrics", "honor_labels": True}
            with Prometheus(self.folder, {"gpu": ledger.port}, options) as prometheus:
                harness.wait_until(lambda: prometheus.query("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), "a scrape")
                for query in DASHBOARD:
                    with self.subTest(query=query):
                        self.assertTrue(prometheus.query(query), "no data")
                for target in prometheus.targets():
                    self.assertEqual((target["health"], target["lastError"]), ("up", ""))


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL:
        raise SystemExit("prometheus and promtool are missing; tools/setup.sh --test installs them")
    unittest.main()
