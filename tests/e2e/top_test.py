# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger top`: one look with --batch, and live in a pseudo terminal that must come back as it was.

--url, and what another server may say, are in top_url_test.py.
"""

import os
import re
import signal
import subprocess
import termios
import unittest

import harness
from terminal import ENTER, LEAVE, SGR, Screen

OWN = ("--backend=sim", "--sample-interval=200ms")


class TopTest(harness.Case):
    def assert_restored(self, screen):
        screen.wait(lambda: LEAVE in screen.text and "\x1b[?25h" in screen.text, "the first screen and its cursor")
        self.assertEqual(termios.tcgetattr(screen.slave), screen.before)

    def batch(self, *arguments, environment=None):
        return subprocess.run([harness.BINARY, "top", "--batch", *arguments], capture_output=True, text=True,
                              timeout=harness.NET, env=harness.clean_environment(environment))

    def test_batch(self):
        done = self.batch("--backend=sim", "--sample-interval=1s", "--node-name=n7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^gpu-ledger n7: 6 GPUs, \d+ W, \d+ processes, SIMULATED$")
        self.assertNotIn("\x1b", done.stdout)
        gpus = [line for line in lines if "NVIDIA H200" in line]
        self.assertRegex(gpus[0], r"^ +0 NVIDIA H200 +[\d.]+ +700 +\d+% +[\d.]+G/140G +\d+C +[\d.]+k?J$")
        self.assertRegex(lines[1], r"^own books since [\d:]+, as of [\d:]+$")
        rows = [line.split() for line in lines[lines.index(next(l for l in lines if "OWNER" in l)) + 1:]]
        self.assertGreater(len(rows), 8)
        watts = [float(row[2]) for row in rows if row[2] != "uncertain"]
        self.assertEqual(watts, sorted(watts, reverse=True))
        self.assertGreater(watts[0], 100)
        self.assertIn("ml-team/llm-train-0", done.stdout)
        self.assertIn("docker transcoder", done.stdout)

    def test_batch_writes_no_books(self):
        state = self.folder / "state"
        prom = self.folder / "x.prom"
        done = self.batch("--backend=sim", "--sample-interval=200ms",
                          environment={"GPU_LEDGER_STATE_FILE": str(state), "GPU_LEDGER_TEXTFILE": str(prom)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_batch_without_a_gpu_that_answers(self):
        """Books that begin now have nothing to show."""
        scenario = self.write("lost.yaml", "gpus: [{model: T4}]\n"
                              "events: [{at: 0, do: error, call: nvmlDeviceGetTotalEnergyConsumption, code: 15}]\n")
        done = self.batch("--backend=sim", f"--sim-scenario={scenario}", "--sample-interval=200ms")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("GPU is lost", done.stderr.splitlines()[-1])

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
                               text=True, timeout=harness.NET, env=harness.clean_environment())
        self.assertEqual(plain.returncode, 1)
        self.assertIn("--batch", plain.stderr)
        other = subprocess.run([harness.BINARY, "once", "--batch", "--backend=sim"], capture_output=True, text=True,
                               timeout=harness.NET, env=harness.clean_environment())
        self.assertEqual(other.returncode, 2)
        self.assertIn("needs the command top", other.stderr)

    def test_live_keys_and_q(self):
        with Screen(*OWN) as screen:
            screen.wait(lambda: any("llm-train-0" in line for line in screen.frame()), "the table")
            self.assertIn(ENTER, screen.text)
            self.assertFalse(termios.tcgetattr(screen.slave)[3] & termios.ECHO, "no echo meanwhile")
            first = screen.frame()
            screen.wait(lambda: screen.frame() and screen.frame() != first, "other numbers")
            screen.press("m")
            screen.wait(lambda: "by memory" in screen.line(1) and screen.pids()[0] == "41001", "61 GiB first")
            self.assertGreater(len(screen.pids()), 8)
            screen.press("r")
            screen.wait(lambda: "by memory, reversed" in screen.line(1) and screen.pids()[-1] == "41001", "61 GiB last")
            screen.press("p")
            screen.wait(lambda: screen.pids() == sorted(screen.pids(), key=int) and screen.pids(), "pids in their order")
            screen.press(">")
            screen.wait(lambda: "by watts" in screen.line(1), "the next column")
            screen.press("q")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_resize(self):
        with Screen(*OWN, columns=120, rows=40) as screen:
            screen.wait(lambda: len(screen.frame()) > 12, "the table")
            screen.text = ""
            screen.resize(60, 8)
            screen.wait(lambda: 0 < len(screen.frame()) <= 8, "a small table")
            self.assertLessEqual(max(map(len, screen.frame())), 60)
            self.assertRegex(screen.frame()[-1], r"^1 to \d+ of \d+")
            for columns, rows in ((20, 3), (4, 2), (1, 1)):
                screen.text = ""
                screen.resize(columns, rows)
                screen.wait(lambda: 0 < len(screen.frame()) <= rows, f"{columns}x{rows}")
                self.assertLessEqual(max(map(len, screen.frame())), columns)
            screen.resize(200, 50)
            screen.wait(lambda: len(screen.frame()) > 12 and max(map(len, screen.frame())) > 60, "a large table")
            screen.press("q")
            self.assertEqual(screen.end(), 0)

    def test_filter_group_gpu_help_and_scroll(self):
        with Screen(*OWN, columns=80, rows=24) as screen:
            screen.wait(lambda: screen.pids(), "the table")
            screen.press("/llm-tr")
            screen.wait(lambda: screen.frame() and "filter: llm-tr_" in screen.frame()[-1], "what is typed")
            self.assertEqual(screen.pids(), ["41001"])
            screen.press("\r")
            screen.wait(lambda: "filter /llm-tr" in screen.line(1), "a filter that stays")
            screen.press("\x1b")
            screen.wait(lambda: len(screen.pids()) > 3, "all of them")
            screen.press("g")
            screen.wait(lambda: "added up by owner" in screen.line(1), "owners")
            screen.wait(lambda: sum("ml-team/llm-train-0" in line for line in screen.rows()) == 1, "a pod's sum")
            screen.press("g1")
            screen.wait(lambda: "GPU 1" in screen.line(1), "one GPU")
            self.assertEqual({line.split()[0] for line in screen.rows()}, {"1"})
            screen.press("a")
            screen.wait(lambda: "GPU 1" not in screen.line(1), "all GPUs")
            screen.press("h")
            screen.wait(lambda: any("reverse the order" in line for line in screen.frame()), "help")
            screen.press("h")
            screen.wait(lambda: screen.pids(), "the table again")
            screen.press("p")
            screen.wait(lambda: "by pid" in screen.line(1) and screen.pids(), "pids")
            first = screen.pids()[0]
            screen.press("\x1b[B")
            screen.wait(lambda: screen.pids() and screen.pids()[0] != first, "one line further")
            self.assertRegex(screen.frame()[-1], r"^2 to \d+ of 1\d")
            screen.press("\x1b[F")
            screen.wait(lambda: screen.frame() and re.search(r"to (1\d) of \1", screen.frame()[-1]), "the end")
            screen.press("\x1b[H")
            screen.wait(lambda: screen.pids() and screen.pids()[0] == first, "the begin")
            screen.press("q")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_colours(self):
        with Screen(*OWN) as screen:
            screen.wait(lambda: screen.pids(), "the table")
            self.assertTrue(SGR.search(screen.text), "a terminal has colours")
            self.assertIn("[|", "".join(screen.frame()), "and bars")
            screen.press("q")
            screen.end()
        with Screen(*OWN, environment={"NO_COLOR": "1"}) as screen:
            screen.wait(lambda: screen.pids(), "the table")
            screen.press("g")
            screen.wait(lambda: "owner" in screen.line(1), "owners")
            self.assertFalse(SGR.search(screen.text))
            screen.press("q")
            self.assertEqual(screen.end(), 0)
        with Screen(*OWN, environment={"TERM": "dumb"}) as screen:
            self.assertEqual(screen.end(), 1)
            screen.wait(lambda: "--batch" in screen.text, "a word of what works here")
            self.assertNotIn("\x1b", screen.text)

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number), Screen(*OWN) as screen:
                screen.wait(lambda: len(screen.frame()) > 5, "the table")
                screen.child.send_signal(number)
                self.assertEqual(screen.end(), 0)
                self.assert_restored(screen)

    def test_control_c_and_control_z(self):
        with Screen(*OWN, shell=True) as screen:
            screen.wait(lambda: len(screen.frame()) > 5, "the table")
            top = screen.program()
            screen.press("\x1a")
            state = lambda: state_of(top)
            screen.wait(lambda: state() == "T", "a stopped program")
            self.assert_restored(screen)
            screen.text = ""
            os.kill(top, signal.SIGCONT)
            screen.wait(lambda: len(screen.frame()) > 5, "the table again")
            self.assertFalse(termios.tcgetattr(screen.slave)[3] & termios.ECHO, "no echo again")
            screen.press("\x03")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_control_z_where_nobody_could_continue_it(self):
        """As with ssh -t: no shell is there, and a program that stopped would hang."""
        with Screen(*OWN) as screen:
            screen.wait(lambda: len(screen.frame()) > 5, "the table")
            screen.press("\x1a")
            screen.wait(lambda: ENTER in screen.text and len(screen.frame()) > 5, "the table goes on")
            self.assertNotEqual(state_of(screen.child.pid), "T")
            screen.press("p")
            screen.wait(lambda: "by pid" in screen.line(1), "keys still work")
            screen.press("q")
            self.assertEqual(screen.end(), 0)
            self.assert_restored(screen)

    def test_a_terminal_that_goes_away(self):
        screen = Screen(*OWN)
        screen.wait(lambda: len(screen.frame()) > 5, "the table")
        os.close(screen.slave)
        os.close(screen.master)
        screen.child.wait(harness.NET)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    unittest.main()
