# SPDX-License-Identifier: Apache-2.0
"""What the stage is made of: children that are always ended, folders and files of a node, an image."""

import hashlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tarfile

import harness


class Failure(Exception):
    """The stage could not be set up, or something on it did not happen in time."""


class Ended(Exception):
    """A part of the stage is gone: no use in waiting."""


def wait_for(condition, what):
    """The condition's first truthy value. Connections that are refused meanwhile are no error."""
    last = []

    def look():
        try:
            return condition()
        except (OSError, Failure) as error:
            last[:] = [error]
            return None

    try:
        return harness.wait_until(look, what)
    except AssertionError as error:
        raise Failure(f"{error}" + (f" ({last[0]})" if last else "")) from None


def call(*command, seconds=harness.NET, **options):
    """Output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{command[0]} failed with {done.returncode}: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


class Child:
    """A program with its output in a file."""

    def __init__(self, name, command, folder, environment=None):
        self.name, self.log_path = name, pathlib.Path(folder) / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(environment or {})})

    def check(self):
        if self.process.poll() is not None:
            raise Ended(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
        return True

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(harness.NET)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def tail(self, lines=15):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])


def libraries_of(program):
    """Every shared object a program needs, the dynamic linker included."""
    return sorted(set(re.findall(r"(/\S+)\s+\(0x", call("ldd", program))))


def write_image(path, name, files, command, entrypoint=()):
    """An OCI archive of one layer: files maps paths in the image to files here. No image builder is needed."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder in ("tmp", "proc", "sys", "dev", "etc", "var", "run"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for target, source in sorted(files.items()):
            entry = tarfile.TarInfo(target.lstrip("/"))
            source = pathlib.Path(source).resolve()
            entry.size, entry.mode = source.stat().st_size, 0o755
            with open(source, "rb") as content:
                archive.addfile(entry, content)
    blobs = {}

    def blob(content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def document(value, kind):
        return blob(json.dumps(value).encode(), f"application/vnd.oci.image.{kind}.v1+json")

    content = layer.getvalue()
    first = blob(content, "application/vnd.oci.image.layer.v1.tar")
    defaults = {"Entrypoint": list(entrypoint), "Cmd": command, "Env": ["PATH=/bin:/usr/bin"]}
    config = document({"architecture": "amd64", "os": "linux", "config": defaults,
                       "rootfs": {"type": "layers", "diff_ids": [first["digest"]]}}, "config")
    manifest = document({"schemaVersion": 2, "config": config, "layers": [first]}, "manifest")
    manifest["annotations"] = {"io.containerd.image.name": name}
    with tarfile.open(path, "w") as archive:
        texts = {"oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
                 "index.json": json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()}
        for target, text in {**texts, **{f"blobs/sha256/{digest}": text for digest, text in blobs.items()}}.items():
            entry = tarfile.TarInfo(target)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
