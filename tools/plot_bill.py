#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a bill: a bar for each line, alone and shared, with the error of what is shared.

usage: gpu-ledger bill ... --format=csv | plot_bill.py > bill.svg
"""
import csv
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 720, 190, 130, 40, 30, 18
JOULES_PER_KWH = 3.6e6
STYLE = ("text{font:13px sans-serif;fill:#222}.soft{font-size:11px;fill:#666}.alone{fill:#2f6fb0}.shared{fill:#6fa8dc}"
         ".nobody{fill:#8a8f98}.error{stroke:#222;stroke-width:1.5}"
         "@media(prefers-color-scheme:dark){text{fill:#ddd}.soft{fill:#aaa}.error{stroke:#ddd}}")


def kwh(line, field):
    return float(line[field] or 0) / JOULES_PER_KWH


def draw(lines):
    meter = next(line for line in lines if line["kind"] == "meter")
    lines = [line for line in lines if line["kind"] != "meter"]
    scale = (WIDTH - LEFT - RIGHT) / max(kwh(line, "charged_joules") for line in lines)
    height = TOP + ROW * len(lines) + 14
    total = kwh(meter, "charged_joules")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{total:.3f} kWh on the meters, by account</title><style>{STYLE}</style>",
        f'<text x="{LEFT}" y="20">{total:.3f} kWh on the meters: '
        f'<tspan class="soft">alone dark, shared light with one standard error, nobody grey</tspan></text>',
    ]
    for number, line in enumerate(lines):
        y = TOP + number * ROW
        nobody = line["kind"] == "nobody"
        alone, shared = kwh(line, "alone_joules") * scale, kwh(line, "shared_joules") * scale
        name = f'nobody: {line["name"]}' if nobody else line["name"]
        parts.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="{"nobody" if nobody else "alone"}" x="{LEFT}" y="{y}" width="{alone:.1f}" height="{BAR}"/>')
        if shared:
            parts.append(f'<rect class="shared" x="{LEFT + alone:.1f}" y="{y}" width="{shared:.1f}" height="{BAR}"/>')
        end, error = LEFT + alone + shared, kwh(line, "standard_error_joules") * scale
        if error:
            parts.append(f'<path class="error" d="M{end - error:.1f} {y + BAR / 2}H{end + error:.1f}"/>')
        value = f'{kwh(line, "charged_joules"):.3f} kWh'
        parts.append(f'<text x="{end + error + 8:.1f}" y="{y + 14}">{value}</text>')
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    sys.stdout.write(draw(list(csv.DictReader(sys.stdin))))
