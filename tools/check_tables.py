#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what ARCHITECTURE.md says about where things are added: a metric, a kind of owner, a setting and a command are
one row each, a path is known where it must be, and every file that the page names exists.

Prints one line for everything that is wrong and exits 1, or nothing and exits 0.
"""

import pathlib
import re
import sys

SETTINGS = "app/config/config_settings.cc"
COMMANDS = "app/commands/command_table.cc"
VALUES = "app/config/config_values.cc"
ROUTES = "http/routes.cc"
OWNERS = "model/owner.h"
SCHEDULERS = "identity/batch_scheduler.cc"
# Parsers of kinds that are no jobs of a batch scheduler; and Slurm's prolog, which no other scheduler has.
KNOW_KINDS = {"kContainer": {"identity/naming.cc", "identity/resolver_map.cc"},
              "kSlurmJob": {SCHEDULERS, "identity/slurm_jobs.h"}}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
FOLDERS = ("src", "sim", "tests", "tools", "deploy", "cmake")
LICENSED = {".cc", ".h", ".inc", ".js", ".css", ".proto", ".py", ".sh", ".go", ".cmake"}
# Besides the table: older names, and checks of settings that must fit together.
MAY_NAME_SETTINGS = {SETTINGS, "app/config/config_older_names.cc", "app/config/config.cc", "app/config/config_yaml.cc"}
# Words with another meaning too: sources of health, a kind of Slurm step and its label, fields of JSON, a command.
OTHER_MEANINGS = {"textfile", "state-file", "batch", "step", "from", "to", "serve", "currency", "month", "pue"}
# Flags that are not settings: our own, nvidia-smi's, node_exporter's and CMake's.
OTHER_FLAGS = {"help", "version", "gpu-reset", "collector.textfile.directory", "workflow", "preset"}


def sources(src):
    for path in sorted(src.rglob("*")):
        if path.suffix in {".cc", ".h", ".inc"}:
            yield path.relative_to(src).as_posix(), path.read_text(encoding="utf-8")


def strings(text):
    whole = re.sub(r'(?<!\\)"\s*\n\s*"', "", re.sub(r"//.*", "", text))  # what was cut to fit the line
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', whole)


def setting_names(table):
    rows = re.findall(r'^ *\{"([a-z0-9.-]+)", G::', table, re.MULTILINE)
    return {*rows, *("collector." + name for name in re.findall(r'^ *GL_COLLECTOR\("([a-z-]+)"', table, re.MULTILINE))}


def check_settings(src):
    names = setting_names((src / SETTINGS).read_text(encoding="utf-8"))
    older = set(re.findall(r'\{"([a-z.-]+)", false', (src / "app/config/config_older_names.cc").read_text("utf-8")))
    if not names:
        yield f"{SETTINGS}: no settings found"
    for name, text in sources(src):
        for string in strings(text):
            if string in names - OTHER_MEANINGS and name not in MAY_NAME_SETTINGS:
                yield f"src/{name}: names the setting \"{string}\"; that is for the table, {SETTINGS}"
            for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9.-]*[a-z])", string):
                if flag.removeprefix("no-") not in names | older | OTHER_FLAGS:
                    yield f"src/{name}: there is no setting --{flag}"


def check_commands(src):
    table = (src / COMMANDS).read_text(encoding="utf-8")
    functions = set(re.findall(r"\b(\w+)_command\(const Config(?:Sources)?&", table))
    rows = re.findall(r'^    \{"(\w+)", "', table, re.MULTILINE)
    if not rows or set(rows) != functions:
        yield f"{COMMANDS}: a row for each function and a function for each row: {sorted(functions ^ set(rows))}"
    for command in sorted(functions):
        own = f"app/commands/{command}.cc"
        found = {name for name, text in sources(src) if re.search(rf"\b{command}_command\b", text)}
        if own not in found:
            yield f"{COMMANDS}: {command}_command is not in src/{own}"
        for name in sorted(found - {own, COMMANDS}):
            yield f"src/{name}: names {command}_command; that is for src/{own} and the table"


def check_paths(src):
    values = (src / VALUES).read_text(encoding="utf-8")
    taken = set(strings(values[values.index("kTaken"):].split(";")[0]))
    for path in strings((src / ROUTES).read_text(encoding="utf-8")):
        if re.fullmatch(r"/[a-z0-9/.-]*", path) and path not in taken:
            yield f"src/{VALUES}: --metrics-path may be {path}, which {ROUTES} answers"


def check_metrics(src):
    """A metric's name stands in its row. Elsewhere only texts for people may name one."""
    for name, text in sources(src):
        if not name.startswith("expose/"):
            continue
        for string in strings(text):
            inside = name.startswith("expose/collectors/")
            if re.fullmatch(r"(gpu_ledger|gpu_idle|gpu_process|process_(cpu|resident|open))_[a-z_]+", string) and not inside:
                yield f"src/{name}: names the metric {string}; that is for a row in src/expose/collectors"


def check_owner_kinds(src):
    """The words and fields of a kind stand in its row, also in texts and on the page; only parsers know kinds apart."""
    table = (src / OWNERS).read_text(encoding="utf-8")
    words = set(re.findall(r'\{OwnerKind::k\w+, "(\w+)"', table)) - {"pod", "container", "host", "unknown"}
    kinds = set(re.findall(r"enum class OwnerKind \{([^}]*)\}", table)[0].replace(" ", "").split(","))
    kinds -= {"kPod", "kUnknown", "kHost"}  # pods have names and allocations; unknown and host are what is left
    if not words or not kinds:
        yield f"{OWNERS}: no kinds of owners found"
    scripts = [(path.relative_to(src).as_posix(), path.read_text(encoding="utf-8")) for path in src.rglob("*.js")]
    for name, text in [*sources(src), *scripts]:
        if name == OWNERS:
            continue
        said = text if name.endswith(".js") else "\n".join(strings(text))
        for word in sorted(words):
            if re.search(rf"(?<![\w-]){word}(?![\w-])", said):
                yield f"src/{name}: knows the kind of owner {word}; that is for {OWNERS}"
        for kind in sorted(kinds):
            if f"OwnerKind::{kind}" in text and name not in KNOW_KINDS.get(kind, {SCHEDULERS}):
                yield f"src/{name}: knows OwnerKind::{kind}; that is for {OWNERS} and its parser"


def check_licence(root):
    for path in [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))]:
        if path.suffix in LICENSED or path.name == "CMakeLists.txt":
            if LICENCE not in "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:2]):
                yield f"{path.relative_to(root)}: has no SPDX line"


def check_repeats(src):
    """No run of six equal lines stands twice. Declarations that an interface demands are no repetition."""
    seen = {}
    for name, text in sources(src):
        code = [(number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
        code = [(number, line) for number, line in code
                if re.search(r"\w", line) and not line.startswith(("#include", "using ")) and not line.endswith("override;")]
        reported = 0
        for i in range(len(code) - 5):
            run = tuple(line for _, line in code[i:i + 6])
            first = seen.setdefault(run, f"src/{name}:{code[i][0]}")
            if first != f"src/{name}:{code[i][0]}" and i >= reported:
                yield f"src/{name}:{code[i][0]}: six lines that stand at {first} too"
                reported = i + 6


def check_page(root):
    page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|sim|tests|tools|docs)/[\w./*-]*)`", page):
        if not list(root.glob(path.rstrip("/"))):
            yield f"ARCHITECTURE.md: there is no {path}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    src = root / "src"
    complaints = [*check_settings(src), *check_commands(src), *check_paths(src), *check_metrics(src),
                  *check_owner_kinds(src), *check_licence(root), *check_repeats(src), *check_page(root)]
    for line in complaints:
        print(line)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
