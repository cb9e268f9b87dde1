# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger bill` over days in which a real Prometheus was down: it never looks complete and is not."""

import subprocess
import unittest

import harness
from bill_test import lines_of, run_bill
from prometheus_test import PROMETHEUS, PROMTOOL, Prometheus

BEGIN = 1759622400  # 2025-10-05
HOUR = 3600
EVERY = 60
WATTS = 500
DAY = ("--from=2025-10-05T00:01:00Z", "--to=2025-10-06")


class Storage:
    """Samples by hand, as OpenMetrics. Each test has a cluster of its own."""

    def __init__(self):
        self.samples = {}

    def put(self, name, labels, at, value):
        text = ",".join(f'{key}="{label}"' for key, label in labels.items())
        self.samples.setdefault(name, {}).setdefault(text, []).append((at, value))

    def scrape(self, target, at, started, namespace, pod, uuid=None, joules=None, allocated=()):
        """One GPU and one pod, which has had all of it since the start."""
        target = {"instance": target.get("node", "") + ":9400", **target}
        joules = (at - started) * WATTS if joules is None else joules
        gpu = {**target, "gpu": "0", "uuid": uuid or "GPU-" + target["node"]}
        owner = {**target, "gpu": "0", "namespace": namespace, "pod": pod, "pod_uid": pod, "container": "c"}
        self.put("gpu_ledger_device_energy_joules_total", gpu, at, joules)
        self.put("gpu_ledger_device_info", {**gpu, "model": "NVIDIA H200"}, at, 1)
        self.put("gpu_ledger_snapshot_timestamp_seconds", target, at, at)
        self.put("gpu_ledger_books_opened_timestamp_seconds", gpu, at, started)
        self.put("gpu_ledger_books_run", gpu, at, 1)
        self.put("gpu_ledger_node_boot_timestamp_seconds", target, at, started - 60)
        self.put("gpu_ledger_pod_energy_joules_total", {**owner, "energy_estimated": "false"}, at, joules)
        for one in allocated:
            self.put("gpu_ledger_allocation_info", {**gpu, "namespace": namespace, "container": "c",
                                                    "resource": "nvidia.com/gpu", **one}, at, 1)

    def text(self):
        lines = []
        for name, series in sorted(self.samples.items()):
            lines.append(f"# TYPE {name.removesuffix('_total')} {'counter' if name.endswith('_total') else 'gauge'}")
            for labels, samples in series.items():
                lines += [f"{name}{{{labels}}} {value} {at}" for at, value in samples]
        return "\n".join(lines) + "\n# EOF\n"


def minutes(begin, end):
    return range(BEGIN + int(begin * HOUR), BEGIN + int(end * HOUR) + 1, EVERY)


def write_reboot(storage):
    """ml works for four hours. The server is down for ten; meanwhile the node reboots without its state."""
    target = {"cluster": "reboot", "node": "a"}
    for at in minutes(0, 4):
        storage.scrape(target, at, BEGIN - 60, "ml", "train-0")
    for at in minutes(14, 24):
        storage.scrape(target, at, BEGIN + 4 * HOUR + 60, "search", "chat-0")


def write_lost(storage):
    """Three minutes before midnight two nodes are not scraped any more. One comes back on the 7th."""
    for at in minutes(0, 72):
        storage.scrape({"cluster": "lost", "node": "stays"}, at, BEGIN - 60, "ml", "train-0")
        if at <= BEGIN + 24 * HOUR - 180:
            storage.scrape({"cluster": "lost", "node": "gone"}, at, BEGIN - 60, "ml", "train-1")
        if at <= BEGIN + 24 * HOUR - 180 or at >= BEGIN + 60 * HOUR:
            storage.scrape({"cluster": "lost", "node": "mended"}, at, BEGIN - 60, "ml", "train-2")


def write_twice(storage):
    """One exporter, two jobs."""
    for at in minutes(0, 24):
        for target in ({"node": "gpu-7", "job": "monitor"}, {"instance": "10.0.0.7:9400", "job": "annotations"}):
            storage.scrape({"cluster": "twice", **target}, at, BEGIN - 60, "ml", "train-0", uuid="GPU-7")


def write_outage(storage):
    """A pod holds a GPU all the time, another until it ends while the server is down, from one to five and again to seven."""
    for at in [*minutes(0, 1), *minutes(5, 6), *minutes(7, 24)]:
        first = [{"pod": "train-0"}]
        storage.scrape({"cluster": "outage", "node": "a"}, at, BEGIN - 60, "ml", "train-0", allocated=first)
        if at <= BEGIN + 6 * HOUR:
            first.append({"pod": "eval-0"})
        storage.scrape({"cluster": "outage-2", "node": "b"}, at, BEGIN - 60, "ml", "train-0", allocated=first)


def write_slices(storage):
    """A pair of servers called A and B, and a pod with two slices of one GPU, whose label `replica` is kept."""
    slices = [{"pod": "train-0", "replica": one} for one in ("0", "1")]
    for at in minutes(0, 24):
        for replica in ("A", "B"):
            storage.scrape({"cluster": "slices", "node": "a", "replica": replica}, at, BEGIN - 60, "ml", "train-0",
                           allocated=slices if replica == "A" else ())


class Holes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.storage = Storage()
        write_reboot(cls.storage)
        write_lost(cls.storage)
        write_twice(cls.storage)
        write_outage(cls.storage)
        write_slices(cls.storage)

    def setUp(self):
        super().setUp()
        source = self.write("days.txt", self.storage.text())
        (self.folder / "tsdb").mkdir()
        subprocess.run([PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=744h", source,
                        self.folder / "tsdb"], check=True, capture_output=True, timeout=harness.NET)

    def test_holes(self):
        with Prometheus(self.folder, {}, flags=["--storage.tsdb.retention.time=20y"]) as prometheus:
            self.url = f"http://127.0.0.1:{prometheus.port}"
            for name in [name for name in dir(self) if name.startswith("check_")]:
                with self.subTest(name):
                    getattr(self, name)()

    def bill(self, cluster, *arguments, span=DAY):
        return run_bill(self.url, *span, f'--match=cluster="{cluster}"', *arguments)

    def check_a_reboot_that_nobody_saw(self):
        done = self.bill("reboot", "--format=csv", "--by=pod")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {name: float(row["charged_joules"]) for (_, name), row in lines_of(done).items()}
        # Up to the last scrape, and since the start of the second run.
        self.assertEqual(rows["ml/train-0"], (4 * HOUR - 60) * WATTS, rows)
        self.assertEqual(rows["search/chat-0"], (20 * HOUR - 60) * WATTS, rows)
        self.assertEqual(min(rows.values()), rows["ml/train-0"], rows)
        self.assertIn("a: restarted without --state-file at 2025-10-05 04:01:00Z", self.bill("reboot").stdout)

    def check_nodes_that_were_lost_just_before(self):
        sixth = ("--from=2025-10-06T00:10:00Z", "--to=2025-10-07")
        done = self.bill("lost", span=sixth)
        self.assertEqual(done.returncode, 1, done.stdout)
        for node in ("gone", "mended"):
            self.assertRegex(done.stdout, f"lost/{node}.*seen the day before, not in this span")
        self.assertEqual(self.bill("lost", "--allow-gaps", span=sixth).returncode, 0)
        eighth = self.bill("lost", span=("--from=2025-10-07T13:00:00Z", "--to=2025-10-08"))
        self.assertEqual(eighth.returncode, 0, eighth.stderr)

    def check_one_exporter_under_two_names(self):
        done = self.bill("twice")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("GPU-7 is there as node twice/10.0.0.7:9400 and as node twice/gpu-7; choose one with --match",
                      done.stderr)
        self.assertEqual(self.bill("twice", '--match=cluster="twice",job="monitor"').returncode, 0)

    def check_allocated_hours_of_an_outage(self):
        done = self.bill("outage", "--format=csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines_of(done)["owner", "ml"]["allocated_gpu_hours"], f"{24 - 1 / 60:.6f}")
        done = self.bill("outage-2", "--by=pod", "--format=csv")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, r"outage-2/b lacks 2025-10-05 06:0\d:00Z to 2025-10-05 07:00:00Z")
        rows = lines_of(done)
        self.assertEqual(rows["owner", "ml/train-0"]["allocated_gpu_hours"], f"{24 - 1 / 60:.6f}")
        self.assertAlmostEqual(float(rows["owner", "ml/eval-0"]["allocated_gpu_hours"]), 6, delta=0.1)

    def check_slices_of_a_gpu_beside_a_server_s_replica(self):
        done = self.bill("slices", "--format=csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines_of(done)["owner", "ml"]["allocated_gpu_hours"], f"{2 * (24 - 1 / 60):.6f}")


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL:
        raise SystemExit("prometheus and promtool are missing; tools/setup.sh --test installs them")
    unittest.main()
