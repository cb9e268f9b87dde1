# SPDX-License-Identifier: Apache-2.0
"""Two shards and Thanos over them, on simulated nodes: are totals, bills and dashboards right, whatever is lost?

East is scraped by two replicas, west by one server. Each runs node.rules.yml; Thanos' ruler runs fleet.rules.yml and the
parameters, with a price of its own for east. Beside them a single Prometheus scrapes west and runs everything.
A "minute" is four seconds here.
"""

import csv
import io
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness
import engine
import node
from bill_test import next_second
from dashboards_form_test import load, panels_of
from dashboards_test import fill_in
from prometheus_test import PROMETHEUS
from quick_rules import quick_rules

METER = "gpu_ledger_device_energy_joules_total"
MINUTE, WINDOW = 4, 20
NODES = 3  # of each cluster
EVERYTHING = {"cluster": ".*", "job": ".+", "namespace": ".*", "team": ".*", "pod": ".*", "slurm_job_id": ".*",
              "currency": "EUR", "node": ".*", "instance": ".+", "gpu": ".*"}
# What has no data on these nodes: nobody asked Kubernetes for a GPU, no alerts run.
EMPTY = {"GPUs given to pods", "GPUs given and GPUs at work", "GPUs given and not used", "Idle holders of GPU memory"}


def own_price(text):
    more = """      - record: gpu_ledger:price_per_kwh
        expr: vector(0.20)
        labels: {cluster: east}
"""
    return text + more if "gpu_ledger_parameters" in text else text


class ShardsTest(harness.Case):
    def setUp(self):
        super().setUp()
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")
        self.binary, why = engine.thanos()
        if not self.binary:
            self.skipTest(why)
        rules = lambda *names, **more: quick_rules(self.folder, [f"{name}.rules.yml" for name in names], MINUTE, WINDOW, **more)
        of_nodes, of_fleet = rules("node"), rules("fleet", "parameters", change=own_price)
        self.began = int(time.time()) - 1
        self.east, self.west = ([self.start_node(cluster, number) for number in range(NODES)] for cluster in ("east", "west"))
        ports = lambda ledgers: [ledger.port for ledger in ledgers]
        labels = lambda cluster, replica: {"cluster": cluster, "replica": replica}
        self.a0 = self.serve("a0", ports(self.east), of_nodes, labels("east", "0"))
        self.a1 = self.serve("a1", ports(self.east), of_nodes, labels("east", "1"))
        self.b0 = self.serve("b0", ports(self.west), of_nodes, labels("west", "0"))
        self.single = self.serve("single", ports(self.west), [*of_nodes, *of_fleet], None)
        self.thanos = engine.Thanos(self.binary, self.folder, [self.a0, self.a1, self.b0], of_fleet)
        self.addCleanup(self.thanos.close)

    def start_node(self, cluster, number, port=None):
        text = node.scenario(number).replace(f"pod: train-{number}, container: main, labels: {{}}",
                                             f"pod: train-{number}, container: main, labels: {{team: vision}}")
        self.assertIn("vision", text)
        path = self.write(f"{cluster}-{number}.yaml", text)
        ledger = harness.Ledger(f"--node-name={cluster}-{number}", "--pod-labels=team", scenario=path, port=port)
        self.addCleanup(ledger.__exit__)
        return ledger

    def serve(self, *arguments):
        server = engine.Server(self.folder, *arguments)
        self.addCleanup(server.stop)
        return server

    def test_totals_through_losses(self):
        known = lambda api, count: lambda: len(api.at("cluster:gpu_ledger_cost:minute > 0")) == count
        harness.wait_until(known(self.thanos, 2), "a bill of both clusters")
        harness.wait_until(known(self.single, 1), "a bill of the single Prometheus")
        self.pass_minutes(3, self.thanos, self.single)
        begin, one_begin = self.newest(self.thanos), self.newest(self.single)
        direct = self.counters()
        self.pass_minutes(5, self.thanos)
        self.assertEqual(self.thanos.ruler.unhealthy(), [])
        self.check_power(direct)
        self.check_dashboards()

        # The only server of west crashes, and the single Prometheus; ten minutes later both are back. Then a replica of east.
        for server in (self.b0, self.single):
            server.stop()
        self.pass_minutes(10, self.thanos)
        for server in (self.b0, self.single):
            server.start()
        self.a0.stop()
        self.pass_minutes(4, self.thanos)
        self.a0.start()
        # A node of east begins anew, without a state file. When west is there again, one of its nodes is lost for good.
        gone = self.freeze(self.east[-1], self.a0, self.a1)
        self.east[-1].stop()
        self.east[-1] = self.start_node("east", NODES - 1, self.east[-1].port)
        gpus = lambda count: lambda: list(self.thanos.at('cluster:gpu_ledger_gpus:sum{cluster="west"}').values()) == [4 * count]
        harness.wait_until(gpus(NODES), "a fleet with the server that came back")
        self.pass_minutes(2, self.thanos)
        gone += self.freeze(self.west[-1], self.b0)
        self.west[-1].stop()
        harness.wait_until(gpus(NODES - 1), "a fleet without the node that was lost")
        self.pass_minutes(3, self.thanos, self.single)
        self.assertEqual(self.thanos.ruler.unhealthy(), [])
        end, one_end = self.newest(self.thanos), self.newest(self.single)

        self.check_levels(self.thanos, begin, end)
        self.check_levels(self.single, one_begin, one_end)
        self.check_meters(begin, end, one_begin, one_end)
        self.check_prices(begin, end)
        self.check_bill(gone)
        megabytes = [f"{size / 1e6:.0f}" for size in self.thanos.memory()]
        spent = sum(group["evaluationTime"] for group in self.thanos.ruler.ask("rules")["groups"])
        print(f"\nshards: MB of sidecars, query, rule: {', '.join(megabytes)}; ms of the ruler's rules: {1000 * spent:.0f}", flush=True)

    def newest(self, api):
        """When the last bill was made."""
        return max(api.at("timestamp(cluster:gpu_ledger_energy_kwh:minute)").values())

    def pass_minutes(self, count, *apis):
        """Until each of them has billed so many more."""
        for api, until in [(api, self.newest(api) + count * MINUTE) for api in apis]:
            harness.wait_until(lambda: self.newest(api) >= until, f"{count} minutes more")

    def counters(self):
        """(time, joules) of each node."""
        seen = [ledger.metrics() for ledger in (*self.east, *self.west)]
        return [(metrics.value("gpu_ledger_snapshot_timestamp_seconds"), metrics.total(METER)) for metrics in seen]

    def freeze(self, ledger, *servers):
        """Its joules as they stay and as these servers have them: it releases the GPUs."""
        ledger.send(signal.SIGUSR1)
        def stored():
            metrics = ledger.metrics()
            if any(up for _, up in metrics.find("gpu_ledger_device_up")):
                return None
            joules = metrics.total(METER)
            known = [server.at(f'sum({METER}{{instance="127.0.0.1:{ledger.port}"}})') for server in servers]
            return joules if all(abs(sum(one.values()) - joules) < 1e-5 for one in known) else None
        return harness.wait_until(stored, "the last counters of a node")

    def check_bill(self, gone):
        """`gpu-ledger bill` over Thanos: what all meters counted, through replicas, a restart and a node that is lost."""
        expected = gone + sum(self.freeze(ledger, *servers) for ledgers, servers in (
            (self.east, (self.a0, self.a1)), (self.west[:-1], (self.b0,))) for ledger in ledgers)
        end = next_second()
        stamp = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
        command = [harness.BINARY, "bill", f"--prometheus-url=http://127.0.0.1:{self.thanos.port}", "--by=cluster",
                   f"--from={stamp(self.began)}", f"--to={stamp(end)}", "--step=20s", "--format=csv"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * harness.NET,
                              env=harness.clean_environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "the bill is incomplete: (east/east-2|west/west-2) lacks ")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        (meter,) = (row for row in rows if row["kind"] == "meter")
        self.assertEqual({row["name"] for row in rows if row["kind"] == "owner"}, {"east", "west"})
        joules = lambda row: float(row["charged_joules"])
        print(f"\nshards: the bill over Thanos has {joules(meter):.3f} J of {expected:.3f} J", flush=True)
        self.assertAlmostEqual(joules(meter), expected, delta=0.05)
        self.assertAlmostEqual(sum(joules(row) for row in rows) - joules(meter), joules(meter), delta=0.001)

    def check_power(self, before):
        """What the rules say across shards is what the nodes' own counters say, read past every Prometheus."""
        watts = sum((joules - less) / (now - then) for (then, less), (now, joules) in zip(before, self.counters()))
        self.assertEqual(len(self.thanos.at("cluster:gpu_ledger_power_watts:rate5m")), 2, "a cluster is there twice")
        self.assertAlmostEqual(self.thanos.number("sum(cluster:gpu_ledger_power_watts:rate5m)") / watts, 1, delta=0.05)
        until = self.newest(self.thanos)
        billed = 0
        for looks in self.thanos.samples("cluster:gpu_ledger_energy_kwh:minute", until - 5 * MINUTE, until).values():
            (first, _), *rest = sorted(looks.items())  # each holds what was spent since the one before
            billed += 3.6e6 * sum(kwh for _, kwh in rest) / (rest[-1][0] - first)
        self.assertAlmostEqual(billed / watts, 1, delta=0.05)
        self.assertEqual(self.thanos.number("sum(cluster:gpu_ledger_gpus:sum)"), 2 * NODES * 4)

    def check_dashboards(self):
        asked = 0
        for name in ("fleet", "team", "slurm", "waste"):
            for panel in panels_of(load(name)):
                for target in panel["targets"]:
                    with self.subTest(dashboard=name, panel=panel["title"]):
                        answer = self.thanos.at(fill_in(target["expr"], EVERYTHING).replace("[1d]", "[10m]"))
                        hours = ":hour" in target["expr"]
                        self.assertTrue(answer or hours or panel["title"] in EMPTY, target["expr"])
                        asked += 1
        self.assertGreater(asked, 30)

    def check_levels(self, api, begin, end):
        """In every single minute: accounts sum to the meters, teams to namespaces, namespaces to all pods."""
        def by_time(selector):
            summed = {}
            for labels, values in api.samples(selector, begin, end).items():
                for when, value in values.items():
                    key = (dict(labels).get("cluster", ""), when)
                    summed[key] = summed.get(key, 0) + value
            return summed

        for what in ("energy_kwh", "cost", "co2e_grams"):
            level = lambda name: by_time(name.replace("*", f"gpu_ledger_{what}:minute"))
            for parts, whole in (("account:*", "cluster:*"), ('account:*{owner="pod"}', "namespace:*"), ("team:*", "namespace:*")):
                parts, whole = level(parts), level(whole)
                self.assertGreater(len(whole), 10)
                # A rule that asked just when a server crashed has an error, and its level no minute then.
                self.assertLessEqual(len(parts.keys() ^ whole.keys()), 4)
                for key in parts.keys() & whole.keys():
                    self.assertAlmostEqual(parts[key], whole[key], delta=1e-9 * max(1, abs(whole[key])), msg=key)
        teams = api.samples("team:gpu_ledger_energy_kwh:minute", begin, end)
        self.assertTrue([1 for labels in teams if dict(labels).get("team") == "vision"], teams.keys())

    def check_meters(self, begin, end, one_begin, one_end):
        """West, through the loss of its only server and of a node: the bill is what the nodes' counters gained."""
        west = '{cluster="west"}'
        for name, api, chosen, since, until in (("Thanos", self.thanos, west, begin, end),
                                                ("a single Prometheus", self.single, "", one_begin, one_end)):
            billed, gained = self.billed(api, chosen, since, until), self.gained(api, chosen, since, until)
            lost = (gained - billed) / (gained / (until - since) * MINUTE)
            print(f"\nshards: {name}, ten minutes down: {billed:.1f} J of {gained:.1f} J billed, {lost:.3f} minutes are missing",
                  flush=True)
            self.assertGreater(lost, -0.01, name)
            self.assertLess(lost, 1.5, name)
        # East, with a replica that was away and a counter that began anew: no look is negative, and none holds more than the
        # time since the one before, as it would with a node's whole life.
        (looks,) = self.thanos.samples('cluster:gpu_ledger_energy_kwh:minute{cluster="east"}', begin, end).values()
        usual, before = statistics.median(looks.values()), begin
        for when, kwh in sorted(looks.items()):
            self.assertGreaterEqual(kwh, 0)
            self.assertLess(kwh, 1.5 * usual * (when - before) / MINUTE, looks)
            before = when
        east = '{cluster="east"}'
        mean = self.thanos.number(f"avg_over_time(cluster:gpu_ledger_power_watts:rate5m{east}[{int(end - begin)}s])", end)
        self.assertAlmostEqual(self.billed(self.thanos, east, begin, end) / (mean * (end - begin)), 1, delta=0.1)

    def billed(self, api, chosen, begin, end):
        (values,) = api.samples(f"cluster:gpu_ledger_energy_kwh:minute{chosen}", begin, end).values()
        return 3.6e6 * sum(values.values())

    def gained(self, api, chosen, begin, end):
        """A bill looks 75 seconds back."""
        late = 1.25 * MINUTE
        total = lambda when: api.at(f"last_over_time(node:gpu_ledger_energy_joules:total{chosen}[10m])", when - late)
        return sum(total(end).values()) - sum(total(begin).values())

    def check_prices(self, begin, end):
        for cluster, price in (("east", 0.20), ("west", 0.30)):
            chosen = f'{{cluster="{cluster}"}}'
            (kwh,) = self.thanos.samples(f"cluster:gpu_ledger_energy_kwh:minute{chosen}", begin, end).values()
            (cost,) = self.thanos.samples(f"cluster:gpu_ledger_cost:minute{chosen}", begin, end).values()
            self.assertAlmostEqual(sum(cost.values()) / sum(kwh.values()), price, places=6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
