# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboards, of docs/cookbook.md and docs/tokens.md is asked of a real Prometheus, which scrapes the simulated
node twice, as one without a cluster and as one of the cluster east, and runs the rules and alerts."""

import contextlib
import itertools
import json
import re
import unittest

import harness
from dashboards_form_test import NAMES, load, panels_of
from prometheus_test import PROMETHEUS, Prometheus, queries_of
from quick_rules import quick_rules
from token_servers import TokenServers

# What has no data here, and why that is right: dashboard, panel and a word of the query.
EMPTY = {("health", "Errors of sources", "gpu_ledger_source_errors"): "every source of the simulated node answers"}
EMPTY_WHEN_LEAN = {
    **EMPTY,
    ("node", "Processes on the node's GPUs", "gpu_idle_process_idle_seconds"): "idle seconds have no name of ours",
    ("waste", "Idle holders of GPU memory", "(gpu_idle_process_idle_seconds{"): "the same",
}
# A program that still calls it job only.
EMPTY_VARIABLES = set() if "slurm_job_id" in (harness.SOURCE / "docs" / "metrics.md").read_text() else {"slurm_job_id"}
# What does not depend on one pod or job, whatever it is.
ANYWHERE = {"fleet", "health", "node", "waste"}


def rules_of_seconds(folder):
    """The rules as they are, but for how long they wait: a test has seconds."""
    names = [f"{name}.rules.yml" for name in ("parameters", "node", "fleet", "compat", "tokens")] + ["alerts.yml"]
    return quick_rules(folder, names, 1, change=lambda text: text.replace("idle_seconds > 3600", "idle_seconds > 1"))


def fill_in(query, values):
    """What Grafana does before it asks."""
    query = query.replace("$__rate_interval", "10s").replace("$__range", "10m")
    query = re.sub(r"\$(\w+)", lambda match: values[match[1]], re.sub(r'"\$(\d)"', r'"§\1"', query)).replace("§", "$")
    return re.sub(r"(idle_seconds[^>]*> )\d+", r"\g<1>1", query)


class DashboardsTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")

    def test_every_query_has_an_answer(self):
        with self.prometheus("compatible") as prometheus:
            harness.wait_to_pass(lambda: self.check_rules(prometheus))
            for name in NAMES:
                self.check_dashboard(prometheus, name, load(name), EMPTY)
            self.check_cookbook(prometheus)

    def test_with_few_names(self):
        """--collector.preset=lean: what the dashboards take from older names they find under ours."""
        with self.prometheus("lean") as prometheus:
            harness.wait_to_pass(lambda: self.check_rules(prometheus, without="my_gpu_process_"))  # of compat.rules.yml
            for name in NAMES:
                self.check_dashboard(prometheus, name, load(name), EMPTY_WHEN_LEAN)

    @contextlib.contextmanager
    def prometheus(self, preset):
        flags = ("--node-name=n1", "--idle-interval=1s", "--pod-labels=team", f"--collector.preset={preset}")
        control = harness.Control(self.folder)
        with harness.Ledger(*flags, environment=control.environment) as ledger:
            control.say("do: xid, gpu: 4, xid: 31")
            with Prometheus(self.folder, jobs=self.jobs(ledger.port) + self.token_jobs(), rules=rules_of_seconds(self.folder)) as prometheus:
                prometheus.wait_for_answers(['gpu_ledger_pod_energy_joules_total{pod=~"chat-.*"}'])  # the first by its name
                yield prometheus

    def jobs(self, port):
        places = {"gpu-ledger": {}, "gpu-ledger-east": {"cluster": "east", "instance": "east:9400"}}
        return [{"job_name": name, "honor_labels": True,
                 "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]} for name, labels in places.items()]

    def token_jobs(self):
        """A server in the pod chat, in both clusters, that has more tokens whenever somebody asks."""
        asked = itertools.count(1)
        servers = TokenServers(lambda name: [times * next(asked) for times in (300, 100)])
        self.addCleanup(servers.server_close)
        self.addCleanup(servers.shutdown)
        pod = {"namespace": "inference", "pod": "chat-5d8f7b6c4-kq9zp"}
        return [servers.job("vllm", {**pod, **cluster}) for cluster in ({}, {"cluster": "east"})]

    def check_cookbook(self, prometheus):
        pages = [(harness.SOURCE / "docs" / name).read_text(encoding="utf-8") for name in ("cookbook.md", "tokens.md")]
        queries = [query for page in pages for query in queries_of(page)]
        self.assertGreater(len(queries), 50)
        # A rate of what has been seen so far.
        prometheus.wait_for_answers(re.sub(r"\[[15]m\]", "[10s]", fill_in(query, {})) for query in queries)

    def check_rules(self, prometheus, without=None):
        answer = json.loads(harness.get(prometheus.port, "/api/v1/rules").text)["data"]["groups"]
        rules = [rule for group in answer for rule in group["rules"]]
        self.assertGreater(len(rules), 30)
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
            if rule["type"] == "recording" and not (without and rule["name"].startswith(without)):
                self.assertTrue(prometheus.query(rule["name"]), f"{rule['name']} has no series")

    def check_dashboard(self, prometheus, name, dashboard, empty):
        lists = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        everything, one = {}, {}
        for variable in lists:
            everything[variable["name"]] = variable["allValue"] or ""
            known = {**everything, **one}
            ask = lambda variable=variable, known=known: self.values_of(prometheus, variable["query"]["query"], known)
            if variable["name"] not in EMPTY_VARIABLES:
                found = harness.wait_until(ask, f"values of {variable['name']} in {name}")
            else:
                found = ask()
                self.assertFalse(found, f"{name}: values of {variable['name']}")
            value = re.escape(found[0]) if found else ""
            one[variable["name"]] = value.replace("\\", "\\\\")  # as Grafana writes it
            if not variable["includeAll"]:
                everything[variable["name"]] = one[variable["name"]]
        self.assertEqual((one["cluster"], one["job"]), ("east", r"gpu\\-ledger\\-east"))
        full, bare = [], []
        for panel in panels_of(dashboard):
            for target in panel["targets"]:
                has_none = any((name, panel["title"]) == key[:2] and key[2] in target["expr"] for key in empty)
                (bare if has_none else full).append(target["expr"])
        events = [event["expr"] for event in dashboard["annotations"]["list"]]
        prometheus.wait_for_answers(fill_in(query, everything) for query in full + (events if name in ANYWHERE else []))
        for query in events:
            prometheus.query(fill_in(query, everything))
        # A single GPU or namespace need not have everything.
        answered = lambda: [query for query in full if prometheus.query(fill_in(query, one))]
        harness.wait_until(lambda: len(answered()) > 0.6 * len(full), f"answers for one of each in {name}")
        for query in bare:
            with self.subTest(dashboard=name, query=query):
                self.assertFalse(prometheus.query(fill_in(query, everything)), "this has data after all: take it off the list")

    def values_of(self, prometheus, query, values):
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
        found = prometheus.query(f"count by ({label}) ({fill_in(selector, values)})")
        return sorted(series["metric"][label] for series in found if label in series["metric"])

    def test_tables_agree_on_their_labels(self):
        """Grafana puts rows together where all labels are the same: another label would tear a table apart."""
        for name in NAMES:
            for panel in panels_of(load(name)):
                if panel["type"] != "table":
                    continue
                labels = [re.search(r"by \(([^)]*)\)", target["expr"])[1] for target in panel["targets"]]
                self.assertEqual(len(set(labels)), 1, f"{name}: {panel['title']}")


if __name__ == "__main__":
    unittest.main()
