#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last sections of docs/migration.md, from tests/data/older_promises.tsv.

tools/older_names.py --write puts it there; without it the exit status says whether it is there already.
"""

import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/e2e"))
sys.dont_write_bytecode = True
import promises  # noqa: E402

PAGE = SOURCE / "docs/migration.md"
FIRST = "## Names in your scripts\n"
INTRODUCTION = """
What `kubectl` commands, dashboards and other charts call things, and the arguments of `helm install` that keep it so. This table
and all below are made from tests/data/older_promises.tsv by `tools/older_names.py --write`; tests try every line.

| from | in scripts | Helm | |
|---|---|---|---|
"""
NAMES = """
## Every name

Queries are left out: all of them work, by the names below.
"""


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def lines_of(system):
    for one in promises.read():
        if one.system != system or one.kind in ("query", "object"):
            continue
        now = "as it was" if one.now == "same" else code(one.now)
        yield f"| {one.kind} | {code(one.name)} | {now} | {'' if one.note == '-' else one.note} |\n".replace("|  |", "| |")


def objects():
    for one in promises.of("object"):
        note = "" if one.now == "same" else f"now {code(one.now)}: "
        note += "" if one.note == "-" else one.note
        yield f"| {one.system} | {code(one.name)} | {code(one.by)} | {note} |\n".replace("|  |", "| |")


def section():
    text = FIRST + INTRODUCTION + "".join(objects()) + NAMES
    for system, title in promises.SYSTEMS.items():
        text += f"\n### Names of {title}\n\n| | name | now | |\n|---|---|---|---|\n" + "".join(lines_of(system))
    return text


def page_with(new):
    return PAGE.read_text(encoding="utf-8").partition(FIRST)[0] + new


def main():
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page_with(section()), encoding="utf-8")
    elif page_with(section()) != PAGE.read_text(encoding="utf-8"):
        sys.exit("docs/migration.md is stale: tools/older_names.py --write")


if __name__ == "__main__":
    main()
