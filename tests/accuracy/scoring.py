# SPDX-License-Identifier: Apache-2.0
"""How far the books of a replay are from the truth of its recording. Standard library only.

The truth knows joules above the static watts, measured another way than the books, so it is first scaled to the
dynamic joules that the books hand out: what is judged is who got them.
"""
import json
import subprocess
from decimal import Decimal


def books_of(command):
    """The books that a command prints, every figure exact."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout, parse_float=Decimal)


def run_replay(program, trace, *flags):
    return books_of([program, "replay", trace, *flags])


def run_series(program, trace, *flags):
    """([(seconds, processes)] after every step, the books at the end)."""
    done = subprocess.run([str(program), "replay", str(trace), "--series", *flags], capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"replay of {trace}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    steps, rest = [], done.stdout
    while rest.startswith('{"t":'):
        line, _, rest = rest.partition("\n")
        step = json.loads(line, parse_float=Decimal)
        steps.append((float(step["t"]), step["processes"]))
    return steps, json.loads(rest, parse_float=Decimal)


def lost_joules(books):
    """Measured, but in no account; exactly 0 in books that balance."""
    device = books["device"]
    rest = Decimal(device["measured_joules"]) - device["idle_joules"] - device["unattributed_joules"]
    return rest - sum(p["static_joules"] + p["dynamic_joules"] for p in books["processes"])


def shared_ratio(books):
    """Share of the processes' joules that was booked while several of them were there."""
    shared = sum(p["shared_joules"] for p in books["processes"])
    every = shared + sum(p["alone_joules"] for p in books["processes"])
    return float(shared / every) if every > 0 else 0.0


def score(truth, books):
    """What was given to whom, against what was due to it."""
    given = {p["pid"]: float(p["dynamic_joules"]) for p in books["processes"]}
    error_of = {p["pid"]: float(p["standard_error_joules"]) for p in books["processes"]}
    true = {p["pid"]: (p["joules"][-1][1] if p["joules"] else 0.0) for p in truth["processes"]}
    load = {p["pid"]: p["load"] for p in truth["processes"]}
    handed_out, all_true = sum(given.values()), sum(true.values())
    scale = handed_out / all_true if all_true > 0 else 0.0
    rows = []
    for pid in sorted(given.keys() | true.keys()):
        due, got, error = scale * true.get(pid, 0.0), given.get(pid, 0.0), error_of.get(pid, 0.0)
        rows.append({"pid": pid, "load": load.get(pid, "not in the truth"), "true_joules": round(due, 1),
                     "given_joules": round(got, 1), "standard_error_joules": round(error, 1),
                     # A tenth of a joule is what the truth is rounded to.
                     "within": abs(got - due) <= 2 * error + 0.1})
    wrong = sum(abs(given.get(pid, 0.0) - scale * true.get(pid, 0.0)) for pid in given.keys() | true.keys()) / 2
    device = books["device"]
    of_itself = device.get("attribution_error_ratio")
    return {"comparisons": device["attribution_comparisons"],
            "own_percent": None if of_itself is None else 100 * float(of_itself),
            "shared_ratio": shared_ratio(books),
            "misattributed_percent": round(100 * wrong / handed_out, 3) if handed_out > 0 else 100.0 * (all_true > 0),
            "lost_joules": str(lost_joules(books)),
            "truth_over_counter": round(all_true / handed_out, 4) if handed_out > 0 else None,
            "within": sum(r["within"] for r in rows), "of": len(rows), "processes": rows}
