# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboards and of docs/cookbook.md is asked of a real Prometheus, which scrapes the simulated
node twice, as one without a cluster and as one of the cluster east, and runs the rules and alerts."""

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
NAMES = ["fleet", "health", "node", "pod", "slurm", "team", "waste"]
# Series whose label job is not that of the scrape, or that have none: rules, prices, and what Slurm calls a job.
WITHOUT_JOB = re.compile(r"\w+:.*|gpu_ledger_slurm_job_.*|ALERTS|")
GRAFANAS_OWN = {"__range", "__rate_interval"}

# What has no data here, and why that is right.
EMPTY = {
    ("health", "Errors of sources"): "every source of the simulated node answers",
}
# A program that still calls it job only.
EMPTY_VARIABLES = set() if "slurm_job_id" in (harness.SOURCE / "docs" / "metrics.md").read_text() else {"slurm_job_id"}
# What does not depend on one pod or job, whatever it is.
ANYWHERE = {"fleet", "health", "node", "waste"}


def load(name):
    return json.loads((GRAFANA / f"{name}.json").read_text(encoding="utf-8"))


def panels_of(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def links_of(panel):
    config = panel["fieldConfig"]
    overrides = [one["value"] for each in config["overrides"] for one in each["properties"] if one["id"] == "links"]
    return sum(overrides, config["defaults"].get("links", []))


def variables_of(dashboard):
    return {variable["name"] for variable in dashboard["templating"]["list"]}


def queries_of_dashboard(dashboard):
    """(Where it is, query), those of annotations too."""
    found = [(panel["title"], target["expr"]) for panel in panels_of(dashboard) for target in panel["targets"]]
    return found + [(one["name"], one["expr"]) for one in dashboard["annotations"]["list"]]


def selectors_of(query):
    """(Name, labels chosen) of each series that a query reads."""
    plain = re.sub(r'\b(by|on|group_left) \([^)]*\)|__name__=~"[^"]*",', "", query)
    names = re.findall(r"(?<![\w:$\"])((?:gpu|my_gpu|node|namespace|cluster|team|process|up|ALERTS)\b[\w:]*|"
                       r"(?:gpu|my_gpu|node|process)_[\w:]+)(?![\w:=\"])(?:\{([^}]*)\})?", plain)
    return names + [("", chosen) for chosen in re.findall(r"(?<![\w:])\{([^}]*)\}", plain)]


def quick_rules(folder):
    """The rules as they are, but for how long they wait: a test has seconds."""
    made = []
    for name in ("parameters.rules.yml", "recording.rules.yml", "compat.rules.yml", "alerts.yml"):
        text = (RULES / name).read_text(encoding="utf-8")
        text = re.sub(r"    interval: \S+\n", "", text).replace("    rules:\n", "    interval: 1s\n    rules:\n")
        text = text.replace("idle_seconds > 3600", "idle_seconds > 1")
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
            "print(json.dumps(m.dashboards()))"
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

    def test_every_panel_says_what_it_shows(self):
        """A title that stands alone, as in a list of favourites, and a description."""
        titles = {}
        for name in NAMES:
            dashboard = load(name)
            self.assertRegex(dashboard["description"], r"\w[.?]$")
            for panel in panels_of(dashboard):
                self.assertNotIn(panel["title"], titles, f"{name} and {titles.get(panel['title'])}")
                titles[panel["title"]] = name
                self.assertGreater(len(panel["title"].split()), 1, panel["title"])
                self.assertRegex(panel["description"], r"[\w)]\.$", panel["title"])
                for variable in re.findall(r"\$(\w+)", panel["title"]):
                    self.assertIn(variable, variables_of(dashboard))
        self.assertGreater(len(titles), 60)

    def test_every_query_keeps_to_what_is_chosen(self):
        seen = 0
        for name in NAMES:
            for title, query in queries_of_dashboard(load(name)):
                for series, chosen in selectors_of(query):
                    with self.subTest(dashboard=name, panel=title, series=series):
                        if series.startswith("gpu_ledger:"):  # price, CO2e and PUE are the same everywhere
                            continue
                        self.assertIn('cluster=~"$cluster"', chosen)
                        if not WITHOUT_JOB.fullmatch(series):
                            self.assertIn('job=~"$job"', chosen)
                            seen += 1
        self.assertGreater(seen, 80)

    def test_links_lead_to_dashboards_and_bring_along_what_is_chosen(self):
        boards = {load(name)["uid"]: load(name) for name in NAMES}
        leads = set()
        for uid, dashboard in boards.items():
            self.assertEqual(len(dashboard["links"]), len(NAMES) - 1)
            for link in dashboard["links"]:
                self.assertTrue(link["keepTime"])
                self.check_address(dashboard, link["url"], boards, set())
            for panel in panels_of(dashboard):
                labels = set(re.findall(r"\w+", " ".join(
                    re.findall(r"by \(([^)]*)\)", " ".join(target["expr"] for target in panel["targets"])))))
                for link in links_of(panel):
                    with self.subTest(dashboard=uid, panel=panel["title"]):
                        self.assertTrue(link["url"].endswith("&${__url_time_range}"))
                        target = self.check_address(dashboard, link["url"][:-len("&${__url_time_range}")], boards, labels)
                        leads.add((uid, target))
        chain = ["gpu-ledger-fleet", "gpu-ledger-team", "gpu-ledger-pod", "gpu-ledger-node", "gpu-ledger-pod"]
        self.assertLessEqual(set(zip(chain, chain[1:])), leads)

    def check_address(self, dashboard, url, boards, labels):
        uid, parts = re.fullmatch(r"/d/([\w-]+)\?(.*)", url).groups()
        self.assertIn(uid, boards)
        brought = set()
        for part in parts.split("&"):
            same, other, value = re.fullmatch(r"\$\{(\w+):queryparam\}|var-(\w+)=(.+)", part).groups()
            brought.add(same or other)
            if same:
                self.assertIn(same, variables_of(dashboard))
            else:
                label = re.fullmatch(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)\}", value)[1]
                self.assertIn(label, labels, "no such column or label")
        self.assertLessEqual({"datasource", "cluster", "job"}, brought)
        self.assertLessEqual(brought, variables_of(boards[uid]))
        return uid

    def test_node_and_pod_open_on_one(self):
        for name, single in (("node", {"node"}), ("pod", {"namespace", "pod"})):
            lists = [one for one in load(name)["templating"]["list"] if one["type"] == "query"]
            found = {one["name"] for one in lists if not one["multi"] and not one["includeAll"]}
            self.assertEqual(found - {"currency"}, single)
        # Their neighbours never hand them a list.
        for name in set(NAMES) - {"pod"}:
            for link in load(name)["links"]:
                if link["url"].startswith("/d/gpu-ledger-node?"):
                    self.assertNotIn("${node:", link["url"])
                if link["url"].startswith("/d/gpu-ledger-pod?"):
                    self.assertNotIn("${namespace:", link["url"])

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
        for _, query in queries_of_dashboard(dashboard):
            used = set(re.findall(r"\$(\w+)", re.sub(r'"\$\d"', "", query))) - GRAFANAS_OWN
            self.assertLessEqual(used, variables, query)


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
            with Prometheus(self.folder, jobs=self.jobs(ledger.port), rules=quick_rules(self.folder)) as prometheus:
                time.sleep(20)  # the notebook falls idle, jobs come and go, an Xid happens, the rules follow
                self.check_rules(prometheus)
                for name in NAMES:
                    self.check_dashboard(prometheus, name, load(name))
                self.check_cookbook(prometheus)

    def jobs(self, port):
        places = {"gpu-ledger": {}, "gpu-ledger-east": {"cluster": "east", "instance": "east:9400"}}
        return [{"job_name": name, "honor_labels": True,
                 "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]} for name, labels in places.items()]

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
            if rule["type"] == "recording":
                self.assertTrue(prometheus.query(rule["name"]), f"{rule['name']} has no series")

    def check_dashboard(self, prometheus, name, dashboard):
        lists = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        everything, one = {}, {}
        for variable in lists:
            everything[variable["name"]] = variable["allValue"] or ""
            found = self.values_of(prometheus, variable["query"]["query"], {**everything, **one})
            self.assertEqual(bool(found), variable["name"] not in EMPTY_VARIABLES, f"{name}: values of {variable['name']}")
            value = re.escape(found[0]) if found else ""
            one[variable["name"]] = value.replace("\\", "\\\\")  # as Grafana writes it
            if not variable["includeAll"]:
                everything[variable["name"]] = one[variable["name"]]
        self.assertEqual((one["cluster"], one["job"]), ("east", r"gpu\\-ledger\\-east"))
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
        for event in dashboard["annotations"]["list"]:
            with self.subTest(dashboard=name, annotation=event["name"]):
                found = prometheus.query(fill_in(event["expr"], everything))
                if name in ANYWHERE:
                    self.assertTrue(found, event["expr"])

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
