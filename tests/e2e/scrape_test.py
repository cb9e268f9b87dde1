# SPDX-License-Identifier: Apache-2.0
"""A scrape changes nothing, and everybody sees the same."""

import concurrent.futures
import gzip
import json
import time
import unittest

import harness

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class ScrapeTest(harness.Case):
    def test_parallel_scrapes_between_two_cycles_give_identical_bytes(self):
        with harness.Ledger("--sample-interval=5s", "--process-scan-interval=5s", "--idle-interval=5s") as ledger:
            stamp = ledger.metrics().value("gpu_ledger_snapshot_timestamp_seconds")

            def fresh():
                return ledger.metrics().value("gpu_ledger_snapshot_timestamp_seconds") != stamp

            harness.wait_until(fresh, 10, "the next cycle")
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                texts = set(pool.map(lambda _: ledger.get("/metrics").body, range(100)))
                others = set(pool.map(lambda _: ledger.get("/metrics", {"Accept": OPENMETRICS}).body, range(100)))
            self.assertEqual(len(texts), 1)
            self.assertEqual(len(others), 1)
            self.assertTrue(others.pop().endswith(b"# EOF\n"))

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
            plain = ledger.get("/metrics")
            packed = ledger.get("/metrics", {"Accept-Encoding": "gzip"})
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertTrue(plain.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            other = ledger.get("/metrics", {"Accept": OPENMETRICS})
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
