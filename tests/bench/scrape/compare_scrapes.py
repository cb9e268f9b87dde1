#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a scrape costs: gpu-ledger, prometheus-cpp and client_golang with the same series, one connection.

  compare_scrapes.py --ours SERVE_OURS [--prometheus-cpp SERVE] [--client-golang SERVE] [--gpus 8 --processes 16]

fast: one request after another for some seconds; gpu-ledger makes new bytes every second, as the program does.
fresh: forty requests a second, and gpu-ledger makes new bytes for every one of them; with gzip, which Prometheus asks for,
and without.
"""
import argparse
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
PLAIN = b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n"
GZIP = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept-Encoding: gzip\r\n\r\n"
FRESH_PER_SECOND = 40
KINDS = (("fast", "1000", 0, GZIP), ("fresh, gzip", "20", FRESH_PER_SECOND, GZIP), ("fresh", "20", FRESH_PER_SECOND, PLAIN))


def write_series(text, path):
    """Gauges and counters; the few histograms are left out for the others."""
    types, lines = {}, []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        found = None if line.startswith("#") else SAMPLE.match(line)
        if not found or types.get(found[1]) not in ("gauge", "counter"):
            continue
        labels = [word for pair in LABEL.findall(found[2] or "") for word in pair]
        lines.append("\t".join([types[found[1]], found[1], found[3], *labels]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    def __init__(self, address, request):
        self.address = address
        self.request = request
        self.open()

    def open(self):
        host, port = self.address.rsplit(":", 1)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.socket = socket.create_connection((host, int(port)), timeout=30)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("closed by the server")
        self.buffer += data

    def take(self, size):
        while len(self.buffer) < size:
            self.more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        taken, self.buffer = self.buffer.split(b"\r\n", 1)
        return taken

    def scrape(self):
        """The size of the body."""
        try:
            self.socket.sendall(self.request)
            status = self.line()
        except ConnectionError:  # prometheus-cpp's server keeps none open
            self.socket.close()
            self.open()
            self.socket.sendall(self.request)
            status = self.line()
        assert b" 200 " in status, status
        headers = {}
        while line := self.line():
            name, value = line.split(b":", 1)
            headers[name.lower()] = value.strip().lower()
        assert (headers.get(b"content-encoding") == b"gzip") == (self.request is GZIP), headers
        if b"content-length" in headers:
            return len(self.take(int(headers[b"content-length"])))
        size = 0
        while length := int(self.line(), 16):
            size += len(self.take(length))
            self.line()
        self.line()
        return size


def measure(command, seconds, per_second, request):
    """CPU milliseconds per scrape, scrapes a second."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            connection = Connection(server.stdout.readline().strip(), request)
            connection.scrape()
            before, began, count = cpu_seconds(server.pid), time.monotonic(), 0
            while (now := time.monotonic()) < began + seconds:
                connection.scrape()
                count += 1
                if per_second:
                    time.sleep(max(0, began + count / per_second - now))
            took = time.monotonic() - began
            return (cpu_seconds(server.pid) - before) * 1e3 / count, count / took
        finally:
            server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--prometheus-cpp", default="")
    parser.add_argument("--client-golang", default="")
    parser.add_argument("--gpus", default="8")
    parser.add_argument("--processes", default="16")
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    size = [given.gpus, given.processes]
    text = subprocess.run([given.ours, "text", *size], stdout=subprocess.PIPE, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        series = pathlib.Path(folder) / "series.tsv"
        print(f"{given.gpus} GPUs x {given.processes} processes: {write_series(text, series)} series")
        results = {}
        for name, program in (("prometheus-cpp", given.prometheus_cpp), ("client_golang", given.client_golang)):
            if not os.path.exists(program):
                print(f"skipped: {name} is not here (Debian: prometheus-cpp-dev, golang-go and "
                      "golang-github-prometheus-client-golang-dev)")
                continue
            command = [program, str(series), str(free_port())]
            results[name] = [measure(command, given.seconds, pace, request) for _, _, pace, request in KINDS]
        ours = [measure([given.ours, period, *size], given.seconds, pace, request) for _, period, pace, request in KINDS]
    print(f"{'CPU ms per scrape':18}" + "".join(f"{kind:>14}" for kind, *_ in KINDS) + f"{'scrapes/s':>12}")
    for name, measured in {"gpu-ledger": ours, **results}.items():
        print(f"{name:18}" + "".join(f"{one[0]:14.3f}" for one in measured) + f"{measured[0][1]:12.0f}")
    for name, measured in results.items():
        times = [f"{kind} {theirs[0] / one[0]:.1f}" for (kind, *_), theirs, one in zip(KINDS, measured, ours)]
        print(f"{name}, times the CPU of gpu-ledger: {', '.join(times)}; 1/{ours[0][1] / measured[0][1]:.0f} of the scrapes/s")


if __name__ == "__main__":
    main()
