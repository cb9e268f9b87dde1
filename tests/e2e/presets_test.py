# SPDX-License-Identifier: Apache-2.0
"""The presets of collectors, and the metrics that people look for, on the simulated node."""

import collections
import json
import re
import socket
import subprocess
import sys
import unittest

import attacks_test
import harness
from prometheus_test import Prometheus, queries_of

sys.path.insert(0, str(harness.SOURCE / "tests" / "fleet"))
import node as fleet_node

# A desktop, a video job of Slurm that grows, a pod, and a container that docker alone can name.
NODE = """
seed: 1
gpus: [{model: L4}, {model: A100-40GB, mig: [{gi: 1, ci: 0, profile: 3g.20gb}]}]
processes:
  - {pid: 1001, name: Xorg, gpus: 0, kind: graphics, memory: 2GiB, load: idle, uid: 0, owner: {systemd: gdm.service}}
  - {pid: 1002, name: holder, gpus: 0, memory: 3GiB, load: idle, uid: 1000, owner: none}
  - {pid: 1003, name: ffmpeg, gpus: 0, memory: 1GiB, load: video, uid: 2001, owner: {slurm: "77", step: "0"}}
  - {pid: 1004, name: python3, gpus: 1, mig: {gi: 1, ci: 0}, memory: 4GiB, load: gemm, uid: 165536,
     owner: {namespace: ml, pod: train-0, container: main}}
"""


class PresetsTest(harness.Case):
    def once(self, *arguments, scenario=None):
        # Long enough that processes which share a GPU have estimated joules.
        command = [harness.BINARY, "once", "--backend=sim", "--sample-interval=2s", *arguments]
        if scenario:
            command.append(f"--sim-scenario={scenario}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.NET,
                              env=harness.clean_environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @staticmethod
    def series(text):
        """(name, pid or None) of every sample."""
        for line in text.splitlines():
            if not line.startswith("#"):
                name = line.split("{")[0].split(" ")[0]
                pid = line.split('pid="')[1].split('"')[0] if 'pid="' in line else None
                yield name, pid and pid.split("_")[-1]

    def count(self, text):
        """(series, {pid: series})"""
        all_of = list(self.series(text))
        return len(all_of), collections.Counter(pid for _, pid in all_of if pid)

    def test_the_cookbook_tells_what_lean_has(self):
        """Its table of names, and its queries about processes by these names, asked of a real Prometheus."""
        page = (harness.SOURCE / "docs" / "cookbook.md").read_text(encoding="utf-8")
        (table,) = re.findall(r"^\| by default \| with `lean` \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
        (first, *others) = [line.strip("| \n").split(" | ") for line in table.splitlines()]
        names = [f"my_gpu_process_{name}" for name in re.findall(r"`(\w+)`", first[0])[1:]]
        self.assertEqual(len(names), 4)
        (lean,) = re.findall(r"`(\w+)`", first[1])
        queries = [query for query in queries_of(page) if "my_gpu_process_" in query and
                   not re.search(r"my_gpu_process_(?!%s)" % "|".join(name[15:] for name in names), query)]
        self.assertGreater(len(queries), 3)
        queries = names + queries + [code for _, now in others for code in re.findall(r"`([^`]+)`", now)]
        with harness.Ledger("--collector.preset=lean", "--idle-interval=1s") as ledger:
            with Prometheus(self.folder, {"lean": ledger.port}, {"honor_labels": True}) as prometheus:
                prometheus.wait_for_answers([query.replace("my_gpu_process_", lean) for query in queries])
                self.assertEqual(prometheus.query('{__name__=~"(my_gpu_process|gpu_process|gpu_idle)_.*"}'), [])

    def test_series_of_both(self):
        """On one node, all of whose processes were seen for some time: what docs/decisions/0019-presets.md says."""
        counts = self.count_each(None, {"41001", "41302"})
        _, compatible = counts["compatible"]
        _, lean = counts["lean"]
        video = "45500"  # its encoder and decoder come on top
        for name, (total, processes) in counts.items():
            mean = sum(processes.values()) / len(processes)
            most = max(count for pid, count in processes.items() if pid != video)
            print(f"the simulated node, {name}: {total} series; a process {mean:.1f}, most {most}, "
                  f"with video {processes[video]}; {len(processes)} processes")
        self.assertGreaterEqual(len(lean), 13)
        for pid, count in lean.items():
            self.assertLessEqual(count, 9 if pid == video else 7, pid)
        self.assertGreater(sum(compatible.values()) / len(compatible), 12)
        self.check_totals(counts)

    def test_series_of_a_node_of_the_fleet(self):
        """That of the fleet test, and the one that docs/fleet.md carries on to 10,000."""
        nodes = {
            "a node of the fleet": (self.write("s.yaml", fleet_node.scenario(0)), {"1002", "1004"}),
            "8 GPUs with 2 pods each": (attacks_test.many_processes(self.folder, 8, 2), {"10000", "17001"}),
        }
        for node, (scenario, pids) in nodes.items():
            counts = self.count_each(scenario, pids)
            for name, (total, processes) in counts.items():
                print(f"{node}, {name}: {total} series; {len(processes)} processes")
            self.check_totals(counts)

    def count_each(self, scenario, pids):
        """{name: (series, {pid: series})} of one node, once these processes have been judged idle or not."""
        told = {
            "with driver calls": "{preset: compatible, driver-calls: true}",
            "compatible": "{preset: compatible}",
            "lean": "{preset: lean}",
        }
        file = self.write("c.yaml", f"collector: {told['with driver calls']}\n")
        counts = {}
        with harness.Ledger(*harness.FAST, f"--config={file}", scenario=scenario) as ledger:
            has = lambda name: ledger.metrics().find(name)
            seen = lambda: {labels["pid"] for labels, _ in has("gpu_idle_process_idle_seconds")}
            harness.wait_until(lambda: pids <= seen(), "neighbours")
            for name, settings in told.items():
                file.write_text(f"collector: {settings}\n", encoding="utf-8")
                ledger.send(harness.signal.SIGHUP)
                calls, older = name == "with driver calls", name != "lean"
                harness.wait_until(lambda: bool(has("gpu_ledger_driver_call_duration_seconds_count")) == calls
                                   and bool(has("my_gpu_process_active")) == older, name)
                counts[name] = self.count(ledger.get("/metrics").text)
        return counts

    def check_totals(self, counts):
        """Lean is less than half of all that there is, and well below what is shown without a word."""
        everything, compatible, lean = (counts[name][0] for name in ("with driver calls", "compatible", "lean"))
        self.assertGreater(everything - compatible, 200, "driver calls are many series, and off")
        self.assertLessEqual(lean, everything * 0.5)
        self.assertLessEqual(lean, compatible * 0.75)

    def test_lean_has_one_set_of_names(self):
        text = self.once("--collector.preset=lean")
        for name, _ in self.series(text):
            self.assertRegex(name, "^(gpu_ledger|process)_")
        metrics = harness.Metrics(text)
        for name in ("energy_joules_total", "gpu_seconds_total", "memory_used_bytes", "info", "memory_peak_bytes"):
            self.assertTrue(metrics.find("gpu_ledger_process_" + name), name)
        for name in ("books_opened_timestamp_seconds", "books_run", "node_boot_timestamp_seconds"):
            self.assertTrue(metrics.find("gpu_ledger_" + name), f"{name}, which bills need")
        self.assert_balanced(metrics)

    def test_a_collector_wins_over_the_preset(self):
        text = self.once("--collector.preset=lean", "--collector.idle", "--no-collector.device")
        self.assertIn("\ngpu_idle_process_memory_used_bytes{", text)
        self.assertNotIn("\ngpu_ledger_device_up", text)
        self.assertNotIn("\nmy_gpu_process", text)

    def test_a_preset_takes_effect_at_sighup(self):
        file = self.write("c.yaml", "collector: {preset: compatible}\n")
        with harness.Ledger(*harness.FAST, f"--config={file}") as ledger:
            self.assertTrue(ledger.metrics().find("my_gpu_process_active"))
            file.write_text("collector: {preset: lean}\n", encoding="utf-8")
            ledger.send(harness.signal.SIGHUP)
            harness.wait_until(lambda: not ledger.metrics().find("my_gpu_process_active"), "the older names to go")
            self.assertTrue(ledger.metrics().find("gpu_ledger_process_energy_joules_total"))

    def test_bad_input(self):
        for flag, words in (("--collector.preset=small", "not one of compatible or lean"),
                            (f"--passwd-file={self.folder}/none", "--passwd-file")):
            done = subprocess.run([harness.BINARY, "once", "--backend=sim", flag], capture_output=True, text=True,
                                  timeout=harness.NET, env=harness.clean_environment())
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
            self.assertIn(words, done.stderr)


class MetricsTest(harness.Case):
    def start(self, *arguments, **more):
        return harness.Ledger(*harness.FAST, *arguments, scenario=self.write("s.yaml", NODE), **more)

    def test_users(self):
        passwd = self.write("passwd", "carla:x:2001:1::/:\n")
        with self.start() as ledger:
            info = lambda **labels: ledger.metrics().find("gpu_ledger_process_info", **labels)
            harness.wait_until(lambda: info(pid="1003", uid="2001", user_name="ana", slurm_job_id="77", owner="slurm_job"),
                               "the user of the process")
            self.assertTrue(info(pid="1001", user_name="root", type="graphics", unit="gdm.service"))
            (pod, _), = info(pid="1004", uid="165536", owner="pod")
            self.assertNotIn("user_name", pod, "a uid of a user namespace has no name")
            (job, _), = harness.wait_until(lambda: ledger.metrics().find("gpu_ledger_slurm_job_info"), "the job")
            self.assertEqual((job["slurm_job_id"], job["job"], job["uid"], job["user_name"]), ("77", "77", "2001", "ana"))
            said = json.loads(ledger.get("/api/v1/snapshot").text)
            (one,) = [each for each in said["processes"] if each["pid"] == 1003]
            self.assertEqual((one["uid"], one["user_name"], one["type"], one["slurm_job_id"]), ("2001", "ana", "compute", "77"))
        with self.start(f"--passwd-file={passwd}") as ledger:
            harness.wait_until(lambda: ledger.metrics().find("gpu_ledger_process_info", user_name="carla"),
                               "the file's")

    def test_gpus_instances_and_requests(self):
        with self.start() as ledger:
            harness.wait_until(lambda: ledger.metrics().find("gpu_ledger_container_requested_devices"), "the request")
            page = ledger.metrics()
            self.assertEqual(page.value("gpu_ledger_device_power_limit_watts", gpu="0"), 72)
            self.assertEqual(page.value("gpu_ledger_performance_state", gpu="0"), 0)
            self.assertEqual(page.value("gpu_ledger_pcie_link_width", gpu="0"), 16)
            self.assertIn(page.value("gpu_ledger_pcie_link_generation", gpu="0"), (3, 4, 5))
            (device, _), = page.find("gpu_ledger_device_info", gpu="0")
            self.assertTrue(device["serial"] and device["vbios_version"])
            (instance, _), = page.find("gpu_ledger_mig_instance_info")
            self.assertEqual((instance["gpu"], instance["mig_profile"], instance["compute_slices"]), ("1", "3g.20gb", "3"))
            self.assertGreaterEqual(page.value("gpu_ledger_mig_instance_memory_used_bytes"), 4 << 30)
            labels = {"pod": "train-0", "container": "main", "resource": "nvidia.com/mig-3g.20gb"}
            for name in ("requested", "allocated"):
                self.assertEqual(page.value(f"gpu_ledger_container_{name}_devices", **labels), 1)

    def test_video_engines(self):
        with self.start() as ledger:
            name = "gpu_ledger_process_encoder_utilization_ratio"
            harness.wait_until(lambda: any(value > 0 for _, value in ledger.metrics().find(name, pid="1003")), "work")
            self.assertEqual({labels["pid"] for labels, _ in ledger.metrics().find(name)}, {"1003"})

    def test_a_desktop_is_no_waste(self):
        with self.start() as ledger:
            holder = lambda: [value for _, value in ledger.metrics().find("gpu_idle_process_idle_memory_bytes", pid="1002")]
            harness.wait_until(lambda: holder() == [3 << 30], "the holder to be idle")
            page = ledger.metrics()
            self.assertEqual(page.value("gpu_idle_memory_total_bytes", gpu="0"), 3 << 30)
            self.assertFalse(page.find("gpu_idle_process_idle_memory_bytes", pid="1001"))
            self.assertFalse(page.find("gpu_idle_process_idle_seconds", pid="1001"))
            self.assertEqual(page.value("gpu_idle_process_memory_used_bytes", pid="1001"), 2 << 30)

    def test_peaks_are_kept_over_a_restart(self):
        state = self.folder / "state"
        names = ("gpu_ledger_process_memory_peak_bytes", "gpu_ledger_slurm_job_memory_peak_bytes")
        peaks = lambda ledger: [[value for _, value in ledger.metrics().find(name)] for name in names]
        with self.start(f"--state-file={state}") as ledger:
            harness.wait_until(lambda: peaks(ledger)[1] == [1 << 30], "the peak of the job")
            ledger.stop()
        smaller = self.write("smaller.yaml", NODE.replace("memory: 1GiB", "memory: 512MiB"))
        with harness.Ledger(*harness.FAST, f"--state-file={state}", scenario=smaller) as ledger:
            used = lambda: ledger.metrics().value("my_gpu_process_memory_used_bytes", pid="1003")
            harness.wait_until(lambda: used() == 512 << 20, "it to hold less")
            self.assertEqual(peaks(ledger)[1], [1 << 30])


class NeededSourcesTest(harness.Case):
    """A docker socket that does not answer, and a process in docker that comes later."""

    def test_docker_is_missed_when_it_is_needed(self):
        path = self.folder / "docker.sock"
        dead = socket.socket(socket.AF_UNIX)
        self.addCleanup(dead.close)
        dead.bind(str(path))  # and never listens
        proc = self.folder / "proc"
        for pid, cgroup in ((7, "0::/system.slice/train.service\n"), (8, f"0::/system.slice/docker-{'a' * 64}.scope\n")):
            (proc / str(pid)).mkdir(parents=True)
            fields = "S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 100 1000 200 0"
            (proc / str(pid) / "stat").write_text(f"{pid} (train) {fields}\n", encoding="utf-8")
            (proc / str(pid) / "comm").write_text("train\n", encoding="utf-8")
            (proc / str(pid) / "cgroup").write_text(cgroup, encoding="utf-8")
        (proc / "stat").write_text("btime 1700000000\n", encoding="utf-8")
        scenario = self.write("s.yaml", """
gpus: [{model: H200}]
processes:
  - {pid: 7, name: train, gpus: 0, memory: 1GiB, load: gemm, real: true}
""")
        port = harness.free_port()
        command = [harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
                   f"--listen-address=127.0.0.1:{port}", *harness.FAST, "--no-kubernetes-enabled",
                   f"--docker-socket={path}", "--podman-socket=", f"--proc-root={proc}"]
        control = harness.Control(self.folder)
        with harness.Program(command, {"NVML_SIM_SCENARIO": str(scenario), **control.environment}) as program:
            page = lambda: harness.metrics_at(port) or harness.Metrics("")
            up = lambda: [value for _, value in page().find("gpu_ledger_source_up", source="docker")]
            seen = lambda pid: page().find("my_gpu_process_active", pid=pid)
            harness.wait_until(lambda: seen("7"), "the first process")
            self.assertEqual(page().value("gpu_ledger_node_boot_timestamp_seconds"), 1700000000)
            self.assertEqual(up(), [])
            self.assertNotIn("source fails", program.log())
            (source,) = [one for one in json.loads(harness.get(port, "/api/v1/snapshot").text)["sources"]
                         if one["source"] == "docker"]
            self.assertFalse(source["needed"])
            self.assertIn("not needed", source["reason"])
            control.say("do: process_start, process: {pid: 8, name: train, gpus: 0, memory: 1GiB, load: gemm, real: true}")
            harness.wait_until(lambda: seen("8"), "the process in docker")
            harness.wait_until(lambda: up() == [0], "docker to be missed")
            harness.wait_until(lambda: "source fails" in program.log(), "the log to say so")


if __name__ == "__main__":
    unittest.main()
