#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each mechanism and each constant of the model is worth, as a markdown table.

usage: ablation.py REPLAY_WITH DATA
REPLAY_WITH: the program tests/accuracy/replay_with of a build; DATA: tests/data.
Change: against the first row, with the standard error of that mean over the recordings.
"""
import statistics
import sys

from constants import read_constants
from recordings import SHARED, TRACED, judge, mean, percents, recordings, within

# A mechanism and the constants that switch it off.
OFF = (
    ("power is no evidence", ["power_error=100"]),
    ("activity is no evidence", ["activity_error=100"]),
    ("the driver's samples are no evidence", ["samples_per_fact=1e9"]),
    ("watts are not tied to activity", ["watts_from_activity_error=100"]),
    ("clocks of the readings agree", ["timing_error=0"]),
    ("a window has its usual share", ["share_deviation=0"]),
    ("samples never grow old", ["share_memory=1e9"]),
    ("signatures are kept apart", ["together=0"]),
    ("readings deviate in each window anew", ["deviation_memory=0.01"]),
    ("nobody changes", ["change_odds=1000"]),
    ("a change of time says nothing of a change", ["change_of_time=1e9"]),
    ("a signature has no upper bound", ["highest=100"]),
    ("signatures do not fade", ["fading=0"]),
    ("one client of MPS may have any time", ["mps_most=100"]),
    ("idle time of a traced process is work", ["exact_idle_error=0", "exact_scale_error=0"]),
)


def rows():
    yield "as it is", []
    for what, settings in OFF:
        yield f"{what} (`{' '.join(settings)}`)", settings
    for name, value, *_ in read_constants():
        for factor, word in ((0.5, "halved"), (2, "doubled")):
            yield f"`{name}` {word}", [f"{name}={float(value) * factor:g}"]


def all_percents(results, names):
    return [percent for name in names for percent in percents(results[name])]


def change(now, usual):
    """Mean of the changes, and its standard error."""
    differences = [a - b for a, b in zip(now, usual)]
    return f"{mean(differences):+.2f} ± {statistics.stdev(differences) / len(differences) ** 0.5:.2f}"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    program, data = arguments
    sets = recordings(data)
    traced_sets = {name: sets[name] for name in TRACED}
    count, traced_count = (sum(len(sets[name]) for name in names) for names in (SHARED, TRACED))
    print(f"| | shared, mean of {count} | change | worst | turning, mean of {len(sets['turning'])} | change |"
          f" MPS, mean of {len(sets['mps'])} | change | by exact time, mean of {traced_count} | change | within 2 se |")
    print("|---" * 11 + "|")
    usual = None
    for what, settings in rows():
        results = judge(lambda trace: [program, trace, "--exact-time=off", *settings], sets)
        traced = judge(lambda trace: [program, trace, *settings], traced_sets)
        now = (all_percents(results, SHARED), percents(results["turning"]), percents(results["mps"]),
               all_percents(traced, TRACED))
        usual = usual or now
        changes = [change(*pair) if settings else "" for pair in zip(now, usual)]
        inside, of = within(results)
        print(f"| {what} | {mean(now[0]):.2f} % | {changes[0]} | {max(now[0]):.1f} % | {mean(now[1]):.2f} % | {changes[1]} |"
              f" {mean(now[2]):.2f} % | {changes[2]} | {mean(now[3]):.2f} % | {changes[3]} | {inside} of {of} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
