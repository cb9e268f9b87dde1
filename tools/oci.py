#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an OCI layout in a tar, which skopeo, podman, docker and helm can push: no engine, no registry, no root.

tools/oci.py image OUT VERSION --label NAME=VALUE ... ARCHITECTURE=FOLDER ...   one image for several architectures
tools/oci.py chart OUT VERSION FILE.tgz                                         a packed Helm chart

An image holds the files of a folder; its settings are those of the stage "frame" of deploy/docker/Dockerfile. Everything
has the time SOURCE_DATE_EPOCH, so that the same files give the same bytes. Prints the digest.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import sys
import tarfile

DOCKERFILE = pathlib.Path(__file__).resolve().parent.parent / "deploy/docker/Dockerfile"
STATE = "var/lib/gpu-ledger"  # the only folder of the image's own user
OCI = "application/vnd.oci.image."
HELM = "application/vnd.cncf.helm."
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def fail(text):
    sys.exit(f"oci: {text}")


def tar(entries):
    """Bytes of a tar with (name, mode, owner, content or None for a folder) in the order of names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, mode, owner, content in sorted(entries, key=lambda entry: entry[0]):
            one = tarfile.TarInfo(name)
            one.mode, one.uid, one.gid, one.mtime = mode, owner, owner, EPOCH
            one.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            one.size = len(content or b"")
            file.addfile(one, io.BytesIO(content or b""))
    return out.getvalue()


class Layout:
    """The parts of a layout by the hash of their bytes, and the index that leads to them."""

    def __init__(self):
        self.blobs = {}

    def add(self, content, kind, **more):
        data = content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data), **more}

    def manifest(self, config, layers, **more):
        body = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": layers}
        return self.add(body, OCI + "manifest.v1+json", **more)

    def write(self, path, root, version):
        named = {**root, "annotations": {"org.opencontainers.image.ref.name": version}}
        index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [named]}
        files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
        files |= {f"blobs/sha256/{digest}": data for digest, data in self.blobs.items()}
        folders = [(name, 0o755, 0, None) for name in ("blobs", "blobs/sha256")]
        pathlib.Path(path).write_bytes(tar(folders + [(name, 0o644, 0, data) for name, data in files.items()]))
        print(root["digest"])


def frame():
    """What the Dockerfile says of an image without its files."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    stage = re.search(r"^FROM scratch AS frame$(.*?)^FROM ", text, re.MULTILINE | re.DOTALL)
    if not stage:
        fail(f"{DOCKERFILE} has no stage \"frame\"")
    said = {}
    for word, rest in re.findall(r"^([A-Z]+) (.*)$", stage.group(1), re.MULTILINE):
        said.setdefault(word, []).append(rest)
    return {"User": said["USER"][0], "ExposedPorts": {f"{port}/tcp": {} for port in said["EXPOSE"]},
            "Env": [pair for line in said["ENV"] for pair in shlex.split(line)],
            "Entrypoint": json.loads(said["ENTRYPOINT"][0]), "Cmd": json.loads(said["CMD"][0]), "WorkingDir": "/",
            "Labels": dict(pair.split("=", 1) for line in said["LABEL"] for pair in shlex.split(line))}


def layer(folder, user):
    root = pathlib.Path(folder)
    if not root.is_dir():
        fail(f"no folder {folder}")
    entries = []
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            fail(f"{path} is neither a file nor a folder")
        entries.append((name, path.stat().st_mode & 0o7777, user if name == STATE else 0,
                        None if path.is_dir() else path.read_bytes()))
    return tar(entries)


def image(out, version, arguments):
    labels, platforms = {}, {}
    while arguments:
        word = arguments.pop(0)
        target = platforms
        if word == "--label" and arguments:
            word, target = arguments.pop(0), labels
        name, equals, value = word.partition("=")
        if not equals:
            fail(f"\"{word}\" is not NAME=VALUE")
        target[name] = value
    if not platforms:
        fail("an image needs ARCHITECTURE=FOLDER")
    layout, manifests, settings = Layout(), [], frame()
    settings["Labels"] |= labels
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for architecture, folder in sorted(platforms.items()):
        plain = layer(folder, int(settings["User"].split(":")[0]))
        platform = {"architecture": architecture, "os": "linux"}
        config = layout.add({**platform, "created": created, "config": settings,
                             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
                             "history": [{"created": created, "created_by": "tools/release.sh"}]}, OCI + "config.v1+json")
        packed = layout.add(gzip.compress(plain, 9, mtime=0), OCI + "layer.v1.tar+gzip")
        manifests.append(layout.manifest(config, [packed], platform=platform))
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": manifests}
    layout.write(out, layout.add(index, OCI + "index.v1+json"), version)


def chart(out, version, arguments):
    (path,) = arguments
    try:
        with tarfile.open(path) as file:
            (name,) = [name for name in file.getnames() if re.fullmatch(r"[^/]+/Chart\.yaml", name)]
            text = file.extractfile(name).read().decode()
    except (OSError, ValueError, tarfile.TarError):
        fail(f"{path} is not a packed chart")
    # What is one word or line there, which is all that Helm wants of it; lists stay in the chart.
    said = {key: value.strip("\"'") for key, value in re.findall(r"^(\w+): +([^\[\s].*)$", text, re.MULTILINE)}
    layout = Layout()
    config = layout.add(said, HELM + "config.v1+json")
    packed = layout.add(pathlib.Path(path).read_bytes(), HELM + "chart.content.v1.tar+gzip")
    layout.write(out, layout.manifest(config, [packed]), version)


def main(arguments):
    if len(arguments) < 4 or arguments[0] not in ("image", "chart"):
        sys.exit(__doc__)
    {"image": image, "chart": chart}[arguments[0]](arguments[1], arguments[2], arguments[3:])


if __name__ == "__main__":
    main(sys.argv[1:])
