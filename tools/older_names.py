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
OBJECTS = """
What `kubectl` commands, dashboards and other charts call things, and the arguments of `helm install` that keep it so. This table
and all below are made from tests/data/older_promises.tsv by `tools/older_names.py --write`; tests try every line.

| from | in scripts | Helm | |
|---|---|---|---|
"""
COMMANDS = """
## Commands

Those of the older pages, and what to write now. `REGISTRY` and `registry.example/team` stand for your registry.

| from | older | now | |
|---|---|---|---|
"""
QUERIES = """
## Queries

Those of the older pages, and what to write now. With [compat.rules.yml](../deploy/prometheus/compat.rules.yml) those of
my-gpu-exporter also work as they were: it records the older name, as one series for each process.

| from | older | now | |
|---|---|---|---|
"""
NAMES = """
## Every name
"""
ELSEWHERE = ("query", "object", "command")


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def now(one):
    return {"same": "as it was", "none": "not needed"}.get(one.now, code(one.now))


def row(*cells):
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def note(one):
    return "" if one.note == "-" else one.note


def objects():
    for one in promises.of("object"):
        before = "" if one.now == "same" else f"now {code(one.now)}: "
        yield row(one.system, code(one.name), code(one.by), before + note(one))


def commands():
    for one in promises.of("command"):
        helm = f"with Helm's {code(one.by)}" if one.by.startswith("--") else ""
        yield row(one.system, code(one.name), now(one), "; ".join(filter(None, (helm, note(one)))))


def queries():
    for one in promises.of("query"):
        yield row(one.system, code(one.name), now(one), note(one))


def names(system):
    for one in promises.read():
        if one.system == system and one.kind not in ELSEWHERE:
            yield row(one.kind, code(one.name), now(one), note(one))


def section():
    text = FIRST + OBJECTS + "".join(objects()) + COMMANDS + "".join(commands()) + QUERIES + "".join(queries()) + NAMES
    for system, title in promises.SYSTEMS.items():
        text += f"\n### Names of {title}\n\n| | name | now | |\n|---|---|---|---|\n" + "".join(names(system))
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
