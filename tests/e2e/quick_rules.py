# SPDX-License-Identifier: Apache-2.0
"""The rules of deploy/prometheus for a test that has no minutes: the same, with a minute of some seconds."""

import re

import harness

RULES = harness.SOURCE / "deploy" / "prometheus"


def quick_rules(folder, names, minute, window=None, change=lambda text: text):
    """Writes them into the folder and returns the paths. Minute: how long one is, in seconds; window: what [5m] becomes."""
    made = []
    for name in names:
        text = (RULES / name).read_text(encoding="utf-8")
        text = re.sub(r"    interval: \S+\n", "", text).replace("    rules:\n", f"    interval: {minute}s\n    rules:\n")
        text = text.replace("offset 30s", f"offset {500 * minute}ms").replace("offset 75s", f"offset {1250 * minute}ms")
        if window:
            text = text.replace("[5m]", f"[{window}s]")
        path = folder / name
        path.write_text(change(text), encoding="utf-8")
        made.append(path)
    return made
