# SPDX-License-Identifier: Apache-2.0
"""The check of sleeps sees what it must see."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CHECK = SOURCE / "tools/check_sleeps.py"


class SleepsTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_this_tree_is_clean(self):
        done = subprocess.run([sys.executable, CHECK, SOURCE], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_what_is_allowed(self):
        self.assertEqual(self.check({
            "tests/e2e/harness.py": "import time\ntime.sleep(1)\n",
            "tests/hw/load.py": "import time\ntime.sleep(1)\n",
            "tests/e2e/a_test.py": "subprocess.Popen(['sleep', '60'])  # time.sleep(1)\nevent.wait()\n",
            "tests/unit/b_test.cc": '// sleep_for(1s)\nconst char* name = "sleep(1)";\nsleeper.sleeps();\n',
            "src/app/c.cc": "std::this_thread::sleep_for(1s);\n",
        }), (0, ""))

    def test_what_is_not(self):
        wrong = {
            "tests/e2e/a_test.py": "import time\ntime.sleep(1)\n",
            "tests/e2e/b_test.py": "from time import sleep\nsleep(1)\n",
            "tests/unit/c_test.cc": "\n  std::this_thread::sleep_for(5ms);\n",
            "tests/unit/d_test.cc": "\n  for (;;) ::usleep(5);\n",
            "tests/unit/e.h": "\n  sleep(1);\n",
            "tests/other/run": "#!/bin/sh\nwhile busy; do sleep 1; done\n",
        }
        for name, text in wrong.items():
            with self.subTest(name=name):
                self.assertEqual(self.check({name: text}), (1, f"{name}:2: sleeps; wait for what must follow instead\n"))

    def test_a_list_that_is_longer_than_it_must_be(self):
        code, said = self.check({"tests/e2e/harness.py": "\n"})
        self.assertEqual((code, said.count("\n")), (1, 1))
        self.assertIn("tests/e2e/harness.py does not sleep", said)


if __name__ == "__main__":
    unittest.main()
