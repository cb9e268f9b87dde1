# SPDX-License-Identifier: Apache-2.0
"""The image: built from deploy/docker/Dockerfile by a real builder (podman), then run as a hardened node would run it.

Takes the program from GPU_LEDGER_RELEASE, a release build; GPU_LEDGER_IMAGE_FROM_SOURCE=yes builds it in the image's own
first stage, which takes as long as a compiler needs. No registry is asked: the base is a Debian made by debootstrap.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import containers_test as engines
import harness
from deploy_parts import SOURCE, fetch, main

RELEASE = pathlib.Path(os.environ.get("GPU_LEDGER_RELEASE", SOURCE / "build/release"))
FROM_SOURCE = os.environ.get("GPU_LEDGER_IMAGE_FROM_SOURCE") == "yes"
LIMIT = 30_000_000
TAG = "gpu-ledger:test"
SCENARIO = """
seed: 1
gpus:
  - {{model: H200}}
processes:
  - {{pid: {pid}, gpus: 0, memory: 4GiB, load: gemm, real: true, owner: none}}
"""


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not engines.PODMAN:
        return "no podman"
    if not FROM_SOURCE and not (RELEASE / "gpu-ledger").exists():
        return f"no {RELEASE}/gpu-ledger; build the release first"
    return None if fetch("debian") else "no Debian to build on"


class Builder(engines.Podman):
    """Podman in a folder of its own; its base image is a clean Debian."""

    def build(self, context):
        arguments = ["--build-arg=BASE=localhost/" + engines.IMAGE]
        if not FROM_SOURCE:
            arguments.append("--target=prebuilt")
        return engines.run(
            [engines.PODMAN, *self.options, "build", f"--signature-policy={self.folder}/policy.json", *arguments,
             "--network=host" if FROM_SOURCE else "--network=none", "--ulimit=nofile=1024:1024",
             f"--ignorefile={context}/deploy/docker/Dockerfile.dockerignore",
             f"--file={context}/deploy/docker/Dockerfile", f"--tag={TAG}", context],
            self.environment, seconds=3600 if FROM_SOURCE else harness.NET)


def write_context(folder):
    """What `git archive` gives, and the release build where the Dockerfile looks for it."""
    files = engines.run(["git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard"]).splitlines()
    for name in files:
        if (SOURCE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, folder / name)
    if not FROM_SOURCE:
        (folder / "build/release").mkdir(parents=True)
        shutil.copy(RELEASE / "gpu-ledger", folder / "build/release/gpu-ledger")


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-image."))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        before = engines.traces()
        cls.addClassCleanup(engines.remove_traces, before)
        shutil.copy(fetch("debian"), cls.folder / "root.tar")
        (cls.folder / "podman").mkdir()
        cls.podman = Builder(cls.folder / "podman")
        cls.podman.__enter__()
        cls.addClassCleanup(cls.podman.__exit__)
        (cls.folder / "context").mkdir()
        write_context(cls.folder / "context")
        cls.podman.build(cls.folder / "context")
        (image,) = json.loads(cls.podman.client("image", "inspect", TAG))
        cls.image = image

    def test_small_and_without_a_shell(self):
        print(f"image: {self.image['Size'] / 1e6:.1f} MB", flush=True)
        self.assertLess(self.image["Size"], LIMIT)
        archive = self.folder / "image.tar"
        container = self.podman.client("create", TAG)
        self.podman.client("export", f"--output={archive}", container)
        self.podman.client("rm", container)
        with tarfile.open(archive) as tar:
            files = [entry.name for entry in tar if entry.isfile()]
            special = [entry.name for entry in tar.getmembers() if entry.isfile() and entry.mode & 0o6000]
        self.assertEqual(special, [], "no setuid files")
        self.assertIn("usr/bin/gpu-ledger", files)
        programs = [name for name in files if "bin/" in name]
        self.assertEqual(programs, ["usr/bin/gpu-ledger"])
        self.assertLess(len(files), 25, files)

    def test_settings(self):
        config = self.image["Config"]
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(config["Entrypoint"], ["/usr/bin/gpu-ledger"])
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=utility", config["Env"])

    def hardened(self, *arguments):
        return ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--pid=host", *arguments]

    def test_without_a_driver_it_says_so(self):
        done = subprocess.run(
            [engines.PODMAN, *self.podman.options, "run", "--rm", "--network=none", *self.hardened(TAG)],
            capture_output=True, text=True, timeout=60, env=harness.clean_environment(self.podman.environment))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cannot load the NVIDIA library", done.stderr)

    def test_the_simulated_node_is_in_it(self):
        port = harness.free_port()
        container = self.podman.client("run", "--detach", "--network=host", TAG, "serve", "--backend=sim",
                                       f"--listen-address=127.0.0.1:{port}")
        self.addCleanup(lambda: self.podman.client("rm", "--force", container))
        self.wait_for(port, container)
        metrics = harness.Metrics(harness.get(port).text)
        self.assertGreaterEqual(len(metrics.find("gpu_ledger_device_energy_joules_total")), 4)

    def wait_for(self, port, container):
        def ready():
            try:
                return harness.get(port, "/readyz").status == 200
            except OSError:
                running = self.podman.client("inspect", "--format={{.State.Running}}", container)
                self.assertEqual(running, "true", self.podman.client("logs", container))
                return False

        harness.wait_until(ready, "a snapshot")

    def test_runs_as_nobody_and_sees_the_host(self):
        # Laid where clusters without NVIDIA's toolkit mount the driver.
        driver = self.folder / "driver"
        driver.mkdir()
        library = harness.SIM / "libnvidia-ml.so.1"
        needed = [library, *(line.split()[2] for line in engines.run(["ldd", library]).splitlines() if "=> /" in line)]
        for path in map(pathlib.Path, needed):
            if not path.name.startswith(("libc.", "libm.", "ld-")):
                shutil.copy(path.resolve(), driver / path.name)
        sleeper = subprocess.Popen(["sleep", "300"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        (driver / "scenario.yaml").write_text(SCENARIO.format(pid=sleeper.pid))
        port = harness.free_port()
        container = self.podman.client(
            "run", "--detach", "--network=host", f"--volume={driver}:/usr/local/nvidia/lib64:ro",
            "--env=NVML_SIM_SCENARIO=/usr/local/nvidia/lib64/scenario.yaml",
            *self.hardened(TAG, "serve", "--backend=nvml", f"--listen-address=127.0.0.1:{port}"))
        self.addCleanup(lambda: self.podman.client("rm", "--force", container))
        self.wait_for(port, container)
        pid = self.podman.client("inspect", "--format={{.State.Pid}}", container)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.assertIn("Uid:\t65532\t", status)
        self.assertIn("CapEff:\t0000000000000000", status)
        metrics = harness.Metrics(harness.get(port).text)
        ((labels, value),) = metrics.find("my_gpu_process_active", pid=str(sleeper.pid))
        self.assertEqual((labels["process_name"], value), ("sleep", 1))
        # A clean end when the engine asks for it.
        self.podman.client("stop", "--time=10", container)
        self.assertEqual(self.podman.client("inspect", "--format={{.State.ExitCode}}", container), "0")


if __name__ == "__main__":
    main(missing())
