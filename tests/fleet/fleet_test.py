# SPDX-License-Identifier: Apache-2.0
"""Fifty simulated nodes, one real Prometheus with the rules: is the sum right, and what does it cost?

ctest --test-dir build/dev -L '^fleet$' -V prints the figures that docs/fleet.md carries on to 10,000 nodes.
FLEET_NODES and FLEET_SECONDS change the size and the length, FLEET_PRESET=lean the collectors.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness
import node
from prometheus_test import PROMETHEUS, Prometheus
from bill_test import lines_of, run_bill, stamp
from quick_rules import quick_rules
from token_servers import NAMES, TokenServers

NODES = int(os.environ.get("FLEET_NODES", "50"))
SECONDS = int(os.environ.get("FLEET_SECONDS", "60"))
PRESET = os.environ.get("FLEET_PRESET", "compatible")
MOST_SERIES = {"compatible": 475, "lean": 320}  # 450 today; one node in lean 275
RULES = ("parameters.rules.yml", "node.rules.yml", "fleet.rules.yml", "tokens.rules.yml")
POWER, TIME = "cluster:gpu_ledger_power_watts:rate5m", "gpu_ledger_snapshot_timestamp_seconds"
OWNERS = [f"gpu_ledger_{kind}_energy_joules_total" for kind in ("pod", "slurm_job", "container", "host", "unknown_owner")]
OWNERS.append("gpu_ledger_closed_energy_joules")

# The rules with a "minute" of four seconds and windows of twenty, so that a minute's test sees many of them.
MINUTE, WINDOW = 4, 20
# Of the pod serve of the first nodes, for each joule that its exporter has booked: 1.6 J per token, prompt and generated.
TOKENS_PER_JOULE = (0.5, 0.125)


def joules(metrics):
    """Of one node: (of all GPUs, {namespace: of its pods})."""
    spaces = {}
    for labels, value in metrics.find("gpu_ledger_pod_energy_joules_total"):
        spaces[labels["namespace"]] = spaces.get(labels["namespace"], 0) + value
    return metrics.total("gpu_ledger_device_energy_joules_total"), spaces


class Watched(Prometheus):
    def at(self, text, when):
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": when})
        answer = json.loads(harness.get(self.port, path).text)
        if answer["status"] != "success":
            raise AssertionError(f"{text}: {answer.get('error')}")
        return {
            tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in answer["data"]["result"]
        }

    def number(self, text, when=None):
        (value,) = self.at(text, when or time.time()).values()
        return value

    def own(self, name):
        """A figure of Prometheus itself."""
        return float(re.search(rf"^{name} (\S+)$", harness.get(self.port, "/metrics").text, re.MULTILINE)[1])


class FleetTest(harness.Case):
    def test_fleet(self):
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")
        nodes = self.start_nodes()
        jobs = [
            {
                "job_name": "gpu-ledger",
                "honor_labels": True,
                "scrape_interval": "2s",
                "scrape_timeout": "2s",
                "static_configs": [{"targets": [f"127.0.0.1:{ledger.port}" for ledger in nodes]}],
            }
        ]
        jobs += self.token_jobs(nodes)
        with Watched(self.folder, jobs=jobs, rules=quick_rules(self.folder, RULES, MINUTE, WINDOW)) as prometheus:
            count = lambda: prometheus.query("count(node:gpu_ledger_power_watts:rate5m)")
            harness.wait_until(lambda: count() and count()[0]["value"][1] == str(NODES), "rules for every node")
            prometheus.wait_for_sample(POWER, time.time() + WINDOW + 2 * MINUTE)  # until every window is full
            begin, before = time.time(), self.read(nodes)
            rules = self.watch_rules(prometheus, begin + SECONDS)
            end, after = time.time(), self.read(nodes)
            # The nodes' rules and the cluster's are evaluated apart: the nodes' newest samples may have come after the
            # cluster's rule read them.
            harness.wait_to_pass(lambda: self.check_sums(prometheus))
            self.check_against_nodes(prometheus, before, after, begin, end)
            self.check_books(prometheus, after)
            self.check_cost(prometheus)
            self.check_tokens(prometheus, before, after, int(begin), int(end))
            self.report(prometheus, nodes, before, after, end - begin, rules)
            self.check_lost_node(prometheus, nodes)

    def start_nodes(self):
        """All at once, as a fleet would; each is ended by the test's clean-up."""
        nodes = []
        for number in range(NODES):
            path = self.write(f"node-{number}.yaml", node.scenario(number))
            ledger = harness.Ledger(f"--node-name=node-{number:02d}", f"--collector.preset={PRESET}", scenario=path,
                                    ready=False)
            self.addCleanup(ledger.__exit__)
            nodes.append(ledger)
        for ledger in nodes:
            try:
                harness.wait_until(ledger.is_ready, "a first snapshot")
            except AssertionError as error:
                raise AssertionError(f"{error}; it said:\n{ledger.log()}") from None
        return nodes

    def token_jobs(self, nodes):
        """On each of the first nodes, but not the one that will end, another server, in a pod that shares its GPU."""
        number = {name: which for which, name in enumerate(NAMES)}

        def counted(name):
            joules = nodes[number[name]].metrics().total("gpu_ledger_pod_energy_joules_total", pod=f"serve-{number[name]}")
            return [joules * times for times in TOKENS_PER_JOULE]

        servers = TokenServers(counted)
        self.addCleanup(servers.server_close)
        self.addCleanup(servers.shutdown)
        return [servers.job(name, {"namespace": node.TEAMS[which % 5], "pod": f"serve-{which}"}, scrape_interval="2s",
                            scrape_timeout="2s") for name, which in number.items() if which < NODES - 1]

    def read(self, nodes):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda ledger: ledger.metrics(), nodes))

    def check_sums(self, prometheus):
        """At the moment of the cluster's newest sample: what the nodes say, added up."""
        when = prometheus.number(f"timestamp({POWER})")
        cluster = prometheus.number(POWER, when)
        self.assertGreater(cluster, NODES * 100)
        self.assertAlmostEqual(
            prometheus.number("sum(node:gpu_ledger_power_watts:rate5m)", when), cluster, delta=1e-6 * cluster
        )
        self.assertAlmostEqual(
            prometheus.number("sum(cluster_owner:gpu_ledger_power_watts:rate5m)", when),
            cluster,
            delta=1e-6 * cluster,
            msg="owners and nobody are not all there is",
        )
        billed = prometheus.number("cluster:gpu_ledger_energy_kwh:minute", when)
        self.assertAlmostEqual(prometheus.number("sum(account:gpu_ledger_energy_kwh:minute)", when), billed, delta=1e-9 * billed)
        recorded = prometheus.at("namespace:gpu_ledger_power_watts:rate5m", when)
        added = prometheus.at("sum by (namespace) (node_pod:gpu_ledger_power_watts:rate5m)", when)
        self.assertEqual(len(recorded), len(node.TEAMS))
        for labels, value in added.items():
            (same,) = [
                watts for key, watts in recorded.items() if dict(key)["namespace"] == dict(labels)["namespace"]
            ]
            self.assertAlmostEqual(same, value, delta=1e-6 * cluster)
        self.assertEqual(prometheus.number("cluster:gpu_ledger_gpus:sum"), 4 * NODES)

    def check_against_nodes(self, prometheus, before, after, begin, end):
        """What the rules recorded against what the nodes' own counters say, read past Prometheus: each at its own time."""
        def watts(of):
            return sum((of(b) - of(a)) / (b.value(TIME) - a.value(TIME)) for a, b in zip(before, after))

        measured = watts(lambda metrics: joules(metrics)[0])
        span = f"[{end - begin:.0f}s]"
        (bills,) = prometheus.query(f"cluster:gpu_ledger_energy_kwh:minute{span}", end)
        (first, _), *looks = [(float(when), float(kwh)) for when, kwh in bills["values"]]
        self.assertGreater(len(looks), 1)
        # Each look holds what was spent since the one before.
        recorded = 3.6e6 * sum(kwh for _, kwh in looks) / (looks[-1][0] - first)
        self.assertAlmostEqual(recorded / measured, 1, delta=0.1)
        mean = prometheus.number(f"sum(avg_over_time({POWER}{span}))", end)
        self.assertAlmostEqual(mean / measured, 1, delta=0.03)
        for team in node.TEAMS:
            spent = watts(lambda metrics, team=team: joules(metrics)[1].get(team, 0))
            mean = prometheus.number(
                f'avg_over_time(namespace:gpu_ledger_power_watts:rate5m{{namespace="{team}"}}{span})', end
            )
            self.assertAlmostEqual(mean / spent, 1, delta=0.05, msg=team)

    def check_books(self, prometheus, after):
        for metrics in after:
            self.assert_balanced(metrics)
        names = "|".join([*OWNERS, "gpu_ledger_device_unattributed_joules_total"])
        worst = prometheus.number(
            "max(abs(sum by (instance, gpu) (gpu_ledger_device_energy_joules_total)"
            f' - sum by (instance, gpu) ({{__name__=~"{names}"}})))'
        )
        self.assertLess(worst, 0.001)

    def check_cost(self, prometheus):
        when = prometheus.number("timestamp(cluster:gpu_ledger_cost:minute)")
        kwh = prometheus.number("cluster:gpu_ledger_energy_kwh:minute", when)
        self.assertAlmostEqual(prometheus.number("cluster:gpu_ledger_cost:minute", when) / kwh, 0.30, places=6)
        self.assertAlmostEqual(prometheus.number("cluster:gpu_ledger_co2e_grams:minute", when) / kwh, 400, places=3)

    def check_tokens(self, prometheus, before, after, begin, end):
        """What a token took, by the rules and by the bill, against what was given for a joule."""
        def summed(series, **labels):
            chosen = ",".join(f'{label}="{value}"' for label, value in labels.items())
            return prometheus.number(f"sum(sum_over_time(pod_model:gpu_ledger_{series}:rate5m{{{chosen}}}[{end - begin}s]))", end)

        truth = 1 / sum(TOKENS_PER_JOULE)
        done = run_bill(f"http://127.0.0.1:{prometheus.port}", f"--from={stamp(begin)}", f"--to={stamp(end)}", "--step=20s",
                        "--by=pod", "--per=token", "--format=csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        billed = lines_of(done)
        for which, name in list(enumerate(NAMES))[:NODES - 1]:
            tokens = summed("tokens", pod=f"serve-{which}")
            own, with_idle = (summed("power_watts", pod=f"serve-{which}", idle=idle) for idle in ("excluded", "included"))
            self.assertAlmostEqual(own / tokens / truth, 1, delta=0.03, msg=name)
            of_gpu = lambda metrics, series: metrics.total(f"gpu_ledger_device_{series}_joules_total", gpu="1")
            drawn, nobodys = (of_gpu(after[which], series) - of_gpu(before[which], series) for series in ("energy", "unattributed"))
            self.assertAlmostEqual(with_idle / own / (drawn / (drawn - nobodys)), 1, delta=0.03, msg=name)
            row = billed["owner", f"{node.TEAMS[which % 5]}/serve-{which}"]
            self.assertAlmostEqual(float(row["joules_per_token"]) / truth, 1, delta=0.05, msg=name)

    def check_lost_node(self, prometheus, nodes):
        nodes[-1].stop()
        gpus = lambda: prometheus.number("cluster:gpu_ledger_gpus:sum")
        harness.wait_until(lambda: gpus() == 4 * (NODES - 1), "a fleet without the node that ended")
        harness.wait_to_pass(lambda: self.assertEqual(len(prometheus.query("up == 0")), 1))

    def watch_rules(self, prometheus, until):
        """How long each run of a group took, as often as it runs."""
        times, newest = {}, 0
        while newest < until:
            prometheus.wait_for_sample(POWER, newest + 0.001)
            newest = prometheus.number(f"timestamp({POWER})")
            for group in json.loads(harness.get(prometheus.port, "/api/v1/rules").text)["data"]["groups"]:
                times.setdefault(group["name"], []).append(group["evaluationTime"])
        return times

    def report(self, prometheus, nodes, before, after, seconds, rules):
        of = lambda name: [metrics.value(name) for metrics in after]
        cpu = [
            (b.value("process_cpu_seconds_total") - a.value("process_cpu_seconds_total")) / seconds
            for a, b in zip(before, after)
        ]
        memory, series = of("process_resident_memory_bytes"), of("gpu_ledger_series")
        head = prometheus.own("prometheus_tsdb_head_series")
        recorded = prometheus.number('count({__name__=~".*:gpu_ledger_.*"})')
        of_nodes = prometheus.number('count({__name__=~"node.*:gpu_ledger_.*"})')
        plain, packed = (len(nodes[0].get("/metrics", headers).body) for headers in ({}, {"Accept-Encoding": "gzip"}))
        slowest = prometheus.number("max(max_over_time(scrape_duration_seconds[1m]))")
        lines = {
            "nodes": f"{NODES}, {PRESET}",
            "exporter: MB, median and worst": f"{statistics.median(memory) / 1e6:.1f}, {max(memory) / 1e6:.1f}",
            "exporter: % of a core, median and worst": f"{100 * statistics.median(cpu):.2f}, {100 * max(cpu):.2f}",
            "exporter: series": f"{statistics.median(series):.0f}, most {max(series):.0f}",
            "exporter: bytes of a scrape, packed": f"{plain}, {packed}",
            "Prometheus: series in its head": f"{head:.0f}",
            "Prometheus: series recorded by the rules": f"{recorded:.0f}, of which {of_nodes:.0f} per node",
            "Prometheus: resident memory": f"{prometheus.own('process_resident_memory_bytes') / 1e6:.0f} MB",
            "Prometheus: longest scrape": f"{1000 * slowest:.0f} ms",
            **{
                f"Prometheus: ms of the rules {name}, best and median": f"{1000 * min(all_of_them):.1f}, "
                f"{1000 * statistics.median(all_of_them):.1f}"
                for name, all_of_them in rules.items()
            },
        }
        print("\n" + "\n".join(f"fleet: {name}: {value}" for name, value in lines.items()), flush=True)
        self.assertLess(max(memory), 40e6)
        self.assertLess(statistics.median(cpu), 0.01)
        self.assertLess(max(series), MOST_SERIES[PRESET])


if __name__ == "__main__":
    unittest.main()
