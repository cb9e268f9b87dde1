# SPDX-License-Identifier: Apache-2.0
"""Names of containers from a real dockerd and a real podman: their processes come out under the names people gave them.

The processes are plain ones that sleep; the simulated driver says that they use a GPU. Both daemons work in a folder of
the test's own, without a network, and are ended by their pid. Needs root. Exits 77 when nothing of it can run here.
"""

import contextlib
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import harness

DOCKERD, DOCKER, PODMAN = (shutil.which(name) for name in ("dockerd", "docker", "podman"))
BUSYBOX = shutil.which("busybox")
IMAGE = "gpu-ledger-test"
SKIPPED = 77

SCENARIO = """
seed: 1
gpus:
  - {{model: A100-40GB}}
processes:
  - {{pid: {named}, gpus: 0, memory: 4GiB, load: gemm, real: true, owner: none}}
  - {{pid: {other}, gpus: 0, memory: 1GiB, load: decode, real: true, owner: none}}
"""


def run(command, environment=None, seconds=harness.NET):
    """What it printed; an error with everything it said, if it failed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=harness.clean_environment(environment), timeout=seconds)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def write_root_filesystem(path):
    """One static program is enough of a system to sleep in."""
    with tarfile.open(path, "w") as tar:
        tar.add(os.path.realpath(BUSYBOX), arcname="bin/busybox")
        for folder in ("dev", "etc", "proc", "run", "sys", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)


def traces():
    """What the engines leave on a machine however they are told to keep to a folder."""
    patterns = ["/etc/docker/key.json", "/etc/cni/net.d/cni.lock"]
    patterns += [f"/sys/fs/cgroup/*/{name}/**/" for name in ("docker", "libpod_parent")]
    return {path for pattern in patterns for path in glob.glob(pattern, recursive=True)}


def remove_traces(before):
    for path in sorted(traces() - before, reverse=True):  # folders after what is in them
        with contextlib.suppress(OSError):  # in use again, so not ours
            os.rmdir(path) if os.path.isdir(path) else os.remove(path)


class Engine:
    """A container engine at work in a folder: a daemon, and a client for it."""

    def __init__(self, folder):
        self.folder = folder
        self.socket = folder / "s"
        self.containers = []

    def start(self, name):
        """Runs a container that sleeps; its id and the pid of its process as this machine counts."""
        sleeps = ("/bin/busybox", "sleep", "600")
        number = self.client("run", "--detach", "--network=none", f"--name={name}", IMAGE, *sleeps)
        self.containers.append(number)
        return number, int(self.client("inspect", "--format={{.State.Pid}}", number))

    def remove(self, number):
        self.client("kill", number)  # a first process ignores what is meant to end it, and rm waits ten seconds
        self.client("rm", "--force", number)
        self.containers.remove(number)

    def __exit__(self, *_):
        try:
            for number in list(self.containers):
                self.remove(number)
        finally:
            self.daemon.stop()
            self.daemon.__exit__()


class Docker(Engine):
    runtime = "docker"

    def __enter__(self):
        self.daemon = harness.Program([
            DOCKERD, f"--host=unix://{self.socket}", f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid", "--storage-driver=vfs", "--group=",
            "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"])
        try:
            harness.wait_until(self.answers, "dockerd")
            self.client("import", self.folder.parent / "root.tar", IMAGE)
        except BaseException:
            print(self.daemon.log()[-4000:], file=sys.stderr)
            self.__exit__()
            raise
        return self

    def answers(self):
        if not self.daemon.alive():
            raise AssertionError("dockerd ended")
        return self.socket.exists() and subprocess.run(
            [DOCKER, f"--host=unix://{self.socket}", "version"], capture_output=True, timeout=harness.NET).returncode == 0

    def client(self, *arguments):
        return run([DOCKER, f"--config={self.folder}/config", f"--host=unix://{self.socket}", *arguments])


class Podman(Engine):
    runtime = "podman"

    def __enter__(self):
        # Containers outlive the daemon, and even without it the client starts them; the rest is what this needs where
        # there is no systemd and raising limits is not allowed.
        (self.folder / "containers.conf").write_text("""
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
""")
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{self.folder}/data"\nrunroot = "{self.folder}/run"\n')
        (self.folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.environment = {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"), "TMPDIR": str(self.folder)}
        self.options = [f"--tmpdir={self.folder}/tmp"]
        self.client("import", f"--signature-policy={self.folder}/policy.json", self.folder.parent / "root.tar", IMAGE)
        self.daemon = harness.Program(
            [PODMAN, *self.options, "system", "service", "--time=0", f"unix://{self.socket}"], self.environment)
        harness.wait_until(self.socket.exists, "podman's service")
        return self

    def client(self, *arguments):
        return run([PODMAN, *self.options, *arguments], self.environment)


class Ledger(harness.Ledger):
    """On the simulated driver, but with the real /proc."""

    def __init__(self, scenario, *arguments):
        self.port = harness.free_port()
        harness.Program.__init__(self, [
            harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
            f"--listen-address=127.0.0.1:{self.port}", "--kubernetes-enabled=false", *harness.FAST, *arguments],
            {"NVML_SIM_SCENARIO": str(scenario)})
        try:
            harness.wait_until(self.is_ready, "a first snapshot")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n{self.log()}") from None


class ContainersTest(harness.Case):
    def setUp(self):
        # Short: the path of a unix socket has 107 bytes.
        folder = tempfile.TemporaryDirectory(prefix="gl-", dir="/tmp", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.addCleanup(remove_traces, traces())
        self.folder = pathlib.Path(folder.name)
        write_root_filesystem(self.folder / "root.tar")

    def check(self, engine_class):
        (self.folder / "e").mkdir()
        sleeper = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        with engine_class(self.folder / "e") as engine:
            number, pid = engine.start("chat-server")
            self.assertRegex(number, "^[0-9a-f]{64}$")
            scenario = self.write("scenario.yaml", SCENARIO.format(named=pid, other=sleeper.pid))
            sockets = {"docker": "", "podman": "", engine.runtime: str(engine.socket)}
            with Ledger(scenario, *(f"--{name}-socket={path}" for name, path in sockets.items())) as ledger:
                self.check_names(ledger, engine, number, pid)
                self.check_removal(ledger, engine, number)
                self.assert_balanced(ledger.metrics())
                self.assertEqual(ledger.stop(), 0)

    def check_names(self, ledger, engine, number, pid):
        labels = {"runtime": engine.runtime, "container_id": number, "container": "chat-server"}
        joules = lambda: ledger.metrics().total("gpu_ledger_container_energy_joules_total", **labels)
        harness.wait_until(lambda: joules() > 0, f"energy of {labels}; the program said:\n{ledger.log()}")
        metrics = ledger.metrics()
        found = {entry["container_id"] for entry, _ in metrics.find("gpu_ledger_container_energy_joules_total")}
        self.assertEqual(found, {number}, "the process outside is nobody's container")
        self.assertGreater(metrics.total("gpu_ledger_host_energy_joules_total"), 0)
        active = metrics.find("my_gpu_process_active", pid=str(pid))
        self.assertTrue(active)
        for entry, _ in active:
            self.assertEqual((entry.get("container"), entry.get("container_id")), ("chat-server", number))
        self.assertEqual(metrics.value("gpu_ledger_source_up", source=engine.runtime), 1)

    def check_removal(self, ledger, engine, number):
        """A container that is gone keeps its name and its joules."""
        labels = {"container_id": number, "container": "chat-server"}
        before = ledger.metrics().total("gpu_ledger_container_energy_joules_total", **labels)
        engine.remove(number)
        ledger.pass_cycles(10)
        after = ledger.metrics().total("gpu_ledger_container_energy_joules_total", **labels)
        self.assertGreaterEqual(after, before)

    @unittest.skipUnless(DOCKERD and DOCKER, "docker is not installed (Debian: docker.io)")
    def test_docker(self):
        self.check(Docker)

    @unittest.skipUnless(PODMAN, "podman is not installed (Debian: podman)")
    def test_podman(self):
        self.check(Podman)


if __name__ == "__main__":
    # gpu-ledger names no process where it does not see the host's pids.
    on_host = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    if os.geteuid() != 0 or not on_host or BUSYBOX is None or not (PODMAN or (DOCKERD and DOCKER)):
        print("skipped: needs root, the host's pid namespace, busybox-static, and docker or podman")
        sys.exit(SKIPPED)
    unittest.main()
