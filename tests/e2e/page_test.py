# SPDX-License-Identifier: Apache-2.0
"""The page at / in a real browser: what it shows, that it moves, and that names from strangers stay text.

Exits 77 without Chromium. `page_test.py --screenshot FILE` only makes the picture of the README.
"""

import sys
import time
import unittest

import browser
import harness

CHROMIUM = browser.find()
HOSTILE = """
gpus: [{model: H200}]
processes:
  - pid: 5001
    name: "<b>bold</b>"
    gpus: 0
    memory: 2GiB
    load: gemm
    owner: {namespace: "n<script>window.hacked=1</script>", pod: "<img src=x onerror=window.hacked=1>",
            container: "\\"'><svg onload=window.hacked=1>"}
  - pid: 5002
    name: "\\u202Egnp.exe"
    gpus: 0
    memory: 1GiB
    load: idle
    owner: {docker: "</li><iframe src=javascript:window.hacked=1>"}
allocations:
  - gpu: 0
    owner: {namespace: "a&lt;b", pod: "{{7*7}}<a href=javascript:alert(1)>", container: "c"}
"""
CELLS = "(column) => [...document.querySelectorAll('#processes tbody tr')].map((row) => row.cells[column].textContent)"
COLUMN = {"process": 0, "pid": 1, "pod": 3, "watts": 6, "energy": 7, "memory": 9}
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return Object.fromEntries(['h1', '#summary', '.gpu h3', '.facts', '.legend .num', '#processes td', 'th button',
    '#sources .up', '#waste b', '#simulated', 'footer a', '.choice [aria-pressed=true]'].map((name) => {
      const node = document.querySelector(name);
      const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
      return [name, (a + 0.05) / (b + 0.05)];
    }));
})()"""


class PageTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(CHROMIUM)
        self.addCleanup(self.browser.close)
        self.browser.resize(1200)

    def show(self, *arguments, scenario=None):
        ledger = harness.Ledger("--sample-interval=200ms", "--idle-interval=2s", *arguments, scenario=scenario)
        self.addCleanup(ledger.__exit__)
        self.url = f"http://127.0.0.1:{ledger.port}/"
        self.browser.open(self.url)
        self.browser.wait("document.querySelectorAll('#processes tbody tr').length > 0", "rows of processes")
        return ledger

    def column(self, name):
        return self.browser.run(f"({CELLS})({COLUMN[name]})")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({selector!r}).innerText")

    def assert_clean(self):
        self.assertEqual(self.browser.noise, [])
        outside = [url for url in self.browser.requests if not url.startswith((self.url, "data:", "about:"))]
        self.assertEqual(outside, [])

    def test_content(self):
        self.show("--node-name=gpu-node-7")
        page = self.browser
        page.wait("document.querySelector('#waste').innerText.includes('unused for')", "an unused allocation", 40)
        self.assertIn("gpu-node-7", self.text("h1"))
        self.assertIn("Simulated", self.text("#simulated"))
        self.assertRegex(self.text("#summary"), r"6 GPUs · \d+ W · \d+ processes")
        self.assertEqual(page.run("document.querySelectorAll('.gpu').length"), 6)
        card = self.text(".gpu")
        for words in ("GPU 0", "H200", "ml-team/llm-train-0", "limit 700 W", "Memory", "GiB of", " W", "1 min ago"):
            self.assertIn(words, card)
        self.assertGreater(page.run("document.querySelectorAll('.gpu path.c0').length"), 4)
        self.assertGreater(page.run("document.querySelector('.gpu path.c0').getTotalLength()"), 100)
        drawn = page.run("document.querySelector('.gpu path.c0').getBBox().x")
        self.assertGreaterEqual(drawn, 0, "bars stay in the picture")
        self.assertLess(drawn, 280)
        above = "document.querySelector('.chart {}').getBoundingClientRect().{}"
        self.assertLessEqual(page.run(above.format("span", "bottom")), page.run(above.format("svg", "top")) + 1,
                             "no bar runs through the number")
        table = self.text("#processes tbody")
        for words in ("llm-train-0", "trainer", "docker ocr-worker", "Slurm job 70411.0", "nvidia-mps.service", "±",
                      "MIG 3g.20gb", "kJ"):
            self.assertIn(words, table)
        waste = self.text("#waste")
        self.assertRegex(waste, r"GPU 5\s+given to research/workbench-0, container notebook, as nvidia.com/gpu: unused")
        self.assertRegex(waste, r"9.0 GiB\s+held by python3 \(44100\) of research/jupyter-lab-3 on GPU 3, idle for")
        self.assertRegex(self.text("#sources"), r"works\s+nvml")
        self.assertIn("/metrics", self.text("#links"))
        self.assert_clean()

    def test_watts_add_up(self):
        self.show()
        page = self.browser
        page.wait("document.querySelectorAll('.legend .num').length > 6", "watts")
        time.sleep(4)
        page.wait("state.history.size === 6", "history")
        for by in ("pod", "process"):
            worst = page.run(f"Math.max(...[...state.history.values()].flat().map((e) => "
                             f"[...e.{by}.values()].reduce((a, b) => a + b, 0) - e.total))")
            self.assertLess(worst, 0.01, f"more watts by {by} than the GPU had")
        page.run("document.querySelector('#by-process').click()")
        self.assertIn("(41001)", self.text(".gpu"))
        self.assertEqual(page.run("document.querySelector('#by-process').getAttribute('aria-pressed')"), "true")

    def test_sorting(self):
        self.show()
        page = self.browser
        page.wait(f"({CELLS})({COLUMN['watts']}).some((text) => text.endsWith('W'))", "watts")
        watts = [float(text.split()[0]) for text in self.column("watts") if text.endswith("W") or "±" in text]
        self.assertEqual(watts, sorted(watts, reverse=True), "most watts first")
        click = "document.querySelector('[data-column={}]').click()"
        sort_of = "document.querySelector('[data-column={}]').parentElement.getAttribute('aria-sort')"
        for column, kind, first in (("pid", int, "descending"), ("process", str, "ascending")):
            for order in (first, "ascending" if first == "descending" else "descending"):
                page.run(click.format(column))
                values = [kind(text) for text in self.column(column)]
                self.assertGreater(len(values), 10)
                self.assertEqual(values, sorted(values, reverse=order == "descending"), f"{column} {order}")
                self.assertEqual(page.run(sort_of.format(column)), order)
        self.assertEqual(page.run("document.querySelectorAll('[aria-sort]').length"), 1)
        time.sleep(3)
        self.assertEqual(self.column("process"), sorted(self.column("process"), reverse=True), "kept over an update")

    def test_an_error_as_large_as_the_watts(self):
        self.show()
        page = self.browser
        page.wait("state.rates.size > 0", "watts")
        shown = """(power, error) => {
          const process = state.last.processes.find((each) => each.active);
          state.rates.set(processKey(process), {watts: power, error});
          const entry = state.history.get(process.gpu_uuid).at(-1);
          entry.pod.set(ownerLabel(process), power);
          entry.errors.pod.set(ownerLabel(process), error);
          draw(state.last);
          const line = [...state.cards.get(process.gpu_uuid).legend.children]
            .find((each) => each.querySelector('.who').textContent === ownerLabel(process));
          return [state.rows.get(processKey(process)).cells[6].textContent, line.querySelector('.num').textContent];
        }"""
        for power, error, cell in ((146, 156, "not known yet"), (146, 146, "not known yet"), (146, 31, "146 W ± 31"),
                                   (0.01, 0.02, "0.0 W")):
            text, legend = page.run(f"({shown})({power}, {error})")
            self.assertEqual(text, cell)
            self.assertEqual(legend.split(" · ")[0], cell.split(" ±")[0])

    def test_live_update(self):
        ledger = self.show()
        page = self.browser
        first = page.run("[state.last.cycle, document.querySelector('#processes tbody').innerText]")
        page.wait(f"state.last.cycle > {first[0]} && document.querySelector('#processes tbody').innerText !== "
                  f"{first[1]!r} && state.history.get(state.last.gpus[0].uuid)?.length > 2", "other numbers")
        self.assertTrue(page.run("document.querySelector('#trouble').hidden"))
        self.assert_clean()
        ledger.stop()
        page.wait("!document.querySelector('#trouble').hidden", "a word about the server that is gone")
        self.assertIn("does not answer", self.text("#trouble"))
        again = harness.Program([harness.BINARY, "serve", "--backend=sim", f"--listen-address=127.0.0.1:{ledger.port}"])
        with again:
            page.wait("document.querySelector('#trouble').hidden", "the server that is back")
            page.wait("state.last.cycle > 4 && state.rates.size > 0", "books that begin anew")
            self.assertLess(page.run("Math.max(...[...state.history.values()].flat().map((e) => e.total))"), 2000,
                            "a restart is no peak")

    def test_hostile_names(self):
        self.show(scenario=self.write("hostile.yaml", HOSTILE))
        page = self.browser
        page.wait("document.querySelector('#waste').innerText.includes('unused for')", "an unused allocation", 40)
        page.run("document.querySelector('#by-process').click()")
        whole = self.text("body")
        for words in ("<b>bold</b>", "<img src=x onerror=window.hacked=1>", "n<script>window.hacked=1</script>",
                      "<svg onload=window.hacked=1>", "{{7*7}}<a href=javascript:alert(1)>", "a&lt;b"):
            self.assertIn(words, whole)
        self.assertIsNone(page.run("window.hacked"))
        foreign = "document.querySelectorAll('img, iframe, main a, script:not([src]), main b b').length"
        self.assertEqual(page.run(foreign), 0)
        self.assertEqual(page.run("document.scripts.length"), 1)
        self.assert_clean()

    def test_a_source_that_fails_and_its_fix(self):
        port = harness.free_port()
        self.show(f"--dcgm-exporter-url=http://127.0.0.1:{port}/metrics")
        self.browser.wait("document.querySelector('#sources').innerText.includes('fails')", "the source that fails")
        self.assertRegex(self.text("#sources"), rf"fails\s+dcgm-exporter: .*{port}.*; is it running")
        self.assertIn("1 source fails", self.text("#summary"))
        self.assertFalse(self.browser.run("document.querySelector('#simulated').hidden"))

    def test_no_banner_for_a_driver_of_this_machine(self):
        ledger = harness.Program(
            [harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
             f"--listen-address=127.0.0.1:{(port := harness.free_port())}"])
        with ledger:
            harness.wait_until(lambda: answers(port), 15, "an answer")
            self.browser.open(f"http://127.0.0.1:{port}/")
            self.browser.wait("document.querySelectorAll('.gpu').length > 0", "GPUs")
            self.assertTrue(self.browser.run("document.querySelector('#simulated').hidden"))

    def test_a_gpu_that_ails(self):
        self.show(scenario=self.write("sick.yaml", "gpus: [{model: H200}, {model: H200}]\n"
                                      "processes: [{pid: 7, gpus: 0, memory: 1GiB, load: gemm}]\n"
                                      "events: [{at: 1, do: xid, gpu: 1, xid: 94}, {at: 4, do: gpu_lost, gpu: 0}]\n"))
        self.browser.wait("document.querySelectorAll('.troubles')[1].innerText.includes('Xid 94, once')", "the Xid")
        self.browser.wait("document.querySelectorAll('.troubles')[0].innerText.includes('does not answer')", "the loss")
        self.assertIn("does not answer", self.text(".gpu.gone h3"))
        self.assert_clean()

    def test_policy(self):
        ledger = self.show()
        policy = ledger.get("/").headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.browser.run("""(() => { const script = document.createElement('script');
            script.textContent = 'window.inline = 1'; document.body.append(script); })()""")
        self.assertIsNone(self.browser.run("window.inline"), "the policy must stop what is not a file of ours")
        size = sum(len(ledger.get(path).body) for path in ("/", "/page.css", "/page.js"))
        self.assertLess(size, 60_000)

    def test_light_and_dark(self):
        self.show()
        grounds = {}
        self.browser.wait("!!document.querySelector('.legend .num')", "watts")
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            grounds[scheme] = self.browser.run("getComputedStyle(document.body).backgroundColor")
            for name, contrast in self.browser.run(CONTRAST).items():
                self.assertGreater(contrast, 4.5, f"{name} in the {scheme}")
        self.assertNotEqual(grounds["light"], grounds["dark"])

    def test_phone(self):
        self.show(scenario=self.write("hostile.yaml", HOSTILE.replace("bold", "w" * 60)))
        for width in (320, 390, 700, 1024):
            self.browser.resize(width)
            self.browser.wait("!!document.querySelector('.legend .num')", "watts")
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width, f"at {width}")
        self.browser.resize(390)
        labels = self.browser.run("getComputedStyle(document.querySelector('#processes td'), '::before').content")
        self.assertEqual(labels, '"Process"')
        self.browser.run("document.querySelector('[data-column=memory]').click()")
        self.assertEqual(self.column("pid"), ["5001", "5002"])
        height = self.browser.run("document.querySelector('th button').getBoundingClientRect().height")
        self.assertGreater(height, 24, "a finger hits it")


def answers(port):
    try:
        return harness.get(port, "/readyz").status == 200
    except OSError:
        return False


def make_screenshot(path):
    window = browser.Browser(CHROMIUM)
    with harness.Ledger("--node-name=gpu-node-7") as ledger:
        window.resize(1280, 1620)
        window.prefer("light")
        window.open(f"http://127.0.0.1:{ledger.port}/")
        time.sleep(120)
        window.screenshot(path)
    window.close()


if __name__ == "__main__":
    if not CHROMIUM:
        print("no Chromium here")
        sys.exit(77)
    if sys.argv[1:2] == ["--screenshot"]:
        make_screenshot(sys.argv[2])
    else:
        unittest.main()
