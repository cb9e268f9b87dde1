# SPDX-License-Identifier: Apache-2.0
"""What ./test and .ci/run say of tests that did not run."""

import subprocess
import sys
import unittest

import harness

TOOL = harness.SOURCE / "tools" / "left_out.py"
JUNIT = """<?xml version="1.0"?>
<testsuite>
  <testcase name="unit_a" status="run"><system-out>tests/a_test.cc:12: Skipped
no right to do it

[  PASSED  ] 3 tests.
[  SKIPPED ] 1 test.
</system-out></testcase>
  <testcase name="e2e_b" status="run"><system-out>test_x (__main__.B.test_x) ... skipped 'no docker here'
test_y (__main__.B.test_y) ... skipped "nobody's part"
test_z (__main__.B.test_z) ... ok
OK (skipped=2)
</system-out></testcase>
  <testcase name="e2e_c" status="run"><system-out>OK (skipped=4)
</system-out></testcase>
  <testcase name="page" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>no browser
</system-out></testcase>
  <testcase name="mute" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
  <testcase name="whole" status="run"><system-out>OK
</system-out></testcase>
</testsuite>
"""


class LeftOutTest(harness.Case):
    def said(self, *arguments):
        done = subprocess.run([sys.executable, "-B", TOOL, *map(str, arguments)], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def test_of_ctest(self):
        self.write("junit.xml", JUNIT)
        self.assertEqual(self.said(self.folder), [
            "unit_a: no right to do it", "e2e_b: no docker here", "e2e_b: nobody's part",
            "e2e_c: 4 tests, which do not say why", "page: no browser", "mute: SKIP_RETURN_CODE=77"])

    def test_of_a_suite(self):
        log = self.write("log", "cluster: skipped: needs root\nsomething skipped: in a sentence\n")
        self.assertEqual(self.said("--log", "cluster", log), ["cluster: needs root"])
        self.assertEqual(self.said("--log", "cluster", self.write("log", "Ran 3 tests\nOK\ncluster: all passed\n")), [])

    def test_counts(self):
        self.assertEqual(self.said("--counts", self.write("junit.xml", JUNIT)), ["4 0 6"])
        more = """<testcase name="e2e_d" status="fail"><failure message="Failed"/><system-out/></testcase>
  <testcase name="e2e_e" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
        failed = self.write("junit.xml", JUNIT.replace("</testsuite>", more))
        self.assertEqual(self.said("--counts", failed), ["6 2 7 e2e_d e2e_e"])


if __name__ == "__main__":
    unittest.main()
