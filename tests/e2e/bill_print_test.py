# SPDX-License-Identifier: Apache-2.0
"""The bill as HTML and FOCUS and its allocation API, from a real Prometheus that scrapes two simulated nodes."""

import csv
import html.parser
import io
import json
import re
import socket
import subprocess
import time
import unittest

import browser
import harness
import prometheus_test
from bill_test import freeze, next_second

KWH = 3.6e6  # joules


class Page(html.parser.HTMLParser):
    """The tags of a page, and the rows of its table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.cell = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = False

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


class BillPrintTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not prometheus_test.PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")

    def bill(self, *arguments, code=0):
        done = subprocess.run([harness.BINARY, "bill", *arguments], capture_output=True, text=True,
                              timeout=harness.NET, env=harness.clean_environment(), check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout[-2000:])
        return done.stdout if code == 0 else done.stderr

    def test_all_three_ways_agree(self):
        with harness.Ledger(*harness.FAST, "--pod-labels=team", "--node-name=one") as one, \
                harness.Ledger(*harness.FAST, "--pod-labels=team", "--node-name=two") as two:
            jobs = [{"job_name": "gpu-ledger", "honor_labels": True,
                     "static_configs": [{"targets": [f"127.0.0.1:{one.port}", f"127.0.0.1:{two.port}"]}]}]
            with prometheus_test.Prometheus(self.folder, jobs=jobs) as prometheus:
                harness.wait_until(lambda: len(prometheus.query("group by (node) (gpu_ledger_device_info)")) == 2,
                                   "two nodes")
                # Before that they ran without being scraped.
                begin = next_second()
                harness.wait_until(lambda: len(prometheus.query("sum by (node) (gpu_ledger_pod_energy_joules_total) > 1000")) == 2,
                                   "joules of both")
                joules = sum(freeze(node, prometheus).total("gpu_ledger_device_energy_joules_total") for node in (one, two))
                joules -= float(prometheus.query("sum(gpu_ledger_device_energy_joules_total)", begin)[0]["value"][1])
                self.check(f"http://127.0.0.1:{prometheus.port}", begin, next_second(), joules)

    def check(self, server, begin, end, metered):
        form = "%Y-%m-%dT%H:%M:%SZ"
        span = [f"--prometheus-url={server}", "--from=" + time.strftime(form, time.gmtime(begin)),
                "--to=" + time.strftime(form, time.gmtime(end)), "--price-per-kwh=0.25", "--pue=1.5",
                "--co2e-grams-per-kwh=300", "--site=Loop & Sons"]
        focus = list(csv.DictReader(io.StringIO(self.bill(*span, "--format=focus"))))
        joules = sum(float(row["ConsumedQuantity"]) for row in focus) * KWH
        self.assertAlmostEqual(joules, metered, delta=0.01)
        self.assertAlmostEqual(sum(float(row["BilledCost"]) for row in focus), joules / KWH * 1.5 * 0.25, 9)
        self.assertEqual({row["x_Complete"] for row in focus}, {"true"})
        self.assertEqual({row["BillingAccountId"] for row in focus}, {"Loop & Sons"})
        older = list(csv.DictReader(io.StringIO(self.bill(*span, "--format=focus-1.2"))))
        self.assertEqual({name for name in set(focus[0]) - set(older[0]) if not name.startswith("Allocated")},
                         {"HostProviderName", "ServiceProviderName"})
        newer = list(csv.DictReader(io.StringIO(self.bill(*span, "--format=focus-1.4"))))
        self.assertEqual(set(focus[0]) - set(newer[0]), {"ProviderName", "PublisherName"})
        for rows in (focus, newer):
            split = [json.loads(row["AllocatedMethodDetails"])["Elements"] for row in rows]
            self.assertAlmostEqual(sum(part["AllocatedRatio"] for parts in split for part in parts), 1, 9)

        target = self.folder / "bill.html"
        self.bill(*span, "--format=html", f"--output={target}")
        page = Page(target.read_text(encoding="utf-8"))
        self.assertEqual(len(page.rows), len(focus) + 2, "a line each, the header and the meter")
        self.assertIn(("h1", {}), page.tags)
        self.assertNotIn("script", {tag for tag, _ in page.tags})
        self.assertIn("The meter", page.rows[-1][0])

        self.check_chart(span)
        self.check_api(server, begin, end, joules, {row["SubAccountId"] for row in focus} - {""})

    def check_chart(self, span):
        """In a real browser, where there is one: no text leaves the chart."""
        if not browser.find():
            return
        target = self.folder / "pods.html"
        self.bill(*span, "--by=pod", "--format=html", f"--output={target}")
        text = target.read_text(encoding="utf-8")
        for name in ("W" * 60, "m" * 60, "\u7814" * 60):  # names that no pod of the simulator has
            label = re.search(r'text-anchor="end">([^<]{16,})</text>', text).group(1)
            text = text.replace(f'text-anchor="end">{label}<', f'text-anchor="end" >{name[:16]}\u2026<', 1)
        target.write_text(text, encoding="utf-8")
        window = browser.Browser(browser.find())
        self.addCleanup(window.close)
        window.open(target.as_uri())
        window.wait("document.querySelectorAll('svg text').length > 5", "the chart")
        boxes = window.run("[...document.querySelectorAll('svg text')].map(text => { const box = text.getBBox();"
                           " return [text.textContent, box.x, box.x + box.width]; })")
        for name, left, right in boxes:
            self.assertGreaterEqual(left, 0, name)
            self.assertLessEqual(right, 820, name)

    def check_api(self, server, begin, end, joules, owners):
        port = harness.free_port()
        command = [harness.BINARY, "bill", "--serve", f"--serve-address=127.0.0.1:{port}", f"--prometheus-url={server}",
                   "--price-per-kwh=0.25", "--pue=1.5", "--co2e-grams-per-kwh=300"]
        with harness.Program(command) as program:
            def ask(query):
                answer = harness.get(port, "/allocation?" + query)
                return answer.status, json.loads(answer.text)

            def is_up():
                self.assertTrue(program.alive(), program.log())
                try:
                    return harness.get(port, "/healthz").status == 200
                except OSError:
                    return False

            harness.wait_until(is_up, "the allocation API")
            window = f"window={begin},{end}"
            # No set ends within the last half minute.
            last = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
            harness.wait_until(lambda: [one["window"]["end"] for sets in ask(f"{window}&aggregate=all")[1]["data"]
                                        for one in sets.values()][:1] == [last], "a set up to the end")
            status, answer = ask(f"{window}&aggregate=namespace&includeIdle=true")
            self.assertEqual(status, 200, answer)
            self.assertNotIn("warning", answer)
            (allocations,) = answer["data"]
            self.assertEqual(set(allocations) - {"__idle__", "__unallocated__"}, owners)
            self.assertAlmostEqual(sum(one["gpuEnergyKwh"] for one in allocations.values()) * KWH, joules, 3)
            for query in ("shareIdle=true&aggregate=cluster", "includeIdle=true&aggregate=all",
                          "includeIdle=true&aggregate=namespace,pod", "includeIdle=true&aggregate=label:team"):
                status, answer = ask(f"{window}&{query}")
                self.assertEqual(status, 200, answer)
                total = sum(one["totalCost"] for one in answer["data"][0].values())
                self.assertAlmostEqual(total, joules / KWH * 1.5 * 0.25, 9, query)
            status, answer = ask(f"{window}&aggregate=label:taem")
            self.assertIn("aggregate=label:taem: nothing in this span has it", answer["warning"])
            status, answer = ask(f"window={begin - 7200},{begin - 3600}&aggregate=namespace")
            self.assertEqual((status, answer["data"]), (200, [{}]))
            self.assertIn("INCOMPLETE", answer["warning"])
            status, answer = ask("window=soon")
            self.assertEqual((status, answer["code"]), (400, 400))
            self.assertEqual(program.stop(), 0, program.log())

    def test_bad_input_is_one_line(self):
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        for code, arguments, words in (
                (2, ["--serve", "--last=1h"], ["--serve", "--last"]),
                (2, ["--serve", "--serve-address=nowhere"], ["serve-address", "nowhere"]),
                (1, ["--serve", "--serve-address=127.0.0.1:0", "--web-config-file=/nonexistent"], ["/nonexistent"]),
                (1, ["--serve", f"--serve-address=127.0.0.1:{taken.getsockname()[1]}"], ["serve-address", "in use"]),
                (2, ["--last=1h", "--format=pdf"], ["format", "pdf", "html", "focus"])):
            said = self.bill("--prometheus-url=http://127.0.0.1:9", *arguments, code=code)
            for word in words:
                self.assertIn(word, said)
            self.assertEqual(len(said.strip().splitlines()), 1, said)

    def test_a_server_that_is_gone_is_a_bad_gateway(self):
        port, gone = harness.free_port(), harness.free_port()
        with harness.Program([harness.BINARY, "bill", "--serve", f"--serve-address=127.0.0.1:{port}",
                              f"--prometheus-url=http://127.0.0.1:{gone}"]) as program:
            def answer():
                self.assertTrue(program.alive(), program.log())
                try:
                    return harness.get(port, "/allocation?window=yesterday")
                except OSError:
                    return None

            got = harness.wait_until(answer, "an answer")
            self.assertEqual((got.status, json.loads(got.text)["code"]), (502, 502), got.text)
            self.assertIn(str(gone), got.text)


if __name__ == "__main__":
    unittest.main()
