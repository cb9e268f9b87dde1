# SPDX-License-Identifier: Apache-2.0
"""The constants of the model as src/attribute/estimate/constants.h has them."""
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADER = SOURCE / "src/attribute/estimate/constants.h"
ENTRY = re.compile(r'^\s*X\((\w+), ([-\w.]+), "([^"]*)", "([^"]*)", "([^"]*)"\)', re.MULTILINE)


def read_constants():
    """[(name, value as written, unit, meaning, source), ...]"""
    found = ENTRY.findall(HEADER.read_text(encoding="utf-8"))
    if not found:
        raise RuntimeError(f"no constants in {HEADER}")
    return found
