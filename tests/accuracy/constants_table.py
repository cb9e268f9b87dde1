#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of the model's constants into docs/attribution.md, between two marks.

usage: constants_table.py [--check]
With --check nothing is written; exit 1 if the table is out of date.
"""
import sys

from constants import SOURCE, read_constants

PAGE = SOURCE / "docs/attribution.md"
BEGIN = "<!-- constants: made by tests/accuracy/constants_table.py -->"
END = "<!-- end of constants -->"


def table():
    lines = ["| constant | value | unit | meaning | source |", "|---|---|---|---|---|"]
    lines += [f"| `{name}` | {value} | {unit} | {meaning} | {source} |"
              for name, value, unit, meaning, source in read_constants()]
    return "\n".join(lines)


def page_with_table(text):
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RuntimeError(f"{PAGE} has no marks")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = PAGE.read_text(encoding="utf-8")
    wanted = page_with_table(text)
    if text == wanted:
        return 0
    if arguments:
        print(f"{PAGE} is out of date: run {sys.argv[0]}", file=sys.stderr)
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
