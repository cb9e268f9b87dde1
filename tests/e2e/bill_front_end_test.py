# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger bill --serve` answers what OpenCost's front end asks, over a real Prometheus: its requests, and the fields
that it reads. They are from opencost-ui at commit 5babf86adf8d (July 2026); docs/allocation-api.md says what was shown in
it."""

import json
import subprocess
import unittest
import urllib.parse

import harness
from bill_holes_test import BEGIN, EVERY, HOUR, Storage
from prometheus_test import PROMETHEUS, PROMTOOL, Prometheus

WATTS, IDLE_WATTS = 500, 100
PODS = (("research", "train-0", "gpu-1", "vision"), ("research", "eval-0", "gpu-2", "speech"),
        ("search", "chat-0", "gpu-2", None))
TWO_DAYS = "2025-10-05T00:00:00Z,2025-10-06T23:59:59Z"  # as a report writes them; a Sunday and a Monday
KWH_PRICE, HOUR_PRICE = 0.25, 2.5

# Of home, dashboards and reports; of the older front end, which is in the same image; of a click on a namespace.
PAGES = ("window={}&aggregate=namespace&includeIdle=true&accumulate=day",
         "window={}&aggregate=cluster&includeIdle=true&accumulate=hour",
         "window={}&aggregate=node&includeIdle=true&accumulate=week",
         "window={}&aggregate=pod&includeIdle=false&accumulate=weeknow",
         "window={}&aggregate=namespace,pod&includeIdle=true&accumulate=month",
         "window={}&aggregate=namespace&includeIdle=true&accumulate=quarter",
         "window={}&aggregate=namespace&includeIdle=true&metrics=totalCost&accumulate=all",
         "window={}&aggregate=namespace&includeIdle=true&accumulate=false",
         "window={}&aggregate=namespace&includeIdle=true&accumulate=true&filter=",
         "window={}&aggregate=controllerKind&includeIdle=true&accumulate=day&filter=namespace:%22research%22",
         "window={}&aggregate=pod&includeIdle=true&metrics=gpuCost,cpuCost&accumulate=all"
         "&filter=namespace:%22research%22%2Bnode:%22gpu-1%22")
WINDOWS = ("today", "yesterday", "24h", "48h", "week", "lastweek", "7d", "14d")
COSTS = ("cpuCost", "gpuCost", "ramCost", "pvCost", "networkCost", "sharedCost", "externalCost", "totalCost")


def samples():
    storage = Storage()
    for at in range(BEGIN, BEGIN + 48 * HOUR + 1, EVERY):
        for number, (namespace, pod, node, team) in enumerate(PODS):
            target = {"cluster": "east", "instance": node + ":9400", "node": node}
            gpu = {**target, "gpu": str(number), "uuid": f"GPU-{number}"}
            owner = {**target, "gpu": str(number), "namespace": namespace, "pod": pod, "pod_uid": pod, "container": "c"}
            age = at - BEGIN + EVERY
            storage.put("gpu_ledger_device_energy_joules_total", gpu, at, age * (WATTS + IDLE_WATTS))
            storage.put("gpu_ledger_device_unattributed_joules_total", {**gpu, "reason": "idle"}, at, age * IDLE_WATTS)
            storage.put("gpu_ledger_device_info", {**gpu, "model": "NVIDIA H200"}, at, 1)
            storage.put("gpu_ledger_pod_energy_joules_total", {**owner, "energy_estimated": "false"}, at, age * WATTS)
            storage.put("gpu_ledger_pod_gpu_seconds_total", owner, at, age * 0.75)
            storage.put("gpu_ledger_pod_info", {**target, "namespace": namespace, "pod": pod, "pod_uid": pod,
                                                **({"label_team": team} if team else {})}, at, 1)
            storage.put("gpu_ledger_allocation_info", {**gpu, "namespace": namespace, "pod": pod, "container": "c",
                                                       "resource": "nvidia.com/gpu"}, at, 1)
        for node in ("gpu-1", "gpu-2"):
            target = {"cluster": "east", "instance": node + ":9400", "node": node}
            storage.put("gpu_ledger_snapshot_timestamp_seconds", target, at, at)
            storage.put("process_start_time_seconds", target, at, BEGIN - EVERY)
    return storage.text()


class FrontEnd(harness.Case):
    def setUp(self):
        super().setUp()
        source = self.write("days.txt", samples())
        (self.folder / "tsdb").mkdir()
        subprocess.run([PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=744h", source,
                        self.folder / "tsdb"], check=True, capture_output=True, timeout=harness.NET)

    def test_requests(self):
        with Prometheus(self.folder, {}, flags=["--storage.tsdb.retention.time=20y"]) as prometheus:
            self.port = harness.free_port()
            with harness.Program([harness.BINARY, "bill", "--serve", f"--serve-address=127.0.0.1:{self.port}",
                                  f"--prometheus-url=http://127.0.0.1:{prometheus.port}", f"--price-per-kwh={KWH_PRICE}",
                                  f"--price-per-gpu-hour=NVIDIA H200={HOUR_PRICE}"]) as program:
                harness.wait_until(lambda: program.alive() and self.is_up(), "the allocation API")
                for name in [name for name in dir(self) if name.startswith("check_")]:
                    with self.subTest(name):
                        getattr(self, name)()

    def is_up(self):
        try:
            return harness.get(self.port, "/healthz").status == 200
        except OSError:
            return False

    def ask(self, query, path="/allocation/compute", status=200):
        # As the front end's own proxy passes it on.
        answer = harness.get(self.port, f"{path}?{query}", {"Host": "model", "Accept-Language": "en"})
        self.assertEqual(answer.status, status, f"{query}: {answer.text}")
        return json.loads(answer.text)

    def sets(self, number, window=TWO_DAYS):
        return self.ask(PAGES[number].format(window))["data"]

    def check_what_the_pages_read(self):
        for page in PAGES:
            sets = self.ask(page.format(TWO_DAYS))["data"]
            self.assertTrue(sets, page)
            for allocations in sets:
                self.assertTrue(allocations, page)
                for name, one in allocations.items():
                    self.assertEqual((one["name"], one["window"]["start"]), (name, one["start"]))
                    for cost in (*COSTS, "minutes"):
                        self.assertIsInstance(one[cost], (int, float), f"{page}: {name}: {cost}")
                    self.assertIn("totalEfficiency", one)

    def check_every_window_is_answered(self):
        for window in WINDOWS:
            answer = self.ask(PAGES[6].format(window))
            if answer["data"]:  # a day or week that has just begun has no set
                self.assertIn("INCOMPLETE", answer["warning"], "nothing is of this year")

    def check_sets_follow_the_calendar(self):
        starts = [[next(iter(one.values()))["start"] for one in self.sets(number)] for number in range(9)]
        self.assertEqual(starts[0], ["2025-10-05T00:00:00Z", "2025-10-06T00:00:00Z"])
        self.assertEqual(len(starts[1]), 48)
        for number, day in zip(range(2, 9), (5, 5, 1, 1, 5, 5, 5)):
            self.assertEqual(starts[number], [f"2025-10-0{day}T00:00:00Z"], PAGES[number])

    def check_costs(self):
        first, second = self.sets(0)
        self.assertEqual(set(first), {"research", "search", "__idle__"})
        self.assertAlmostEqual(second["research"]["gpuCost"], 2 * 24 * (HOUR_PRICE + WATTS / 1000 * KWH_PRICE), places=6)
        self.assertAlmostEqual(second["__idle__"]["totalCost"], 3 * 24 * IDLE_WATTS / 1000 * KWH_PRICE, places=6)
        self.assertEqual((second["research"]["gpuRequestAverage"], second["research"]["gpuUsageAverage"]), (2, 1.5))

    def check_filters(self):
        day = "window=2025-10-06T00:00:00Z,2025-10-07T00:00:00Z&includeIdle=true&aggregate="
        (pods,) = self.ask(day + "pod")["data"]
        filters = {'namespace:"research"': {"research/train-0", "research/eval-0"},
                   'namespace:"research"+node:"gpu-1"': {"research/train-0"},
                   'namespace!:"research"': {"search/chat-0", "__idle__"},
                   'label[team]<~:"sp"|pod:"chat-0"': {"research/eval-0", "search/chat-0"},
                   'node:"gpu-2"+(label[team]:"speech"|namespace:"search")': {"research/eval-0", "search/chat-0"},
                   'cluster:"west"': set()}
        for text, names in filters.items():
            (kept,) = self.ask(day + "pod&filter=" + urllib.parse.quote(text))["data"]
            self.assertEqual(set(kept), names, text)
            for name in names - {"__idle__"}:
                self.assertEqual(kept[name], pods[name], "a filter changes nothing of what it keeps")
        (idle,) = self.ask(day + "node&filter=node:%22gpu-2%22")["data"]
        self.assertAlmostEqual(idle["__idle__"]["gpuEnergyKwh"], 2 * 24 * IDLE_WATTS / 1000, places=6)

    def check_a_click_on_a_namespace(self):
        answer = self.ask(PAGES[9].format(TWO_DAYS))
        self.assertEqual([set(one) for one in answer["data"]], [{"__unallocated__"}] * 2)
        self.assertIn("aggregate=controllerKind: nothing in this span has it", answer["warning"])

    def check_what_cannot_be_answered(self):
        for wrong in ("filter=controllerName:%22a%22", "filter=namespace:research", "accumulate=decade", "share=all"):
            self.assertEqual(self.ask(f"window=7d&aggregate=namespace&{wrong}", status=400)["code"], 400)
        self.assertIn("nothing in this span has it", self.ask(f"window={TWO_DAYS}&filter=label[taem]:%22a%22")["warning"])
        self.assertEqual(self.ask("window=7d&aggregate=assetType", path="/assets", status=404)["code"], 404)

    def check_suggestions(self):
        def suggested(query):
            return self.ask(f"window={TWO_DAYS}&limit=25&{query}", path="/allocation/autocomplete")["data"]["data"]
        self.assertEqual(suggested("field=namespace"), ["research", "search"])
        self.assertEqual(suggested("field=pod&search=Tra"), ["train-0"])
        self.assertEqual(suggested("field=node&filter=namespace:%22search%22"), ["gpu-2"])
        self.assertEqual(suggested("field=label:team"), ["speech", "vision"])
        self.assertEqual(suggested("field=controllerName"), [])

    def check_the_summary(self):
        full = self.sets(6)[0]
        for path in ("/allocation/summary", "/allocation/compute/summary"):
            data = self.ask(PAGES[6].format(TWO_DAYS), path)["data"]
            (one,) = data["sets"]
            self.assertEqual({name: row["totalCost"] for name, row in one["allocations"].items()},
                             {name: row["totalCost"] for name, row in full.items()})
            self.assertEqual(one["window"], data["window"])


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL:
        raise SystemExit("prometheus and promtool are missing; tools/setup.sh --test installs them")
    unittest.main()
