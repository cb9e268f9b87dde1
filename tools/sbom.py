#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is inside a release binary, as CycloneDX 1.5. A scanner sees nothing in a static C++ program, so this reads what
was really built: the archives that the linker took members from (its map) and the headers that were compiled (ninja's
record), and asks Debian's package database whose they are.

tools/sbom.py BUILD PROGRAM VERSION ARCHITECTURE [ROOT]

ROOT is where the libraries of a cross-build are, with a package database of their own. The time is SOURCE_DATE_EPOCH.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import uuid

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# By Debian's source package. A linked package without a row stops the release: check its licence first.
LICENCES = {
    "abseil": "Apache-2.0", "boost": "BSL-1.0", "c-ares": "MIT", "eigen3": "MPL-2.0", "fmtlib": "MIT",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1", "glibc": "LGPL-2.1-or-later", "grpc": "Apache-2.0",
    "libxcrypt": "LGPL-2.1-or-later", "nlohmann-json3": "MIT", "openssl": "Apache-2.0", "protobuf": "BSD-3-Clause",
    "snappy": "BSD-3-Clause", "spdlog": "MIT", "yaml-cpp": "MIT", "zlib": "Zlib",
}
# The kernel's headers declare calls; none of its code gets into the program.
DECLARATIONS = {"linux", "cross-toolchain-base"}


def fail(text):
    sys.exit(f"sbom: {text}")


def linked_archives(map_file):
    """The archives of others that at least one member was taken from: the first part of the map, up to the memory."""
    taken = map_file.read_text(errors="replace").split("\nMemory Configuration")[0]
    return {os.path.normpath(path) for path in re.findall(r"^(/\S+\.a)\(\S+\)$", taken, re.MULTILINE)}


def compiled_headers(build):
    """The headers of others that went into the program; its tests may be in the same build."""
    record = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    own = (f"{SOURCE}/", f"{build.resolve()}/")
    found, ours = set(), False
    for line in record.splitlines():
        if not line.startswith(" "):
            ours = line.startswith(("src/", "sim/"))
        elif ours and line.startswith("    /") and not line.strip().startswith(own):
            found.add(os.path.normpath(line.strip()))
    return found


def packages_of(paths, root):
    """Package, its version, source and source's version: which of the paths are its. All must be somebody's."""
    below = [path for path in paths if root != "/" and path.startswith(root + "/")]
    result = {}
    for folder, prefix, mine in ((f"{root}/var/lib/dpkg", root, below),
                                 ("/var/lib/dpkg", "", [path for path in paths if path not in below])):
        if not mine:
            continue
        names = [path.removeprefix(prefix) for path in mine]
        # An older file list may have the path before /lib became /usr/lib.
        names += [name.removeprefix("/usr") for name in names if name.startswith("/usr/lib/")]
        said = subprocess.run(["dpkg-query", f"--admindir={folder}", "--search", *names], capture_output=True, text=True,
                              check=False).stdout
        owners = dict(reversed(line.split(": ", 1)) for line in said.splitlines() if not line.startswith("diversion"))
        for path, name in zip(mine, names):
            package = owners.get(name) or owners.get(name.removeprefix("/usr"))
            if not package:
                fail(f"no package holds {path}, so its version is unknown; install it as a package")
            result.setdefault((folder, package), []).append(path)
    found = {}
    for (folder, package), mine in result.items():
        form = "${Package}\n${Version}\n${source:Package}\n${source:Version}"
        said = subprocess.run(["dpkg-query", f"--admindir={folder}", "--show", f"--showformat={form}", package],
                              capture_output=True, text=True, check=True).stdout
        found[tuple(said.split("\n"))] = mine
    return found


def licence_of(source):
    licence = LICENCES.get(re.sub(r"-?[\d.]*(-cross)?$", "", source)) or LICENCES.get(source)
    if not licence:
        fail(f"{source} is linked and tools/sbom.py has no licence of it; look it up and add a row")
    return {"expression": licence} if " " in licence else {"license": {"id": licence}}


def distribution():
    said = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return said["ID"].strip('"'), said.get("VERSION_ID", "").strip('"')


def component(package, paths, architecture):
    name, version, source, source_version = package
    system, release = distribution()
    origin = source if source_version == version else f"{source}@{source_version}"
    purl = f"pkg:deb/{system}/{urllib.parse.quote(name)}@{urllib.parse.quote(version, safe='~:')}?" + urllib.parse.urlencode(
        {"arch": architecture, "distro": f"{system}-{release}", "upstream": origin}, safe="~:@", quote_via=urllib.parse.quote)
    archives = sorted(os.path.basename(path) for path in paths if path.endswith(".a"))
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [licence_of(source)],
            "properties": [{"name": "gpu-ledger:source-package", "value": source},
                           {"name": "gpu-ledger:linked", "value": " ".join(archives) or "headers only"}]}


def bill(build, program, version, architecture, root):
    map_file = build / "gpu-ledger.map"
    for path in (map_file, program):
        if not path.is_file():
            fail(f"no {path}; build the release first")
    packages = packages_of(linked_archives(map_file) | compiled_headers(build), root)
    parts = [component(package, paths, architecture) for package, paths in sorted(packages.items())
             if package[2] not in DECLARATIONS]
    itself = f"pkg:generic/gpu-ledger@{version}?arch={architecture}"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    body = {
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": itself, "name": "gpu-ledger", "version": version, "purl": itself,
                          "licenses": [{"license": {"id": "Apache-2.0"}}],
                          "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(program.read_bytes()).hexdigest()}]}},
        "components": parts,
        "dependencies": [{"ref": itself, "dependsOn": [part["bom-ref"] for part in parts]},
                         *({"ref": part["bom-ref"]} for part in parts)]}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


def main(arguments):
    if len(arguments) not in (4, 5):
        sys.exit(__doc__)
    build, program, version, architecture, root = *arguments, *(["/"] if len(arguments) == 4 else [])
    print(json.dumps(bill(pathlib.Path(build), pathlib.Path(program), version, architecture, root), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
