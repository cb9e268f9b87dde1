# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger bill` over a real Prometheus: its lines are what the exporters themselves have counted."""

import concurrent.futures
import contextlib
import csv
import http.server
import io
import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
import unittest

import harness
from prometheus_test import PROMETHEUS, PROMTOOL, Prometheus

OWNERS = ("pod", "slurm_job", "container", "host", "unknown_owner")


def run_bill(url, *arguments, environment=None):
    return subprocess.run([harness.BINARY, "bill", f"--prometheus-url={url}", *arguments], capture_output=True,
                          text=True, timeout=harness.NET, env=harness.clean_environment(environment))


def lines_of(done):
    """{(kind, name): row} of a CSV."""
    return {(row["kind"], row["name"]): row for row in csv.DictReader(io.StringIO(done.stdout))}


def millijoules(text):
    return round(float(text) * 1000)


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def both(alone):
    return alone + alone // 3


def freeze(ledger, prometheus):
    """Its metrics as they stay, once Prometheus has them: it releases the GPUs."""
    ledger.send(signal.SIGUSR1)
    names = ("gpu_ledger_device_energy_joules_total", "gpu_ledger_pod_energy_joules_total")
    def still():
        metrics = ledger.metrics()
        if any(up for _, up in metrics.find("gpu_ledger_device_up")):
            return None
        stored = prometheus.query(f'sum by (__name__) ({{__name__=~"{"|".join(names)}", '
                                  f'instance="127.0.0.1:{ledger.port}"}})')
        totals = {row["metric"]["__name__"]: float(row["value"][1]) for row in stored}
        return metrics if all(abs(totals.get(name, 0) - metrics.total(name)) < 1e-5 for name in names) else None
    return harness.wait_until(still, "the last counters in Prometheus")


def next_second():
    """The next whole one, once it is over: nothing before it changes any more."""
    end = int(time.time()) + 1
    harness.wait_until(lambda: time.time() > end, "the next second")
    return end


class Live(harness.Case):
    """Two simulated nodes, one of which restarts without its state."""

    def add_up(self, metrics, sums):
        def add(name, value):
            sums[name] = sums.get(name, 0) + value
        for labels, value in metrics.find("gpu_ledger_pod_energy_joules_total"):
            add(("owner", labels["namespace"]), value)
        for labels, value in metrics.find("gpu_ledger_device_unattributed_joules_total"):
            add(("nobody", labels["reason"]), value)
        add(("meter", ""), metrics.total("gpu_ledger_device_energy_joules_total"))
        self.assertEqual(metrics.total("gpu_ledger_closed_energy_joules"), 0)

    def test_it_is_what_the_exporters_counted(self):
        begin = int(time.time()) - 1
        port, sums = harness.free_port(), {}
        with harness.Ledger("--node-name=n1", "--pod-labels=team") as one:
            jobs = [{"job_name": "gpu-ledger", "honor_labels": True,
                     "static_configs": [{"targets": [f"127.0.0.1:{one.port}", f"127.0.0.1:{port}"]}]}]
            with Prometheus(self.folder, jobs=jobs) as prometheus:
                with harness.Ledger("--node-name=n2", "--pod-labels=team", port=port) as two:
                    # More than the next run, so that its counters fall; bill_holes_test.py has those that do not.
                    joules = lambda: two.metrics().total("gpu_ledger_device_energy_joules_total")
                    harness.wait_until(lambda: joules() > 5000, "the joules of some seconds")
                    self.add_up(freeze(two, prometheus), sums)
                with harness.Ledger("--node-name=n2", "--pod-labels=team", port=port) as two:
                    harness.wait_until(lambda: two.metrics().total("gpu_ledger_pod_energy_joules_total") > 0, "joules")
                    self.add_up(freeze(two, prometheus), sums)
                    self.add_up(freeze(one, prometheus), sums)
                    end = next_second()
                    url = f"http://127.0.0.1:{prometheus.port}"
                    span = (f"--from={stamp(begin)}", f"--to={stamp(end)}", "--step=3s")
                    self.check(url, span, sums)

    def check(self, url, span, sums):
        # Both machines ran before their books were opened, a little after the span began.
        span += ("--allow-gaps",)
        done = run_bill(url, *span, "--format=csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = lines_of(done)
        for name, joules in sums.items():
            if name not in rows and joules < 0.001:
                continue
            self.assertLess(abs(millijoules(rows[name]["charged_joules"]) - round(joules * 1000)), 2, name)
        meter = rows.pop(("meter", ""))
        self.assertEqual(sum(millijoules(row["charged_joules"]) for row in rows.values()),
                         millijoules(meter["charged_joules"]), "not to the millijoule")
        self.assertGreater(millijoules(meter["charged_joules"]), 1000)
        self.assertGreater(float(rows["owner", "ml-team"]["allocated_gpu_hours"]), 0)

        done = run_bill(url, *span, "--price-per-kwh=0.25", "--pue=1.2", "--co2e-grams-per-kwh=300", "--spread=use")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "n2.*: restarted without --state-file")
        for missing in re.findall("(?m)^Missing: .*", done.stdout):
            self.assertRegex(missing, "n[12], .*: its books were opened only then|n2, .*: restarted without --state-file")
        column = [line.split() for line in done.stdout.splitlines() if re.match(r"[a-z].* \d+\.\d+ ", line)]
        self.assertGreater(len(column), 5, done.stdout)

        left = self.write(".bill.csv.abc123", "half of a bill that was killed")
        by_team = run_bill(url, *span, "--by=label:team", f"--output={self.folder}/bill.csv", "--format=csv")
        self.assertEqual((by_team.returncode, by_team.stdout), (0, ""), by_team.stderr)
        self.assertIn(',owner,ml,', (self.folder / "bill.csv").read_text())
        self.assertFalse(left.exists(), "left behind")
        for arguments, said in (
                (("--by=label:tem",), "--by=label:tem: nothing in this span has it"),
                (("--price-per-gpu-hour=H999=1",), 'no node has a GPU of the model "H999" (there is '),
                (("--match=node=\"n9\"",), "has no gpu_ledger_device_energy_joules_total between"),
                (("--match=namespace=\"ml\"",), "; --match must fit the meters too"),
                (("--match=nonsense!\"\"",), "answers 400: "),
                (("--co2e-series=vector(1) or label_replace(vector(2), \"a\", \"b\", \"\", \"\")",), "--co2e-series: it has several series"),
                (("--co2e-series=absent(up)",), "--co2e-series: it has no value at"),
                ((f"--output={self.folder}/no/bill",), "--output: "),
        ):
            with self.subTest(arguments=arguments):
                done = run_bill(url, *span, *arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Month(harness.Case):
    """A month that was written into Prometheus' storage, with all that can happen in one."""

    BEGIN = 1759276800  # 2025-10-01
    DAYS = 31
    EVERY = 240

    def scrape(self, lines, node, at, boot, start, pods, closed, idle):
        """Pods are {name: millijoules alone}; a third as much is shared, with a standard error of a twentieth."""
        labels = f'node="{node}",instance="{node}:9400"'
        total = idle + both(closed) + sum(both(alone) for alone in pods.values())
        rows = [(f'gpu_ledger_device_energy_joules_total{{{labels},gpu="0",uuid="GPU-{node}"}}', total),
                (f'gpu_ledger_device_info{{{labels},gpu="0",uuid="GPU-{node}",model="NVIDIA H200"}}', 1000),
                (f'gpu_ledger_device_unattributed_joules_total{{{labels},gpu="0",uuid="GPU-{node}",reason="idle"}}', idle),
                (f'gpu_ledger_books_opened_timestamp_seconds{{{labels},gpu="0",uuid="GPU-{node}"}}', start * 1000),
                (f'gpu_ledger_books_run{{{labels},gpu="0",uuid="GPU-{node}"}}', 1000),
                (f'gpu_ledger_node_boot_timestamp_seconds{{{labels}}}', boot * 1000)]
        for pod, alone in pods.items():
            own = f'{labels},gpu="0",namespace="{pod.split("-")[0]}",pod="{pod}",pod_uid="{pod}"'
            rows += [(f'gpu_ledger_pod_energy_joules_total{{{own},energy_estimated="false"}}', alone),
                     (f'gpu_ledger_pod_energy_joules_total{{{own},energy_estimated="true"}}', alone // 3),
                     (f'gpu_ledger_pod_energy_standard_error_joules{{{own}}}', alone // 60),
                     (f'gpu_ledger_pod_gpu_seconds_total{{{own}}}', alone // 400)]
        if closed:
            own = f'{labels},gpu="0",kind="pod",namespace="ml"'
            rows += [(f'gpu_ledger_closed_energy_joules{{{own},energy_estimated="false"}}', closed),
                     (f'gpu_ledger_closed_energy_joules{{{own},energy_estimated="true"}}', closed // 3),
                     (f'gpu_ledger_closed_gpu_seconds{{{own}}}', closed // 400)]
        for series, thousandths in rows:
            name = series.split("{")[0]
            lines.setdefault(name, []).append(f"{series} {thousandths // 1000}.{thousandths % 1000:03} {at}")

    def write_month(self):
        """Millijoules by namespace, and the OpenMetrics text."""
        lines, spent = {}, {"ml": 0, "web": 0, "idle": 0}
        end, day = self.BEGIN + self.DAYS * 86400, 86400
        pods, closed, idle, start = {"ml-a": 9_000_000_001, "web-b": 77}, 0, 5_000, self.BEGIN - 999

        def work(pod, amount):
            spent[pod.split("-")[0]] += both(pods[pod] + amount) - both(pods[pod])
            pods[pod] += amount

        for at in range(self.BEGIN - self.EVERY, end + 1, self.EVERY):
            since = at - self.BEGIN
            if since == 20 * day:  # a restart that forgets everything; what was used since the last scrape is lost
                pods, closed, idle, start = {"web-b": 0}, 0, 0, at - 10
                work("web-b", 1_234)
            elif since > 0:
                work("web-b", 84_001 * self.EVERY)  # 84 W
                idle += 50_500 * self.EVERY
                spent["idle"] += 50_500 * self.EVERY
                if since < 5 * day:
                    work("ml-a", 300_007 * self.EVERY)
            if since == 6 * day:  # the account is closed
                closed += pods.pop("ml-a")
            if 10 * day <= since < 10 * day + 1200:
                continue  # nobody scrapes for twenty minutes
            self.scrape(lines, "n1", at, self.BEGIN - 2000, start, pods, closed, idle)
            if since >= 12 * day:  # a new node
                new = 200_003 * (since - 12 * day) + 5_000
                begun = self.BEGIN + 12 * day - 60
                self.scrape(lines, "n2", at, begun - 300, begun, {"web-c": new}, 0, 0)
        spent["web"] += both(new)
        text = []
        for name, samples in lines.items():
            family = name.removesuffix("_total")
            text += [f"# TYPE {family} {'counter' if name.endswith('_total') else 'gauge'}"]
            text += sorted(samples, key=lambda line: line.split(" ")[0])
        return spent, "\n".join(text) + "\n# EOF\n"

    def test_a_month_with_a_restart_a_gap_and_a_new_node(self):
        spent, text = self.write_month()
        source = self.write("month.txt", text)
        (self.folder / "tsdb").mkdir()
        subprocess.run([PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=744h", source,
                        self.folder / "tsdb"], check=True, capture_output=True, timeout=harness.NET)
        with Prometheus(self.folder, {}, flags=["--storage.tsdb.retention.time=20y"]) as prometheus:
            url = f"http://127.0.0.1:{prometheus.port}"
            done = run_bill(url, "--month=2025-10", "--step=6h", "--format=csv")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Note: n1: restarted without --state-file at 2025-10-20 23:59:50Z", done.stderr)
            rows = lines_of(done)
            for name, key in (("ml", ("owner", "ml")), ("web", ("owner", "web")), ("idle", ("nobody", "idle"))):
                self.assertEqual(millijoules(rows[key]["charged_joules"]), spent[name], name)
            self.assertEqual(millijoules(rows["meter", ""]["charged_joules"]), sum(spent.values()))
            # Another step, the same bill.
            again = run_bill(url, "--month=2025-10", "--step=24h", "--format=csv")
            self.assertEqual(lines_of(again)["meter", ""]["charged_joules"], rows["meter", ""]["charged_joules"])
            table = run_bill(url, "--month=2025-10", "--step=12h", "--price-per-kwh=0.25", "--pue=1.2",
                             "--price-per-gpu-hour=NVIDIA H200=1.50", "--co2e-grams-per-kwh=300").stdout
            self.assertIn("n1: restarted without --state-file at 2025-10-20 23:59:50Z", table)
            page = (harness.SOURCE / "docs" / "bill.md").read_text(encoding="utf-8")
            shown = re.sub(r"(?m)^from .*$", "from http://prometheus:9090, made 2025-11-01 00:05:00Z by gpu-ledger", table)
            self.assertIn(shown, page, "the example in docs/bill.md is not what the program prints")
            # A month before which and after which there is nothing: those hours are named.
            short = run_bill(url, "--from=2025-10-30", "--to=2025-11-02", "--step=6h")
            self.assertEqual(short.returncode, 1)
            self.assertIn("n1 lacks 2025-11-01 00:0", short.stderr)
            self.assertTrue(short.stdout.startswith("GPU bill (INCOMPLETE), "))
            allowed = run_bill(url, "--from=2025-10-30", "--to=2025-11-02", "--step=6h", "--allow-gaps")
            self.assertEqual(allowed.returncode, 0, allowed.stderr)
            self.assertIn("INCOMPLETE", allowed.stdout)


class BadServer(http.server.ThreadingHTTPServer):
    """Answers every question with the same bytes; without a status it says nothing for as long as somebody waits."""

    daemon_threads = True

    def __init__(self, status, body):
        self.status, self.body = status, json.dumps(body).encode()
        super().__init__(("127.0.0.1", 0), BadHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class BadHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.server.status is None:
            self.rfile.read()
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


class Bad(harness.Case):
    def test_a_bad_server_never_gives_a_bill(self):
        def vector(*series, **more):
            result = [{"metric": labels, "value": [1, value]} for labels, value in series]
            return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}

        meter = {"__name__": "gpu_ledger_device_energy_joules_total", "gpu": "0", "uuid": "GPU-1", "instance": "n"}
        cases = [
            (200, vector(), "has no gpu_ledger_device_energy_joules_total"),
            (200, vector((meter, "1"), isPartial=True), "the answer is partial"),
            (200, vector((meter, "1"), warnings=["a store is down"]), "a store is down"),
            (200, vector((meter, "-1")), "which no counter can be"),
            (200, vector((meter, "NaN")), "which no counter can be"),
            (200, vector((meter, 1)), "without a value"),
            (200, vector((meter, "1")), "differ from its meter by 1.000 J"),
            (200, vector((meter, "1"), ({**meter, "replica": "b"}, "1")), "the node n is there twice"),
            (200, vector((meter, "1"), ({**meter, "job": "b"}, "1")), "is there twice; let the server"),
            (200, vector(({"__name__": "up"}, "1")), "was not asked for"),
            (200, {"status": "success", "data": {"resultType": "string", "result": [1, "x"]}}, "no number"),
            (200, {"status": "error", "error": "query processing would load too many samples"}, "too many samples"),
            (422, {"status": "error", "error": "many-to-many"}, "answers 422: many-to-many"),
            (503, {}, "answers 503"),
            (None, {}, "no answer in time; is a Prometheus server there?"),
        ]

        def ask(case):
            status, body, _ = case
            server = BadServer(status, body)
            try:
                return run_bill(f"http://127.0.0.1:{server.server_address[1]}", "--last=2h",
                                f"--query-timeout={'1m' if status else '100ms'}")
            finally:
                server.shutdown()
                server.server_close()

        # Side by side: some are asked again and again.
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            for (_, _, said), done in zip(cases, pool.map(ask, cases)):
                with self.subTest(said=said):
                    self.check(done, said)

    def test_progress_is_for_who_watches(self):
        nothing = {"status": "success", "data": {"resultType": "vector", "result": []}}
        server = BadServer(200, nothing)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            master, slave = pty.openpty()
        except OSError as error:  # a root without /dev/pts
            self.skipTest(f"no terminal to be had: {error}")
        self.addCleanup(os.close, master)
        done = subprocess.run([harness.BINARY, "bill", f"--prometheus-url={url}", "--last=2h"], stdout=subprocess.PIPE,
                              stderr=slave, timeout=harness.NET, env=harness.clean_environment())
        os.close(slave)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        seen = ""
        with contextlib.suppress(OSError):  # the end, once nobody has the other side open
            while part := os.read(master, 1 << 16):
                seen += part.decode()
        self.assertTrue(seen.startswith("\r1 of 3\r2 of 3\r3 of 3\r\x1b[K"), repr(seen))
        self.assertIn("has no gpu_ledger_device_energy_joules_total", seen)
        self.assertNotIn("of 3", run_bill(url, "--last=2h").stderr, "nobody watches")

    def check(self, done, said, code=1):
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(said, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_bad_settings(self):
        url = "http://127.0.0.1:1"
        self.check(run_bill("nonsense", "--last=1h"), "--prometheus-url: \"nonsense\" is not a Prometheus", 2)
        for arguments, said in (
                (("--month=2026-13",), "--month: \"2026-13\" is not a month (write 2026-10)"),
                (("--from=soon",), "--from: \"soon\" is not a time"),
                (("--by=team", "--last=1h"), "--by: \"team\" is not one of namespace"),
                (("--spread=all", "--last=1h"), "--spread: \"all\" is not one of keep, use or allocation"),
                (("--price-per-gpu-hour=2", "--last=1h"), "--price-per-gpu-hour: \"2\" is not MODEL=PRICE"),
                (("--match=cluster=east", "--last=1h"), "--match: "),
                (("--pue=0.5", "--last=1h"), "--pue: \"0.5\" is not a PUE"),
                (("--format=pdf", "--last=1h"), "--format: \"pdf\" is not one of"),
                ((), "write one of --month"),
                (("--last=1h", "--month=2026-10"), "write one of --month"),
                (("--to=2026-10-01", "--last=1h"), "--to: needs --from"),
                (("--last=60d", "--step=1s"), "--step: "),
                (("--last=1h", "--co2e-series=x", "--co2e-grams-per-kwh=1"), "--co2e-series: not together"),
                (("--serve", "--by=pod"), "--serve: not together"),
        ):
            with self.subTest(arguments=arguments):
                self.check(run_bill(url, *arguments), said, 2)
        done = subprocess.run([harness.BINARY, "bill", "--last=1h"], capture_output=True, text=True,
                              env=harness.clean_environment(), timeout=harness.NET)
        self.check(done, "--prometheus-url=http://HOST:9090", 2)


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL:
        raise SystemExit("prometheus and promtool are missing; tools/setup.sh --test installs them")
    unittest.main()
