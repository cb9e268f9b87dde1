# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboards and of docs/cookbook.md is asked of a real Prometheus, which scrapes the simulated
node and runs the rules."""

import json
import re
import subprocess
import sys
import time
import unittest

import harness
from prometheus_test import PROMETHEUS, Prometheus, queries_of

GRAFANA = harness.SOURCE / "deploy" / "grafana"
RULES = harness.SOURCE / "deploy" / "prometheus"
NAMES = ["fleet", "health", "node", "waste"]

# What has no data here, and why that is right.
EMPTY = {
    ("health", "Errors of sources"): "every source of the simulated node answers",
}
# The simulated node has no cluster label; "All" takes it nevertheless.
EMPTY_VARIABLES = {"cluster"}


def load(name):
    return json.loads((GRAFANA / f"{name}.json").read_text(encoding="utf-8"))


def panels_of(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def quick_rules(folder):
    """The rules as they are, but for how long they wait: a test has seconds."""
    made = []
    for name in ("parameters.rules.yml", "recording.rules.yml", "compat.rules.yml"):
        text = (RULES / name).read_text(encoding="utf-8")
        text = re.sub(r"interval: \S+", "interval: 1s", text).replace("idle_seconds > 3600", "idle_seconds > 1")
        path = folder / name
        path.write_text(text, encoding="utf-8")
        made.append(path)
    return made


def fill_in(query, values):
    """What Grafana does before it asks."""
    query = query.replace("$__rate_interval", "10s").replace("$__range", "10m")
    query = re.sub(r"\$(\w+)", lambda match: values[match[1]], re.sub(r'"\$(\d)"', r'"§\1"', query)).replace("§", "$")
    return re.sub(r"(idle_seconds[^>]*> )\d+", r"\g<1>1", query)


class FormTest(unittest.TestCase):
    """What Grafana needs to take a file."""

    def test_files_are_up_to_date(self):
        before = {name: (GRAFANA / f"{name}.json").read_text(encoding="utf-8") for name in NAMES}
        self.assertEqual(sorted(path.stem for path in GRAFANA.glob("*.json")), NAMES)
        code = (
            f"import sys; sys.path.insert(0, {str(GRAFANA)!r}); import json, make_dashboards as m; "
            "print(json.dumps({f.__name__: f() for f in (m.fleet, m.health, m.node, m.waste)}))"
        )
        made = json.loads(
            subprocess.run([sys.executable, "-B", "-c", code], check=True, capture_output=True, text=True).stdout
        )
        for name in NAMES:
            self.assertEqual(
                made[name], before[name], f"{name}.json is old: python3 deploy/grafana/make_dashboards.py"
            )

    def test_form(self):
        uids = set()
        for name in NAMES:
            with self.subTest(dashboard=name):
                dashboard = load(name)
                self.assertIsNone(dashboard["id"])
                self.assertEqual(dashboard["schemaVersion"], 39)
                uids.add(dashboard["uid"])
                variables = dashboard["templating"]["list"]
                self.assertEqual((variables[0]["name"], variables[0]["type"]), ("datasource", "datasource"))
                self.check_panels(dashboard, {variable["name"] for variable in variables})
        self.assertEqual(len(uids), len(NAMES))

    def check_panels(self, dashboard, variables):
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        cells = set()
        for panel in dashboard["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(own & cells, f"{panel['title']} lies on another panel")
            cells |= own
        for panel in panels_of(dashboard):
            self.assertTrue(panel["targets"], panel["title"])
            letters = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(letters), len(set(letters)))
            for target in panel["targets"]:
                self.assertEqual(target["datasource"]["uid"], "${datasource}")
                used = set(re.findall(r"\$(\w+)", re.sub(r'"\$\d"', "", target["expr"]))) - {
                    "__range",
                    "__rate_interval",
                }
                self.assertLessEqual(used, variables, target["expr"])


class DashboardsTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")

    def scenario(self):
        text = (harness.SOURCE / "sim" / "scenarios" / "mixed_node.yaml").read_text(encoding="utf-8")
        changed = text.replace("{at: 45, do: xid", "{at: 3, do: xid")
        self.assertNotEqual(changed, text)
        return self.write("scenario.yaml", changed)

    def test_every_query_has_an_answer(self):
        with harness.Ledger(
            "--node-name=n1", "--idle-interval=1s", "--pod-labels=team", scenario=self.scenario()
        ) as ledger:
            options = {"honor_labels": True}
            with Prometheus(
                self.folder, {"gpu-ledger": ledger.port}, options, rules=quick_rules(self.folder)
            ) as prometheus:
                time.sleep(20)  # the notebook falls idle, jobs come and go, an Xid happens, the rules follow
                self.check_rules(prometheus)
                for name in NAMES:
                    self.check_dashboard(prometheus, name, load(name))
                self.check_cookbook(prometheus)

    def check_cookbook(self, prometheus):
        queries = queries_of((harness.SOURCE / "docs" / "cookbook.md").read_text(encoding="utf-8"))
        self.assertGreater(len(queries), 50)
        for query in queries:
            with self.subTest(query=query):
                quick = re.sub(r"\[[15]m\]", "[10s]", fill_in(query, {}))  # a rate of what has been seen so far
                self.assertTrue(prometheus.query(quick), "no data")

    def check_rules(self, prometheus):
        answer = json.loads(harness.get(prometheus.port, "/api/v1/rules").text)["data"]["groups"]
        rules = [rule for group in answer for rule in group["rules"]]
        self.assertGreater(len(rules), 30)
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
            self.assertTrue(prometheus.query(rule["name"]), f"{rule['name']} has no series")

    def check_dashboard(self, prometheus, name, dashboard):
        lists = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        everything = {variable["name"]: variable["allValue"] for variable in lists}
        one = dict(everything)
        for variable in lists:
            found = self.values_of(prometheus, variable["query"]["query"], everything)
            self.assertEqual(
                bool(found), variable["name"] not in EMPTY_VARIABLES, f"{name}: values of {variable['name']}"
            )
            if found:
                one[variable["name"]] = re.escape(found[0]).replace("\\", "\\\\")  # as Grafana writes it
        seen = {"all": 0, "one": 0}
        for panel in panels_of(dashboard):
            for target in panel["targets"]:
                with self.subTest(dashboard=name, panel=panel["title"]):
                    answer = prometheus.query(fill_in(target["expr"], everything))
                    if (name, panel["title"]) in EMPTY:
                        self.assertFalse(answer, "this has data after all: take it off the list")
                        continue
                    self.assertTrue(answer, target["expr"])
                    seen["all"] += 1
                    seen["one"] += bool(prometheus.query(fill_in(target["expr"], one)))
        # A single GPU or namespace need not have everything.
        self.assertGreater(seen["one"], 0.6 * seen["all"], name)

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
