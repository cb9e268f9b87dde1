# SPDX-License-Identifier: Apache-2.0
"""What the tests of deploy/ share: parts of the machine that may be missing, and YAML."""

import functools
import os
import pathlib
import subprocess
import sys
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
CHART = SOURCE / "deploy/helm/gpu-ledger"
PLATFORMS = sorted((CHART / "platforms").glob("*.yaml"))
KUBERNETES = SOURCE / "deploy/kubernetes"
# Where an image would be: the chart renders nothing without one.
IMAGE = ("--values", HERE / "image.yaml")
SKIPPED = 77


def run(*command, seconds=120, **options):
    """The finished process; it may have failed."""
    return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds, check=False, **options)


def call(*command, **options):
    """Output of a command that must succeed."""
    done = run(*command, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def fetch(part):
    """Where a part is, or None; what is missing is said on stderr."""
    done = subprocess.run([HERE / "fetch", part], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=1200, check=False)
    return pathlib.Path(done.stdout.strip()) if done.returncode == 0 else None


@functools.lru_cache(maxsize=None)
def template(helm, *arguments):
    """What `helm template` prints. Tests ask for the same again and again."""
    return call(helm, "template", *arguments)


def render(helm, values=None, *arguments, release="gl", namespace="gpu-ledger", tests=False):
    """The objects a release would make; with tests also the pod of `helm test`."""
    files = [*IMAGE, *(["--values", values] if values else [])]
    if not tests:
        files.append("--skip-tests")
    text = template(helm, release, CHART, "--namespace", namespace, *files, *arguments)
    return [document for document in yaml.safe_load_all(text) if document]


def documents(path):
    """The objects in a plain manifest."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def pod_specs(objects):
    """The pod specs in these objects, wherever each kind keeps them."""
    for one in objects:
        spec = one.get("spec", {})
        if one["kind"] == "Pod":
            yield spec
        elif one["kind"] == "CronJob":
            yield spec["jobTemplate"]["spec"]["template"]["spec"]
        elif one["kind"] in ("DaemonSet", "Deployment"):
            yield spec["template"]["spec"]


def main(missing=None):
    """Runs the module's tests; 77 with the reason when a part is missing."""
    if missing:
        print(f"skipped: {missing}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)


def environment(**more):
    return {**os.environ, **more}
