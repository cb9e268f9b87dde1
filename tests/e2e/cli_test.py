# SPDX-License-Identifier: Apache-2.0
"""Manners of the command line: help, version, record; completions in a real bash, and in zsh and fish where they are."""

import os
import pty
import re
import select
import shutil
import subprocess
import unittest

import harness

SETTLE = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={at}
_gpu_ledger
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def gpu_ledger(*arguments, environment=None):
    return subprocess.run([harness.BINARY, *arguments], capture_output=True, text=True, timeout=harness.NET,
                          env=harness.clean_environment(environment))


class MannersTest(harness.Case):
    def test_version_and_commit(self):
        said = gpu_ledger("version").stdout
        found = re.fullmatch(r"gpu-ledger \d+\.\d+\.\d+ \(commit ([0-9a-f]{7,40}(-dirty)?|unknown)\)\n", said)
        self.assertTrue(found, said)
        if (harness.SOURCE / ".git").exists() and shutil.which("git"):
            self.assertNotEqual(found[1], "unknown")
        for flag in ("--version", "-v", "-V"):
            self.assertEqual(gpu_ledger(flag).stdout, said)
        with harness.Ledger(*harness.FAST) as ledger:
            labels = [labels for labels, _ in ledger.metrics().find("gpu_ledger_build_info")]
        self.assertEqual(labels[0].get("revision", "unknown"), found[1])

    def test_help(self):
        self.assertEqual(gpu_ledger("help").stdout, gpu_ledger("--help").stdout)
        top = gpu_ledger("help", "top")
        self.assertEqual((top.returncode, top.stdout), (0, gpu_ledger("top", "--help").stdout))
        self.assertIn("--url URL", top.stdout)
        self.assertNotIn("--web-config-file", top.stdout)
        wrong = gpu_ledger("help", "frobnicate", environment={"GPU_LEDGER_LOG_LEVEL": "loud"})
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1))

    def test_output_that_cannot_be_written(self):
        for arguments in (["--help"], ["help"], ["top", "--help"], ["version"], ["--version"], ["completion", "bash"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([harness.BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=harness.NET, env=harness.clean_environment())
                self.assertEqual((done.returncode, done.stderr), (1, "gpu-ledger: cannot write to standard output\n"))

    def test_the_nearest_name(self):
        done = gpu_ledger("recrod", "x")
        self.assertEqual((done.returncode, done.stderr),
                         (2, 'gpu-ledger: unknown command "recrod" (did you mean record?)\n'))

    def test_record_says_which_gpu(self):
        flags = ("--backend=sim", "--for=1s")
        done = gpu_ledger("record", self.folder / "a.jsonl", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("recording the first of 6 GPUs; --gpu-devices chooses another one", done.stderr)
        self.assertRegex(done.stderr, r"gpu=0 .*NVIDIA H200")
        done = gpu_ledger("record", self.folder / "b.jsonl", *flags, "--gpu-devices=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"msg=.?recording.? gpu=2 ")


class CompletionTest(harness.Case):
    def script(self, shell):
        done = subprocess.run([harness.BINARY, "completion", shell], capture_output=True, text=True, check=True,
                              timeout=harness.NET, env=harness.clean_environment())
        self.assertEqual(done.stderr, "")
        return self.write(f"gpu-ledger.{shell}", done.stdout)

    def complete(self, *words):
        """What bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in words)
        text = SETTLE.format(script=self.script("bash"), words=quoted, at=len(words) - 1)
        done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, timeout=harness.NET,
                              cwd=self.folder, env=harness.clean_environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_commands(self):
        offered = self.complete("gpu-ledger", "")
        for name in ("serve", "top", "record", "completion", "help", "version"):
            self.assertIn(name, offered)
        self.assertEqual(self.complete("gpu-ledger", "to"), ["top"])
        self.assertEqual(self.complete("gpu-ledger", "help", "acc"), ["accounting"])
        self.assertEqual(self.complete("gpu-ledger", "accounting", "o"), ["on", "off"])

    def test_flags_of_the_command(self):
        self.assertEqual(self.complete("gpu-ledger", "top", "--u"), ["--url", "--url-ca-file"])
        self.assertEqual(self.complete("gpu-ledger", "serve", "--u"), [])
        self.assertIn("--listen-address", self.complete("gpu-ledger", "--l"))
        self.assertEqual(self.complete("gpu-ledger", "record", "--listen"), [])
        self.assertEqual(self.complete("gpu-ledger", "top", "--no-ba"), ["--no-batch"])

    def test_values(self):
        self.assertEqual(self.complete("gpu-ledger", "top", "--backend", "s"), ["sim"])
        self.assertEqual(self.complete("gpu-ledger", "--backend", "=", "d"), ["dcgm"])
        self.assertEqual(self.complete("gpu-ledger", "--log-level", "="), ["debug", "info", "warn", "error"])
        self.assertEqual(self.complete("gpu-ledger", "--log-level=w"), ["--log-level=warn"])
        self.assertEqual(self.complete("gpu-ledger", "--sample-interval", ""), [], "any duration")

    def test_files(self):
        self.write("trace.jsonl", "")
        self.assertEqual(self.complete("gpu-ledger", "replay", "tr"), ["trace.jsonl"])
        self.assertEqual(self.complete("gpu-ledger", "--config", "tr"), ["trace.jsonl"])
        self.assertEqual(self.complete("gpu-ledger", "top", "tr"), [])

    def test_other_shells(self):
        for shell in ("zsh", "fish"):
            with self.subTest(shell=shell):
                script = self.script(shell)
                self.assertIn("gpu-ledger", script.read_text(encoding="utf-8"))
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed: its completion was not checked")
                done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=harness.NET)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_zsh_completes(self):
        """What a person types, and Tab."""
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed: its completion was not checked")
        shutil.copy(self.script("zsh"), self.folder / "_gpu-ledger")
        self.write("trace.jsonl", "")
        typed = {"acc": "accounting ", "top --url-c": "--url-ca-file=", "top --backend=s": "--backend=sim ",
                 "--log-level=w": "--log-level=warn ", "accounting sta": "status ", "replay tr": "trace.jsonl "}
        for words, completed in typed.items():
            with self.subTest(words):
                self.assertIn(f"gpu-ledger {words.rpartition(' ')[0]}".rstrip() + f" {completed}", self.zsh(words))
        self.assertRegex(self.zsh("--backend="), r"(?s)auto\s+dcgm\s+nvml\s+sim")

    def zsh(self, words):
        """What stands on the terminal when Tab was pressed after these words of the command."""
        begin = f"PROMPT=; fpath=({self.folder} $fpath); autoload -U compinit; compinit -u -D; cd {self.folder}; print BEGUN | tr U u\n"
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**harness.clean_environment(), "TERM": "dumb", "HOME": str(self.folder)})
        text = ""
        try:
            def seen(pattern):
                nonlocal text
                if select.select([terminal], [], [], 0.05)[0]:
                    text += os.read(terminal, 1 << 16).decode(errors="replace")
                return re.search(pattern, text)

            os.write(terminal, begin.encode())
            harness.wait_until(lambda: seen(r"(?s)BEGuN.*\x1b\[\?2004h"), "a zsh that reads keys")
            text = ""
            os.write(terminal, f"gpu-ledger {words}\t\x15print END | tr E e\n".encode())  # Tab, and the line is thrown away
            harness.wait_until(lambda: seen("eND"), "the end of the completion")
            return text.replace("\r", "")
        finally:
            os.close(terminal)
            os.waitpid(child, 0)

    def test_fish_offers(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed: its completion was not checked")
        text = f"source {self.script('fish')}; complete -C 'gpu-ledger top --backend '"
        done = subprocess.run(["fish", "--no-config", "-c", text], capture_output=True, text=True,
                              timeout=harness.NET, env={**harness.clean_environment(), "HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(line.split("\t")[0] for line in done.stdout.splitlines()),
                         ["auto", "dcgm", "nvml", "sim"])


if __name__ == "__main__":
    unittest.main()
