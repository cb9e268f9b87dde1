# SPDX-License-Identifier: Apache-2.0
"""Child processes that are talked to line by line, for validate.py. Every wait ends."""
import collections
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

LOADS = pathlib.Path(__file__).resolve().parent / "loads.py"
KILLED_SECONDS = 10
_children = []


class Child:
    """What it prints, on either stream, is read as it comes, so that it never waits for us."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment)
        self.pid = self.process.pid
        self.lines = queue.Queue()
        self.tail = collections.deque(maxlen=8)
        threading.Thread(target=self._read, daemon=True).start()
        _children.append(self)

    def _read(self):
        for line in self.process.stdout:
            self.tail.append(line.strip())
            self.lines.put(line.strip())
        self.lines.put(None)

    def last_words(self):
        return " | ".join(self.tail)[-600:]

    def expect_containing(self, words, seconds, matches=lambda line, words: words in line):
        """The first line that has the words; lines before it are dropped."""
        try:
            # A library may warn on stderr first, but not for ever.
            for _ in range(100):
                line = self.lines.get(timeout=seconds)
                if line is None:
                    break
                if matches(line, words):
                    return line
        except queue.Empty:
            raise RuntimeError(f"no {words!r} within {seconds} s: {self.last_words()}") from None
        raise RuntimeError(f"ended or strayed before {words!r}: {self.last_words()}")

    def expect(self, line, seconds):
        return self.expect_containing(line, seconds, lambda got, wanted: got == wanted)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it is gone already

    def wait(self, seconds):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.process.args[:4]} did not end: {self.last_words()}") from None

    def kill(self):
        end_all([self])


class Load(Child):
    """One loads.py; its log says what it did when."""

    _number = 0

    def __init__(self, kind, duty, folder, environment=None):
        Load._number += 1
        self.kind = kind
        self.log = pathlib.Path(folder) / f"load{Load._number}.log"
        super().__init__([sys.executable, "-B", str(LOADS), kind, duty, str(self.log)], {**os.environ, **(environment or {})})

    def wait(self, seconds):
        code = super().wait(seconds)
        if code != 0:
            raise RuntimeError(f"load {self.kind} failed with {code}: {self.last_words()}")
        return code

    def finish_at(self, moment):
        """Works until then and exits."""
        self.tell(f"work_until {moment}")
        self.close()

    def points(self):
        """[(moment, units finished of each of its kinds...)]; a torn last line is left out."""
        rows = [line.split() for line in self.log.read_text().splitlines()]
        columns = 1 + len(self.kind.split("+"))
        return [(float(row[0]), *(int(units) for units in row[1:])) for row in rows if len(row) == columns]


def end_all(children=None, seconds=0):
    """Kills those that still run after these seconds, of ours only. All at once: one may take a while to go."""
    children = list(_children if children is None else children)
    until = time.monotonic() + seconds
    for child in children:
        while child.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    for child in children:
        if child.process.poll() is None:
            child.process.kill()
    until = time.monotonic() + KILLED_SECONDS
    for child in children:
        try:
            child.process.wait(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass  # it is killed, but the driver holds it: nothing more to do
        child.close()
