#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of tests left out, one line each, with the reason that the test gave.

tools/left_out.py BUILD           of the last run of ctest there with --output-junit junit.xml
tools/left_out.py --log NAME FILE of the output of a suite that ctest does not run
tools/left_out.py --counts FILE   of a junit.xml in one line: how many ran, failed and were left out, and which failed
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

# GoogleTest: "FILE:LINE: Skipped", then the reason. unittest -v: "... skipped 'REASON'".
REASONS = (re.compile(r"^\S+:\d+: Skipped\n(.+)$", re.MULTILINE), re.compile(r"\.\.\. skipped ['\"](.+)['\"]$", re.MULTILINE))
# Our own suites that are no unittest: "NAME: skipped: REASON".
PLAIN = re.compile(r"^(?:\w+: )?skipped: (.+)$", re.MULTILINE)
UNTOLD = re.compile(r"^OK \(.*skipped=(\d+)", re.MULTILINE)


def reasons(said):
    found = [match for pattern in (*REASONS, PLAIN) for match in pattern.findall(said)]
    untold = sum(int(number) for number in UNTOLD.findall(said))
    if untold and not found:
        found = [f"{untold} tests, which do not say why"]
    return list(dict.fromkeys(found))


def of_ctest(file):
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        said = case.findtext("system-out") or ""
        found = reasons(said)
        if not found and case.find("skipped") is not None:
            found = [(said.strip().splitlines() or [case.find("skipped").get("message", "does not say why")])[-1]]
        yield from (f"{case.get('name')}: {why}" for why in found)


def counts(file):
    """A test that ctest could not start has failed; one that said itself that it skips has not."""
    ran, failed = 0, []
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
            continue
        ran += 1
        if case.get("status") != "run":
            failed.append(case.get("name"))
    return f"{ran} {len(failed)} {len(list(of_ctest(file)))} {' '.join(failed)}".strip()


def main(arguments):
    if arguments[:1] == ["--log"] and len(arguments) == 3:
        lines = [f"{arguments[1]}: {why}" for why in reasons(pathlib.Path(arguments[2]).read_text(errors="replace"))]
    elif arguments[:1] == ["--counts"] and len(arguments) == 2:
        lines = [counts(arguments[1])]
    elif len(arguments) == 1:
        lines = list(of_ctest(pathlib.Path(arguments[0]) / "junit.xml"))
    else:
        sys.exit(__doc__)
    print("".join(line + "\n" for line in lines), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
