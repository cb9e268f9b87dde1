# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm: whoever holds connections, reads slowly or guesses passwords shuts nobody out and costs little."""

import contextlib
import http.client
import pathlib
import re
import resource
import socket
import unittest

import harness

ATTACKERS = 300
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(address, receive_buffer=None):
    unix = isinstance(address, str)
    client = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    client.settimeout(harness.NET)
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect(address if unix else ("127.0.0.1", address))
    return client


def silent(address):
    return connect(address)


def half_sent(address):
    client = connect(address)
    client.sendall(b"GET /metrics HTTP/1.1\r\nHo")
    return client


def slow_reader(address):
    client = connect(address, receive_buffer=4096)
    client.sendall(REQUEST)
    return client


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=harness.NET)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)


def answers(address, path):
    connection = UnixConnection(address) if isinstance(address, str) else http.client.HTTPConnection(
        "127.0.0.1", address, timeout=harness.NET)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status == 200 and len(reply.read()) > 0
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def many_processes(folder, gpus, processes):
    """A scenario with that many processes on every GPU."""
    lines = ["gpus:"] + ["  - {model: H200}"] * gpus + ["processes:"]
    for gpu in range(gpus):
        for number in range(processes):
            lines.append(f"  - {{pid: {10000 + 1000 * gpu + number}, name: worker-{gpu}-{number}, gpus: {gpu}, memory: 64MiB, "
                         f"load: {{kind: gemm, weight: 1}}, owner: {{namespace: team-{gpu}, pod: train-{gpu}-{number}, "
                         f"container: main}}}}")
    path = pathlib.Path(folder) / "many.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


class AttacksTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.held = []

    def tearDown(self):
        for client in self.held:
            client.close()
        super().tearDown()

    def attack(self, kind, address, count=ATTACKERS):
        for _ in range(count):
            self.held.append(kind(address))

    def test_nobody_is_shut_out(self):
        path = str(self.folder / "http.sock")
        for kind in (silent, half_sent, slow_reader):
            for attacked in ("tcp", "unix"):
                # A slow reader needs more to read than the kernel buffers.
                crowd = many_processes(self.folder, 4, 64) if kind is slow_reader else None
                with self.subTest(kind=kind.__name__, attacked=attacked), harness.Ledger(
                        f"--listen-address=unix:{path}", scenario=crowd) as ledger:
                    self.attack(kind, ledger.port if attacked == "tcp" else path)
                    for _ in range(15):
                        for address in (ledger.port, path):
                            for wanted in ("/metrics", "/healthz"):
                                self.assertTrue(answers(address, wanted), f"{address}{wanted} beside {ATTACKERS} of them")
                    while self.held:
                        self.held.pop().close()

    def stamp(self, ledger):
        """Of the snapshot that it serves now."""
        return re.search(r"(?m)^gpu_ledger_snapshot_timestamp_seconds (\S+)$", ledger.get("/metrics").text)[1]

    def test_slow_readers_cost_little(self):
        def peak(ledger):
            status = pathlib.Path(f"/proc/{ledger.child.pid}/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) / 1024

        with harness.Ledger("--sample-interval=500ms", scenario=many_processes(self.folder, 8, 128)) as ledger:
            ledger.get("/metrics")
            ledger.get("/gpu/metrics")
            before = peak(ledger)
            for _ in range(20):
                self.attack(slow_reader, ledger.port, 2)
                stamp = self.stamp(ledger)
                harness.wait_until(lambda: self.stamp(ledger) != stamp, "another text")
            grown = peak(ledger) - before
            self.assertTrue(answers(ledger.port, "/metrics"))
        # 16 MiB of texts under way, the one being made and what the allocator keeps.
        self.assertLess(grown, 50 * harness.SLOW, f"40 slow readers cost {grown:.0f} MiB")

    def test_out_of_memory_is_one_line_and_no_abort(self):
        with harness.Ledger(*harness.FAST, scenario=many_processes(self.folder, 8, 128)) as ledger:
            status = pathlib.Path(f"/proc/{ledger.child.pid}/status").read_text()
            data = int(status.split("VmData:")[1].split()[0]) * 1024
            begin = len(ledger.log())  # a busy machine may have made it warn of a slow start
            resource.prlimit(ledger.child.pid, resource.RLIMIT_DATA, (data, data))

            def ends():
                with contextlib.suppress(OSError):
                    self.attack(slow_reader, ledger.port, 1)
                for path in ("/metrics", "/gpu/metrics", "/api/v1/snapshot"):
                    answers(ledger.port, path)
                return not ledger.alive()

            harness.wait_until(ends, "its end")
            self.assertEqual(ledger.child.poll(), 1, ledger.log())
            lines = [line for line in ledger.log()[begin:].splitlines() if "level=info" not in line]
            self.assertEqual(len(lines), 1, ledger.log())
            self.assertIn("out of memory", lines[0])


if __name__ == "__main__":
    unittest.main()
