#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what was booked to each process against what it truly spent, one SVG per recording.

usage: plot_attribution.py PROGRAM OUT_DIR DATA_DIR...
DATA_DIR holds NAME.jsonl.gz and NAME.truth.json (tests/data/h200); OUT_DIR gets attribution-NAME.svg.
Joules above the static watts; the truth is scaled to what the books hand out, as in tests/accuracy/scoring.py.
"""
import json
import pathlib
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/accuracy"))
from scoring import run_series  # noqa: E402

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 190, 28, 36
MOST_LINES = 5  # the rest is drawn as one
MOST_POINTS = 150
# Told apart by most eyes, on white and on black.
COLOURS = ("#3b82c4", "#d9822b", "#2f9e6e", "#c4509b", "#8a7f3c", "#808080")
STYLE = ("text{font:12px sans-serif;fill:#333}.grid{stroke:#8884;stroke-width:1}.line{fill:none;stroke-width:2}"
         ".truth{stroke-dasharray:2 4;stroke-width:3;opacity:.75}@media(prefers-color-scheme:dark){text{fill:#ccc}}")


def replay(program, trace):
    """([(t, {pid: J})], the last books)"""
    steps, books = run_series(program, trace)
    for process in books["processes"]:
        process.update({name: float(process[name]) for name in ("dynamic_joules", "standard_error_joules")})
    return [(t, {p["pid"]: float(p["dynamic_joules"]) for p in processes}) for t, processes in steps], books


def value_at(curve, t):
    """Of a cumulative curve, straight between its points."""
    if not curve or t <= curve[0][0]:
        return 0.0
    for (t0, v0), (t1, v1) in zip(curve, curve[1:]):
        if t <= t1:
            return v0 + (v1 - v0) * (t - t0) / (t1 - t0) if t1 > t0 else v1
    return curve[-1][1]


def thin(curve):
    step = max(1, len(curve) // MOST_POINTS)
    kept = curve[::step]
    return kept if not curve or kept[-1] == curve[-1] else kept + [curve[-1]]


class Line:
    """One process, or all the small ones together."""

    def __init__(self, label, truth, booked, error):
        self.label, self.truth, self.booked, self.error = label, truth, booked, error


def lines_of(truth, steps, books):
    last = {p["pid"]: p for p in books["processes"]}
    true = {p["pid"]: p["joules"] for p in truth["processes"]}
    load = {p["pid"]: p["load"] for p in truth["processes"]}
    all_true = sum(curve[-1][1] for curve in true.values() if curve)
    scale = sum(p["dynamic_joules"] for p in last.values()) / all_true if all_true > 0 else 0
    size = lambda pid: max(true[pid][-1][1] if true.get(pid) else 0, last[pid]["dynamic_joules"] if pid in last else 0)
    pids = sorted(true.keys() | last.keys(), key=size, reverse=True)
    scaled = lambda pid: [(t, scale * joules) for t, joules in true.get(pid, [])]
    booked = lambda pid: [(t, step.get(pid, 0.0)) for t, step in steps]
    error = lambda pid: last[pid]["standard_error_joules"] if pid in last else 0.0
    shown = pids if len(pids) <= MOST_LINES + 1 else pids[:MOST_LINES]
    lines = [Line(load.get(pid, "another"), thin(scaled(pid)), booked(pid), error(pid)) for pid in shown]
    others = pids[len(shown):]
    if others:
        curves = [scaled(pid) for pid in others]
        together = [(t, sum(value_at(curve, t) for curve in curves)) for t, _ in steps]
        given = [(t, sum(step.get(pid, 0.0) for pid in others)) for t, step in steps]
        lines.append(Line(f"{len(others)} others", together, given, sum(error(pid) ** 2 for pid in others) ** 0.5))
    return lines


def nice_step(highest, about):
    """1, 2 or 5 times a power of ten."""
    step = 10.0 ** -3
    while highest / step > about:
        for factor in (2, 2.5, 2):
            step *= factor
            if highest / step <= about:
                break
    return step


class Axes:
    def __init__(self, seconds, joules):
        self.seconds, self.joules = max(seconds, 1.0), max(joules, 1.0)

    def x(self, t):
        return LEFT + (WIDTH - LEFT - RIGHT) * t / self.seconds

    def y(self, joules):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * joules / self.joules

    def path(self, curve):
        return "M" + "L".join(f"{self.x(t):.1f} {self.y(joules):.1f}" for t, joules in curve)

    def draw(self, name):
        out = [f'<text x="{LEFT}" y="16">{escape(name)}: joules above the static watts</text>']
        step = nice_step(self.joules, 5)
        for i in range(int(self.joules / step) + 1):
            y = self.y(i * step)
            out.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
                       f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{i * step:g}</text>')
        step = nice_step(self.seconds, 8)
        for i in range(int(self.seconds / step) + 1):
            out.append(f'<text x="{self.x(i * step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{i * step:g} s</text>')
        return out


def draw(name, lines):
    seconds = max(t for line in lines for t, _ in line.booked)
    highest = max(joules for line in lines for _, joules in line.booked + line.truth)
    axes = Axes(seconds, highest * 1.05)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
           f"<title>{escape(name)}</title><style>{STYLE}</style>", *axes.draw(name)]
    end = WIDTH - RIGHT
    for i, line in enumerate(lines):
        colour = f'stroke="{COLOURS[i % len(COLOURS)]}"'
        if line.truth:
            out.append(f'<path class="line truth" {colour} d="{axes.path(line.truth)}"/>')
        out.append(f'<path class="line" {colour} d="{axes.path(line.booked)}"/>')
        given = line.booked[-1][1]
        top = axes.y(min(axes.joules, given + 2 * line.error))
        bottom = axes.y(max(0.0, given - 2 * line.error))
        out.append(f'<path class="line" {colour} d="M{end + 6 + 5 * i} {top:.1f}V{bottom:.1f}"/>')
        y = TOP + 14 + 34 * i
        due = line.truth[-1][1] if line.truth else 0.0
        out.append(f'<path class="line" {colour} d="M{end + 42} {y - 4}h14"/><text x="{end + 60}" y="{y}">{escape(line.label)}</text>'
                   f'<text x="{end + 60}" y="{y + 14}">{given:.0f} ± {line.error:.0f} / {due:.0f} J</text>')
    out.append(f'<text x="{end + 42}" y="{HEIGHT - BOTTOM - 4}">line booked, dots true,</text>'
               f'<text x="{end + 42}" y="{HEIGHT - BOTTOM + 10}">bars 2 standard errors</text></svg>')
    return "\n".join(out) + "\n"


def main():
    program, out, folders = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for truth_file in sorted(pathlib.Path(folder).glob("*.truth.json")):
            name = truth_file.name.removesuffix(".truth.json")
            steps, books = replay(program, truth_file.with_name(name + ".jsonl.gz"))
            svg = draw(name, lines_of(json.loads(truth_file.read_text()), steps, books))
            (out / f"attribution-{name}.svg").write_text(svg)
            print(f"attribution-{name}.svg {len(svg)} bytes")


if __name__ == "__main__":
    main()
