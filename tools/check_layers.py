#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder may include which, which files may make a thread or leave one behind, and how long a file may be.

Prints one line for everything that is wrong and exits 1, or nothing and exits 0.
"""

import pathlib
import re
import sys

# What a folder of src/ may include besides itself. The four stages meet in model/ only.
ALLOWED = {
    "base": set(),
    "model": {"base"},
    "task": {"base", "model"},
    "net": {"base", "task"},
    "sample": {"base", "model", "task"},
    "identity": {"base", "model", "task", "net"},
    "attribute": {"base", "model"},
    "expose": {"base", "model"},
    "http": {"base", "model", "task"},
    "app": {"base", "model", "task", "net", "sample", "identity", "attribute", "expose", "http"},
}
# The same for the folders of app/. Files directly in app/, such as main.cc, may include all.
ALLOWED_IN_APP = {
    "config": set(),
    "push": set(),
    "runtime": {"config", "push"},
    "doctor": {"config", "push", "runtime"},
    "top": {"config"},
    "job": {"config", "top"},
    "bill": {"config"},
    "commands": {"config", "runtime", "doctor", "top", "job", "bill"},
}
LONGEST_FILE = 500
SIZED = {".cc", ".h", ".inc", ".py", ".sh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
DETACH = re.compile(r"\bdetach\s*\(\s*\)")
THREAD = re.compile(r"\bstd\s*::\s*(jthread|thread|async)\b|\bpthread_create\b|\bthrd_create\b")
LINK = re.compile(r"target_link_libraries\s*\(([^)]*)\)", re.DOTALL)


def room_of(path, src):
    parts = path.relative_to(src).parts
    return parts[0] if len(parts) > 1 else None


def may_include_in_app(own, other):
    return own == other or own not in ALLOWED_IN_APP or other in ALLOWED_IN_APP[own]


def check_includes(src):
    for path in sorted(src.rglob("*")):
        if path.suffix not in {".cc", ".h", ".inc"}:
            continue
        room = room_of(path, src)
        if room not in ALLOWED:
            yield f"{path}: the folder {room} is not in the plan (tools/check_layers.py)"
            continue
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            first = target.split("/")[0]
            if "/" not in target:
                # A name without a path is a file in the same folder. All other includes have the whole path.
                if not (path.parent / target).exists():
                    yield f"{path}: includes \"{target}\", which is not beside it"
            elif first not in ALLOWED:
                yield f"{path}: includes \"{target}\" from outside src/"
            elif first != room and first not in ALLOWED[room]:
                yield f"{path}: {room} must not include {first} (\"{target}\")"
            elif first == room == "app" and not may_include_in_app(path.parent.name, target.split("/")[1]):
                yield f"{path}: app/{path.parent.name} must not include \"{target}\""


def check_threads(src):
    for path in sorted(src.rglob("*")):
        if path.suffix not in {".cc", ".h"}:
            continue
        text = path.read_text(encoding="utf-8")
        if room_of(path, src) != "task" and DETACH.search(text):
            yield f"{path}: leaves a thread behind by itself; task::LeavableThread is for that"
        elif path.relative_to(src).with_suffix("") != pathlib.Path("task/thread") and THREAD.search(text):
            yield f"{path}: makes a thread, and throws if there is none to be had; task::Thread is for that"


def check_links(src):
    for path in sorted(src.rglob("CMakeLists.txt")) + sorted(src.rglob("*.cmake")):
        for names in LINK.findall(path.read_text(encoding="utf-8")):
            for name in names.split():
                if "sim" in name.split("_"):
                    yield f"{path}: links {name}; the simulated node is loaded at run time, never linked"


def check_sizes(root):
    for folder in ("src", "sim", "tests", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SIZED and path.is_file():
                lines = path.read_text(encoding="utf-8", errors="replace").count("\n")
                if lines > LONGEST_FILE:
                    yield f"{path}: {lines} lines, the limit is {LONGEST_FILE}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    src = root / "src"
    if not src.is_dir():
        print(f"{src}: no such folder")
        return 1
    complaints = [*check_includes(src), *check_threads(src), *check_links(src), *check_sizes(root)]
    for line in complaints:
        print(line)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
