# SPDX-License-Identifier: Apache-2.0
"""What a reader of the dashboards relies on: files that Grafana takes, panels that say what they show, queries that keep to
what is chosen, links that lead somewhere."""

import json
import re
import subprocess
import sys
import unittest

import harness

GRAFANA = harness.SOURCE / "deploy" / "grafana"
NAMES = ["fleet", "health", "node", "pod", "slurm", "team", "tokens", "waste"]
# Series whose label job is not that of the scrape, or that have none: rules, prices, and what Slurm calls a job.
WITHOUT_JOB = re.compile(r"\w+:.*|gpu_ledger_slurm_job_.*|ALERTS|")
GRAFANAS_OWN = {"__range", "__rate_interval"}


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
    names = re.findall(r"(?<![\w:$\"])((?:gpu|my_gpu|node|namespace|cluster|team|pod_model|process|up|ALERTS)\b[\w:]*|"
                       r"(?:gpu|my_gpu|node|process)_[\w:]+)(?![\w:=\"])(?:\{([^}]*)\})?", plain)
    return names + [("", chosen) for chosen in re.findall(r"(?<![\w:])\{([^}]*)\}", plain)]


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


if __name__ == "__main__":
    unittest.main()
