# SPDX-License-Identifier: Apache-2.0
"""What tools/release.sh, tools/oci.py and tools/sbom.py refuse, each in one line that names it; and that the public host's
workflow calls the same command."""

import os
import pathlib
import shutil
import tempfile
import unittest

import yaml
from deploy_parts import SOURCE, call, main, run

VERSION = yaml.safe_load((SOURCE / "deploy/helm/gpu-ledger/Chart.yaml").read_text())["appVersion"]
LATEST = SOURCE / "build/dist" / VERSION


class Refused(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-release."))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def refused(self, code, words, *command, **options):
        done = run(*command, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        (line,) = done.stderr.splitlines()
        self.assertIn(words, line)

    def test_arguments(self):
        release = SOURCE / "tools/release.sh"
        self.refused(2, "no version", release)
        self.refused(1, "CMakeLists.txt says version", release, "99.0.0")
        self.refused(2, 'no architecture "riscv64"', release, VERSION, "--only=riscv64")
        self.refused(2, 'unknown argument "--kee=x"', release, VERSION, "--kee=x")
        self.refused(2, 'not also "1.0.0"', release, VERSION, "1.0.0")
        self.refused(1, "/nowhere is not a private key", release, VERSION, "--key=/nowhere")

    def test_a_locked_key(self):
        call("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-aes256", "-pass", "pass:x",
             "-out", self.folder / "key.pem")
        self.refused(1, "without a passphrase", SOURCE / "tools/release.sh", VERSION, f"--key={self.folder}/key.pem")

    def test_versions_that_disagree(self):
        for name in ("tools/release.sh", "CMakeLists.txt", "CHANGELOG.md", "deploy/helm/gpu-ledger/Chart.yaml"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, self.folder / name)
        release, changes = self.folder / "tools/release.sh", self.folder / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace(f"## {VERSION}", "## 0.0.1"))
        self.refused(1, f'CHANGELOG.md has no section "## {VERSION}"', release, VERSION)
        changes.write_text(f"## {VERSION}\n")
        self.refused(1, "no git checkout", release, VERSION,
                     env={**os.environ, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)})
        chart = self.folder / "deploy/helm/gpu-ledger/Chart.yaml"
        chart.write_text(chart.read_text().replace(f'appVersion: "{VERSION}"', 'appVersion: "0.0.1"'))
        self.refused(1, "Chart.yaml says appVersion 0.0.1", release, VERSION)

    def test_no_compiler_for_arm64(self):
        for tool in pathlib.Path("/usr/bin").iterdir():
            if tool.name != "aarch64-linux-gnu-g++":
                (self.folder / tool.name).symlink_to(tool)
        before = LATEST.stat().st_mtime if LATEST.exists() else None
        for arguments in ([], ["--only=arm64"]):
            self.refused(1, "aarch64-linux-gnu-g++ is missing; run tools/setup.sh --release, or leave arm64 out: --only=amd64",
                         SOURCE / "tools/release.sh", VERSION, *arguments, env={**os.environ, "PATH": str(self.folder)})
        self.assertEqual(LATEST.stat().st_mtime if LATEST.exists() else None, before, "nothing was made")

    def test_no_place_for_libraries_of_arm64(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder), "GPU_LEDGER_FETCH_SECONDS": "0"}
        self.refused(1, "is not there and there is no time to get it", SOURCE / "tools/arm64_root.sh", env=environment)

    def test_parts_that_are_not_there(self):
        oci, sbom = SOURCE / "tools/oci.py", SOURCE / "tools/sbom.py"
        self.refused(1, "oci: no folder /nowhere", oci, "image", self.folder / "out", VERSION, "amd64=/nowhere")
        self.refused(1, 'oci: "amd64" is not NAME=VALUE', oci, "image", self.folder / "out", VERSION, "amd64")
        self.refused(1, "oci: /nowhere is not a packed chart", oci, "chart", self.folder / "out", VERSION, "/nowhere")
        (self.folder / "root").mkdir()
        (self.folder / "root/link").symlink_to("/etc/passwd")
        self.refused(1, "is neither a file nor a folder", oci, "image", self.folder / "out", VERSION,
                     f"amd64={self.folder}/root")
        self.refused(1, "gpu-ledger.map; build the release first", sbom, self.folder, "/bin/sh", VERSION, "amd64")


class Workflow(unittest.TestCase):
    def test_calls_the_one_command(self):
        said = yaml.safe_load((SOURCE / ".github/workflows/release.yml").read_text())
        self.assertEqual(said[True], {"push": {"tags": ["v*"]}}, "on: (YAML 1.1 reads it as true)")
        (job,) = said["jobs"].values()
        self.assertIn("debian:12", job["container"])
        script = "\n".join(step.get("run", "") for step in job["steps"])
        for words in ("tools/setup.sh --release", "tests/release/run", "tools/release.sh", "build/dist/"):
            self.assertIn(words, script)
        self.assertNotIn("${{", script, "what GitHub fills in comes as an environment variable, never as shell text")

    def test_signs_if_there_is_a_key(self):
        """The build step as it is, with other commands in the places of ours."""
        said = yaml.safe_load((SOURCE / ".github/workflows/release.yml").read_text())
        (step,) = [one for one in said["jobs"]["release"]["steps"] if one.get("name") == "build"]
        stub = '#!/bin/sh\necho "$0 $*" >>called; for one in "$@"; do case $one in --key=*) cat "${one#--key=}" >>called; esac; done\n'
        for secret in ("", "-----BEGIN EC PRIVATE KEY-----\nMHcC\n"):
            with self.subTest(secret=bool(secret)), tempfile.TemporaryDirectory() as folder:
                for name in ("setup.sh", "release.sh"):
                    path = pathlib.Path(folder) / "tools" / name
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(stub)
                    path.chmod(0o755)
                environment = {**os.environ, "GITHUB_REF_NAME": "v1.2.3", "SIGNING_KEY": secret, "HOME": folder, "TMPDIR": folder}
                done = run("sh", "-e", "-c", step["run"], cwd=folder, env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                called = (pathlib.Path(folder) / "called").read_text()
                self.assertIn("tools/release.sh 1.2.3", called)
                self.assertEqual("--key=" in called, bool(secret))
                self.assertIn(secret.strip(), called)
                self.assertEqual(list(pathlib.Path(folder).glob("tmp.*")), [], "the key is gone")


if __name__ == "__main__":
    main()
