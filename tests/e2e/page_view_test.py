# SPDX-License-Identifier: Apache-2.0
"""The page at / in a real browser, and whoever uses it: by mouse, by keyboard, by ear, on a phone, and later again.

Exits 77 without Chromium.
"""

import csv
import io
import json
import sys
import unittest

import harness
from page_case import CHROMIUM, PageCase

CROWD = 480


def crowd():
    """Many processes in many namespaces, half of them idle holders of memory."""
    lines = ["gpus: [{model: H200}, {model: H200}]", "processes:"]
    for number in range(CROWD):
        load = "idle" if number % 2 else "{kind: gemm, weight: 1}"
        lines.append(f"  - {{pid: {10000 + number}, name: worker-{number}, gpus: {number % 2}, memory: 64MiB, load: {load}, "
                     f"owner: {{namespace: team-{number % 30}, pod: train-{number}, container: main}}}}")
    return "\n".join(lines) + "\n"


class PageViewTest(PageCase):
    def hash(self):
        return self.browser.run("decodeURIComponent(location.hash)")

    def test_sorting(self):
        self.show_watts()
        page = self.browser
        watts = [float(text.split()[0]) for text in self.column("watts") if text.endswith("W") or "±" in text]
        self.assertEqual(watts, sorted(watts, reverse=True), "most watts first")
        sort_of = "document.querySelector('[data-column={}]').parentElement.getAttribute('aria-sort')"
        for column, kind, first in (("pid", int, "descending"), ("process", str, "ascending")):
            for order in (first, "ascending" if first == "descending" else "descending"):
                self.click(f"[data-column={column}]")
                values = [kind(text) for text in self.column(column)]
                self.assertGreater(len(values), 10)
                self.assertEqual(values, sorted(values, reverse=order == "descending"), f"{column} {order}")
                self.assertEqual(page.run(sort_of.format(column)), order)
        self.assertEqual(self.count("[aria-sort]"), 1)
        cycle = page.run("state.last.cycle")
        page.wait(f"state.last.cycle > {cycle}", "an update")
        self.assertEqual(self.column("process"), sorted(self.column("process"), reverse=True), "kept over an update")

    def test_search_and_filters(self):
        self.show_watts()
        everybody = self.column("pid")
        self.choose("#search", "llm-train")
        self.assertTrue(0 < len(self.column("pid")) < len(everybody))
        self.assertTrue(all("llm-train" in pod for pod in self.column("pod")))
        self.assertRegex(self.text("#count"), r"^\d+ of \d+ processes(, \d+ of them ended)?$")
        self.choose("#search", "nobody has this name")
        self.assertEqual(self.column("pid"), [])
        self.assertNotIn("held by", self.text("#waste"))
        self.assertNotIn("given to", self.text("#waste"), "a search is for what is held without work too")
        self.assertIn("no match", self.text("#waste"))
        for words in ("workbench", "Notebook", "nvidia.com/gpu gpu 5"):
            self.choose("#search", words)
            self.assertRegex(self.text("#waste"), r"GPU 5\s+given to research/workbench-0, container notebook")
        self.choose("#search", "")
        self.choose("#namespace", "research")
        self.assertEqual(set(self.column("namespace")), {"research"})
        owners = self.browser.run("[...document.querySelector('#owner').options].map((option) => option.value)")
        self.assertGreater(len(owners), 1)
        self.assertTrue(all(owner.startswith("research/") for owner in owners[1:]), owners)
        # The cards too: whoever does not pass is among the others, and the sum stays.
        names = self.browser.run("[...document.querySelectorAll('.legend .who')].map((node) => node.textContent)")
        self.assertFalse([name for name in names if "ml-team" in name])
        self.assertIn("other owners", names)
        cards = self.browser.run("[...document.querySelectorAll('.gpu')].map((card) => [Number(card.querySelector('h3 b')"
                                 ".dataset.watts), [...card.querySelectorAll('.legend li')].map((line) => Number(line.dataset.watts))])")
        for total, parts in cards:
            self.assertAlmostEqual(sum(parts), total, delta=0.06)
        self.choose("#owner", owners[1])
        self.assertEqual(len(set(self.column("pod"))), 1)
        self.click("#clear")
        self.assertEqual(sorted(self.column("pid")), sorted(everybody))
        # A click on a namespace's name is the filter.
        self.browser.run("[...document.querySelectorAll('#namespaces button')].find((each) => each.textContent === 'research').click()")
        self.assertEqual(set(self.column("namespace")), {"research"})
        self.assert_clean()

    def test_the_address_keeps_the_view(self):
        self.show_watts()
        self.assertEqual(self.hash(), "")
        self.click("#by-process")
        self.click("[data-column=memory]")
        self.click("[data-column=memory]")
        self.choose("#search", "python")
        self.choose("#namespace", "research")
        self.choose("#span", "15")
        address = self.hash()
        for words in ("by=process", "span=15", "sort=memory", "order=up", "q=python", "namespace=research"):
            self.assertIn(words, address)
        pids = self.column("pid")
        self.assertTrue(pids)
        self.show_watts(view=self.browser.run("location.hash"))
        self.assertEqual(self.column("pid"), pids)
        self.assertEqual(self.browser.run("document.querySelector('#by-process').getAttribute('aria-pressed')"), "true")
        self.assertEqual(self.browser.run("['#search', '#namespace', '#span'].map((name) => document.querySelector(name).value)"),
                         ["python", "research", "15"])
        self.browser.run("location.hash = '#by=nonsense&sort=%3Cb%3E&span=7&order=sideways&namespace=gone'")
        self.browser.wait("view.namespace === 'gone'", "the other view")
        self.assertEqual(self.browser.run("[view.by, view.sort, view.span, view.order]"), ["owner", "watts", "60", "down"])
        self.assertEqual(self.browser.run("document.querySelector('#namespace').value"), "gone", "what is filtered is seen")
        self.assert_clean()

    def test_what_max_series_leaves_out(self):
        self.show_watts()
        self.assertNotIn("left out", self.text("#summary"))
        self.show_watts(self.start("--max-series=200", scenario=self.write("crowd.yaml", crowd())))
        self.assertRegex(self.text("#summary"), r" · left out by --max-series: \d+ processes, \d+ owners")
        # Who comes back has not drawn all its joules since the last look; who is new has.
        account = ("{pid: 7, gpu_uuid: 'G', owner: 'pod', owner_text: 'a', active: true,"
                   " energy_joules: {total: 50, shared: 50}}")
        gpu = "[{uuid: 'G', up: true, energy_joules: 100, unattributed_joules: {}}]"
        watts = ("(left_out => { const look = lookAt({at: 1, gpus: %s, owners: [], processes: [], left_out},"
                 " {at: 2, gpus: %s, owners: [%s], processes: [%s]}).gpus.get('G');"
                 " return [...look.owner.values(), ...look.process.values()]; })" % (gpu, gpu, account, account))
        self.assertEqual(self.browser.run(watts + "({owners: 1, processes: 1})"), [])
        self.assertEqual(self.browser.run(watts + "(undefined)"), [50, 50])
        self.assert_clean()

    def test_downloads(self):
        self.browser.save_to(self.folder)
        self.show_watts(view="#q=GPU&sort=pid&order=up")

        def saved(ending):
            return next((path for path in self.folder.glob("*" + ending) if path.stat().st_size), None)

        for button, ending in (("#csv", ".csv"), ("#json", ".json")):
            self.click(button)
            path = harness.wait_until(lambda ending=ending: saved(ending), "the file")
            self.assertRegex(path.name, rf"^gpu-ledger-gpu-node-7-\d{{8}}T\d{{6}}\{ending}$")
        rows = list(csv.DictReader(io.StringIO(saved(".csv").read_text())))
        self.assertEqual([row["pid"] for row in rows], self.column("pid"))
        document = json.loads(saved(".json").read_text())
        self.assertEqual([str(row["pid"]) for row in document["processes"]], self.column("pid"))
        self.assertEqual(document["view"]["q"], "GPU")
        self.assertTrue(any(row["power_watts"] for row in rows))
        self.assertTrue(any("namespace" not in row for row in document["processes"]), "absent is absent")
        snapshot = {row["pid"]: row for row in self.browser.run("state.last.processes")}
        for row in document["processes"]:
            self.assertLessEqual(row["energy_joules"], snapshot[row["pid"]]["energy_joules"]["total"])
            self.assertGreater(row["energy_joules"], -1)
        self.assertTrue(any(row["energy_standard_error_joules"] for row in rows))
        # The bill's CSV has the same cells: tests/unit/app/bill/focus_test.cc.
        for text, written in json.loads((harness.SOURCE / "tests/data/csv_cells.json").read_text()):
            self.assertEqual(self.browser.run(f"cell({json.dumps(text)})"), written, ascii(text))
        self.assertEqual(self.browser.run("cell(undefined)"), "")
        self.assertEqual(self.browser.run("cell(-5)"), "-5")
        self.assert_clean()

    def test_chart_axes_limit_and_hover(self):
        self.show_watts()
        page = self.browser
        labels = page.run("[...document.querySelectorAll('.gpu:first-child .labels span')].map((node) => node.textContent)")
        self.assertIn("0 W", labels)
        self.assertIn("200 W", labels)
        self.assertIn("limit", labels)
        self.assertIn("now", labels)
        self.assertTrue([label for label in labels if label[:2].isdigit() and ":" in label], labels)
        # The line is where the axis has the limit: 700 W between 600 W and the top.
        place = page.run("""(() => { const chart = document.querySelector('.gpu .chart');
          const svg = chart.querySelector('svg').getBoundingClientRect();
          const y = (node) => { const box = node.getBoundingClientRect(); return (svg.bottom - (box.top + box.bottom) / 2) / svg.height; };
          const label = [...chart.querySelectorAll('.labels .y')].find((each) => each.textContent === '600 W');
          return [y(chart.querySelector('path.limit')), y(label)]; })()""")
        self.assertAlmostEqual(place[0] / place[1], 700 / 600, delta=0.02)
        page.point(".gpu:first-child .plot", 0.98)
        page.wait("!document.querySelector('.tip').hidden", "values under the pointer")
        self.assertRegex(self.text(".tip"), r"\d\d:\d\d:\d\d to \d\d:\d\d:\d\d: \d+ W")
        sums = page.run("""(() => { const chart = cards.get(state.last.gpus[0].uuid).chart;
          const entry = chart.data.entries[entryAt(chart)];
          return [entry.total, partsOf(entry, chart.data.shown).reduce((total, part) => total + part.value, 0)]; })()""")
        self.assertAlmostEqual(*sums, 6)
        page.point("h1")
        page.wait("document.querySelector('.tip').hidden", "nothing under the pointer")
        self.assert_clean()

    def test_keyboard(self):
        self.show_watts()
        page = self.browser
        page.wait("[...cards.values()].every((card) => card.chart.data.entries.length > 1)", "more than one step")
        page.run("document.querySelector('#search').focus()")
        met = []
        for _ in range(7):
            page.press("Tab")
            met.append(page.run("document.activeElement.id || document.activeElement.className"))
        self.assertEqual(met, ["namespace", "owner", "span", "by-owner", "by-process", "plot", "plot"])
        outline = page.run("(() => { const style = getComputedStyle(document.activeElement); return [style.outlineStyle, style.outlineWidth]; })()")
        self.assertEqual(outline, ["solid", "2px"], "the focus is seen")
        page.press("End")
        newest = page.run("document.activeElement.getAttribute('aria-valuetext')")
        self.assertRegex(newest, r"^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d: \d+ W, ")
        page.press("Home")
        oldest = page.run("document.activeElement.getAttribute('aria-valuetext')")
        self.assertLess(oldest[:8], newest[:8])
        self.assertEqual(page.run("document.activeElement.getAttribute('aria-valuenow')"), "0")
        # As for any slider: up is more, and more is later.
        page.run("plainLearn = learn, learn = () => {}, 0")  # nothing new meanwhile
        last = page.run("[...cards.values()].find((card) => card.chart.plot === document.activeElement)"
                        ".chart.data.entries.length - 1")
        place = lambda: int(page.run("document.activeElement.getAttribute('aria-valuenow')"))
        for key, expected in (("PageUp", min(10, last)), ("Home", 0), ("ArrowUp", 1), ("ArrowDown", 0), ("End", last),
                              ("PageDown", max(0, last - 10))):
            page.press(key)
            self.assertEqual(place(), expected, key)
        page.run("learn = plainLearn, 0")
        page.press("Escape")
        self.assertTrue(page.run("[...document.querySelectorAll('.tip')].every((tip) => tip.hidden)"))
        page.run("document.querySelector('[data-column=pid]').focus()")
        page.press("Enter")
        self.assertEqual(page.run("document.querySelector('[data-column=pid]').parentElement.getAttribute('aria-sort')"), "descending")
        cycle = page.run("state.last.cycle")
        page.wait(f"state.last.cycle > {cycle}", "an update")
        self.assertEqual(page.run("document.activeElement.dataset.column"), "pid", "an update does not take the focus")

    def test_screen_reader(self):
        self.show_watts()
        met = self.browser.controls()
        for role, name, value in met:
            if role in ("button", "combobox", "searchbox", "slider", "table", "img", "article", "search", "region", "group"):
                self.assertTrue(name, f"a {role} without a name (value {value!r})")
        roles = [role for role, _, _ in met]
        self.assertEqual(roles.count("slider"), 6)
        self.assertEqual(roles.count("article"), 6)
        self.assertEqual(roles.count("table"), 2)
        self.assertGreaterEqual(roles.count("columnheader"), 11 + 6)
        said = [name for _, name, _ in met]
        self.assertTrue([name for name in said if name.startswith("Watts of GPU 0 by owner since") and "limit 700 W" in name])
        self.assertTrue([name for name in said if name.startswith("Memory: ml-team/llm-train-0")])
        # Numbers that change every two seconds are not read out.
        live = self.browser.run("[...document.querySelectorAll('[aria-live], [role=status], [role=alert]')].map((node) => node.id)")
        self.assertEqual(sorted(live), ["count", "lost", "trouble"])

    def test_a_crowd_on_a_phone(self):
        self.browser.resize(390, 844)
        ledger = self.start(scenario=self.write("crowd.yaml", crowd()))
        self.show_watts(ledger)
        page = self.browser
        page.wait("document.querySelector('#waste').innerText.includes('idle for')", "idle holders")
        size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        width, height = page.run(size)
        self.assertLessEqual(width, 390)
        self.assertLess(height, 12_000, "fifteen screens, not two hundred and thirty")
        self.assertEqual(self.count("#processes tbody tr"), 15)
        self.assertEqual(self.text("#count"), f"{CROWD} processes")
        self.assertEqual(self.text("#more"), f"Show 15 more of {CROWD - 15}")
        page.tap(".plot", 0.98)
        page.wait("!document.querySelector('.tip').hidden", "values where the finger was")
        self.click("#more")
        self.assertEqual(self.count("#processes tbody tr"), 30)
        self.assertEqual(page.run("[...document.querySelectorAll('#processes tbody tr')].indexOf(document.activeElement)"), 15)
        self.choose("#search", "worker-123")
        self.assertEqual(self.column("process"), ["worker-123"], "each of them can be found")
        self.assertTrue(page.run("document.querySelector('#more').hidden"))
        self.click("#more-namespaces")
        self.assertEqual(self.count("#namespaces tbody tr"), 32)
        self.assertLessEqual(page.run(size)[0], 390)
        self.assert_clean()

    def test_narrow_windows(self):
        wide = "w" * 60
        self.show_watts(self.start(scenario=self.write(
            "wide.yaml", "gpus: [{model: H200}]\nprocesses:\n"
            f"  - {{pid: 5001, name: {wide}, gpus: 0, memory: 2GiB, load: gemm, owner: {{namespace: {wide}, pod: {wide}, container: c}}}}\n"
            f"  - {{pid: 5002, name: b, gpus: 0, memory: 1GiB, load: idle, owner: {{docker: {wide}}}}}\n")))
        for width in (320, 390, 700, 1024):
            self.browser.resize(width)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width, f"at {width}")
        self.browser.resize(390, 844)
        labels = self.browser.run("getComputedStyle(document.querySelector('#processes td'), '::before').content")
        self.assertEqual(labels, '"Process"')
        self.click("[data-column=memory]")
        self.assertEqual(self.column("pid"), ["5001", "5002"])
        height = self.browser.run("document.querySelector('#processes th button').getBoundingClientRect().height")
        self.assertGreater(height, 24, "a finger hits it")


if __name__ == "__main__":
    if not CHROMIUM:
        print("no Chromium here")
        sys.exit(77)
    unittest.main()
