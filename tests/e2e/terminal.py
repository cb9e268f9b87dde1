# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger top` in a pseudo terminal, and what stands on its screen."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import unittest

import harness

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SGR = re.compile(r"\x1b\[[0-9;]*m")
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


# What a shell does: a process group in the foreground, and somebody in the same session who could continue it.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Screen:
    """`gpu-ledger top` in a terminal of its own. It draws whole pictures, each from the first line on."""

    def __init__(self, *arguments, columns=120, rows=40, environment=None, shell=False):
        try:
            self.master, slave = pty.openpty()
        except OSError as error:  # a root without /dev/pts
            raise unittest.SkipTest(f"no terminal to be had: {error}") from error
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave  # kept open: the settings are looked at when the program is gone
        self.child = subprocess.Popen(
            [*([sys.executable, "-c", SHELL] if shell else []), harness.BINARY, "top", *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=harness.clean_environment({"TERM": "xterm", "NO_COLOR": "", **(environment or {})}))
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def program(self):
        """The pid of the program that a shell started."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children", encoding="utf-8") as file:
            return int(file.read())

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def pump(self, seconds=0.05):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                self.text += self.decoder.decode(os.read(self.master, 1 << 16))

    def wait(self, condition, what):
        def check():
            self.pump()
            return condition()
        try:
            return harness.wait_until(check, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n" + "\n".join(self.frame()) + f"\n{self.text[-500:]!r}") from None

    def frame(self):
        """The lines of the last whole picture: one that another follows."""
        whole = self.text.split("\x1b[H")[1:-1]
        return ESCAPE.sub("", whole[-1]).replace("\r", "").split("\n") if whole else []

    def line(self, number):
        return (self.frame() + [""] * number)[number] if self.frame() else ""

    def rows(self):
        """The lines of the table of processes."""
        frame = self.frame()
        head = next((i for i, line in enumerate(frame) if "OWNER" in line), len(frame))
        return [line for line in frame[head + 1:-1] if line.strip()]

    def pids(self):
        return [line.split()[1] for line in self.rows() if len(line.split()) > 1]

    def press(self, keys):
        self.text = ""
        os.write(self.master, keys.encode())

    def end(self):
        """Its exit code. What it wrote last may come later than its end: wait for it."""
        self.wait(lambda: self.child.poll() is not None, "the end")
        return self.child.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self.master)
        os.close(self.slave)
