# SPDX-License-Identifier: Apache-2.0
"""The FinOps foundation's validator judges a bill as FOCUS: two versions of it, as they come from PyPI. What it finds and
is not explained here is a failure, and so is an explanation that it no longer needs. Run it with tests/release/run."""

import os
import re
import subprocess
import time
import unittest

import harness
import prometheus_test
from bill_test import freeze, next_second, run_bill, stamp
from deploy_parts import fetch, main

NO_DISCOUNTS = "there are no commitment discounts"
MANY_GPUS = "a line is the energy or the hours of many GPUs, and where they are is not known"
OTHER_NAME = "it is there as InvoiceIssuerName, ProviderName, PublisherName: this validator leaves out the Name"
ABSENT_COLUMN = ("its condition names CommitmentDiscountStatus, which is not there as there are no discounts; the query"
                 " then fails, and it passes with that column")
# By name of the rule.
EXPLAINED_1 = {
    **{f"CommitmentDiscount{part}_Required": NO_DISCOUNTS for part in ("Category", "Id", "Name", "Status", "Type")},
    **{f"{name}_Required": MANY_GPUS for name in ("RegionId", "RegionName", "ResourceID", "ResourceName", "ResourceType")},
    **{f"{name}_Required": OTHER_NAME for name in ("InvoiceIssuer", "Provider", "Publisher")},
    "SkuPriceId_Nullable": "its condition names ChargeType, which has been ChargeCategory since FOCUS 1.0-preview",
}
EXPLAINED_2 = {
    "InvoiceId-C-005-C": "one of two ways, of which the other, null, holds: a bill is no invoice",
    **{f"ConsumedQuantity-C-{number}-C": ABSENT_COLUMN for number in ("000", "003", "004", "005", "006")},
}
# What is true of a bill, in its words. Without them it looks at the columns that are mandatory for everybody only.
CRITERIA = ("ACCOUNT_NAMING_SUPPORTED,UNIT_PRICING_SUPPORTED,USAGE_MEASUREMENT_SUPPORTED,SUB_ACCOUNT_SUPPORTED,"
            "TAGGING_SUPPORTED")
# Before any test: what cannot be had is said on a line of its own.
VENVS = {part: fetch(part) for part in ("focus1", "focus2")}
RUN = "from focus_validator.main import main; main()"


class Judge(harness.Case):
    def bills(self, *formats):
        """A bill in these formats, a file each, with every kind of line."""
        begin = int(time.time()) - 1
        words = ("GPU hours of", "GPU energy: nobody", '""estimated""')
        with harness.Ledger(*harness.FAST, "--pod-labels=team") as ledger, \
                prometheus_test.Prometheus(self.folder, {"gpu-ledger": ledger.port}, {"honor_labels": True}) as prometheus:
            def bill(name):
                return run_bill(f"http://127.0.0.1:{prometheus.port}", f"--from={stamp(begin)}", f"--to={stamp(end)}",
                                "--price-per-kwh=0.25", "--price-per-gpu-hour=NVIDIA H100 80GB HBM3=1.5", "--pue=1.5",
                                "--site=Loop & Sons", f"--format={name}")

            end = begin + 3600
            harness.wait_until(lambda: all(word in bill("focus").stdout for word in words), "every kind of line")
            freeze(ledger, prometheus)
            end = next_second()
            for name in formats:
                done = bill(name)
                self.assertEqual(done.returncode, 0, done.stderr)
                yield self.write(f"{name}.csv", done.stdout)

    def validator(self, part):
        if not prometheus_test.PROMETHEUS:
            self.skipTest("no Prometheus (tools/setup.sh --test)")
        venv = VENVS[part]
        if not venv:
            self.skipTest(f"the validator of FOCUS, {part}, cannot be had: no Python for it (docs/bill-formats.md), or PyPI is out of reach")
        # It reads its list of currencies by a path below the working directory, and writes a log there.
        (self.folder / "focus_validator").symlink_to(next(venv.glob("lib/*/site-packages/focus_validator")))
        return venv / "bin/python"

    def judged(self, python, bill, version, *arguments):
        done = subprocess.run([python, "-c", RUN, f"--data-file={bill}", f"--validate-version={version}", *arguments],
                              cwd=self.folder, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, capture_output=True, text=True,
                              timeout=harness.NET, check=False)
        return done.stdout + done.stderr

    def test_by_1_0_0(self):
        python = self.validator("focus1")
        for bill in self.bills("focus", "focus-1.2"):
            said = self.judged(python, bill, "1.0")
            with self.subTest(bill.name):
                self.assertRegex(said, r"(?m)^Validation (failed!|succeeded\.)$")
                self.assertEqual(set(re.findall(r"(?m)^(\S+) failed:$", said)), set(EXPLAINED_1), said)

    def test_by_2_2_1(self):
        python = self.validator("focus2")
        for bill in self.bills("focus", "focus-1.2"):
            said = self.judged(python, bill, "1.2", "--block-download", f"--applicability-criteria={CRITERIA}")
            with self.subTest(bill.name):
                results = re.findall(r"(?m)^\S+ (\S+): (PASS|FAIL)\b", said)
                self.assertIn("Total: 578 |", said)
                self.assertGreater(len(results), 150, said)
                self.assertEqual({rule for rule, result in results if result == "FAIL"}, set(EXPLAINED_2), said)


if __name__ == "__main__":
    main()
