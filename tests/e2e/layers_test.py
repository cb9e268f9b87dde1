# SPDX-License-Identifier: Apache-2.0
"""The check of the walls sees what it must see."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class LayersTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, SOURCE / "tools/check_layers.py", folder], capture_output=True,
                                  text=True, timeout=30)
        return done.returncode, done.stdout

    def test_this_tree_is_clean(self):
        done = subprocess.run([sys.executable, SOURCE / "tools/check_layers.py", SOURCE], capture_output=True,
                              text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_what_is_allowed(self):
        good = '#include <vector>\n#include "model/sample.h"\n#include "base/units.h"\n'
        self.assertEqual(self.check({"src/sample/a.cc": good, "src/app/b.cc": '#include "sample/a.h"\n',
                                     "src/task/c.cc": "thread_.detach();\n",
                                     "src/task/thread.h": "std::jthread thread_;\n",
                                     "src/app/e.cc": "std::this_thread::sleep_for(1s);\n"}), (0, ""))

    def test_what_is_not(self):
        wrong = {
            "src/sample/a.cc": '#include "expose/text_writer.h"\n',
            "src/base/b.h": '#include "model/sample.h"\n',
            "src/http/c.cc": '#include "attribute/books/engine.h"\n',
            "src/app/d.cc": '#include "sim/scenario.h"\n',
            "src/app/CMakeLists.txt": "target_link_libraries(gpu-ledger PRIVATE gl_base nvml_sim)\n",
            "src/app/runtime/g.cc": '#include "app/commands/replay.h"\n',
            "src/app/doctor/h.cc": "std::thread([] {}).detach();\n",
            "src/http/i.h": "std::jthread thread_;\n",
            "src/task/j.cc": "std::async([] {});\n",
            "src/helpers/e.h": "\n",
            "tests/unit/f.cc": "\n" * 501,
        }
        for name, text in wrong.items():
            with self.subTest(name=name):
                code, said = self.check({"src/base/ok.h": "\n", name: text})
                self.assertEqual(code, 1)
                self.assertIn(name, said)
                self.assertEqual(said.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
