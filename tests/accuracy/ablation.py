#!/usr/bin/env python3
"""What each mechanism and each constant of the model is worth, as a markdown table.

usage: ablation.py REPLAY_WITH DATA
REPLAY_WITH: the program tests/accuracy/replay_with of a build; DATA: tests/data.
Change: against the first row, with the standard error of that mean over the recordings.
"""
import statistics
import sys

from constants import read_constants
from recordings import SHARED, judge, mean, percents, recordings, within

# A mechanism and the constants that switch it off.
OFF = (
    ("power is no evidence", ["power_error=100"]),
    ("activity is no evidence", ["activity_error=100"]),
    ("the driver's samples are no evidence", ["samples_per_fact=1e9"]),
    ("watts are not tied to activity", ["watts_from_activity_error=100"]),
    ("clocks of the readings agree", ["timing_error=0"]),
    ("signatures stand still", ["signature_wander=0"]),
    ("a window has its usual share", ["share_deviation=0", "share_deviation_least=0.001"]),
    ("share errors are new in each window", ["share_persistence=0"]),
    ("shares are not inherited", ["inherited_samples=0"]),
    ("samples never grow old", ["share_memory=1e9"]),
    ("no phases", ["phase_odds=1000"]),
    ("what was learned never fades", ["signature_memory=1e9"]),
    ("clients of MPS without a prior", ["mps_deviation=100"]),
    ("one client of MPS may have any time", ["mps_most=100"]),
    ("short times teach too", ["least_time=0"]),
    ("no wander, persistence, inheritance, ageing, phases nor fading",
     ["signature_wander=0", "share_persistence=0", "inherited_samples=0", "share_memory=1e9", "phase_odds=1000",
      "signature_memory=1e9"]),
)


def rows():
    yield "as it is", []
    for what, settings in OFF:
        yield f"{what} (`{' '.join(settings)}`)", settings
    for name, value, *_ in read_constants():
        for factor, word in ((0.5, "halved"), (2, "doubled")):
            yield f"`{name}` {word}", [f"{name}={float(value) * factor:g}"]


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
    count = sum(len(sets[name]) for name in SHARED)
    print(f"| | shared, mean of {count} | change | worst | MPS, mean of {len(sets['mps'])} | change |"
          f" never alone, mean of {len(sets['never_alone'])} | within 2 se |")
    print("|---|---|---|---|---|---|---|---|")
    usual = None
    for what, settings in rows():
        results = judge(lambda trace: [program, trace, *settings], sets)
        shared = [percent for name in SHARED for percent in percents(results[name])]
        mps = percents(results["mps"])
        usual = usual or (shared, mps)
        changes = [change(now, before) if settings else "" for now, before in zip((shared, mps), usual)]
        inside, of = within(results)
        print(f"| {what} | {mean(shared):.2f} % | {changes[0]} | {max(shared):.1f} % | {mean(mps):.2f} % | {changes[1]} |"
              f" {mean(percents(results['never_alone'])):.1f} % | {inside} of {of} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
