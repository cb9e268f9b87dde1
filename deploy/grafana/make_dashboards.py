#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the dashboards beside it: `python3 deploy/grafana/make_dashboards.py`. A test fails while they are old.

boards/ has one file per dashboard, queries.py what they share, grafana.py how Grafana writes panels down.
"""

import importlib
import pathlib

from queries import BOARDS

FOLDER = pathlib.Path(__file__).resolve().parent


def dashboards():
    return {name: importlib.import_module(f"boards.{name}").make() for name in BOARDS}


if __name__ == "__main__":
    for name, text in dashboards().items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
