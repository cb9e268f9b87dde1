#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kin are worth: the recordings with and without names of processes. Writes the tables of docs/kin.md.

usage: kin.py PROGRAM
The recordings hold no names, but their truth has the load of each process. Processes of one load in one recording are
replicas, so a copy of the recording calls each process by its load, as `gpu-ledger record` would have written it.
"""
import collections
import contextlib
import gzip
import json
import pathlib
import statistics
import sys
import tempfile

from constants import SOURCE
from recordings import SHARED, TRACED, judge, mean, percents, recordings, within
from results_tables import SETS, same_figures

PAGE = SOURCE / "docs/kin.md"
BEGIN, END = "<!-- {}: made by tests/accuracy/kin.py -->\n", "\n<!-- end of {} -->"
BY = {"samples": "--exact-time=off", "exact": "--exact-time=on"}


def loads_of(trace):
    """{pid: load}"""
    truth = trace.with_name(trace.name.removesuffix(".jsonl.gz") + ".truth.json")
    return {process["pid"]: process["load"] for process in json.loads(truth.read_text())["processes"]}


def has_replicas(trace):
    return max(collections.Counter(loads_of(trace).values()).values()) > 1


def process_line(pid, load):
    return json.dumps({"k": "process", "t": 0, "pid": pid, "name": "load",
                       "owner": {"kind": "host", "unit": f"{load}.service"}}) + "\n"


def write_with_names(trace, folder):
    """Path of a copy in which every process of the truth has a name; other names are dropped."""
    copy = pathlib.Path(folder) / f"{trace.parent.name}_{trace.name.removesuffix('.gz')}"
    with gzip.open(trace, "rt", encoding="utf-8") as lines, copy.open("w", encoding="utf-8") as out:
        out.write(next(lines))  # of the device
        out.writelines(process_line(pid, load) for pid, load in loads_of(trace).items())
        out.writelines(line for line in lines if not line.startswith('{"k":"process"'))
    return copy


@contextlib.contextmanager
def named_copies(sets):
    """{trace: its copy with names}"""
    with tempfile.TemporaryDirectory() as folder:
        yield {trace: write_with_names(trace, folder) for traces in sets.values() for trace in traces}


def with_replicas(sets):
    found = {name: [trace for trace in traces if has_replicas(trace)] for name, traces in sets.items()}
    return {name: traces for name, traces in found.items() if traces}


def judge_both(program, sets, flag):
    """(results without names, results with names)"""
    without = judge(lambda trace: [program, "replay", trace, flag], sets)
    with named_copies(sets) as copies:
        return without, judge(lambda trace: [program, "replay", copies[trace], flag], sets)


def judge_all(program, sets):
    """{samples: (without, with), exact: (without, with)}"""
    traced = {name: traces for name, traces in sets.items() if name in (*TRACED, "turning")}
    return {by: judge_both(program, traced if by == "exact" else sets, flag) for by, flag in BY.items()}


def mean_of(results, names):
    return mean(percent for name in names if name in results for percent in percents(results[name]))


def cells(results, figure):
    """Without and with names, by samples and by exact time; "-" where there is no trace."""
    found = []
    for by in BY:
        for one in results[by]:
            try:
                found.append(figure(one))
            except KeyError:
                found.append("-")
    return " | ".join(found)


HEAD = ("| {} | {} | by samples | with kin | by exact time | with kin |", "|---|---|---|---|---|---|")


def sets_table(results):
    lines = [HEAD[0].format("set", "recordings"), HEAD[1]]
    for name, title in SETS.items():
        count = len(results["samples"][0][name])
        lines.append(f"| {title} | {count} | " + cells(results, lambda one: f"{mean(percents(one[name])):.2f} %") + " |")
    count = sum(len(results["samples"][0][name]) for name in SHARED)
    lines.append(f"| all except turning, MPS and never alone | {count} | "
                 + cells(results, lambda one: f"{mean_of(one, SHARED):.2f} %") + " |")
    lines.append("| truth within 2 se, all sets | | "
                 + cells(results, lambda one: "{} of {}".format(*within(one))) + " |")
    return "\n".join(lines)


def replicas_table(results, replicas):
    """Of the recordings with replicas: {set: [trace, ...]}."""
    lines = [HEAD[0].format("recording", "replicas"), HEAD[1]]
    for name, traces in replicas.items():
        for trace in traces:
            recording = trace.name.removesuffix(".jsonl.gz")
            counts = collections.Counter(loads_of(trace).values())
            many = ", ".join(f"{count} {load}" for load, count in counts.most_common() if count > 1)
            figures = cells(results, lambda one: f"{one[name][recording]['misattributed_percent']:.1f} %")
            lines.append(f"| {recording} | {many} of {sum(counts.values())} | {figures} |")
    names = {name: {trace.name.removesuffix(".jsonl.gz") for trace in traces} for name, traces in replicas.items()}

    def found(one):
        return [r["misattributed_percent"] for name, of_set in one.items() for recording, r in of_set.items()
                if recording in names.get(name, ())]

    changes = [[b - a for a, b in zip(*map(found, results[by]))] for by in BY]
    lines.append("| mean | | " + cells(results, lambda one: f"{mean(found(one)):.2f} % of {len(found(one))}") + " |")
    lines.append("| change, ± its standard error | " + "".join(
        f"| | {mean(of):+.2f} ± {statistics.stdev(of) / len(of) ** 0.5:.2f} " for of in changes) + "|")
    return "\n".join(lines)


def read_table(text, name):
    begin, end = BEGIN.format(name), END.format(name)
    return text[text.index(begin) + len(begin):text.index(end)]


def is_up_to_date(tables):
    text = PAGE.read_text(encoding="utf-8")
    return all(same_figures(read_table(text, name), table) for name, table in tables.items())


def make_tables(results, sets):
    return {"sets": sets_table(results), "replicas": replicas_table(results, with_replicas(sets))}


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    sets = recordings(SOURCE / "tests/data")
    sets.pop("solo")
    text = PAGE.read_text(encoding="utf-8")
    for name, table in make_tables(judge_all(arguments[0], sets), sets).items():
        begin, end = BEGIN.format(name), END.format(name)
        text = text.replace(begin + read_table(text, name) + end, begin + table + end)
        print(table, "\n")
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
