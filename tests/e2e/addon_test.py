# SPDX-License-Identifier: Apache-2.0
"""Add-on to a dcgm-exporter that already runs: its metrics with pod labels, and what comes of one that lies."""

import http.server
import os
import signal
import subprocess
import threading
import time
import unittest

import harness
import prometheus_test

SCENARIO = """
gpus:
  - {model: H200, uuid: GPU-00000000-0000-0000-0000-000000000000}
  - {model: H200, uuid: GPU-11111111-1111-1111-1111-111111111111}
processes:
  - {pid: 4101, name: a, gpus: 0, memory: 10GiB, load: gemm, owner: {namespace: ml, pod: alone, container: c}}
  - {pid: 4102, name: b, gpus: 1, memory: 20GiB, load: gemm, owner: {namespace: ml, pod: left, container: c}}
  - {pid: 4103, name: c, gpus: 1, memory: 30GiB, load: fp32, owner: {namespace: ml, pod: right, container: c}}
"""
GPU0 = 'gpu="0",uuid="GPU-00000000-0000-0000-0000-000000000000"'
GPU1 = 'gpu="1",uuid="GPU-11111111-1111-1111-1111-111111111111"'
# By GPU, and headers before the first one's lines only: the way the first exporter wrote it.
OLDER = f"""# HELP dcgm_gpu_temp GPU temperature (in C).
# TYPE dcgm_gpu_temp gauge
dcgm_gpu_temp{{{GPU0}}} 33
# HELP dcgm_power_usage Power draw (in W).
# TYPE dcgm_power_usage gauge
dcgm_power_usage{{{GPU0}}} 31.737
# HELP dcgm_total_energy_consumption Total energy consumption since boot (in mJ).
# TYPE dcgm_total_energy_consumption counter
dcgm_total_energy_consumption{{{GPU0}}} 1000
dcgm_gpu_temp{{{GPU1}}} 61
dcgm_power_usage{{{GPU1}}} 600.123
dcgm_total_energy_consumption{{{GPU1}}} 2000
"""
HOSTILE = r"""DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000-0000-0000-0000-000000000000",modelName="a \"b\" \\ c\nd"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000-0000-0000-0000-000000000000",modelName="a \"b\" \\ c\nd"} 41
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-11111111-1111-1111-1111-111111111111",pod="theirs"} 42
DCGM_FI_DEV_FB_USED{gpu="0"} N/A
DCGM_FI_DEV_FB_USED{gpu="0",__name__="up"} 1
DCGM_FI_DEV_FB_FREE{gpu="0"} 9223372036854775794
DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1 1700000000000
"""
ERRORS = "gpu_ledger_source_errors_total"


class Exporter(http.server.ThreadingHTTPServer):
    """Says body; nothing while it is held."""

    daemon_threads = True

    def __init__(self):
        self.body, self.status, self.asked = b"", 200, 0
        self.let_go = threading.Event()
        self.let_go.set()
        super().__init__(("127.0.0.1", 0), ExporterHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/metrics"


class ExporterHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        self.server.let_go.wait()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


class AddOnTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.exporter = Exporter()
        self.addCleanup(self.exporter.server_close)
        self.addCleanup(self.exporter.shutdown)
        self.addCleanup(self.exporter.let_go.set)
        self.scenario = self.write("scenario.yaml", SCENARIO)

    def start(self, *arguments):
        ledger = harness.Ledger(*harness.FAST, *arguments, scenario=self.scenario)
        self.addCleanup(ledger.__exit__)
        return ledger

    def replace(self, text):
        self.write("new", text).rename(self.folder / "dcgm.prom")
        return self.folder / "dcgm.prom"

    def wait_for_source(self, ledger, up):
        def reached():
            found = ledger.metrics().find("gpu_ledger_source_up", source="dcgm-exporter")
            return found and found[0][1] == up
        harness.wait_until(reached, f"the source to be {up}")

    def gpu_metrics(self, ledger):
        answer = ledger.get("/gpu/metrics")
        self.assertEqual(answer.status, 200, answer.text)
        return harness.Metrics(answer.text)

    def test_sighup_does_not_change_whose_metrics_these_are(self):
        """Where they come from takes a restart; the collectors do not."""
        config = self.write("config.yaml", "log-level: info\n")
        ledger = self.start(f"--config={config}")

        def read_again(text):
            before = ledger.log().count("settings read again")
            config.write_text(text, encoding="utf-8")
            ledger.send(signal.SIGHUP)
            harness.wait_until(lambda: ledger.log().count("settings read again") > before, "the settings")
            ledger.pass_cycles(2)

        theirs = f"dcgm-exporter-file: {self.replace(OLDER)}\n"
        self.assertTrue(self.gpu_metrics(ledger).find("dcgm_sm_clock"))
        read_again(theirs)
        self.assertTrue(self.gpu_metrics(ledger).find("dcgm_sm_clock"), "ours until the restart")
        self.assertIn("this change takes effect after a restart", ledger.log())
        read_again(theirs + "collector: {dcgm: false}\n")
        self.assertEqual(ledger.get("/gpu/metrics").status, 404, "switched off")

        ledger = self.start(f"--config={self.write('config.yaml', theirs)}")
        harness.wait_until(lambda: self.gpu_metrics(ledger).find("dcgm_gpu_temp"), "theirs")
        for settings in ("log-level: info\n", "collector: {dcgm: false}\n"):
            read_again(settings)
            self.assertTrue(self.gpu_metrics(ledger).find("dcgm_gpu_temp", gpu="0"))
            self.assertFalse(self.gpu_metrics(ledger).find("dcgm_sm_clock"), "theirs until the restart")

    def test_older_file(self):
        ledger = self.start(f"--dcgm-exporter-file={self.replace(OLDER)}")
        shared = lambda: len(self.gpu_metrics(ledger).find("dcgm_gpu_temp", gpu="1")) == 2
        harness.wait_until(shared, "both pods of GPU 1")
        metrics = self.gpu_metrics(ledger)
        pod = {"pod_name": "alone", "pod_namespace": "ml", "container_name": "c"}
        self.assertEqual(metrics.value("dcgm_gpu_temp", gpu="0", **pod), 33)
        self.assertEqual(metrics.value("dcgm_power_usage", gpu="0", **pod), 31.737)
        self.assertEqual(metrics.value("dcgm_gpu_temp", gpu="1", pod_name="left"), 61)
        self.assertAlmostEqual(metrics.total("dcgm_power_usage", gpu="1"), 600.123, 6)
        charged = lambda: self.gpu_metrics(ledger).value("dcgm_power_usage", gpu="1", pod_name="left") > 0
        harness.wait_until(charged, "a part of the power")
        self.assertEqual(metrics.types["dcgm_gpu_temp"], "gauge")
        # Ours are not served beside it.
        self.assertEqual(metrics.find("dcgm_sm_clock"), [])
        text = [line.split("{")[0].split(" ")[0] for line in ledger.get("/gpu/metrics").text.splitlines()
                if not line.startswith("#")]
        self.assertEqual(text, sorted(text, key=text.index), "every family in one piece")

        self.replace(OLDER.replace("} 33", "} 34"))
        harness.wait_until(lambda: self.gpu_metrics(ledger).value("dcgm_gpu_temp", gpu="0") == 34, "the new file")
        before = self.gpu_metrics(ledger)
        self.replace(OLDER[:-3])
        self.wait_for_source(ledger, 0)
        self.assertGreater(ledger.metrics().value(ERRORS, source="dcgm-exporter", code="malformed"), 0)
        after = self.gpu_metrics(ledger)
        self.assertEqual(after.value("dcgm_gpu_temp", gpu="0"), 34)
        self.assert_never_fell(before, after)

    def test_a_stale_file_is_not_served(self):
        path = self.replace(OLDER)
        old = time.time() - 120
        os.utime(path, (old, old))
        ledger = self.start(f"--dcgm-exporter-file={path}")
        stale = lambda: ledger.metrics().find(ERRORS, source="dcgm-exporter", code="stale")
        harness.wait_until(stale, "the count of stale files")
        self.wait_for_source(ledger, 0)
        self.assertEqual(self.gpu_metrics(ledger).series, {})
        self.assertRegex(ledger.log(), r"source fails: .*dcgm.prom: written 1[2-9]\d s ago")
        self.assert_balanced(ledger.metrics())

    def test_hostile_answers(self):
        self.exporter.body = HOSTILE.encode() + b'x{a="\xff\xfe"} 1\n' + b"y" * 70000 + b" 1\n"
        ledger = self.start(f"--dcgm-exporter-url={self.exporter.url}")
        self.wait_for_source(ledger, 1)
        harness.wait_until(lambda: self.gpu_metrics(ledger).find("DCGM_FI_DEV_GPU_TEMP", pod="alone"), "the pod")
        metrics = self.gpu_metrics(ledger)
        model = 'a "b" \\ c\nd'
        self.assertEqual(metrics.value("DCGM_FI_DEV_GPU_TEMP", pod="alone", namespace="ml", modelName=model), 40)
        self.assertEqual(metrics.value("DCGM_FI_DEV_GPU_TEMP", gpu="1"), 42)
        self.assertEqual(len(metrics.series), 2, metrics.series)
        for code in ("duplicate", "value", "label", "blank", "timestamp", "not_text", "too_long"):
            self.assertEqual(ledger.metrics().find(ERRORS, source="dcgm-exporter", code=f"line_{code}")[0][1] > 0, True)
        answer = ledger.get("/gpu/metrics", {"Accept": "application/openmetrics-text;version=1.0.0"})
        self.assertTrue(answer.text.endswith("# EOF\n"), answer.text)

    def test_refused_and_slow_answers(self):
        for body, status, code in ((b"\x00\x01\x02\n", 200, "malformed"), (b"no\n", 503, "http_503"),
                                   (b"<html>\n", 200, "malformed"), (b"", 200, "timeout")):
            self.exporter.body, self.exporter.status = body, status
            if code == "timeout":
                self.exporter.let_go.clear()
            with self.subTest(body=body, status=status):
                ledger = self.start(f"--dcgm-exporter-url={self.exporter.url}")
                self.wait_for_source(ledger, 0)
                find = lambda: ledger.metrics().find(ERRORS, source="dcgm-exporter", code=code)
                harness.wait_until(find, code)
                self.assertEqual(self.gpu_metrics(ledger).series, {})
                self.assertEqual(ledger.stop(), 0)

    def test_a_scrape_asks_nobody(self):
        self.exporter.body = OLDER.encode()
        ledger = self.start(f"--dcgm-exporter-url={self.exporter.url}")
        self.wait_for_source(ledger, 1)
        asked = self.exporter.asked
        for _ in range(50):
            self.gpu_metrics(ledger)
        self.assertLess(self.exporter.asked - asked, 50, "it is asked as time passes, not by scrapes")

    def doctor(self, *arguments):
        done = subprocess.run([harness.BINARY, "doctor", "--backend=sim", f"--sim-scenario={self.scenario}",
                               f"--listen-address=127.0.0.1:{harness.free_port()}", *arguments], text=True,
                              env=harness.clean_environment(), capture_output=True, timeout=harness.NET)
        said = [line for line in done.stdout.splitlines() if line[6:].startswith("dcgm-exporter: ")]
        self.assertEqual(len(said), 1, done.stdout)
        self.assertEqual(done.returncode, 1 if said[0].startswith("FAIL") else 0, done.stdout)
        return said[0]

    def test_doctor(self):
        by_url = f"--dcgm-exporter-url={self.exporter.url}"
        self.exporter.body = OLDER.encode()
        self.assertTrue(self.doctor(by_url).startswith("ok    dcgm-exporter: answers with 3 metrics"))
        self.exporter.body = OLDER.replace("GPU-", "GPU-f").encode()
        self.assertRegex(self.doctor(by_url), "^warn .*about a GPU of this node.*name the exporter of this node")
        self.exporter.body = (OLDER + "x 1 2 3\n").encode()
        self.assertRegex(self.doctor(by_url), "^warn .*1 of its lines.*left out")
        self.exporter.status = 404
        self.assertRegex(self.doctor(by_url), "^FAIL .*answers 404; is this the path of its metrics")
        self.assertRegex(self.doctor(f"--dcgm-exporter-url=http://127.0.0.1:{harness.free_port()}/"),
                         "^FAIL .*is it running")
        path = self.replace(OLDER)
        self.assertTrue(self.doctor(f"--dcgm-exporter-file={path}").startswith("ok  "))
        os.utime(path, (time.time() - 120, time.time() - 120))
        self.assertRegex(self.doctor(f"--dcgm-exporter-file={path}"), "^FAIL .*written 1[2-9]. s ago; is it running")
        self.assertRegex(self.doctor(f"--dcgm-exporter-file={self.folder}/none"), "^FAIL .*is its folder mounted")

    @unittest.skipUnless(prometheus_test.PROMETHEUS, "needs Prometheus")
    def test_prometheus_reads_it(self):
        self.exporter.body = OLDER.encode()
        ledger = self.start(f"--dcgm-exporter-url={self.exporter.url}")
        self.wait_for_source(ledger, 1)
        with prometheus_test.Prometheus(self.folder, {"addon": ledger.port},
                                        {"metrics_path": "/gpu/metrics"}) as prometheus:
            query = 'sum by (uuid) (dcgm_power_usage{uuid=~"GPU-1.*"})'
            found = harness.wait_until(lambda: prometheus.query(query), query)
            self.assertAlmostEqual(float(found[0]["value"][1]), 600.123, 3)
            self.assertEqual(len(prometheus.query('dcgm_gpu_temp{pod_name="alone"}')), 1)


class AccountingTest(harness.Case):
    def run_accounting(self, *arguments, scenario=SCENARIO):
        path = self.write("scenario.yaml", scenario)
        return subprocess.run([harness.BINARY, "accounting", *arguments, "--backend=sim", f"--sim-scenario={path}"],
                              capture_output=True, text=True, timeout=harness.NET,
                              env=harness.clean_environment())

    def test_exit_codes(self):
        done = self.run_accounting("on")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split("\t")[3] for line in done.stdout.splitlines()], ["enabled", "enabled"])
        self.assertEqual(self.run_accounting("status").stdout.count("disabled"), 2)
        refused = self.run_accounting("on", scenario=SCENARIO + (
            "events:\n  - {at: 0, do: error, call: nvmlDeviceSetAccountingMode, code: 4}\n"))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("only root", refused.stderr)
        self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
        for arguments in ((), ("maybe",), ("on", "off")):
            self.assertEqual(self.run_accounting(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
