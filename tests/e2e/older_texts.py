# SPDX-License-Identifier: Apache-2.0
"""What the texts of the older systems promise, where they lie beside this tree: each name, query and command in them."""

import re

import harness
from prometheus_test import queries_of

FOLDER = harness.SOURCE.parent / "shared/older"
SYSTEMS = {"000": "my-gpu-exporter", "001": "my-gpu-exporter", "002": "pod-gpu-metrics-exporter", "003": "gpu-idle-exporter",
           "004": "gpu-process-exporter"}
# Of the machine, not of an exporter.
OTHERS = ("git clone", "ls -la ", "cat /proc/")
METRIC = re.compile(r"\b(?:my_gpu_process|gpu_idle|gpu_process|gpu_total|dcgm)_[a-z_]+\b(?!\()")


def blocks(text, *languages):
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def metrics(text):
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    for name in sorted(set(METRIC.findall(text))):
        yield "metric", name, types.get(name, "")


def labels(text):
    named = set(re.findall(r"^- `(\w+)` - ", text, re.MULTILINE))
    for line in re.findall(r"^Labels: (.*)$", text, re.MULTILINE):
        named |= set(re.findall(r"`(\w+)`", line))
    for block in blocks(text, "prometheus", "sh"):
        named |= set(re.findall(r'\b(\w+)="', re.sub(r"^DCGM_FI.*$", "", block, flags=re.MULTILINE)))
    return [("label", name, "") for name in sorted(named)]


def flags_and_variables(text):
    for name, value in re.findall(r"^(--[a-z-]+)=(\S+)", text, re.MULTILINE):
        yield "flag", name, value
    for name, value in re.findall(r"^\| `([A-Z_]+)` \| (?:`(\S+)`)?", text, re.MULTILINE):
        yield "environment", name, value


def queries(text):
    for query in queries_of(text) + re.findall(r"query\?query=(\w+)", text):
        yield "query", query, ""


def commands(text):
    for block in blocks(text, "bash", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            opened = re.match(r"# (Open in browser: .*)", line)
            line = " ".join(re.sub(r"^\$ |(^|\s)#.*", "", line).split())
            line = opened[1] if opened else re.sub(r"\b[a-z]+\.io/", "", line)  # the host of a registry
            if line and not line.startswith(("--", *OTHERS)) and not re.match(r"\w+\{", line):
                yield "command", line, ""


def values(text):
    """Keys with a value, of one level or two."""
    for block in blocks(text, "yaml"):
        parent = ""
        for indent, key, value in re.findall(r"^( *)([\w-]+):(.*)$", block, re.MULTILINE):
            parent = parent if indent else key
            if value.strip():
                yield "values", f"{parent}.{key}" if indent else key, ""


def files(text):
    linked = re.findall(r"\]\(((?:docs|examples)/[\w./-]*\w)", text)
    applied = re.findall(r"kubectl (?:apply|create) -f (\S+)", text)
    mounted = re.findall(r"-v (/var\S+?):", text)
    for name in {*linked, *applied, *mounted, *re.findall(r"-f (\S+/Dockerfile)", text)}:
        yield "file", name, ""


def walk():
    """(system, kind, name, proof): what the table of promises must have."""
    for path in sorted(FOLDER.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for part in (metrics, labels, flags_and_variables, queries, commands, values, files):
            for kind, name, proof in part(text):
                yield SYSTEMS[path.name[:3]], kind, name, proof
