# SPDX-License-Identifier: Apache-2.0
"""A real headless Chromium, driven over its debugging pipe. Standard library only."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

import harness

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


def moved_up(descriptor):
    """Out of the way of 3 and 4, which the shell below fills one after the other."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(descriptor)
    return copy


class Browser:
    """One window. `noise` collects what a clean page never causes: exceptions, console errors, violated policies."""

    def __init__(self, chromium):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.to = map(moved_up, os.pipe())
        self.back, theirs_out = map(moved_up, os.pipe())
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
                 "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={self.profile.name}",
                 "about:blank"]
        # Chromium reads its orders from 3 and answers on 4.
        self.child = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} {theirs_in}<&- {theirs_out}>&-', "bash", chromium,
             *flags],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.number, self.session = b"", 0, None
        self.noise, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _read(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError("Chromium does not answer")
            chunk = os.read(self.back, 1 << 20)
            if not chunk:
                raise AssertionError("Chromium ended")
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        method, details = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.noise.append(details["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.noise.append(details["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        order = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.to, json.dumps(order).encode() + b"\0")
        deadline = time.monotonic() + harness.NET
        while True:
            answer = self._read(deadline)
            if answer.get("id") != self.number:
                self._note(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression on the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, script, what):
        return harness.wait_until(lambda: self.run(script), what)

    def resize(self, width, height=800):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def place(self, selector, share):
        """A point of a node, at this share of its width, after scrolling to it."""
        box = self.run(f"(() => {{ const node = document.querySelector({selector!r}); node.scrollIntoView({{block: 'center'}});"
                       " const {x, y, width, height} = node.getBoundingClientRect(); return [x, y, width, height]; })()")
        return {"x": box[0] + share * box[2], "y": box[1] + box[3] / 2}

    def point(self, selector, share=0.5):
        """The mouse over a node."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **self.place(selector, share))

    def tap(self, selector, share=0.5):
        """A finger on a node, and off again."""
        self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[self.place(selector, share)])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.call("Emulation.setTouchEmulationEnabled", enabled=False)

    def press(self, key):
        """A key, to whatever has the focus."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
                "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **(text if kind == "keyDown" else {}))

    def save_to(self, folder):
        """Where downloads go."""
        session, self.session = self.session, None
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.session = session

    def controls(self):
        """What a screen reader meets: (role, name, value) of every node of the accessibility tree."""
        self.call("Accessibility.enable")
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        self.call("Accessibility.disable")
        text = lambda node, field: node.get(field, {}).get("value", "")
        return [(text(node, "role"), text(node, "name"), text(node, "value")) for node in nodes if not node["ignored"]]

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot))

    def close(self):
        os.close(self.to)
        os.close(self.back)
        # Its own session: Chromium's helpers are its children and go with it.
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.profile.cleanup()
