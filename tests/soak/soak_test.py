# SPDX-License-Identifier: Apache-2.0
"""A node on which everything goes wrong, watched for half an hour, and one real Prometheus that saw it all.

Two programs watch the same simulated node. "steady" runs all the time: its memory and the number of its series must stay
flat. "mortal" has a state file and is killed and started again and again: no counter of its books may ever fall. What
Prometheus kept of both is the proof, sample by sample.

ctest --test-dir build/dev -L '^soak$' -V          SOAK_MINUTES (30) and SOAK_SEED (by the clock; printed) in the environment
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness
import node
from prometheus_test import PROMETHEUS, Prometheus

MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
SEED = int(os.environ.get("SOAK_SEED", str(int(time.time()))))
SPEED = ("--sample-interval=200ms", "--process-scan-interval=400ms", "--idle-interval=400ms", "--metric-retention=10s")
OWNERS = [f"gpu_ledger_{kind}_energy_joules_total" for kind in ("pod", "slurm_job", "container", "host", "unknown_owner")]
OWNERS.append("gpu_ledger_closed_energy_joules")
DEVICE, REST = "gpu_ledger_device_energy_joules_total", "gpu_ledger_device_unattributed_joules_total"
# Of the program itself: they begin anew with it.
OF_THE_PROGRAM = ("gpu_ledger_sample_duration", "gpu_ledger_driver_call", "gpu_ledger_source_errors", "process_",
                  "gpu_ledger_device_refused_readings", *harness.OF_THE_TRACE)
WEB_CONFIG = "http_server_config: {headers: {X-Frame-Options: deny}}\n"
GUESTS = 300  # more than there are places


def pause(seconds):
    """Nothing is waited for: faults and kills come at random times."""
    time.sleep(seconds)


class Watcher(harness.Ledger):
    def folder(self):
        """Of its simulated node."""
        made = list(pathlib.Path(os.environ.get("TMPDIR", "/tmp")).glob(f"gpu-ledger-sim-{self.child.pid}-*"))
        return made[0] if made else None


class Kept(Prometheus):
    """What it kept, every sample of it until a moment that is the same for all queries: scrapes go on meanwhile."""

    until = None

    def samples(self, selector, seconds):
        """{labels: [(time, value)]}"""
        query = urllib.parse.urlencode({"query": f"{selector}[{int(seconds) + 60}s]", "time": self.until})
        answer = json.loads(harness.get(self.port, "/api/v1/query?" + query).text)
        if answer["status"] != "success":
            raise AssertionError(f"{selector}: {answer.get('error')}")
        return {tuple(sorted(series["metric"].items())): [(at, float(value)) for at, value in series["values"]]
                for series in answer["data"]["result"]}

    def counters(self):
        path = "/api/v1/targets/metadata?" + urllib.parse.urlencode({"match_target": '{job="steady"}'})
        found = json.loads(harness.get(self.port, path).text)["data"]
        names = {entry["metric"] for entry in found if entry["type"] == "counter"}
        # OpenMetrics leaves the ending out of the name of the family.
        return sorted(name if name.endswith("_total") else name + "_total" for name in names)


class SoakTest(harness.Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")
        self.seconds = MINUTES * 60
        self.chance = random.Random(SEED)
        print(f"\nsoak: {MINUTES:g} minutes, SOAK_SEED={SEED}", flush=True)
        span = self.seconds + 120
        self.scenarios = [self.write("node.yaml", node.scenario(SEED, span)),
                          self.write("slow.yaml", node.scenario(SEED, span, slow=True))]
        self.epoch = {"GPU_LEDGER_SIM_EPOCH": str(int(time.time()))}
        self.web_config = self.write("web.yml", WEB_CONFIG)
        self.ports = {"steady": harness.free_port(), "mortal": harness.free_port()}
        self.kills = self.refused = 0

    def start_mortal(self):
        """Without a driver it ends at once, and whoever minds it starts it again: so does this."""
        def try_once():
            try:
                return self.start_once()
            except AssertionError as error:
                if "driver not loaded" not in str(error):
                    raise
                self.refused += 1
                return None

        return harness.wait_until(try_once, "a driver: none of its reloads takes so long")

    def start_once(self):
        return Watcher(*SPEED, f"--state-file={self.folder / 'state'}", f"--textfile={self.folder / 'gpu.prom'}",
                       f"--web-config-file={self.web_config}", scenario=self.chance.choice(self.scenarios),
                       environment=self.epoch, port=self.ports["mortal"])

    def test_soak(self):
        with Watcher(*SPEED, scenario=self.scenarios[0], environment=self.epoch, port=self.ports["steady"]) as steady, \
                Kept(self.folder, self.ports) as prometheus:
            begin = time.monotonic()
            mortal = self.start_mortal()
            self.addCleanup(lambda: mortal.__exit__())
            while time.monotonic() - begin < self.seconds:
                mortal = self.one_life(mortal, steady, begin)
            seconds = time.monotonic() - begin
            prometheus.until = time.time()
            prometheus.wait_for_sample("process_start_time_seconds", prometheus.until)
            harness.wait_to_pass(lambda: self.check_alive(steady, prometheus))
            self.check_counters(prometheus, seconds)
            self.check_books(prometheus, seconds)
            self.check_flat(prometheus, steady, seconds)
            self.check_energy(prometheus, seconds)
            self.check_files(mortal)
            code = steady.stop()
            self.assertEqual(code, 0, steady.log())

    def one_life(self, mortal, steady, begin):
        """Until it is killed, mostly without warning; the one that follows it."""
        end = min(time.monotonic() + self.chance.uniform(8, 40), begin + self.seconds)
        while time.monotonic() < end:
            pause(min(self.chance.uniform(1, 5), max(0.1, end - time.monotonic())))
            self.assertTrue(steady.alive(), steady.log())
            self.assertTrue(mortal.alive(), mortal.log())
            self.disturb(self.chance.choice([mortal, steady]))
            self.beset(mortal)
        how = self.chance.choices([signal.SIGKILL, signal.SIGTERM], [4, 1])[0]
        code = mortal.stop(how)
        self.assertEqual(code, -signal.SIGKILL if how == signal.SIGKILL else 0, mortal.log())
        self.kills += 1
        mortal.__exit__()
        pause(self.chance.choice([0, 0, 1, 3, 6]))
        return self.start_mortal()

    def disturb(self, ledger):
        what = self.chance.randrange(5)
        folder = ledger.folder()
        if what == 0 and folder:
            # The kubelet goes away for a while: its answers, not the processes.
            for name in ("pods.json", "pod-resources.json"):
                away, here = folder / "kubelet" / f"{name}.away", folder / "kubelet" / name
                if here.exists():
                    here.rename(away)
            pause(self.chance.uniform(0.5, 3))
            for away in folder.glob("kubelet/*.away"):
                if not away.with_suffix("").exists():
                    away.rename(away.with_suffix(""))
        elif what == 1:
            ledger.send(signal.SIGHUP)
        elif what == 2:
            ledger.send(signal.SIGUSR1)
            pause(self.chance.uniform(0.2, 2))
            ledger.send(signal.SIGUSR2)

    def beset(self, mortal):
        what = self.chance.randrange(8)
        if what == 0:
            self.cut_web_config(mortal)
        elif what == 1:
            self.crowd(mortal)
        elif what == 2:
            self.second_writer()

    def cut_web_config(self, mortal):
        """As a disk that is full does: what is left of it protects less, and is not taken."""
        self.write("web.yml", WEB_CONFIG[:self.chance.randrange(len(WEB_CONFIG))])
        mortal.send(signal.SIGHUP)
        pause(self.chance.uniform(0.5, 2))
        self.assertEqual(mortal.get("/healthz").headers.get("X-Frame-Options"), "deny", mortal.log())
        self.write("web.yml", WEB_CONFIG)

    def crowd(self, mortal):
        """Guests from eight addresses who say nothing, ask and never read, or ask and leave. All others are served."""
        with contextlib.ExitStack() as guests:
            for number in range(GUESTS):
                guest = guests.enter_context(socket.create_connection(
                    ("127.0.0.1", mortal.port), harness.NET, source_address=(f"127.0.0.{2 + number % 8}", 0)))
                manner = self.chance.randrange(3)
                with contextlib.suppress(OSError):  # it had to make room
                    if manner > 0:
                        guest.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if manner > 1:
                    guest.close()
            self.assertEqual(mortal.get("/healthz").status, 200)
            self.assertEqual(mortal.get("/metrics").status, 200)

    def second_writer(self):
        """Another program leaves the textfile to the first."""
        done = subprocess.run(
            [harness.BINARY, "once", "--backend=sim", "--sample-interval=200ms", f"--textfile={self.folder / 'gpu.prom'}"],
            env=harness.clean_environment(), timeout=harness.NET, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is used by another gpu-ledger", done.stderr)

    def check_alive(self, steady, prometheus):
        self.assertTrue(steady.alive(), steady.log())
        for target in prometheus.targets():
            self.assertEqual(target["health"], "up", target)

    def runs(self, prometheus, job, seconds):
        """Of each scrape: when the program that answered had started."""
        (samples,) = prometheus.samples(f'process_start_time_seconds{{job="{job}"}}', seconds).values()
        return dict(samples)

    def check_counters(self, prometheus, seconds):
        names = prometheus.counters()
        self.assertGreaterEqual(len(names), 15)
        checked, fallen = 0, []
        for job in self.ports:
            started = self.runs(prometheus, job, seconds)
            lives = len(set(started.values()))  # the last but one may be too short for a scrape
            self.assertIn(lives, [1] if job == "steady" else [self.kills, self.kills + 1], job)
            for name in names:
                kept = not name.startswith(OF_THE_PROGRAM)
                for labels, samples in prometheus.samples(f'{name}{{job="{job}"}}', seconds).items():
                    for (before, value), (after, next_value) in zip(samples, samples[1:]):
                        checked += 1
                        if next_value >= value:
                            continue
                        same_run = started.get(before) == started.get(after)
                        if kept or same_run:
                            fallen.append(f"{dict(labels)} fell from {value} to {next_value} at {after}, "
                                          f"{'in one run' if same_run else 'over a restart'}")
        print(f"soak: {checked} steps of {len(names)} counters, over {self.kills} restarts, "
              f"{self.refused} of them without a driver at first", flush=True)
        self.assertEqual(fallen[:20], [], f"{len(fallen)} in all")
        self.assertGreater(checked, 1000)

    def check_books(self, prometheus, seconds):
        checked, worst = 0, 0.0
        for job in self.ports:
            sums = {}
            for sign, names in ((1, [DEVICE]), (-1, [*OWNERS, REST])):
                for name in names:
                    for labels, samples in prometheus.samples(f'{name}{{job="{job}"}}', seconds).items():
                        for at, value in samples:
                            key = (at, dict(labels)["gpu"])
                            sums[key] = sums.get(key, 0.0) + sign * value
            for (at, gpu), rest in sums.items():
                checked += 1
                worst = max(worst, abs(rest))
                self.assertLess(abs(rest), 0.001, f"the books of GPU {gpu} of {job} do not balance at {at}")
        print(f"soak: {checked} times the books of a GPU, worst {worst:.6f} J", flush=True)
        self.assertGreater(checked, 100)

    def check_flat(self, prometheus, steady, seconds):
        """Every owner has to turn up once, and the estimator looks back on 600 windows of every GPU: until they are full,
        about ten minutes, memory grows with every new process."""
        for name, slack, most in (("process_resident_memory_bytes", 3e6, 64e6), ("gpu_ledger_series", 60, 2500),
                                  ("process_open_fds", 8, 64)):
            (samples,) = prometheus.samples(f'{name}{{job="steady"}}', seconds).values()
            values = [value for _, value in samples]
            third = len(values) // 3
            early, late = statistics.median(values[third:2 * third]), statistics.median(values[2 * third:])
            print(f"soak: {name}: {early:.0f}, later {late:.0f}, most {max(values):.0f}", flush=True)
            self.assertLess(max(values), most, name)
            if seconds >= 25 * 60:
                self.assertLess(late, 1.05 * early + slack, f"{name} grows")
        self.assertEqual([line for line in steady.log().splitlines() if "level=error" in line], [])

    def check_energy(self, prometheus, seconds):
        """Nothing is booked twice: who was killed again and again has no more than who saw it all."""
        totals = {job: sum(samples[-1][1] for samples in prometheus.samples(f'{DEVICE}{{job="{job}"}}', seconds).values())
                  for job in self.ports}
        print("soak: " + ", ".join(f"{job} {joules / 3.6e6:.3f} kWh" for job, joules in totals.items()), flush=True)
        self.assertLess(totals["mortal"], 1.03 * totals["steady"])
        self.assertGreater(totals["mortal"], 0.8 * totals["steady"])

    def check_files(self, mortal):
        """Every kill may have left a file half written; every start clears it up."""
        mortal.stop()
        left = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual([name for name in left if name.startswith((".state", ".gpu.prom", "state.broken"))], [])


if __name__ == "__main__":
    unittest.main()
