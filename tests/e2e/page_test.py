# SPDX-License-Identifier: Apache-2.0
"""The page at / in a real browser: what it shows adds up, it moves, and names from strangers stay text.

Exits 77 without Chromium. `page_test.py --screenshot FILE` only makes the picture of the README.
"""

import json
import signal
import sys
import unittest

import browser
import harness
from page_case import CHROMIUM, PageCase

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
# Each card's own numbers, as shown and behind what is shown, with the two snapshots they must come from.
CARDS = """(() => state.last.gpus.map((gpu) => {
  const card = document.querySelector(`[data-uuid="${gpu.uuid}"]`);
  const then = window.snapshots.at(-2).gpus.find((each) => each.uuid === gpu.uuid);
  const nobody = (each) => Object.values(each.unattributed_joules).reduce((a, b) => a + b, 0);
  const lines = [...card.querySelectorAll('.legend li')];
  return {
    seconds: state.last.at - window.snapshots.at(-2).at, spent: gpu.energy_joules - then.energy_joules,
    nobody: nobody(gpu) - nobody(then), head: card.querySelector('h3 b').textContent,
    total: Number(card.querySelector('h3 b').dataset.watts),
    legend: lines.map((line) => [line.querySelector('.who').textContent, Number(line.dataset.watts)]),
    used: gpu.memory_used_bytes, whole: gpu.memory_total_bytes,
    memory: [...card.querySelectorAll('.track i')].map((piece) => [Number(piece.dataset.bytes), parseFloat(piece.style.width)]),
  };
}))()"""
COLOURS = """[...document.querySelectorAll('.gpu')].map((card) => Object.fromEntries(
  [...card.querySelectorAll('.legend li')].map((line) => [line.querySelector('.who').textContent,
  getComputedStyle(line.querySelector('.chip')).backgroundColor])))"""
KEEP_SNAPSHOTS = "window.snapshots = [state.last]; (() => { const own = learn; learn = (now) => { snapshots.push(now); own(now); }; })()"
CONTRAST = """(names) => {
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
  return Object.fromEntries(names.map((name) => {
      const node = document.querySelector(name);
      const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
      return [name, (a + 0.05) / (b + 0.05)];
    }));
}"""
TEXTS = ["h1", "#summary", ".gpu h3", ".facts", ".legend .num", "#processes td", "#processes th button", "#sources .up",
         "#waste b", "#simulated", "footer a", ".choice [aria-pressed=true]", "#namespaces tbody button", "label", "#count",
         ".labels .y", ".labels .y.limit", "#search"]


class PageTest(PageCase):
    def test_content(self):
        self.show_watts()
        page = self.browser
        page.wait("document.querySelector('#waste').innerText.includes('unused for')", "an unused allocation")
        self.assertIn("gpu-node-7", self.text("h1"))
        self.assertIn("Simulated", self.text("#simulated"))
        self.assertRegex(self.text("#summary"), r"6 GPUs · \d+ W · \d+ processes")
        self.assertEqual(self.count(".gpu"), 6)
        card = self.text(".gpu")
        for words in ("GPU 0", "H200", "ml-team/llm-train-0", "limit 700 W", "Memory", "GiB of", " W", "now", "nobody"):
            self.assertIn(words, card)
        table = self.text("#processes tbody")
        for words in ("llm-train-0", "trainer", "docker ocr-worker", "Slurm job 70411.0", "nvidia-mps.service", "±",
                      "MIG 3g.20gb", "kJ"):
            self.assertIn(words, table)
        waste = self.text("#waste")
        self.assertRegex(waste, r"GPU 5\s+given to research/workbench-0, container notebook, as nvidia.com/gpu: unused")
        self.assertRegex(waste, r"9.0 GiB\s+held by python3 \(44100\) of research/jupyter-lab-3 on GPU 3, idle for")
        self.assertRegex(self.text("#sources"), r"works\s+nvml")
        for path in ("/metrics", "/api/v1/history"):
            self.assertIn(path, self.text("#links"))
        self.assert_clean()

    def test_error_of_the_split(self):
        self.show()
        shown = self.browser.run("""(() => {
          const [gpu] = state.last.gpus;
          const line = () => document.querySelector(`[data-uuid="${gpu.uuid}"] .split`);
          return [{}, {attribution_error_ratio: 0.043, attribution_comparisons: 12},
                  {attribution_error_ratio: 0.004, attribution_comparisons: 1}].map((said) => {
            delete gpu.attribution_error_ratio;
            Object.assign(gpu, said);
            drawGpus();
            return [line().hidden, line().textContent];
          });
        })()""")
        self.assertEqual(shown, [[True, ""], [False, "split off by about 4 % (12 comparisons)"],
                                 [False, "split off by less than 1 % (1 comparison)"]])

    def test_what_is_shown_adds_up(self):
        self.show()
        self.browser.run(KEEP_SNAPSHOTS)
        for by in ("owner", "process"):
            self.click("#by-" + by)
            seen = self.browser.run("snapshots.length")
            self.browser.wait(f"snapshots.length > Math.max(2, {seen})", "two more looks")
            # A table and a card are of the same look.
            cards, node, table = self.browser.run(f"[{CARDS}, document.querySelector('#summary').textContent,"
                                                  " [...document.querySelectorAll('#namespaces tbody tr')].map((row) =>"
                                                  " [row.cells[0].textContent, ...[1, 2].map((i) => Number(row.cells[i].dataset.value))])]")
            self.assertEqual(len(cards), 6)
            for card in cards:
                self.assertAlmostEqual(card["total"], card["spent"] / card["seconds"], 6, "the head is of the same two snapshots")
                self.assertEqual(card["head"], f"{card['total']:.{1 if card['total'] < 9.95 else 0}f} W")
                self.assertAlmostEqual(sum(watts for _, watts in card["legend"]), card["total"], delta=0.06, msg=card["legend"])
                names = [name for name, _ in card["legend"]]
                self.assertEqual(names.count("nobody"), 1)
                nobody = dict(card["legend"])["nobody"]
                self.assertAlmostEqual(nobody, card["nobody"] / card["seconds"], 6, "nobody is nobody, without the others")
            all_watts = sum(card["total"] for card in cards)
            self.assertIn(f"· {all_watts:.0f} W ·", node)
            *rows, total = table
            self.assertEqual(total[0], "all GPUs")
            self.assertAlmostEqual(sum(row[1] for row in rows), total[1], delta=0.01, msg="watts of all namespaces")
            self.assertAlmostEqual(total[1], all_watts, 6)
            self.assertAlmostEqual(sum(row[2] for row in rows), total[2], delta=0.01, msg="joules of all namespaces")
            self.assertAlmostEqual(total[2], self.browser.run("state.last.gpus.reduce((sum, gpu) => sum + gpu.energy_joules, 0)"), 4)

    def test_memory_and_colours_of_many_owners(self):
        def process(pid, gpus, weight, pod):
            return (f"  - {{pid: {pid}, gpus: {gpus}, memory: {weight}GiB, load: {{kind: gemm, weight: {weight}}}, "
                    f"owner: {{namespace: team, pod: {pod}, container: main}}}}")

        # Three more on the second GPU: the same owner has another place there.
        owners = "\n".join([process(100 + i, [0, 1], 1 + i, f"p{i}") for i in range(12)] +
                           [process(200 + i, 1, 14 + i, f"q{i}") for i in range(3)])
        ledger = self.start(scenario=self.write("many.yaml", f"gpus: [{{model: H200}}, {{model: H200}}]\nprocesses:\n{owners}\n"))
        self.show(ledger)
        self.browser.run(KEEP_SNAPSHOTS)
        self.browser.wait("snapshots.length > 1 && !!state.look", "two looks")
        cards = self.browser.run(CARDS)
        self.assertTrue(cards)
        for card in cards:
            self.assertEqual(len(card["legend"]), 10, "eight with a name, others, nobody")
            self.assertEqual([name for name, _ in card["legend"]][-2:], ["other owners", "nobody"])
            self.assertAlmostEqual(sum(watts for _, watts in card["legend"]), card["total"], delta=0.06)
            self.assertGreater(dict(card["legend"])["other owners"], 0.1)  # the lightest, and few samples yet
            self.assertEqual(sum(size for size, _ in card["memory"]), card["used"], "the bar is what is used")
            for size, width in card["memory"]:
                self.assertAlmostEqual(width, 100 * size / card["whole"], 2)
        colours = self.browser.run(COLOURS)
        self.assertEqual(len(set(colours[0].values())), len(colours[0]), "no two on a card have the same")
        both = set(colours[0]) & set(colours[1]) - {"nobody", "other owners"}
        self.assertGreater(len(both), 1)  # in the first seconds other owners may be the largest
        self.assertEqual({name: colours[0][name] for name in both}, {name: colours[1][name] for name in both})
        self.show_watts(ledger)
        again = self.browser.run(COLOURS)
        both = set(colours[0]) & set(again[0])
        self.assertGreater(len(both), 3)
        self.assertEqual({name: colours[0][name] for name in both}, {name: again[0][name] for name in both}, "after a reload")

    def test_history_of_the_server(self):
        """An hour that all viewers share and that a reload does not lose."""
        def points():
            history = json.loads(self.node.get("/api/v1/history").text)
            return history if history["gpus"] and len(history["gpus"][0]["points"]) > 1 else None

        history = harness.wait_until(points, "two steps of history")
        self.assertEqual([gpu["gpu"] for gpu in history["gpus"]], [0, 1, 2, 3, 4, 5])
        for gpu in history["gpus"]:
            for point in gpu["points"]:
                self.assertAlmostEqual(point["energy_joules"], point["others_joules"] + point["unattributed_joules"] +
                                       sum(joules for _, joules in point["owners"]), 5)
                self.assertGreaterEqual(point["to"] - point["from"], 9.5)
        self.show_watts()
        script = ("[...state.past.values()].map((list) => list.length), [...document.querySelectorAll('.plot svg')].map("
                  "(svg) => [...svg.querySelectorAll('path')].reduce((sum, path) => sum + (path.getAttribute('d').match(/z/g)"
                  " || []).length, 0))")
        for _ in ("opened", "reloaded"):
            past, bars = self.browser.run(f"[{script}]")
            self.assertGreaterEqual(min(past), 2, "the page begins with what was before it")
            self.assertGreaterEqual(min(bars), 2)
            first = self.browser.run("state.past.values().next().value[0].from")
            self.assertAlmostEqual(first, history["gpus"][0]["points"][0]["from"], 2)
            self.show_watts()
        # No moment is drawn twice, none is left out.
        edges, past_end = self.browser.run("[entriesOf(state.last.gpus[0].uuid, 'owner', 0).map((entry) => [entry.from, entry.to]),"
                                           " state.past.get(state.last.gpus[0].uuid).at(-1).to]")
        for (_, end), (begin, _) in zip(edges, edges[1:]):
            self.assertGreaterEqual(begin, end - 0.001)
            if end != past_end:  # up to the first look nobody looked
                self.assertLessEqual(begin, end + 0.001)
        self.assert_clean()

    def test_without_a_history_the_rest_is_shown(self):
        for failing in ("Promise.reject(new Error('cut off'))", "Promise.resolve(new Response('no', {status: 500}))",
                        "Promise.resolve(new Response('{'))"):
            with self.subTest(failing):
                self.show_watts()
                page = self.browser
                page.run("plainFetch = window.fetch, window.fetch = (url, ...more) =>"
                         f" url.includes('history') ? {failing} : plainFetch(url, ...more), state.historyAt = -Infinity, 0")
                cycle = page.run("state.last.cycle")
                shown = self.text("#processes tbody")
                page.wait(f"state.last.cycle > {cycle} && document.querySelector('#processes tbody').innerText !== {shown!r}",
                          "new numbers")
                page.wait("document.querySelector('#trouble').innerText.includes('last hour')", "a word about the history")
                self.assertNotIn("does not answer", self.text("#trouble"))
                page.run("window.fetch = plainFetch, state.historyAt = -Infinity, 0")
                page.wait("document.querySelector('#trouble').hidden", "the history that is back")

    def test_an_error_as_large_as_the_watts(self):
        self.show_watts()
        shown = """(power, error) => {
          const process = state.last.processes.find((each) => each.active && state.rates.has(processKey(each)));
          state.rates.set(processKey(process), {watts: power, error});
          const entry = state.look.gpus.get(process.gpu_uuid);
          entry.owner.set(ownerKey(process), power);
          entry.errors.owner.set(ownerKey(process), error);
          redraw();
          const line = [...cards.get(process.gpu_uuid).legend.children]
            .find((each) => each.querySelector('.who').textContent === ownerLabel(process));
          return [rows.get(processKey(process)).cells[6].textContent, line.querySelector('.num').textContent];
        }"""
        for power, error, cell in ((146, 156, "uncertain"), (146, 146, "uncertain"), (146, 31, "146 W ± 31"),
                                   (0.01, 0.02, "0.0 W")):
            text, legend = self.browser.run(f"({shown})({power}, {error})")
            self.assertEqual(text, cell)
            self.assertEqual(legend.split(" · ")[0], cell.split(" ±")[0])

    def test_sums_of_a_namespace_have_their_error(self):
        self.show_watts()
        self.browser.wait("document.querySelector('#namespaces tbody').innerText.includes('±')", "an error")
        page = """(owners, closed) => {
          const uuid = state.last.gpus[0].uuid;
          const entry = state.look.gpus.get(uuid);
          const account = ({alone = 0, shared, error, watts, off}, i) => ({owner: 'pod', namespace: 'n', owner_text: 'n/p' + i,
            gpu: 0, gpu_uuid: uuid, energy_joules: {alone, shared, total: alone + shared},
            ...(error && {energy_standard_error_joules: error})});
          state.last = {...state.last, owners: owners.map(account), closed: closed.map(account), processes: []};
          entry.owner = new Map();
          entry.errors.owner = new Map();
          owners.forEach((each, i) => {
            const key = remember(state.last.owners[i]);
            entry.owner.set(key, each.watts);
            entry.errors.owner.set(key, each.off);
          });
          redraw();
          const rows = [...document.querySelectorAll('#namespaces tbody tr')];
          const cells = [...rows.find((row) => row.cells[0].innerText === 'n').cells];
          return [cells[1].textContent, cells[2].textContent, cells[1].title, cells[2].title,
                  rows.at(-1).cells[1].textContent + rows.at(-1).cells[2].textContent];
        }"""
        two = [{"shared": 14000, "error": 1000, "watts": 100, "off": 20}, {"shared": 200, "error": 200, "watts": 50, "off": 140}]
        power, energy, *titles, total = self.browser.run(f"({page})({json.dumps(two)}, [])")
        self.assertEqual((power, energy), ("150 W ± 160", "14.2 kJ ± 1.2"), "even if the sum is too large")
        for title in titles:
            self.assertIn("sum of its owners' standard errors", title)
        self.assertNotIn("±", total, "the GPUs' own figures are measured")
        power, energy, *titles, _ = self.browser.run(f"({page})({json.dumps(two)}, [{{shared: 800}}])")
        self.assertEqual((power, energy), ("150 W ± 160", "~15.0 kJ"), "the error of what is closed is not known")
        self.assertIn("not known any more", titles[1])
        _, energy, *_ = self.browser.run(f"({page})({json.dumps([dict(two[1], alone=5000)])}, [{{shared: 0, alone: 800}}])")
        self.assertEqual(energy, "6.0 kJ ± 0.2", "what is closed was measured")

    def test_energy_of_a_process_has_its_error(self):
        self.show_watts()
        shown = """(energy, error) => {
          const process = state.last.processes.find((each) => each.active);
          process.energy_joules = energy;
          delete process.energy_standard_error_joules;
          if (error !== null) process.energy_standard_error_joules = error;
          redraw();
          return rows.get(processKey(process)).cells[7].textContent;
        }"""
        for alone, shared, error, text in ((0, 14200, 2600, "14.2 kJ ± 2.6"), (14200, 0, "null", "14.2 kJ"),
                                           (0, 14200, 5, "14.2 kJ"), (0, 900, 1200, "900 J ± 1200"),
                                           (0, 900, "null", "~900 J")):
            energy = f"{{alone: {alone}, shared: {shared}, total: {alone + shared}}}"
            self.assertEqual(self.browser.run(f"({shown})({energy}, {error})"), text)

    def test_what_is_not_known_is_not_0_watts(self):
        ledger = self.start()
        self.show_watts(ledger)
        ledger.send(signal.SIGUSR1)  # releases the GPUs
        self.browser.wait("document.querySelector('#summary').innerText.includes('6 lost') && !!state.look", "the release")
        self.assertRegex(self.text("#summary"), r"^6 GPUs, 6 lost · \d+ processes")
        self.assertNotIn(" W", self.browser.run("document.title"))
        self.assertEqual(set(self.column("watts")), {""})
        powers = self.browser.run("[...document.querySelectorAll('#namespaces tbody tr')].map((row) => row.cells[1].textContent)")
        self.assertGreater(len(powers), 5)
        self.assertEqual(set(powers), {""})
        self.assertIn("kJ", self.text("#namespaces tbody"), "the books stay")
        gpu = "{up: true, energy_source: 'power_integral'%s}"
        self.assertFalse(self.browser.run(f"isMeasured({gpu % ''})"), "neither a counter nor a reading")
        self.assertTrue(self.browser.run(f"isMeasured({gpu % ', power_watts: 0'})"))
        self.assert_clean()

    def test_live_update(self):
        ledger = self.start()
        self.show(ledger)
        page = self.browser
        first = page.run("[state.last.cycle, document.querySelector('#processes tbody').innerText]")
        page.wait(f"state.last.cycle > {first[0]} && document.querySelector('#processes tbody').innerText !== "
                  f"{first[1]!r} && !!state.look", "other numbers")
        self.assertTrue(page.run("document.querySelector('#trouble').hidden"))
        self.assert_clean()
        ledger.stop()
        page.wait("!document.querySelector('#trouble').hidden", "a word about the server that is gone")
        self.assertIn("does not answer", self.text("#trouble"))
        again = harness.Program([harness.BINARY, "serve", "--backend=sim", f"--listen-address=127.0.0.1:{ledger.port}"])
        with again:
            page.wait("document.querySelector('#trouble').hidden", "the server that is back")
            page.wait("state.last.cycle > 4 && state.rates.size > 0", "books that begin anew")
            highest = "Math.max(...[...state.live.values()].flat().map((entry) => entry.total))"
            self.assertLess(page.run(highest), 2000, "a restart is no peak")

    def test_hostile_names(self):
        self.show(self.start(scenario=self.write("hostile.yaml", HOSTILE)))
        page = self.browser
        page.wait("document.querySelector('#waste').innerText.includes('unused for')", "an unused allocation")
        self.click("#by-process")
        page.point(".plot", 0.97)
        page.wait("!document.querySelector('.tip').hidden", "values under the pointer")
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
        self.show(self.start(f"--dcgm-exporter-url=http://127.0.0.1:{port}/metrics"))
        self.browser.wait("document.querySelector('#sources').innerText.includes('fails')", "the source that fails")
        self.assertRegex(self.text("#sources"), rf"fails\s+dcgm-exporter: .*{port}.*; is it running")
        self.assertIn("1 source fails", self.text("#summary"))
        self.assertFalse(self.browser.run("document.querySelector('#simulated').hidden"))

    def test_what_may_be_told_later(self):
        self.show_watts()
        account = "{owner: 'pod', owner_text: 'a/b', gpu_uuid: 'GPU-1'%s}"
        user = account % ", uid: '1000', user_name: 'ann'"
        self.assertTrue(self.browser.run(f"accountKey({account % ''}) === accountKey({user})"), "a user's name is no new account")
        self.assertFalse(self.browser.run(f"accountKey({account % ''}) === accountKey({user.replace('a/b', 'a/c')})"))
        self.browser.run("(() => { state.last.sources.push({source: 'cri', up: false, needed: false, reason: 'no socket'}); redraw(); })()")
        self.assertRegex(self.text("#sources"), r"not needed\s+cri: no socket")
        self.assertNotIn("fail", self.text("#summary"))

    def test_no_banner_for_a_driver_of_this_machine(self):
        ledger = harness.Program(
            [harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
             f"--listen-address=127.0.0.1:{(port := harness.free_port())}"])
        with ledger:
            harness.wait_until(lambda: answers(port), "an answer")
            self.browser.open(f"http://127.0.0.1:{port}/")
            self.browser.wait("document.querySelectorAll('.gpu').length > 0", "GPUs")
            self.assertTrue(self.browser.run("document.querySelector('#simulated').hidden"))

    def test_a_gpu_that_is_lost_is_the_loudest(self):
        control = harness.Control(self.folder)
        self.show(self.start(scenario=self.write(
            "sick.yaml", "gpus: [{model: H200}, {model: H200}, {model: H200}]\n"
            "processes: [{pid: 7, gpus: 1, memory: 1GiB, load: gemm}]\n"), environment=control.environment))
        page = self.browser
        page.wait("!!state.look", "two looks")
        xid = "do: xid, gpu: 2, xid: 94"
        control.say(xid)
        page.wait("[...document.querySelectorAll('.troubles')].some((list) => list.innerText.includes('Xid 94, once'))", "the Xid")
        control.say(xid, "do: gpu_lost, gpu: 1")
        page.wait("document.querySelectorAll('.gpu.lost').length === 1", "the loss")
        self.assertIn("GPU 1", self.text("#gpus .gpu:first-child h3"), "it comes first")
        self.assertIn("does not answer", self.text(".gpu.lost h3"))
        self.assertIn("does not answer", self.text(".gpu.lost .troubles"))
        self.assertRegex(self.text("#lost"), r"GPU 1 \(NVIDIA H200, GPU-.*\) does not answer")
        self.assertRegex(self.text("#summary"), r"^3 GPUs, 1 lost · \d+ W of 2 GPUs · ")
        self.assertTrue(page.run("document.title").startswith("1 lost"))
        self.assertEqual(page.run("document.querySelector('#lost').getAttribute('role')"), "alert")
        self.assertEqual(self.count(".gpu.lost .legend [data-watts]"), 0, "nothing is known of now")
        host = page.run("[...document.querySelectorAll('#namespaces tbody tr')].find((row) => row.cells[0].innerText === '(host)')"
                        ".cells[1].textContent")
        self.assertEqual(host, "", "not 0 W: unknown")
        sizes = page.run("['.gpu.lost h3', '.gpu:not(.lost) h3', '#lost', '#simulated'].map((name) =>"
                         " parseFloat(getComputedStyle(document.querySelector(name)).fontSize))")
        self.assertGreater(sizes[0], sizes[1])
        self.assertGreater(sizes[2], sizes[3])
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            for name, contrast in page.run(f"({CONTRAST})(['#lost', '.gpu.lost h3', '.gpu.lost .troubles'])").items():
                self.assertGreater(contrast, 4.5, f"{name} in the {scheme}")
            self.assertEqual(page.run("getComputedStyle(document.querySelector('.gpu.lost')).opacity"), "1")
        self.assert_clean()

    def test_policy_and_size(self):
        self.show()
        policy = self.node.get("/").headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.browser.run("""(() => { const script = document.createElement('script');
            script.textContent = 'window.inline = 1'; document.body.append(script); })()""")
        self.assertIsNone(self.browser.run("window.inline"), "the policy must stop what is not a file of ours")
        size = sum(len(self.node.get(path).body) for path in ("/", "/page.css", "/page.js"))
        self.assertLess(size, 100_000)

    def test_light_and_dark(self):
        self.show_watts()
        grounds = {}
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            grounds[scheme] = self.browser.run("getComputedStyle(document.body).backgroundColor")
            for name, contrast in self.browser.run(f"({CONTRAST})({TEXTS})").items():
                self.assertGreater(contrast, 4.5, f"{name} in the {scheme}")
        self.assertNotEqual(grounds["light"], grounds["dark"])


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
        past = lambda: json.loads(ledger.get("/api/v1/history").text)["gpus"]
        harness.wait_until(lambda: past() and len(past()[0]["points"]) >= 60, "ten minutes of history", net=1200)
        window.open(f"http://127.0.0.1:{ledger.port}/")
        window.wait("state.look && [...state.live.values()].every((list) => list.at(-1).to - list[0].from > 6)", "some looks")
        window.point(".gpu:nth-child(2) .plot", 0.35)
        window.run("scrollTo(0, 0)")
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
