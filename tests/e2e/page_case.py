# SPDX-License-Identifier: Apache-2.0
"""What the tests of the page share: one browser window for all of them, and one simulated node that is only looked at."""

import browser
import harness

CHROMIUM = browser.find()
CELLS = "(column) => [...document.querySelectorAll('#processes tbody tr')].map((row) => row.cells[column].textContent)"
COLUMN = {"process": 0, "pid": 1, "pod": 3, "namespace": 4, "watts": 6, "energy": 7, "memory": 9}


class PageCase(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(CHROMIUM)
        cls.addClassCleanup(cls.browser.close)
        cls.node = harness.Ledger("--sample-interval=200ms", "--idle-interval=2s", "--node-name=gpu-node-7")
        cls.addClassCleanup(cls.node.__exit__)

    def setUp(self):
        super().setUp()
        self.browser.open("about:blank")
        self.browser.noise.clear()
        self.browser.requests.clear()
        self.shown = []  # the addresses of the servers whose page was shown
        self.browser.resize(1200)
        self.browser.prefer("light")

    def start(self, *arguments, scenario=None, environment=None):
        """A node of this test's own."""
        ledger = harness.Ledger("--sample-interval=200ms", "--idle-interval=2s", *arguments, scenario=scenario,
                                environment=environment)
        self.addCleanup(ledger.__exit__)
        return ledger

    def show(self, ledger=None, view=""):
        url = f"http://127.0.0.1:{(ledger or self.node).port}/"
        self.shown.append(url)
        self.browser.open("about:blank")  # else another view of the same page is no new page
        self.browser.open(url + view)
        self.browser.wait("document.querySelectorAll('#processes tbody tr').length > 0", "rows of processes")

    def show_watts(self, ledger=None, view=""):
        self.show(ledger, view)
        self.browser.wait("!!state.look", "two looks")

    def column(self, name):
        return self.browser.run(f"({CELLS})({COLUMN[name]})")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({selector!r}).innerText")

    def count(self, selector):
        return self.browser.run(f"document.querySelectorAll({selector!r}).length")

    def click(self, selector):
        self.browser.run(f"document.querySelector({selector!r}).click()")

    def choose(self, selector, value):
        """As a person does: the control changes and says so."""
        self.browser.run(f"(() => {{ const node = document.querySelector({selector!r}); node.value = {value!r};"
                         " for (const kind of ['input', 'change']) node.dispatchEvent(new Event(kind, {bubbles: true})); })()")

    def assert_clean(self):
        self.assertEqual(self.browser.noise, [])
        outside = [url for url in self.browser.requests if not url.startswith((*self.shown, "data:", "about:", "blob:"))]
        self.assertEqual(outside, [])
