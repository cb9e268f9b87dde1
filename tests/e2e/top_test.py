# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger top`: one look with --batch, and live in a pseudo terminal that must come back as it was."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


class Screen:
    """`gpu-ledger top` in a terminal of its own."""

    def __init__(self, *arguments, columns=120, rows=40):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave  # kept open: the settings are looked at when the program is gone
        self.child = subprocess.Popen(
            [harness.BINARY, "top", "--backend=sim", "--sample-interval=200ms", *arguments], stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=harness.clean_environment())
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

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
        return harness.wait_until(check, 15, f"{what}; the screen:\n{self.text[-3000:]}")

    def frame(self):
        """The lines of the last whole picture."""
        pictures = self.text.split("\x1b[H")[1:]
        whole = [picture for picture in pictures if "\x1b[J" in picture]
        return ESCAPE.sub("", whole[-1].split("\x1b[J")[0]).replace("\r", "").split("\n") if whole else []

    def press(self, keys):
        self.text = ""
        os.write(self.master, keys.encode())

    def end(self):
        self.wait(lambda: self.child.poll() is not None, "the end")
        for _ in range(5):
            self.pump(0.02)
        return self.child.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self.master)
        os.close(self.slave)


class TopTest(harness.Case):
    def assert_restored(self, screen):
        self.assertIn(LEAVE, screen.text)
        self.assertIn("\x1b[?25h", screen.text, "the cursor is back")
        self.assertEqual(termios.tcgetattr(screen.slave), screen.before)

    def batch(self, *arguments, environment=None):
        return subprocess.run([harness.BINARY, "top", "--batch", *arguments], capture_output=True, text=True,
                              timeout=30 * harness.SLOW, env=harness.clean_environment(environment))

    def test_batch(self):
        done = self.batch("--backend=sim", "--sample-interval=1s", "--node-name=n7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^gpu-ledger n7: 6 GPUs, \d+ W, \d+ processes, SIMULATED$")
        self.assertNotIn("\x1b", done.stdout)
        gpus = [line for line in lines if "NVIDIA H200" in line]
        self.assertRegex(gpus[0], r"^ +0 NVIDIA H200 +[\d.]+ +700 +\d+% +[\d.]+G/140G +\d+C +[\d.]+k?J$")
        rows = [line.split() for line in lines[lines.index(next(l for l in lines if "OWNER" in l)) + 1:]]
        self.assertGreater(len(rows), 8)
        watts = [float(row[2]) for row in rows if row[2:5] != ["not", "known", "yet"]]
        self.assertEqual(watts, sorted(watts, reverse=True))
        self.assertGreater(watts[0], 100)
        self.assertIn("ml-team/llm-train-0", done.stdout)
        self.assertIn("docker transcoder", done.stdout)

    def test_batch_writes_no_books(self):
        state = self.folder / "state"
        prom = self.folder / "x.prom"
        done = self.batch("--backend=sim", "--sample-interval=200ms", f"--state-file={state}", f"--textfile={prom}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_hostile_names_do_not_reach_the_terminal(self):
        scenario = self.write("hostile.yaml", 'gpus: [{model: T4}]\nprocesses:\n  - {pid: 7, name: "a\\e[31mb\\rc", '
                              'gpus: 0, memory: 1GiB, load: gemm, '
                              'owner: {namespace: "n", pod: "p\\e]0;x\\a", container: c}}\n')
        done = self.batch("--backend=sim", f"--sim-scenario={scenario}", "--sample-interval=200ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout))
        self.assertIn("n/p", done.stdout)

    def test_wrong_use(self):
        done = self.batch("--backend=nvml", f"--nvml-library={self.folder}/none.so")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        plain = subprocess.run([harness.BINARY, "top", "--backend=sim"], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=20, env=harness.clean_environment())
        self.assertEqual(plain.returncode, 1)
        self.assertIn("--batch", plain.stderr)
        other = subprocess.run([harness.BINARY, "once", "--batch", "--backend=sim"], capture_output=True, text=True,
                               timeout=20, env=harness.clean_environment())
        self.assertEqual(other.returncode, 2)
        self.assertIn("needs the command top", other.stderr)

    def test_live_keys_and_q(self):
        with Screen() as screen:
            screen.wait(lambda: any("llm-train-0" in line for line in screen.frame()), "the table")
            self.assertIn(ENTER, screen.text)
            self.assertFalse(termios.tcgetattr(screen.slave)[3] & termios.ECHO, "no echo meanwhile")
            first = screen.frame()
            screen.wait(lambda: screen.frame() and screen.frame() != first, "other numbers")
            pid_column = lambda: [line.split()[1] for line in screen.frame()[screen.frame().index(
                next(line for line in screen.frame() if "OWNER" in line)) + 1:] if line.strip()]
            screen.press("m")
            screen.wait(lambda: screen.frame() and pid_column()[0] == "41001", "61 GiB first")
            screen.press("e")
            screen.wait(lambda: len(screen.frame()) > 10, "a frame by energy")
            screen.press("q")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_resize(self):
        with Screen(columns=120, rows=40) as screen:
            screen.wait(lambda: len(screen.frame()) > 12, "the table")
            screen.text = ""
            screen.resize(60, 8)
            screen.wait(lambda: 0 < len(screen.frame()) <= 8, "a small table")
            self.assertLessEqual(max(map(len, screen.frame())), 60)
            self.assertIn("more lines", screen.frame()[-1])
            screen.resize(200, 50)
            screen.wait(lambda: len(screen.frame()) > 12 and max(map(len, screen.frame())) > 60, "a large table")
            screen.press("q")
            self.assertEqual(screen.end(), 0)

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number), Screen() as screen:
                screen.wait(lambda: len(screen.frame()) > 5, "the table")
                screen.child.send_signal(number)
                self.assertEqual(screen.end(), 0)
                self.assert_restored(screen)

    def test_control_c_and_control_z(self):
        with Screen() as screen:
            screen.wait(lambda: len(screen.frame()) > 5, "the table")
            screen.press("\x1a")
            state = lambda: state_of(screen.child.pid)
            screen.wait(lambda: state() == "T", "a stopped program")
            screen.pump()
            self.assert_restored(screen)
            screen.text = ""
            screen.child.send_signal(signal.SIGCONT)
            screen.wait(lambda: len(screen.frame()) > 5, "the table again")
            screen.press("\x03")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_a_terminal_that_goes_away(self):
        screen = Screen()
        screen.wait(lambda: len(screen.frame()) > 5, "the table")
        os.close(screen.slave)
        os.close(screen.master)
        begin = time.monotonic()
        screen.child.wait(10 * harness.SLOW)
        self.assertLess(time.monotonic() - begin, 5 * harness.SLOW)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    unittest.main()
