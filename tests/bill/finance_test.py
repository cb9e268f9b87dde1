# SPDX-License-Identifier: Apache-2.0
"""docs/finance.md: its bills are what the program makes of a day of the simulated cluster, and so is its picture.

GPU_LEDGER_UPDATE_GOLDEN=1 writes both anew.
"""

import csv
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import harness
import plot_bill
import simulated_day
from prometheus_test import PROMETHEUS, Prometheus

PAGE = harness.SOURCE / "docs" / "finance.md"
PICTURE = harness.SOURCE / "docs" / "img" / "finance.svg"
BLOCK = re.compile(r"^```console\n\$ (gpu-ledger bill [^`]*?[^\\])\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"\d+\.\d{3}\b")  # energy to the watt-hour


class FinanceTest(harness.Case):
    def setUp(self):
        super().setUp()
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")

    def make_day(self):
        simulated_day.make_blocks(os.environ["GPU_LEDGER_SCRAPES"], harness.SIM / "libnvidia-ml.so.1", self.folder)
        (self.folder / "data").rename(self.folder / "tsdb")

    def bill(self, prometheus, command):
        arguments = [part for part in shlex.split(command.replace("\\\n", " "))[1:] if "--prometheus-url" not in part]
        arguments.append(f"--prometheus-url=http://127.0.0.1:{prometheus.port}")
        made = subprocess.run([harness.BINARY, *arguments], capture_output=True, text=True, timeout=harness.NET,
                              env=harness.clean_environment())
        self.assertEqual((made.returncode, made.stderr), (0, ""), command)
        return made.stdout

    def test_its_accuracy_is_that_of_the_recordings(self):
        """attribution.md has the figures that tests/accuracy checks."""
        page, measured = PAGE.read_text(encoding="utf-8"), (PAGE.parent / "attribution.md").read_text(encoding="utf-8")
        part = page[page.index("*How good is that?*"):page.index("[All cases]")]
        figures = re.findall(r"\d+\.\d", part)
        self.assertGreater(len(figures), 8)
        for figure in figures:
            self.assertRegex(measured, rf"(?<![\d.]){re.escape(figure)}(?!\d)")
        (recordings,) = re.findall(r"On (\d+) recordings", part)
        self.assertIn(f"over {recordings} recordings", measured)

    def test_the_page(self):
        page = PAGE.read_text(encoding="utf-8")
        self.make_day()
        commands = [command for command, _ in BLOCK.findall(page)]
        self.assertGreaterEqual(len(commands), 2, "the page has lost its bills")
        with Prometheus(self.folder, options={}, more="") as prometheus:
            bills = {}
            for command in commands:
                # Which server it was and when is no figure of the bill.
                bills[command] = re.sub(r"^from http.*\n", "", self.bill(prometheus, command), flags=re.MULTILINE)
            lines = self.bill(prometheus, commands[0] + " --format=csv")
        picture = plot_bill.draw(list(csv.DictReader(io.StringIO(lines))))
        made = BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{bills[block[1]]}```", page)
        if os.environ.get("GPU_LEDGER_UPDATE_GOLDEN"):
            PAGE.write_text(made, encoding="utf-8")
            PICTURE.write_text(picture, encoding="utf-8")
            return
        self.maxDiff = None
        self.assertEqual(page, made)
        self.assertEqual(PICTURE.read_text(encoding="utf-8"), picture)
        text = BLOCK.sub("", page)
        for figure in FIGURE.findall(text):
            self.assertIn(figure, "".join(bills.values()), "a figure in the text that no bill has")


if __name__ == "__main__":
    unittest.main()
