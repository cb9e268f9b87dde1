#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of results into docs/attribution.md, between their marks. accuracy_test.py checks them.

usage: results_tables.py PROGRAM
"""
import re
import sys
import textwrap

from constants import SOURCE
from recordings import SHARED, judge, mean, percents, recordings, within

PAGE = SOURCE / "docs/attribution.md"
BY_SAMPLES = ("--exact-time=off",)
BY_UTILIZATION = (*BY_SAMPLES, "--attribution=utilization")
INTERVALS = {"250 ms": "250ms", "500 ms": "500ms", "1 s": "1s", "2 s": "2s", "5 s": "5s"}
USUAL_INTERVAL = "1 s"  # of all other tables
# In the order of the page.
SETS = {
    "seven": "the seven (`h200`)",
    "loops": "loops (`h200_exact`)",
    "real": "real models (`h200_exact/real_*`)",
    "validation": "new loads (`h200_validation`)",
    "a": "real models, first set (`h200_real/a_*`)",
    "b": "real models, second set (`h200_real/b_*`)",
    "c": "real models, third set (`h200_real/c_*`)",
    "d": "real models, fourth set (`h200_real/d_*`)",
    "e": "real models, fifth set (`h200_real/e_*`)",
    "minutes": "minutes together (`h200_long`)",
    "turning": "turning, all folders",
    "mps": "MPS, all folders",
    "never_alone": "never alone, all folders",
}
INTERVAL_ROWS = {
    "the seven": [("seven",)],
    "new loads": [("validation",)],
    "real models (`real_`, `a_`, `b_`, `c_`, `d_`, `e_`)": [("real",), ("a",), ("b",), ("c",), ("d",), ("e",)],
    "minutes together": [("minutes",)],
    "turning": [("turning",)],
    "MPS": [("mps",)],
    "all sets except turning, MPS and never alone": [SHARED],
}
# Worse than by utilization by more than these points: bold.
CLEARLY = 0.5


def judge_all(program, sets, *flags):
    return judge(lambda trace: [program, "replay", trace, *flags], sets)


def mean_of(results, names):
    return mean(percent for name in names for percent in percents(results[name]))


def mean_and_worst(results):
    found = percents(results)
    return f"{mean(found):.1f}, {max(found):.1f} %"


def bold(text, model, plain):
    return f"**{text}**" if model > plain + CLEARLY else text


def sets_table(results, plain):
    lines = ["| set | recordings | by utilization: mean, worst | model: mean, worst | truth within 2 se |",
             "|---|---|---|---|---|"]
    for name, title in SETS.items():
        ours, theirs = mean(percents(results[name])), mean(percents(plain[name]))
        inside, of = within({name: results[name]})
        lines.append(f"| {bold(title, ours, theirs)} | {len(results[name])} | {mean_and_worst(plain[name])} | "
                     f"{bold(mean_and_worst(results[name]), ours, theirs)} | {inside} of {of} |")
    inside, of = within(results)
    count = sum(len(results[name]) for name in SHARED)
    summary = (f"All sets except turning, MPS and never alone: **{mean_of(results, SHARED):.1f} %** over {count} "
               f"recordings, by utilization {mean_of(plain, SHARED):.1f} %. In all sets {inside} of {of} process "
               f"totals ({100 * inside / of:.0f} %) are within two standard errors.")
    return "\n".join([*lines, "", textwrap.fill(summary, 120)])


def recordings_table(results, plain):
    rows, worse = [], 0
    for name in SETS:
        for recording, result in results[name].items():
            ours = result["misattributed_percent"]
            theirs = plain[name][recording]["misattributed_percent"]
            worse += ours > theirs + CLEARLY
            rows.append(f"| {recording} | {theirs:.1f} % | {bold(f'{ours:.1f} %', ours, theirs)} | "
                        f"{result['within']} of {result['of']} | {result['truth_over_counter']:.2f} |")
    return "\n".join([f"Bold: worse than by utilization by more than half a point ({worse} of {len(rows)}).", "",
                      "| recording | by utilization | model | truth within 2 se | true / counter |",
                      "|---|---|---|---|---|", *rows])


def interval_cells(results):
    return [", ".join(f"{mean_of(results, names):.1f}" for names in means) + " %" for means in INTERVAL_ROWS.values()]


def intervals_table(results_at):
    """Of {interval: results}."""
    columns = [interval_cells(results) for results in results_at.values()]
    lines = ["| `--sample-interval` | " + " | ".join(results_at) + " |", "|---" * (1 + len(columns)) + "|"]
    lines += [f"| {title} | " + " | ".join(cells) + " |" for title, *cells in zip(INTERVAL_ROWS, *columns)]
    return "\n".join(lines)


def marks(name):
    return f"<!-- {name}: made by tests/accuracy/results_tables.py -->\n", f"\n<!-- end of {name} -->"


def read_table(text, name):
    begin, end = marks(name)
    found = re.search(re.escape(begin) + "(.*?)" + re.escape(end), text, re.DOTALL)
    if not found:
        raise RuntimeError(f"{PAGE} has no marks of {name}")
    return found[1]


def column(table, title):
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    at = rows[0].index(title)
    return [row[at] for row in rows[2:]]


def same_figures(ours, theirs):
    """Equal but for a last decimal, which another compiler may round the other way."""
    decimal = re.compile(r"\d+\.\d+")
    texts = [decimal.sub("#", text).replace("*", "") for text in (ours, theirs)]
    figures = [[float(figure) for figure in decimal.findall(text)] for text in (ours, theirs)]
    return texts[0] == texts[1] and all(abs(a - b) < 0.11 for a, b in zip(*figures))


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    program, sets = arguments[0], recordings(SOURCE / "tests/data")
    at = {title: judge_all(program, sets, *BY_SAMPLES, f"--sample-interval={interval}")
          for title, interval in INTERVALS.items()}
    plain = judge_all(program, sets, *BY_UTILIZATION)
    tables = {"sets": sets_table(at[USUAL_INTERVAL], plain), "recordings": recordings_table(at[USUAL_INTERVAL], plain),
              "intervals": intervals_table(at)}
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = marks(name)
        text = text.replace(begin + read_table(text, name) + end, begin + table + end)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
