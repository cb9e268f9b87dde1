# SPDX-License-Identifier: Apache-2.0
"""A day of a simulated cluster in a real Prometheus: scrapes in virtual time, written as blocks."""

import pathlib
import re
import subprocess

BEGIN = 1767225600  # 2026-01-01T00:00:00Z, where the simulator's virtual time begins
SECONDS = 86400
STEP, EVERY = 5, 300  # of the samples and of the scrapes
SCENARIOS = pathlib.Path(__file__).resolve().parent / "scenarios"
LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


def scrapes(program, library, scenario):
    """(second, metrics) of each scrape."""
    command = [program, library, scenario, SECONDS, STEP, EVERY]
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=250).stdout
    for part in text.split("# scrape ")[1:]:
        second, _, metrics = part.partition("\n")
        yield int(second), metrics


def write_openmetrics(program, library, path):
    """All nodes of the cluster. A series' samples stand together, as the format wants them."""
    series = {}
    for scenario in sorted(SCENARIOS.glob("*.yaml")):
        node = scenario.stem
        own = f'cluster="demo",instance="{node}:9400",node="{node}"'
        for second, metrics in scrapes(program, library, scenario):
            started = f"process_start_time_seconds {BEGIN}"
            for line in [*metrics.splitlines(), started]:
                if match := LINE.fullmatch(line):
                    name, labels, value = match.groups()
                    key = f"{name}{{{own}{',' + labels if labels else ''}}}"
                    series.setdefault(name, {}).setdefault(key, []).append(f"{key} {value} {BEGIN + second}")
    with open(path, "w", encoding="utf-8") as file:
        for name in sorted(series):
            for samples in series[name].values():
                file.write("\n".join(samples) + "\n")
        file.write("# EOF\n")


def make_blocks(program, library, folder):
    """A Prometheus' storage with the day in it."""
    text = folder / "day.om"
    write_openmetrics(program, library, text)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=250)
    text.unlink()
    return folder / "data"
