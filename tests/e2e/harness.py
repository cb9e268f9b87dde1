# SPDX-License-Identifier: Apache-2.0
"""Runs the real program on loopback and reads what it serves. Standard library only.

The environment names the parts: GPU_LEDGER_BINARY the program, GPU_LEDGER_SIM the folder with the simulated
driver, GPU_LEDGER_SOURCE the source tree. CMake sets all three. GPU_LEDGER_SLOW is a factor on the net, for builds with
sanitizers.

No test is about how long something takes: it waits for the state that must follow, with wait_until() and its like. Who
waits longer than the net hangs, and fails.
"""

import contextlib
import http.client
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BINARY = pathlib.Path(os.environ["GPU_LEDGER_BINARY"])
SIM = pathlib.Path(os.environ["GPU_LEDGER_SIM"])
SOURCE = pathlib.Path(os.environ["GPU_LEDGER_SOURCE"])
SLOW = float(os.environ.get("GPU_LEDGER_SLOW", "1"))
NET = 300 * SLOW  # seconds, of every wait, request and child
GIVEN_PORTS = set()  # by free_port(): none is given twice
FAST = ("--sample-interval=200ms", "--process-scan-interval=200ms", "--idle-interval=200ms")


def clean_environment(extra=None):
    """Without the settings that whoever runs the tests may have exported."""
    older = {"HTTP_PORT", "POLL_INTERVAL", "NODE_NAME", "POD_NAME", "POD_NAMESPACE"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GPU_LEDGER_") and k not in older}
    return {**kept, **(extra or {})}


def first_ephemeral_port():
    with contextlib.suppress(OSError):
        return int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return 32768


def of_age(seconds):
    """The environment of a simulated node that has run for so long already."""
    return {"GPU_LEDGER_SIM_EPOCH": f"{time.time() - seconds:.3f}"}


def free_port():
    """A port that nobody listens on. It lies below those that the kernel gives to outgoing connections: one of these could
    take the port before the program under test does."""
    end = first_ephemeral_port()
    for _ in range(1000):
        port = random.randrange(10000, min(end, 25000)) if end > 11000 else 0
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found = probe.getsockname()[1]
            if found not in GIVEN_PORTS:
                GIVEN_PORTS.add(found)
                return found
    raise AssertionError("no free port")


def wait_until(condition, what, net=NET):
    """The condition's first truthy value, or a test failure. A wider net is for what is known to take minutes."""
    deadline = time.monotonic() + net
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {net:.0f} s for {what}")
        time.sleep(0.05)


def wait_to_pass(check):
    """For what must become true and is looked at from outside: the first answer of check() that fails no assertion. At the
    end of the net its last failure counts."""
    failures = []

    def passes():
        try:
            return [check()]
        except AssertionError as failure:
            failures.append(failure)
            return None

    try:
        return wait_until(passes, "a check to pass")[0]
    except AssertionError:
        raise failures[-1] from None


class Control:
    """Switches faults of the simulated node by command: sim/README.md. A program sees it by `environment`."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "control"
        self.environment = {"GPU_LEDGER_SIM_CONTROL": str(self.path)}

    def say(self, *commands):
        """These hold from now on, and no others: say() ends all faults."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f"{{{command}}}\n" for command in commands), encoding="utf-8")
        os.replace(fresh, self.path)

    def noted(self):
        with contextlib.suppress(FileNotFoundError):
            return pathlib.Path(f"{self.path}.seen").read_text(encoding="utf-8").splitlines()
        return []

    def began(self, command):
        """Whether the node has seen this command."""
        return any(re.fullmatch(rf"begin [0-9]+ {re.escape(f'{{{command}}}')}", line) for line in self.noted())

    def count(self, entry):
        """How often the node noted this: "hangs nvmlInit_v2", "called nvmlInit_v2"."""
        return self.noted().count(entry)

    def wait(self, entry, more=1):
        """Until the node notes it so many more times."""
        before = self.count(entry)
        wait_until(lambda: self.count(entry) >= before + more, f"the node to note: {entry}")

    def wait_for_hang(self, call):
        wait_until(lambda: self.count(f"hangs {call}"), f"{call} to hang")


def moment(seconds):
    """Not a wait for anything: it moves what follows to another moment of the program under test."""
    time.sleep(seconds)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.text = body.decode("utf-8", errors="replace")


PASSWORD = "only-a-test"
PASSWORD_HASH = "$2b$05$abcdefghijklmnopqrstuuzm9xGwIXAkuOSXHcjtaMPml2p1jKcIi"  # bcrypt of it, cost 5


def tls_and_a_password(folder):
    """The web config of a server with a certificate for 127.0.0.1 (tls.crt, its own CA) and the user prometheus."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                   check=True, capture_output=True, timeout=NET)
    web = folder / "web.yml"
    web.write_text("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
                   f"basic_auth_users: {{prometheus: {PASSWORD_HASH}}}\n", encoding="utf-8")
    return web


def get(port, path="/metrics", headers=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=NET)
    try:
        connection.request(method, path, headers=headers or {})
        reply = connection.getresponse()
        return Answer(reply.status, dict(reply.getheaders()), reply.read())
    finally:
        connection.close()


class Program:
    """A child that is always ended and waited for, with its stderr in a file."""

    def __init__(self, command, environment=None):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors,
            env=clean_environment(environment))

    def send(self, number):
        self.child.send_signal(number)

    def freeze(self):
        """Until SIGCONT. All its threads stand still on return: kill() does not wait for that."""
        self.send(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.child.pid}/task")

        def stand_still():
            try:
                return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks.iterdir())
            except OSError:
                return False  # one of them has just ended

        wait_until(stand_still, "threads that stand still")

    def alive(self):
        return self.child.poll() is None

    def stop(self, number=signal.SIGTERM):
        """The exit code."""
        if self.alive():
            self.child.send_signal(number)
        try:
            self.child.wait(NET)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"did not end within {NET:.0f} s:\n{self.log()}") from None
        return self.child.returncode

    def log(self):
        self.errors.flush()
        self.errors.seek(0)
        return self.errors.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.alive():
            self.child.kill()
        self.child.wait()
        self.errors.close()


class Ledger(Program):
    """`gpu-ledger serve` on the simulated node, once its first snapshot is there."""

    def __init__(self, *arguments, scenario=None, environment=None, ready=True, port=None, through=(), program=BINARY):
        self.port = port or free_port()
        command = [*through, program, "serve", "--backend=sim", f"--listen-address=127.0.0.1:{self.port}", *arguments]
        if scenario:
            command.append(f"--sim-scenario={scenario}")
        super().__init__(command, environment)
        if ready:
            try:
                wait_until(self.is_ready, "a first snapshot")
            except AssertionError as error:
                said = f"{error}; it said:\n{self.log()}{self.threads()}"
                self.__exit__()
                raise AssertionError(said) from None

    def threads(self):
        """What each of its threads waits for in the kernel."""
        lines = []
        for task in sorted(pathlib.Path(f"/proc/{self.child.pid}/task").glob("*")):
            with contextlib.suppress(OSError):
                lines.append(f"{(task / 'comm').read_text().strip()} waits in {(task / 'wchan').read_text()}\n")
        return "".join(lines)

    def is_ready(self):
        if not self.alive():
            raise AssertionError(f"ended with {self.child.returncode}")
        with contextlib.suppress(OSError):
            return self.get("/readyz").status == 200
        return False

    def get(self, path="/metrics", headers=None, method="GET"):
        return get(self.port, path, headers, method)

    def metrics(self):
        answer = self.get("/metrics")
        if answer.status != 200:
            raise AssertionError(f"/metrics answered {answer.status}: {answer.text}")
        return Metrics(answer.text)

    def cycles(self):
        """How often it has looked at the GPUs."""
        return self.metrics().value("gpu_ledger_sample_duration_seconds_count")

    def pass_cycles(self, count):
        """Until it has looked that often again, and each time from the beginning: whatever it was going to do it has done.
        The metrics then."""
        end = self.cycles() + 1 + count  # one may be running
        wait_until(lambda: self.cycles() >= end, f"{count} more cycles")
        return self.metrics()


LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Metrics:
    """One exposition in the text format: {(name, labels): value}, labels as a sorted tuple of pairs."""

    def __init__(self, text):
        self.series, self.types = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.types[name] = kind
            if not line or line.startswith("#"):
                continue
            match = SAMPLE.match(line)
            if not match:
                raise AssertionError(f"not a sample: {line!r}")
            name, labels, value = match.groups()
            pairs = LABEL.findall(labels or "")
            unescape = lambda text: re.sub(r"\\.", lambda m: ESCAPES[m[0]], text)
            key = (name, tuple(sorted((k, unescape(v)) for k, v in pairs)))
            if key in self.series:
                raise AssertionError(f"the series {key} is there twice")
            self.series[key] = float(value)

    def find(self, name, **labels):
        """Every (labels, value) of a name whose labels include the given ones."""
        return [(dict(pairs), value) for (series, pairs), value in self.series.items()
                if series == name and labels.items() <= dict(pairs).items()]

    def value(self, name, **labels):
        found = self.find(name, **labels)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} series {name} {labels}, expected one")
        return found[0][1]

    def total(self, name, **labels):
        return sum(value for _, value in self.find(name, **labels))

    def counters(self):
        def is_counter(name):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            return self.types.get(name) == "counter" or self.types.get(base) == "histogram"

        return {key: value for key, value in self.series.items() if is_counter(key[0])}

    def imbalance(self):
        """For every GPU: joules of the device minus those of owners and reasons. Zero, if the books balance."""
        owners = [f"gpu_ledger_{kind}_energy_joules_total" for kind in ("pod", "slurm_job", "container", "host",
                                                                         "unknown_owner")]
        owners.append("gpu_ledger_closed_energy_joules")
        rest = {}
        for labels, value in self.find("gpu_ledger_device_energy_joules_total"):
            gpu = labels["gpu"]
            booked = sum(self.total(name, gpu=gpu) for name in owners)
            rest[gpu] = value - booked - self.total("gpu_ledger_device_unattributed_joules_total", gpu=gpu)
        return rest


def metrics_at(port):
    """What the program there shows; None as long as it has no snapshot."""
    with contextlib.suppress(OSError):
        answer = get(port)
        if answer.status == 200:
            return Metrics(answer.text)
    return None


# What is counted only while the program runs and the GPU answers: docs/exact-time.md.
OF_THE_TRACE = ("my_gpu_process_switches", "gpu_ledger_device_switch", "gpu_ledger_exact_time")


class Case(unittest.TestCase):
    """With the checks that several tests make."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def assert_balanced(self, metrics):
        rest = metrics.imbalance()
        self.assertTrue(rest, "no GPU")
        for gpu, joules in rest.items():
            self.assertLess(abs(joules), 0.001, f"the books of GPU {gpu} do not balance")

    def assert_never_fell(self, before, after, gone_allowed=()):
        """No counter fell, and none vanished but those with the given name prefixes, and those of a trace that ended.

        One that is still 0 may go: a process has a first series before it is known whether it shares.
        """
        then, now = before.counters(), after.counters()
        for key, value in then.items():
            if key in now:
                self.assertGreaterEqual(now[key], value, f"{key} fell")
            elif value > 0 and not key[0].startswith((*gone_allowed, *OF_THE_TRACE)):
                self.fail(f"{key} vanished")
