# SPDX-License-Identifier: Apache-2.0
"""Grafana's own dashboard-linter on the dashboards, as strict as it can be. Skipped where it cannot be built."""

import json
import pathlib
import shutil
import tempfile
import unittest

from deploy_parts import SOURCE, fetch, main, run

GRAFANA = SOURCE / "deploy/grafana"
LINTER = fetch("linter")


def lint(path):
    done = run(LINTER, "lint", "--strict", "--verbose", path)
    return done.returncode, done.stdout + done.stderr


class LintTest(unittest.TestCase):
    def test_every_dashboard_passes(self):
        boards = sorted(GRAFANA.glob("*.json"))
        self.assertGreater(len(boards), 5)
        for path in boards:
            with self.subTest(path.name):
                code, said = lint(path)
                self.assertEqual(code, 0, said)

    def test_it_would_notice(self):
        """The rules that are not switched off for a dashboard are on for it."""
        for change in (lambda panel: panel.update(description=""),
                       lambda panel: panel["targets"][0].update(expr="sum(gpu_ledger_device_up)"),
                       lambda panel: panel["targets"][0].update(expr="sum(gpu_ledger_device_up{")):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(GRAFANA / ".lint", folder)
                board = json.loads((GRAFANA / "node.json").read_text())
                change(next(panel for panel in board["panels"] if panel["type"] == "stat"))
                path = pathlib.Path(folder) / "node.json"
                path.write_text(json.dumps(board))
                code, said = lint(path)
                self.assertNotEqual(code, 0, said)


if __name__ == "__main__":
    main(None if LINTER else "no dashboard-linter, and no Go to build it with, or no way to fetch it")
