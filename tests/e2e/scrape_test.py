# SPDX-License-Identifier: Apache-2.0
"""A scrape changes nothing, and everybody sees the same."""

import concurrent.futures
import gzip
import json
import re
import time
import unittest

import harness

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
STAMP = re.compile(rb"(?m)^gpu_ledger_snapshot_timestamp_seconds (\S+)$")


class ScrapeTest(harness.Case):
    def test_parallel_scrapes_between_two_cycles_give_identical_bytes(self):
        with harness.Ledger("--sample-interval=5s", "--process-scan-interval=5s", "--idle-interval=5s") as ledger:
            for accept, end in (({}, b"\n"), ({"Accept": OPENMETRICS}, b"# EOF\n")):
                with concurrent.futures.ThreadPoolExecutor(20) as pool:
                    bodies = list(pool.map(lambda _, accept=accept: ledger.get("/metrics", accept).body, range(100)))
                of_cycle = {}
                for body in bodies:
                    of_cycle.setdefault(STAMP.search(body)[1], set()).add(body)
                    self.assertTrue(body.endswith(end))
                self.assertLess(len(of_cycle), len(bodies), "no two of the same cycle")
                self.assertEqual({len(texts) for texts in of_cycle.values()}, {1})

    def test_many_scrapers_do_not_change_the_books(self):
        # With scrapes or without, one second of the simulated node is booked alike: had a scrape sampled,
        # there would be more cycles than the interval allows.
        with harness.Ledger(*harness.FAST) as ledger:
            def cycles():
                return ledger.metrics().value("gpu_ledger_sample_duration_seconds_count")

            begin, first = time.monotonic(), cycles()
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: ledger.get("/metrics").status, range(400)))
            last, seconds = cycles(), time.monotonic() - begin
            self.assertLessEqual(last - first, seconds / 0.2 + 2)
            self.assert_balanced(ledger.metrics())

    def test_both_formats_and_gzip_hold_the_same_series(self):
        with harness.Ledger("--sample-interval=5s", "--process-scan-interval=5s", "--idle-interval=5s") as ledger:
            def of_one_cycle():
                found = [ledger.get("/metrics", headers) for headers in (
                    {}, {"Accept-Encoding": "gzip"}, {"Accept": OPENMETRICS}, {})]
                return found if found[0].body == found[-1].body else None

            plain, packed, other, _ = harness.wait_until(of_one_cycle, "a cycle that lasts for four scrapes")
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertTrue(plain.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            self.assertTrue(other.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"))
            names = lambda text: {key[0] for key in harness.Metrics(text).series}
            self.assertEqual(names(plain.text), names(other.text))

    def test_every_endpoint_answers(self):
        with harness.Ledger() as ledger:
            for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/history", "/healthz", "/health", "/readyz", "/-/ready"):
                self.assertEqual(ledger.get(path).status, 200, path)
                head = ledger.get(path, method="HEAD")
                self.assertEqual((head.status, head.body), (200, b""), path)
            self.assertEqual(ledger.get("/nothing").status, 404)
            self.assertEqual(ledger.get("/metrics", method="POST").status, 405)
            self.assertTrue(ledger.get("/metrics", {"Accept": "image/png"}).headers["Content-Type"].startswith("text/plain"))
            snapshot = json.loads(ledger.get("/api/v1/snapshot").text)
            self.assertTrue(snapshot["simulated"])
            self.assertGreaterEqual(len(snapshot["gpus"]), 4)


if __name__ == "__main__":
    unittest.main()
