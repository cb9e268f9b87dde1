# SPDX-License-Identifier: Apache-2.0
"""The exporter under test and what can be seen of it from outside, for exact_time.py."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import urllib.request

HERTZ = os.sysconf("SC_CLK_TCK")


class Ledger:
    """One gpu-ledger serve; as a context it is started and ended."""

    def __init__(self, program, *flags, port=19501):
        # Its cost is to be measured, not limited.
        unlimited = ["--exact-time-budget=100%"] if "--exact-time=on" in flags else []
        self.command = [program, "serve", "--backend=nvml", f"--listen-address=127.0.0.1:{port}",
                        "--no-kubernetes-enabled", *flags, *unlimited]
        self.port = port
        self.log_file = None

    def start(self):
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(self.command, stderr=self.log_file, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        for _ in range(150):
            try:
                self.snapshot()
                return self
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("gpu-ledger did not start: " + self.log()) from None
                time.sleep(0.1)
        raise RuntimeError("gpu-ledger does not answer: " + self.log())

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=6)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)
        return time.monotonic() - began

    def log(self):
        return pathlib.Path(self.log_file.name).read_text()

    def snapshot(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/snapshot", timeout=5) as answer:
            return json.load(answer)

    def exact_time(self):
        return self.snapshot()["gpus"][0]["exact_time"]

    def wait_until_trusted(self, seconds):
        end = time.monotonic() + seconds
        said = {}
        while time.monotonic() < end:
            said = self.snapshot()["gpus"][0].get("exact_time", {})
            if said.get("trusted"):
                return
            time.sleep(0.3)
        raise RuntimeError(f"exact time is not on: {said.get('reason')}; {self.log()[-800:]}")


def stat_seconds(path):
    fields = pathlib.Path(path).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def cpu_seconds(pid):
    return stat_seconds(f"/proc/{pid}/stat")


def reader_cpu_seconds(pid):
    """Of the threads that read the trace. schedstat counts nanoseconds where stat counts hundredths of a second."""
    total = 0.0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() != "switch-trace":
            continue
        try:
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            total += stat_seconds(task / "stat")
    return total


def descriptors(pid):
    """How many of the driver's nodes the process has open."""
    count = 0
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += os.readlink(entry).startswith("/dev/nvidia")
        except OSError:
            pass  # closed meanwhile
    return count


def driver_messages():
    """The kernel's lines of the driver; none where they may not be read."""
    try:
        text = subprocess.run(["dmesg"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in text.splitlines() if "NVRM" in line or "nvidia" in line.lower()]
