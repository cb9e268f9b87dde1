# SPDX-License-Identifier: Apache-2.0
"""The check of the tables sees what it must see."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CHECK = SOURCE / "tools/check_tables.py"


class TablesTest(unittest.TestCase):
    def check(self, root):
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def check_changed(self, name, old, new):
        """What it says of this tree with one change in one file."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for part in ("src", "sim", "tests/data", "tests/e2e", "tests/unit", "tools", "docs"):
                (root / part).parent.mkdir(exist_ok=True)
                if part == "src":
                    shutil.copytree(SOURCE / part, root / part)
                else:
                    (root / part).symlink_to(SOURCE / part)
            page = (SOURCE / "ARCHITECTURE.md").read_text(encoding="utf-8")
            (root / "ARCHITECTURE.md").write_text(page, encoding="utf-8")
            path = root / name
            text = path.read_text(encoding="utf-8")
            self.assertIn(old, text)
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
            code, said = self.check(root)
        self.assertEqual(code, 1, said)
        return said

    def test_this_tree_is_clean(self):
        self.assertEqual(self.check(SOURCE), (0, ""))

    def test_a_setting_named_outside_its_table(self):
        said = self.check_changed("src/app/runtime/wiring.cc", "namespace {", 'const char* kName = "max-series";\nnamespace {')
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn('names the setting "max-series"', said)

    def test_a_flag_that_is_no_setting(self):
        said = self.check_changed("src/app/config/config_settings.cc", '{"sim-scenario", G', '{"scenario", G')
        self.assertIn("there is no setting --sim-scenario", said)

    def test_a_command_named_elsewhere(self):
        said = self.check_changed("src/app/main.cc", "namespace {", "int top_command();\nnamespace {")
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("src/app/main.cc: names top_command", said)

    def test_a_command_without_a_row(self):
        said = self.check_changed("src/app/commands/command_table.cc", '    {"top", "', '    {"table", "')
        self.assertIn("'table', 'top'", said)

    def test_a_path_that_the_metrics_could_take_from_a_page(self):
        said = self.check_changed("src/http/routes.cc", 'path == "/-/ready"', 'path == "/-/alive"')
        self.assertIn("--metrics-path may be /-/alive", said)

    def test_a_metric_named_outside_its_row(self):
        said = self.check_changed("src/expose/view.cc", "namespace {", 'const char* kName = "gpu_ledger_device_up";\nnamespace {')
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("names the metric gpu_ledger_device_up", said)

    def test_a_kind_of_owner_known_outside_its_row(self):
        said = self.check_changed("src/expose/view.cc", "namespace {", "auto kKind = OwnerKind::kSlurmJob;\nnamespace {")
        self.assertIn("src/expose/view.cc: knows OwnerKind::kSlurmJob", said)
        said = self.check_changed("src/app/top/table.cc", "namespace {", 'const char* kName = "slurm_job";\nnamespace {')
        self.assertIn("src/app/top/table.cc: knows the kind of owner slurm_job", said)
        said = self.check_changed("src/expose/view.cc", "namespace {", 'auto kHelp = "pod or slurm_job.";\nnamespace {')
        self.assertIn("src/expose/view.cc: knows the kind of owner slurm_job", said)
        said = self.check_changed("src/http/page/format.js", "@OWNER_KINDS@", "slurm_job: 'Slurm'")
        self.assertIn("src/http/page/format.js: knows the kind of owner slurm_job", said)
        said = self.check_changed("src/identity/naming.cc", "namespace {", "auto kKind = OwnerKind::kSlurmJob;\nnamespace {")
        self.assertIn("src/identity/naming.cc: knows OwnerKind::kSlurmJob", said)

    def test_a_file_without_its_licence(self):
        said = self.check_changed("src/http/page/view.js", "// SPDX-License-Identifier: Apache-2.0\n", "")
        self.assertEqual(said, "src/http/page/view.js: has no SPDX line\n")

    def test_lines_that_stand_twice(self):
        run = "".join(f"void once_{i}();  // {i}\n" for i in range(6))
        said = self.check_changed("src/expose/view.cc", "namespace {", run + run.replace("//", "// again") + "namespace {")
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("six lines that stand at src/expose/view.cc:", said)

    def test_a_file_that_the_page_names_and_nobody_has(self):
        said = self.check_changed("ARCHITECTURE.md", "`src/http/routes.cc`", "`src/http/paths.cc`")
        self.assertIn("ARCHITECTURE.md: there is no src/http/paths.cc", said)


if __name__ == "__main__":
    unittest.main()
