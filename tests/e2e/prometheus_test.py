# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the program and answers the queries that people have."""

import http.server
import json
import re
import shutil
import subprocess
import threading
import unittest
import urllib.parse

import harness

PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")

BALANCE = """
sum by (gpu) (gpu_ledger_device_energy_joules_total{job="direct"})
- sum by (gpu) ({__name__=~"gpu_ledger_(pod|slurm_job|container|host|unknown_owner)_energy_joules_total|gpu_ledger_closed_energy_joules|gpu_ledger_device_unattributed_joules_total", job="direct"})
"""


def readme_queries():
    """Every query in README's ```promql blocks."""
    return queries_of((harness.SOURCE / "README.md").read_text(encoding="utf-8"))


def queries_of(text):
    """A comment or an empty line ends a query."""
    queries = []
    for block in re.findall(r"^```promql\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^#.*$|^\s*$", block, flags=re.MULTILINE):
            if part.strip():
                queries.append(" ".join(part.split()))
    return queries


class TextRelay(http.server.ThreadingHTTPServer):
    """Stands between Prometheus and the program and takes the Accept header away, which leaves the text format."""

    daemon_threads = True

    def __init__(self, port):
        self.upstream, self.accepts, self.types = port, set(), set()
        super().__init__(("127.0.0.1", 0), RelayHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class RelayHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.accepts.add(self.headers.get("Accept", ""))
        answer = harness.get(self.server.upstream, self.path)
        self.server.types.add(answer.headers["Content-Type"])
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_):
        pass


class Prometheus(harness.Program):
    """Targets are {job: port}; jobs, if given, are whole scrape configurations instead, more is YAML of further ones."""

    def __init__(self, folder, targets=None, options=None, jobs=(), more="", rules=(), flags=()):
        jobs = jobs or [{"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}], **(options or {})}
                        for name, port in (targets or {}).items()]
        lines = ["global: {scrape_interval: 1s, scrape_timeout: 1s}",
                 f"rule_files: {json.dumps([str(path) for path in rules])}",  # JSON is YAML
                 "scrape_configs:", *[f"  - {json.dumps(job)}" for job in jobs], more]
        config = folder / "prometheus.yml"
        config.write_text("\n".join(lines), encoding="utf-8")
        self.port = harness.free_port()
        super().__init__([
            PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=info", *flags])
        harness.wait_until(self.answers, "Prometheus")

    def answers(self):
        try:
            return harness.get(self.port, "/-/ready").status == 200
        except OSError:
            return False

    def query(self, text, at=None):
        fields = {"query": text, **({"time": at} if at else {})}
        answer = json.loads(harness.get(self.port, "/api/v1/query?" + urllib.parse.urlencode(fields)).text)
        if answer["status"] != "success":
            raise AssertionError(f"{text}: {answer.get('error')}")
        return answer["data"]["result"]

    def wait_for_answers(self, queries):
        """Until each of them has had data."""
        left = list(queries)

        def are_answered():
            left[:] = [query for query in left if not self.query(query)]
            return not left

        try:
            harness.wait_until(are_answered, "answers")
        except AssertionError as error:
            raise AssertionError(f"{error}; no data for:\n" + "\n".join(left)) from None

    def wait_for_sample(self, selector, when):
        """Until the newest sample of each of these series is as new as that."""
        query = f"min(timestamp({selector})) >= {when}"
        harness.wait_until(lambda: self.query(query), query)

    def targets(self):
        return json.loads(harness.get(self.port, "/api/v1/targets").text)["data"]["activeTargets"]


class PrometheusTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not PROMETHEUS or not PROMTOOL:
            raise AssertionError("prometheus and promtool are missing; tools/setup.sh --test installs them")

    def test_prometheus_scrapes_both_formats_and_answers(self):
        with harness.Ledger("--idle-interval=1s", "--pod-labels=team") as ledger:
            relay = TextRelay(ledger.port)
            self.addCleanup(relay.server_close)
            self.addCleanup(relay.shutdown)
            with Prometheus(self.folder, {"direct": ledger.port, "text": relay.server_address[1]}) as prometheus:
                queries = readme_queries()
                self.assertGreaterEqual(len(queries), 5, "README has lost its examples")
                # Some need a process that has been idle for a while, others a short job that came; minutes of idleness are
                # more than a test can wait for.
                prometheus.wait_for_answers(re.sub(r"(idle_seconds[^>]*> )\d+", r"\g<1>1", query) for query in queries)
                harness.wait_to_pass(lambda: self.check_targets(prometheus))
                self.check_formats(ledger, relay)
                harness.wait_to_pass(lambda: self.check_balance(prometheus))
                problems = [line for line in prometheus.log().splitlines() if re.search(r"level=(warn|error)", line)]
                self.assertEqual(problems, [])

    def check_targets(self, prometheus):
        for target in prometheus.targets():
            self.assertEqual(target["health"], "up", target["lastError"])
        self.assertEqual(len(prometheus.query("up == 1")), 2)

    def check_formats(self, ledger, relay):
        self.assertEqual({kind.split(";")[0] for kind in relay.types}, {"text/plain"})
        (accept,) = relay.accepts  # what Prometheus asks for when it asks directly
        direct = ledger.get("/metrics", {"Accept": accept})
        self.assertTrue(direct.headers["Content-Type"].startswith("application/openmetrics-text"), accept)

    def check_balance(self, prometheus):
        newest = prometheus.query('timestamp(gpu_ledger_snapshot_timestamp_seconds{job="direct"})')
        self.assertEqual(len(newest), 1)
        at = newest[0]["value"][1]
        gpus = prometheus.query(BALANCE, at)
        self.assertTrue(gpus)
        self.assertEqual(len(gpus), len(prometheus.query('gpu_ledger_device_info{job="direct"}', at)))
        for result in gpus:
            self.assertLess(abs(float(result["value"][1])), 0.001, result["metric"])

    def test_prometheus_scrapes_over_tls_with_a_password(self):
        web = harness.tls_and_a_password(self.folder)
        options = {"scheme": "https", "tls_config": {"ca_file": str(self.folder / "tls.crt")}}
        user = {"basic_auth": {"username": "prometheus", "password": harness.PASSWORD}}
        with harness.Ledger(f"--web-config-file={web}", ready=False) as ledger:
            for name, extra in (("with", user), ("without", {})):
                folder = self.folder / name
                folder.mkdir()
                with Prometheus(folder, {"tls": ledger.port}, {**options, **extra}) as prometheus:
                    harness.wait_until(lambda: prometheus.query("up"), "a scrape")
                    health = lambda: {(target["health"], target["lastError"]) for target in prometheus.targets()}
                    wanted = {("up", "")} if extra else {("down", "server returned HTTP status 401 Unauthorized")}
                    harness.wait_to_pass(lambda wanted=wanted: self.assertEqual(health(), wanted))

    def test_promtool_has_no_complaint(self):
        with harness.Ledger(*harness.FAST) as ledger:
            ledger.pass_cycles(5)
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=ledger.get("/metrics").body,
                                  capture_output=True, timeout=harness.NET)
        said = (done.stdout + done.stderr).decode()
        # These names are promises to users of the older exporters.
        fixed = ("gpu_process_count ", "gpu_total_processes ")
        complaints = [line for line in said.splitlines() if line and not line.startswith(fixed)]
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
