# SPDX-License-Identifier: Apache-2.0
"""tests/data/older_promises.tsv: every name that the older systems have and people use."""

import csv
import pathlib
from dataclasses import dataclass

TABLE = pathlib.Path(__file__).resolve().parent.parent / "data/older_promises.tsv"
KINDS = ("metric", "label", "flag", "environment", "query", "values", "object", "endpoint", "file", "command")
SYSTEMS = {
    "my-gpu-exporter": "my-gpu-exporter",
    "gpu-idle-exporter": "gpu-idle-exporter",
    "gpu-process-exporter": "gpu-process-exporter (AstraGo)",
    "pod-gpu-metrics-exporter": "pod-gpu-metrics-exporter",
    "dcgm-exporter": "dcgm-exporter",
}


@dataclass(frozen=True)
class Promise:
    system: str
    kind: str
    name: str  # as people have it
    now: str  # "same", what takes its place, or "none": not needed
    by: str  # what proves it: labels, a value, Helm's arguments
    note: str  # for docs/migration.md


def read():
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = csv.reader((line for line in file if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Promise(*line) for line in lines]


def of(kind, system=None):
    return [one for one in read() if one.kind == kind and system in (None, one.system)]
