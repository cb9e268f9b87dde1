# SPDX-License-Identifier: Apache-2.0
"""Every promise of the older systems, tried on the program: tests/data/older_promises.tsv, line by line."""

import re
import subprocess
import sys
import unittest

import harness
import older_texts
import promises
from prometheus_test import PROMETHEUS, Prometheus
from quick_rules import quick_rules

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
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8").replace("\\|", "|")
        for one in promises.read():
            for told in (one.name, one.now):
                self.assertTrue(told in ("same", "none") or f"`{told}`" in page, told)

    def test_nothing_of_the_older_texts_is_missing(self):
        if not older_texts.FOLDER.is_dir():
            self.skipTest("the texts of the older systems are not here")
        have = {(one.system, one.kind, one.name): one for one in promises.read()}
        found = list(older_texts.walk())
        kinds = {kind for _, kind, _, _ in found}
        self.assertEqual(kinds, set(promises.KINDS) - {"object", "endpoint"})  # these are parts of commands
        self.assertGreater(len(found), 100)
        for system, kind, name, proof in found:
            with self.subTest(kind, system=system, name=name):
                self.assertIn((system, kind, name), have)
                if proof:  # a flag's value, a metric's type
                    self.assertIn(proof, have[system, kind, name].by.split(), "it is promised so")

    def test_commands(self):
        """Those that are done in another way now stand on the page that tells it; what asks a port asks a promised one."""
        for one in promises.of("command"):
            with self.subTest(one.name):
                asked = re.search(r"localhost(:\d+/\S+)", one.name)
                if asked:
                    self.assertIn((one.system, asked[1]), [(each.system, each.name) for each in promises.of("endpoint")])
                if (SOURCE / one.by).is_file():
                    self.assertIn(one.now, " ".join((SOURCE / one.by).read_text(encoding="utf-8").replace("\\\n", " ").split()))
                for command in re.findall(r"gpu-ledger (?:serve|doctor|accounting \w+)\b", f"{one.now} {one.note}"):
                    done = subprocess.run([harness.BINARY, *command.split()[1:], "--help"], capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)

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
            harness.wait_until(lambda: ledger.metrics().find("gpu_idle_process_idle_seconds", pid="1002"), "idleness")
            harness.wait_until(lambda: ledger.metrics().find("my_gpu_process_active", pod="training-job"), "the pod")
            pages = [ledger.metrics(), harness.Metrics(ledger.get("/gpu/metrics").text)]

            def series_of(name):
                return [labels for page in pages for labels, _ in page.find(name)]

            for one in promises.of("metric"):
                with self.subTest(one.name):
                    name = one.name
                    if one.now != "same":
                        self.assertIn(f"record: {one.name}\n", rules)
                        name = one.now
                    kind, *labels = one.by.split()
                    self.assertIn(kind, [page.types.get(name) for page in pages])
                    # A label that only processes of pods have is on one series at least.
                    self.assertTrue(series_of(name), "no series")
                    self.assertLessEqual(set(labels), set().union(*series_of(name)))
            for one in promises.of("label"):
                with self.subTest(one.name, system=one.system):
                    name = one.name if one.now == "same" else one.now
                    self.assertTrue([labels for labels in series_of(one.by) if name in labels])

    def test_flags(self):
        """As the older text has them."""
        flags = [f"{one.name}={one.by}" for one in promises.of("flag") if one.name != "--listen-address"]
        with self.start(*flags) as ledger:
            self.assertTrue(ledger.metrics().find("my_gpu_process_active"))
        # One at a time, with a value that nobody can mean: each is known by its name, and looked at.
        for one in promises.of("flag"):
            done = subprocess.run([harness.BINARY, "once", "--backend=sim", f"{one.name}=\x01"], capture_output=True, text=True,
                                  check=False, timeout=harness.NET, env=harness.clean_environment())
            with self.subTest(one.name):
                self.assertNotIn("unknown", done.stderr)
                if one.name != "--pod-resources-socket":
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(one.name.lstrip("-"), done.stderr)

    def test_each_flag_acts(self):
        port = harness.free_port()
        alone = {"--kubernetes-enabled": "false", "--pod-resources-socket": f"{self.folder}/kubelet/k.sock"}
        together = {"--dcgm-update-frequency": "200ms", "--process-scan-interval": "500ms", "--metric-retention": "1s",
                    "--metric-prefix": "mine", "--enable-energy-estimation": "false", "--gpu-idle-power": "33",
                    "--listen-address": f"127.0.0.1:{port}", "--metrics-path": "/mine", "--log-level": "debug"}
        self.assertEqual({*alone, *together}, {one.name for one in promises.of("flag")})
        scenario = self.write("s.yaml", TWO_GPUS + """
  - {pid: 1004, name: new, gpus: 1, memory: 1GiB, load: idle, start: 3, owner: none}
  - {pid: 1005, name: other, gpus: 0, memory: 1GiB, load: gemm, owner: none}
  - {pid: 2000, name: leaves, gpus: 1, memory: 1GiB, load: idle, repeat: {every: 6, lives: 5}, owner: none}
""")
        with harness.Program([harness.BINARY, "serve", "--backend=sim", f"--sim-scenario={scenario}",
                              *[f"{name}={value}" for name, value in together.items()]]) as program:
            def page():
                try:
                    answer = harness.get(port, "/mine")
                    return harness.Metrics(answer.text if answer.status == 200 else "")
                except OSError:
                    return harness.Metrics("")
            (one_that_leaves, _), *_ = harness.wait_until(lambda: page().find("mine_active", process_name="leaves"),
                                                          "an answer")
            newcomer = lambda: [found for found in [page()] if found.find("mine_active", pid="1004")]
            (found,) = harness.wait_until(newcomer, f"a newcomer:\n{program.log()}")
            cycles = found.value("gpu_ledger_sample_duration_seconds_count")
            self.assertLess(cycles, 45, "by itself a scan comes after 10 s")
            self.assertEqual(harness.get(port, "/metrics").status, 404)
            self.assertEqual(page().find("my_gpu_process_active"), [])
            times = set()

            def soon_after_another():
                times.add(page().value("gpu_ledger_snapshot_timestamp_seconds"))
                return any(0 < later - earlier < 0.5 for earlier in times for later in times)

            harness.wait_until(soon_after_another, "two looks in half a second; by itself there is one in a second")
            self.assertEqual({value for _, value in page().find("gpu_ledger_device_idle_power_watts")}, {33})
            harness.wait_until(lambda: page().total("gpu_ledger_device_unattributed_joules_total", reason="unseen") > 0,
                               "energy that is estimated for nobody")
            self.assertEqual(page().total("mine_energy_joules_total", energy_estimated="true"), 0)
            left = one_that_leaves["pid"]
            harness.wait_until(lambda: page().series and not page().find("mine_active", pid=left),
                               "the one that leaves to be forgotten; by itself that takes 5 minutes")
            self.assertIn("level=debug", program.log())
        pods = lambda ledger: [labels["pod"] for labels, _ in ledger.metrics().find("my_gpu_process_active") if "pod" in labels]
        with self.start() as ledger:
            harness.wait_until(lambda: pods(ledger), "pods")
            self.assertNotIn("level=debug", ledger.log())
        with self.start(*harness.FAST, "--kubernetes-enabled=false") as ledger:
            ledger.pass_cycles(10)
            self.assertEqual(pods(ledger), [])
        # The simulated node has no kubelet to ask. With its driver alone doctor looks at the place.
        done = subprocess.run([harness.BINARY, "doctor", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
                               f"--pod-resources-socket={alone['--pod-resources-socket']}"], capture_output=True, text=True,
                              check=False, env=harness.clean_environment({"NVML_SIM_SCENARIO": str(scenario)}))
        self.assertIn(f"neither {self.folder}/kubelet nor a cluster", done.stdout)

    def test_ports_without_a_setting(self):
        said = subprocess.run([harness.BINARY, "help"], capture_output=True, text=True, check=True).stdout
        (default,) = re.findall(r"--listen-address ADDRESS .*?\(default\s+(\S+?)[;)]", said, re.S)
        for one in promises.of("endpoint"):
            port = ":" + one.by.partition("HTTP_PORT=")[2] if "HTTP_PORT" in one.by else default
            self.assertTrue(one.name.startswith(port + "/"), one)

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
            harness.wait_until(answers, f"an answer on the port of HTTP_PORT:\n{program.log()}")
            for one in promises.of("endpoint"):
                path = "/" + one.name.partition("/")[2]
                self.assertEqual(harness.get(port, path).status, 200, one)
            page = harness.Metrics(harness.get(port).text)
            (device, _), *_ = page.find("gpu_idle_device_power_watts")
            for name, label in (("NODE_NAME", "node"), ("POD_NAME", "pod"), ("POD_NAMESPACE", "namespace")):
                self.assertEqual(device[label], values[name])

        done = subprocess.run([harness.BINARY, "once", "--backend=sim"], capture_output=True, text=True, check=False,
                              timeout=harness.NET, env=harness.clean_environment({"POLL_INTERVAL": "soon"}))
        self.assertEqual(done.returncode, 2)
        self.assertIn("POLL_INTERVAL", done.stderr)

    def test_a_poll_finds_new_processes_at_its_pace(self):
        # The lists alone show one that does nothing. The scan's own interval would end at 10 s.
        newcomer = "  - {pid: 1004, name: new, gpus: 1, memory: 1GiB, load: idle, start: 2, owner: none}\n"
        with harness.Ledger("--no-kubernetes-enabled", scenario=self.write("new.yaml", TWO_GPUS + newcomer),
                            environment={"POLL_INTERVAL": "1s"}) as ledger:
            shown = "gpu_idle_process_memory_used_bytes"
            here = lambda: [found for found in [ledger.metrics()] if found.find(shown, pid="1004")]
            (found,) = harness.wait_until(here, "it")
            self.assertLess(found.value("gpu_ledger_sample_duration_seconds_count"), 9)

    def test_who_left_stays_for_a_while(self):
        """30 s; when they end is in the unit tests."""
        names = ["compute_utilization_percent", "memory_used_bytes", "idle_seconds", "idle_memory_bytes"]
        again_and_again = "pid: 2000, name: short, gpus: 1, memory: 1GiB, load: gemm, repeat: {every: 5, lives: 3}"
        scenario = self.write("short.yaml", re.sub("pid: 1003.*end: 5", again_and_again, TWO_GPUS))
        with harness.Ledger("--no-kubernetes-enabled", scenario=scenario,
                            environment={"POLL_INTERVAL": "500ms"}) as ledger:
            use = "gpu_idle_process_compute_utilization_percent"
            works = lambda: [labels["pid"] for labels, value in ledger.metrics().find(use, process="short") if value]
            pid, *_ = harness.wait_until(works, "one to work")
            values = lambda: {name: [value for _, value in ledger.metrics().find(f"gpu_idle_process_{name}", pid=pid)]
                              for name in names}
            gone = {name: [0] for name in names}
            harness.wait_until(lambda: values() == gone, "it to leave and be shown with nothing")
            ledger.pass_cycles(4)
            self.assertEqual(values(), gone)

    def test_gpus_that_this_node_does_not_have(self):
        with self.start(*harness.FAST, "--gpu.devices=0,1,2,3") as ledger:
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_missing"), 2)
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_visible"), 2)
            ledger.pass_cycles(5)
            self.assertEqual(len(re.findall("names GPUs that are not there.*2, 3", ledger.log())), 1, ledger.log())
        with self.start(*harness.FAST, "--gpu.devices=1") as ledger:
            self.assertEqual(ledger.metrics().value("gpu_ledger_gpus_missing"), 0)
            self.assertNotIn("not there", ledger.log())
        with self.start(*harness.FAST) as ledger:
            self.assertEqual(ledger.metrics().find("gpu_ledger_gpus_missing"), [])
        done = subprocess.run([harness.BINARY, "once", "--backend=sim", f"--sim-scenario={self.folder}/s.yaml",
                               "--gpu-devices=2,3"], capture_output=True, text=True, check=False,
                              timeout=harness.NET, env=harness.clean_environment())
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
            harness.wait_until(lambda: ledger.metrics().find("gpu_process_info"), "the process")
            ledger.pass_cycles(10)
            page = ledger.metrics()
            ((labels, _),) = page.find("gpu_process_info")
            self.assertEqual(labels["status"], "unknown")
            for name in ("gpu_idle_process_idle_seconds", "gpu_idle_process_idle_memory_bytes", "gpu_idle_memory_total_bytes"):
                self.assertEqual(page.find(name), [], name)


class QueryTest(harness.Case):
    """Every query of the older pages, as it was and as it is to be written now, asked of a real Prometheus."""

    def setUp(self):
        super().setUp()
        self.assertTrue(PROMETHEUS, "prometheus is missing; tools/setup.sh --test installs it")

    def test_every_query(self):
        two = TWO_GPUS.replace("load: idle, owner: none", "load: idle, owner: {namespace: ml, pod: training-job-123, container: main}")
        queries = promises.of("query")
        self.assertGreater(len(queries), 15)
        with harness.Ledger(*harness.FAST, "--idle-interval=500ms", scenario=self.write("s.yaml", two)) as ledger:
            rules = quick_rules(self.folder, ["compat.rules.yml"], 1)
            with Prometheus(self.folder, {"gpu-ledger": ledger.port}, {"honor_labels": True}, rules=rules) as prometheus:
                harness.wait_until(lambda: prometheus.query("my_gpu_process_gpu_process_count offset 3s"), "rules")
                harness.wait_until(lambda: prometheus.query("gpu_idle_process_idle_seconds > 1"), "the holder")
                for one in queries:
                    with self.subTest(one.name):
                        self.compare(prometheus, one)

    def compare(self, prometheus, one):
        # Minutes of idleness are more than a test can wait for.
        quick = lambda query: re.sub(r"(idle_seconds[^>]*> )\d+", r"\g<1>1", query)
        now = prometheus.query(quick(one.name if one.now == "same" else one.now))
        self.assertTrue(now, "no data")
        labels = [series["metric"] for series in now]
        self.assertFalse([each for each in labels if "energy_estimated" in each], "two series for each process")
        without_name = lambda found: sorted(sorted((k, v) for k, v in one.items() if k != "__name__") for one in found)
        older = prometheus.query(quick(one.name))
        self.assertEqual(without_name([series["metric"] for series in older]), without_name(labels), "as it was")


if __name__ == "__main__":
    unittest.main()
