# SPDX-License-Identifier: Apache-2.0
"""Every promise of the older systems, tried on the program: tests/data/older_promises.tsv, line by line."""

import re
import subprocess
import sys
import time
import unittest

import harness
import prometheus_test
import promises

SOURCE = harness.SOURCE
# A pod that works, a holder, and a process that comes and goes.
TWO_GPUS = """
seed: 1
gpus: [{model: H200}, {model: T4}]
processes:
  - {pid: 1001, name: python3, gpus: 0, memory: 8GiB, load: gemm, owner: {namespace: ml, pod: training-job, container: main}}
  - {pid: 1002, name: holder, gpus: 1, memory: 2GiB, load: idle, owner: none}
  - {pid: 1003, name: short, gpus: 1, memory: 1GiB, load: gemm, start: 2, end: 5, owner: none}
"""


class TableTest(unittest.TestCase):
    def test_the_table_is_whole(self):
        table = promises.read()
        self.assertGreater(len(table), 110)
        self.assertEqual(len({(one.system, one.kind, one.name) for one in table}), len(table), "a line comes twice")
        for one in table:
            self.assertIn(one.kind, promises.KINDS)
            self.assertIn(one.system, promises.SYSTEMS)
            if one.now != "same":
                self.assertNotEqual(one.note, "-", f"{one.name} differs and nobody is told why")

    def test_migration_tells_every_line(self):
        done = subprocess.run([sys.executable, SOURCE / "tools/older_names.py"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8")
        for one in promises.read():
            if one.kind != "query":
                self.assertIn(f"`{one.name}`", page)

    def test_every_query_is_asked_of_a_real_prometheus(self):
        self.assertGreater(len(prometheus_test.OLDER_QUERIES), 15)
        self.assertEqual(len(prometheus_test.OLDER_QUERIES), len(promises.of("query")))

    def test_files(self):
        for one in promises.of("file"):
            path = SOURCE / one.by
            self.assertTrue(path.exists(), one)
            if one.now == "same":
                self.assertIn(one.name, path.read_text(encoding="utf-8"), one)
            if one.name.startswith("examples/"):
                text = path.read_text(encoding="utf-8")
                for part in ("**Needs**", "**Trade-offs.**", "**To change.**"):
                    self.assertIn(part, text, one)


class ProgramTest(harness.Case):
    def start(self, *arguments, **more):
        return harness.Ledger(*arguments, scenario=self.write("s.yaml", TWO_GPUS), **more)

    def test_metrics_and_labels(self):
        environment = {"HTTP_PORT": "", "NODE_NAME": "n1"}
        rules = (SOURCE / "deploy/prometheus/compat.rules.yml").read_text(encoding="utf-8")
        with self.start(*harness.FAST, "--idle-interval=500ms", "--collector.dcgm-modern", environment=environment) as ledger:
            harness.wait_until(lambda: ledger.metrics().find("gpu_idle_process_idle_seconds", pid="1002"), 20, "idleness")
            harness.wait_until(lambda: ledger.metrics().find("my_gpu_process_active", pod="training-job"), 20, "the pod")
            pages = [ledger.metrics(), harness.Metrics(ledger.get("/gpu/metrics").text)]

            def series_of(name):
                return [labels for page in pages for labels, _ in page.find(name)]

            for one in promises.of("metric"):
                with self.subTest(one.name):
                    if one.now != "same":
                        self.assertIn(f"record: {one.name}\n", rules)
                        self.assertTrue(series_of(one.now))
                        continue
                    # A label that only processes of pods have is on one series at least.
                    labels = set() if one.by == "-" else set(one.by.split())
                    found = set().union(*series_of(one.name)) if series_of(one.name) else None
                    self.assertIsNotNone(found, "no series")
                    self.assertLessEqual(labels, found)
            for one in promises.of("label"):
                with self.subTest(one.name, system=one.system):
                    name = one.name if one.now == "same" else one.now
                    self.assertTrue([labels for labels in series_of(one.by) if name in labels])

    def test_flags(self):
        flags = [f"{one.name}={one.by}" for one in promises.of("flag") if one.name != "--listen-address"]
        self.assertEqual(len(flags), 8)
        with self.start(*flags) as ledger:
            self.assertTrue(ledger.metrics().find("my_gpu_process_active"))
        # One at a time, with a value that nobody can mean: each is known by its name, and looked at.
        for one in promises.of("flag"):
            done = subprocess.run([harness.BINARY, "once", "--backend=sim", f"{one.name}=\x01"], capture_output=True, text=True,
                                  check=False, timeout=30 * harness.SLOW, env=harness.clean_environment())
            with self.subTest(one.name):
                self.assertNotIn("unknown", done.stderr)
                if one.name != "--pod-resources-socket":
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(one.name.lstrip("-"), done.stderr)

    def test_variables_and_endpoints(self):
        port = harness.free_port()
        values = {"POLL_INTERVAL": "1s", "HTTP_PORT": str(port), "NODE_NAME": "n1", "POD_NAME": "p1", "POD_NAMESPACE": "s1"}
        self.assertEqual(set(values), {one.name for one in promises.of("environment")})
        scenario = self.write("s.yaml", TWO_GPUS)
        with harness.Program([harness.BINARY, "serve", "--backend=sim", f"--sim-scenario={scenario}"], values) as program:
            def answers():
                try:
                    return harness.get(port, "/readyz").status == 200
                except OSError:
                    return False
            harness.wait_until(answers, 20, f"an answer on the port of HTTP_PORT:\n{program.log()}")
            for one in promises.of("endpoint"):
                path = "/" + one.name.partition("/")[2]
                self.assertEqual(harness.get(port, path).status, 200, one)
            page = harness.Metrics(harness.get(port).text)
            (device, _), *_ = page.find("gpu_idle_device_power_watts")
            for name, label in (("NODE_NAME", "node"), ("POD_NAME", "pod"), ("POD_NAMESPACE", "namespace")):
                self.assertEqual(device[label], values[name])

    def test_a_poll_finds_new_processes_at_its_pace(self):
        # The lists alone show one that does nothing. The scan's own interval would end at 10 s.
        newcomer = "  - {pid: 1004, name: new, gpus: 1, memory: 1GiB, load: idle, start: 3, owner: none}\n"
        begin = time.monotonic()
        with harness.Ledger("--no-kubernetes-enabled", scenario=self.write("new.yaml", TWO_GPUS + newcomer),
                            environment={"POLL_INTERVAL": "1s"}) as ledger:
            harness.wait_until(lambda: ledger.metrics().find("gpu_idle_process_memory_used_bytes", pid="1004"), 25, "it")
            self.assertLess(time.monotonic() - begin, 8)

    def test_who_left_stays_for_a_while(self):
        """30 s; when they end is in the unit tests."""
        names = ["compute_utilization_percent", "memory_used_bytes", "idle_seconds", "idle_memory_bytes"]
        with self.start("--no-kubernetes-enabled", environment={"POLL_INTERVAL": "500ms"}) as ledger:
            values = lambda: {name: [value for _, value in ledger.metrics().find(f"gpu_idle_process_{name}", pid="1003")]
                              for name in names}
            harness.wait_until(lambda: values()["compute_utilization_percent"] > [0], 20, "it to work")
            gone = {name: [0] for name in names}
            harness.wait_until(lambda: values() == gone, 20, "it to leave and be shown with nothing")
            time.sleep(2)
            self.assertEqual(values(), gone)

    def test_gpus_that_this_node_does_not_have(self):
        with self.start(*harness.FAST, "--gpu.devices=0,1,2,3") as ledger:
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_missing"), 2)
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_visible"), 2)
            time.sleep(1)
            self.assertEqual(len(re.findall("names GPUs that are not there.*2, 3", ledger.log())), 1, ledger.log())
        with self.start(*harness.FAST, "--gpu.devices=1") as ledger:
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_missing"), 0)
            self.assertNotIn("not there", ledger.log())
        with self.start(*harness.FAST) as ledger:
            self.assertEqual(ledger.metrics().find("gpu_ledger_gpus_missing"), [])
        done = subprocess.run([harness.BINARY, "once", "--backend=sim", f"--sim-scenario={self.folder}/s.yaml",
                               "--gpu-devices=2,3"], capture_output=True, text=True, check=False,
                              timeout=30 * harness.SLOW, env=harness.clean_environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("--gpu-devices names 2, 3", done.stderr)

    def test_mig_before_hopper_calls_nobody_active(self):
        scenario = self.write("mig.yaml", """
seed: 1
gpus: [{model: A100-40GB, mig: [{gi: 1, ci: 0, profile: 3g.20gb}]}]
processes:
  - {pid: 1001, gpus: 0, mig: {gi: 1, ci: 0}, memory: 4GiB, load: idle, owner: none}
""")
        with harness.Ledger(*harness.FAST, "--idle-interval=300ms", scenario=scenario) as ledger:
            harness.wait_until(lambda: ledger.metrics().find("gpu_process_info"), 20, "the process")
            time.sleep(2)
            page = ledger.metrics()
            ((labels, _),) = page.find("gpu_process_info")
            self.assertEqual(labels["status"], "unknown")
            for name in ("gpu_idle_process_idle_seconds", "gpu_idle_process_idle_memory_bytes", "gpu_idle_memory_total_bytes"):
                self.assertEqual(page.find(name), [], name)


if __name__ == "__main__":
    unittest.main()
