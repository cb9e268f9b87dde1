# SPDX-License-Identifier: Apache-2.0
"""Pushes to a real Prometheus by remote write: it has what a scraper would have, also after it was away."""

import http.server
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse

import harness

PROMETHEUS = shutil.which("prometheus")
DEVICE = "gpu_ledger_device_energy_joules_total"
TIME = "gpu_ledger_snapshot_timestamp_seconds"
TALK = 60  # MiB
NODE = """
gpus: [{model: H200}, {model: T4}]
processes:
  - {pid: 4101, name: alone, gpus: 0, memory: 9GiB, load: gemm, owner: {namespace: ml, pod: train-0, container: main}}
  - {pid: 4102, name: "odd \\\\ \\"name\\"", gpus: 1, memory: 2GiB, load: train, owner: {slurm: "7", step: "0"}}
"""


class Receiver(harness.Program):
    """A Prometheus that scrapes nothing and takes what is sent; with a web config over TLS. Its data stay."""

    def __init__(self, folder, port, web=None):
        config = folder / "prometheus.yml"
        config.write_text("{}", encoding="utf-8")
        self.port, self.folder, self.web = port, folder, web
        super().__init__([
            PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver", "--log.level=info",
            *([f"--web.config.file={web}"] if web else [])])
        harness.wait_until(self.answers, "Prometheus")

    def get(self, path):
        scheme = "https" if self.web else "http"
        arguments = ["curl", "-sS", "--fail", "--max-time", str(harness.NET), f"{scheme}://127.0.0.1:{self.port}{path}"]
        if self.web:
            arguments += ["--cacert", self.folder / "tls.crt", "--user", f"prometheus:{harness.PASSWORD}"]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=2 * harness.NET)

    def answers(self):
        return self.get("/-/ready").returncode == 0

    def query(self, text, at=None):
        fields = {"query": text, **({"time": f"{at:.3f}"} if at else {})}
        done = self.get("/api/v1/query?" + urllib.parse.urlencode(fields))
        if done.returncode:
            raise AssertionError(f"{text}: {done.stderr}")
        return json.loads(done.stdout)["data"]["result"]


class PushTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")

    def setUp(self):
        super().setUp()
        self.scenario = self.write("node.yaml", NODE)
        self.epoch = str(int(time.time()) - 50)
        self.port = harness.free_port()
        self.queue = self.folder / "queue"

    def push(self, *arguments, scheme="http", user="", **more):
        return harness.Ledger(
            f"--push-url={scheme}://{user}127.0.0.1:{self.port}/api/v1/write", "--push-interval=1s",
            "--sample-interval=500ms", "--process-scan-interval=500ms", "--node-name=node-1", *arguments,
            scenario=self.scenario, environment={"GPU_LEDGER_SIM_EPOCH": self.epoch}, **more)

    def samples(self, receiver, name, **labels):
        """Every sample that is stored, as (milliseconds, value), oldest first."""
        selector = ",".join(f'{key}="{value}"' for key, value in labels.items())
        (series,) = receiver.query(f"{name}{{{selector}}}[10m]")
        return [(round(float(at) * 1000), float(value)) for at, value in series["values"]]

    def test_the_receiver_has_what_a_scraper_has(self):
        web = harness.tls_and_a_password(self.folder)
        password = self.write("password", harness.PASSWORD + "\n")
        extra = {"cluster": "east", "instance": "node-1", "job": "gpu-ledger"}
        with Receiver(self.folder, self.port, web) as receiver, \
                self.push(f"--push-password-file={password}", f"--push-ca-file={self.folder / 'tls.crt'}",
                          "--push-labels=cluster=east", scheme="https", user="prometheus@") as ledger:
            for _ in range(2):
                # A scrape and a push of the same snapshot: every second one is pushed.
                def both():
                    scraped = ledger.metrics()
                    at = scraped.value(TIME)
                    stored = receiver.query('{job!=""}', at + 0.001)
                    times = [float(one["value"][1]) for one in stored if one["metric"]["__name__"] == TIME]
                    return (scraped, stored) if times == [at] else None

                scraped, stored = harness.wait_until(both, "a snapshot that both have")
                received = {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in stored}
                wanted = {}
                for (name, pairs), value in scraped.series.items():
                    wanted[tuple(sorted({**extra, **dict(pairs), "__name__": name}.items()))] = value
                self.assertGreater(len(wanted), 150)
                self.assertEqual(received, wanted)
                self.assertTrue(any('odd \\ "name"' in dict(key).values() for key in received))
            self.assertEqual(ledger.stop(), 0)
            self.assertEqual(receiver.query(DEVICE), [], "its series end with the program")
            self.assertTrue(receiver.query(f"last_over_time({DEVICE}[5m])"))
            problems = [line for line in receiver.log().splitlines() if re.search(r"level=(warn|error)", line)]
            self.assertEqual(problems, [])

    def test_an_outage_and_a_kill_lose_no_joule_and_count_none_twice(self):
        state = f"--state-file={self.folder / 'state'}"
        arguments = (state, f"--push-queue-dir={self.queue}")
        with Receiver(self.folder, self.port) as receiver:
            with self.push(*arguments) as ledger:
                harness.wait_until(lambda: receiver.query(DEVICE), "samples")
                receiver.stop()
                waiting = lambda program: program.metrics().value("gpu_ledger_push_queue_samples")
                before = self.blocks()
                harness.wait_until(lambda: len(self.blocks() - before) >= 4, "a queue")
                harness.wait_until(lambda: waiting(ledger) > 500, "the count of what is in it")
                harness.wait_until(lambda: not ledger.metrics().value("gpu_ledger_source_up", source="push"), "a failure")
                queued = self.blocks()
                ledger.stop(signal.SIGKILL)
            self.assertLessEqual(queued, self.blocks())
            with self.push(*arguments) as ledger:
                harness.wait_until(lambda: len(self.blocks() - queued) >= 3, "more in the queue")
                queued |= self.blocks()
                with Receiver(self.folder, self.port) as receiver:
                    harness.wait_until(lambda: not waiting(ledger), "an empty queue")
                    harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_source_up", source="push"), "its mending")
                    dropped = ledger.metrics().find("gpu_ledger_push_samples_dropped_total")
                    self.assertEqual({value for _, value in dropped}, {0})
                    self.assertEqual(len(dropped), 3)
                    last = ledger.metrics().value(TIME)
                    harness.wait_until(lambda: self.samples(receiver, TIME)[-1][0] > last * 1000, "a new sample")
                    self.check_outage(receiver, queued)
                    self.assertEqual(ledger.stop(), 0)

    def blocks(self):
        return {path.name for path in self.queue.glob("*.push")}

    def check_outage(self, receiver, queued):
        for gpu in "01":
            stored = self.samples(receiver, DEVICE, gpu=gpu)
            times = {at for at, _ in stored}
            self.assertEqual(len(times), len(stored))
            # Every snapshot of the outage, by both programs.
            during = {int(name.split("-")[2]) for name in queued}
            self.assertGreaterEqual(len(during), 7)
            self.assertLessEqual(during, times)
            # The meter never fell, so that what increase() adds is its difference: no joule lost, none twice.
            values = [value for _, value in stored]
            self.assertEqual(values, sorted(values))
            (resets,) = receiver.query(f'resets({DEVICE}{{gpu="{gpu}"}}[10m])')
            self.assertEqual(resets["value"][1], "0")
        # The books balance at each of these times, in what the receiver has.
        for at in sorted(during):
            owners = "{__name__=~\"gpu_ledger_(pod|slurm_job|container|host|unknown_owner)_energy_joules_total|" \
                     "gpu_ledger_closed_energy_joules|gpu_ledger_device_unattributed_joules_total\"}"
            gpus = receiver.query(f"sum by (gpu) ({DEVICE}) - sum by (gpu) ({owners})", at / 1000)
            self.assertTrue(gpus, at)
            for one in gpus:
                self.assertLess(abs(float(one["value"][1])), 0.001, (at, one))

    def test_a_silent_receiver_does_not_delay_the_end(self):
        with socket.create_server(("127.0.0.1", self.port)), self.push() as ledger:
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_push_queue_samples"), "a queue")
            self.assertEqual(ledger.stop(), 0)
            self.assertNotIn("no answer in time", ledger.log(), "it has waited for the answer to its end")

    def test_wrong_settings(self):
        url = "--push-url=http://127.0.0.1:1/api/v1/write"
        foreign = self.write("file", "x")
        for code, arguments, says in (
                (2, ["--push-url=127.0.0.1:9090"], ["--push-url", "http://"]),
                (2, ["--push-url=http://127.0.0.1:9090"], ["--push-url", "/api/v1/write"]),
                (2, ["--push-interval=5s"], ["--push-interval", "needs --push-url"]),
                (2, [url, "--push-interval=10ms"], ["--push-interval", "1s"]),
                (2, [url, "--push-queue-size=100"], ["--push-queue-size", "256MiB"]),
                (2, [url, "--push-labels=cluster"], ["--push-labels", "cluster=east"]),
                (2, [url, "--push-headers=Host=x"], ["--push-headers", "Host"]),
                (2, [url, "--push-password-file=/x"], ["--push-password-file", "USER@"]),
                (1, [url, f"--push-queue-dir={foreign}"], ["--push-queue-dir", foreign, "Not a directory"]),
                (1, [url, f"--push-queue-dir={self.folder}/no/such"], ["--push-queue-dir", "no/such", "create the folder"])):
            with self.subTest(arguments=arguments):
                done = subprocess.run([harness.BINARY, "serve", "--backend=sim", "--listen-address=127.0.0.1:0",
                                       "--log-level=error", *arguments], capture_output=True, text=True,
                                      timeout=harness.NET, env=harness.clean_environment())
                self.assertEqual(done.returncode, code, done.stderr)
                (line,) = done.stderr.splitlines()
                for word in says:
                    self.assertIn(str(word), line)
        self.assertEqual(foreign.read_text(encoding="utf-8"), "x")

    def test_doctor_asks_the_receiver(self):
        def doctor(path, *arguments, scheme="http"):
            done = subprocess.run([harness.BINARY, "doctor", "--backend=sim", "--listen-address=127.0.0.1:0",
                                   f"--sim-scenario={self.scenario}", *arguments,
                                   f"--push-url={scheme}://127.0.0.1:{self.port}{path}"], capture_output=True, text=True,
                                  timeout=harness.NET, env=harness.clean_environment())
            self.assertNotIn("HUSH", done.stdout + done.stderr)
            return [line for line in done.stdout.splitlines() if " push" in line]

        with Receiver(self.folder, self.port):
            good, queue = doctor("/api/v1/write?token=HUSH", f"--push-queue-dir={self.queue}")
            self.assertRegex(good, "ok    push: .*takes remote write")
            self.assertRegex(queue, "ok    push queue: .* will be created")
            self.assertRegex(doctor("/api/v1/nothing")[0], "FAIL  push: .*answers 404.*check the path")
            self.assertRegex(doctor("/api/v1/write", scheme="https")[0], "FAIL  push: .*does not speak TLS; write http:")
        gone, queue = doctor("/api/v1/write")
        self.assertRegex(gone, "FAIL  push: .*efused.*check address")
        self.assertRegex(queue, "warn  push queue: in memory")

    def test_what_a_receiver_says_takes_no_memory(self):
        answered = {"": 0, "x": 0}
        said = {"body": ""}

        class Talkative(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                body = said["body"]
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) * TALK))
                self.end_headers()
                for _ in range(TALK if body else 0):
                    self.wfile.write(body.encode())
                answered[body[:1]] += 1

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Talkative)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with self.push() as ledger:
            def peak():
                status = pathlib.Path(f"/proc/{ledger.child.pid}/status").read_text(encoding="utf-8")
                return int(status.split("VmHWM:")[1].split()[0]) / 1024

            harness.wait_until(lambda: answered[""] >= 2, "two pushes")
            before = peak()
            said["body"] = "x" * (1 << 20)
            harness.wait_until(lambda: answered["x"] >= 2, "two pushes with a large answer")
            sent = ledger.metrics().value("gpu_ledger_push_samples_sent_total")
            harness.wait_until(lambda: ledger.metrics().value("gpu_ledger_push_samples_sent_total") > sent, "one more")
            self.assertLess(peak() - before, 10)

    def test_a_queue_has_one_program(self):
        with self.push(f"--push-queue-dir={self.queue}"):
            with self.push(f"--push-queue-dir={self.queue}", ready=False) as second:
                self.assertEqual(second.child.wait(harness.NET), 1)
                self.assertIn("held by another program", second.log())


if __name__ == "__main__":
    unittest.main()
