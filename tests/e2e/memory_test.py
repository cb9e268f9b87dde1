# SPDX-License-Identifier: Apache-2.0
"""Resident memory on nodes with many processes, each in a pod of its own, with the simulated driver in the process.

MEMORY_SECONDS is the time before the first scrape, MEMORY_PROCESSES who is measured, for example 128: the model remembers
6,144 shares of time a GPU, so with 128 processes its memory is full after 48 s. docs/operations.md has the figures of a release.
MEMORY_OF=release measures one: tools/check_release.sh.
"""

import concurrent.futures
import os
import re
import time
import unittest

import attacks_test
import harness

GPUS = 8
SECONDS = int(os.environ.get("MEMORY_SECONDS", "15"))
# {processes on each GPU: most MB}. A release may take 35 MB at 128 processes and 100 MB at 512, the simulated driver 4 MB,
# and exact time 6 MB, of which 4 are the rings of its trace: the kernel's on a real node. The code of a development build is
# larger. Two runs differ by up to a tenth.
MOST = {"release": {16: 28, 128: 45, 512: 110}, "dev": {16: 30, 128: 49, 512: 113}}[os.environ.get("MEMORY_OF", "dev")]
CHOSEN = [int(count) for count in os.environ.get("MEMORY_PROCESSES", "16 128 512").split()]


def resident(ledger):
    with open(f"/proc/{ledger.child.pid}/smaps_rollup", encoding="utf-8") as file:
        return int(re.search(r"^Rss: +(\d+)", file.read(), re.MULTILINE)[1]) * 1024 / 1e6


class MemoryTest(harness.Case):
    def measure(self, processes):
        """MB before and after scrapes of six snapshots."""
        folder = self.folder / str(processes)
        folder.mkdir()
        scenario = attacks_test.many_processes(folder, GPUS, processes)
        with harness.Ledger(scenario=scenario) as ledger:
            began = time.monotonic()  # its cycles are not asked for: the first scrape would cost memory
            harness.wait_until(lambda: time.monotonic() - began > SECONDS, "its books to fill")
            before = resident(ledger)
            seen = set()

            def scrape():
                answer = ledger.get("/metrics")
                self.assertEqual(answer.status, 200)
                self.assertEqual(ledger.get("/metrics", {"Accept-Encoding": "gzip"}).status, 200)
                seen.add(harness.Metrics(answer.text).value("gpu_ledger_snapshot_timestamp_seconds"))
                return len(seen) >= 6

            harness.wait_until(scrape, "six snapshots")
            return before, resident(ledger)

    def test_resident_memory(self):
        if harness.SLOW > 1:
            self.skipTest("a sanitizer has memory of its own")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            measured = dict(zip(CHOSEN, pool.map(self.measure, CHOSEN)))
        for processes, (before, after) in measured.items():
            print(f"memory: {GPUS} x {processes} processes: {before:.1f} MB after {SECONDS} s, {after:.1f} MB after six "
                  "scrapes", flush=True)
        for processes, (before, after) in measured.items():
            self.assertLess(max(before, after), MOST[processes], f"MB with {GPUS} x {processes} processes")


if __name__ == "__main__":
    unittest.main()
