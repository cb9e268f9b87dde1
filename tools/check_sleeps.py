#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no test sleeps. A test that sleeps and then looks has not waited for anything: on a slow machine it looks too
early. Tests wait with eventually() (tests/support/eventually.h), harness.wait_until() (tests/e2e/harness.py) or on an event.

Prints one line for everything that is wrong and exits 1, or nothing and exits 0.
"""

import ast
import pathlib
import re
import sys

# Files and folders that may sleep, and why.
MAY_SLEEP = {
    "tests/support/eventually.h": "the wait of the tests in C++",
    "tests/e2e/harness.py": "the wait of the tests in Python",
    "tests/soak/soak_test.py": "faults come at random times",
    "tests/cluster/run": "a shell's wait for the end of processes",
    "tests/slurm/run": "the same",
    "tests/hw/": "loads on a real GPU, by the clock",
    "tests/bench/scrape/": "scrapes at a given pace, for figures and no test",
}
COMPILED = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\b|(?<![\w.>])sleep\s*\(")
SHELL = re.compile(r"(?:^|[;&|(]|\b(?:do|then|else))\s*sleep\b", re.MULTILINE)
LITERALS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


def blank(match):
    return "\n" * match[0].count("\n")


def lines_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "sleep":
                yield node.lineno


def lines_of(path, text):
    if path.suffix == ".py":
        return lines_of_python(text)
    if path.suffix in {".cc", ".h"}:
        code, pattern = LITERALS.sub(blank, text), COMPILED
    elif path.suffix == ".sh" or (not path.suffix and text.startswith("#!")):
        code, pattern = re.sub(r"(?m)^\s*#.*", "", text), SHELL
    else:
        return ()
    return [code.count("\n", 0, match.end()) + 1 for match in pattern.finditer(code)]


def check(root):
    left = dict(MAY_SLEEP)
    for path in sorted((root / "tests").rglob("*")):
        if not path.is_file() or path.suffix in {".pyc", ".gz"}:
            continue
        name = path.relative_to(root).as_posix()
        found = list(lines_of(path, path.read_text(encoding="utf-8", errors="replace")))
        allowed = [one for one in MAY_SLEEP if name == one or (one.endswith("/") and name.startswith(one))]
        for one in allowed if found else ():
            left.pop(one, None)
        if not allowed:
            yield from (f"{name}:{line}: sleeps; wait for what must follow instead" for line in found)
    for name in left:
        if (root / name).exists():
            yield f"tools/check_sleeps.py: {name} does not sleep; take it off the list"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = list(check(root))
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
