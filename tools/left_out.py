#!/usr/bin/env python3
"""What a run of tests left out, one line each, in the words of whoever left it out.

tools/left_out.py BUILD           of the last run of ctest there
tools/left_out.py --log NAME FILE of what a suite said that ctest does not run
"""

import pathlib
import re
import sys

# ctest writes a test's name before its output and how it ended after it.
BLOCK = re.compile(r'^\d+/\d+ Test: (?P<name>\S+)\n.*?^Output:\n-+\n(?P<said>.*?)^<end of output>\n(?P<end>.*?)(?=^\d+/\d+ Test|\Z)',
                   re.DOTALL | re.MULTILINE)
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


def of_ctest(log):
    for block in BLOCK.finditer(log):
        found = reasons(block["said"])
        if not found and re.search(r"^Test (Skipped|Not Run|Disabled)", block["end"], re.MULTILINE | re.IGNORECASE):
            found = [(block["said"].strip().splitlines() or ["does not say why"])[-1]]
        yield from (f"{block['name']}: {why}" for why in found)


def main(arguments):
    if arguments[:1] == ["--log"] and len(arguments) == 3:
        lines = [f"{arguments[1]}: {why}" for why in reasons(pathlib.Path(arguments[2]).read_text(errors="replace"))]
    elif len(arguments) == 1:
        log = pathlib.Path(arguments[0]) / "Testing/Temporary/LastTest.log"
        lines = list(of_ctest(log.read_text(errors="replace")))
    else:
        sys.exit(__doc__)
    print("".join(line + "\n" for line in lines), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
