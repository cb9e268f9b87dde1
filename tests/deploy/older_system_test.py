# SPDX-License-Identifier: Apache-2.0
"""The release's one file on systems with an older glibc than the one it was built on: Ubuntu 22.04 (2.35), made by
debootstrap, and the same without what came with 2.35, as RHEL 9 (2.34) has it. Nothing is installed there; the file is
copied.
"""

import os
import pathlib
import shutil
import tempfile
import unittest

import clean_root
from deploy_parts import SOURCE, fetch, main

RELEASE = pathlib.Path(os.environ.get("GPU_LEDGER_RELEASE", SOURCE / "build/release"))


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not (RELEASE / "gpu-ledger").exists():
        return f"no {RELEASE}/gpu-ledger; build the release first"
    return None if fetch("ubuntu") else "no Ubuntu 22.04 to run in"


def forget(library, version):
    """The library no longer offers this version of its symbols; whoever asks for one by it is refused by the loader."""
    content = library.read_bytes()
    library.write_bytes(content.replace(version, version[:-2] + b"99"))


class Ubuntu2204(unittest.TestCase):
    forgotten = None

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-older."))
        cls.addClassCleanup(shutil.rmtree, folder, True)
        cls.root = clean_root.CleanRoot(fetch("ubuntu"), folder / "root")
        if cls.forgotten:
            for name in ("libc.so.6", "libm.so.6", "ld-linux-*.so.*"):
                for path in (cls.root.path / "usr/lib").glob(f"*-linux-gnu/{name}"):
                    forget(path, cls.forgotten)
        (cls.root.path / "alone").mkdir()
        shutil.copy(RELEASE / "gpu-ledger", cls.root.path / "alone/gpu-ledger")

    def ledger(self, *arguments):
        return self.root.run("/alone/gpu-ledger", *arguments)

    def test_it_starts(self):
        done = self.ledger("--version")
        self.assertRegex(done.stdout, r"^gpu-ledger \d", done.stderr)
        print(self.root.run("ldd", "--version").stdout.splitlines()[0], flush=True)

    def test_doctor(self):
        done = self.ledger("doctor", "--backend=sim")
        self.assertIn("simulated", done.stdout + done.stderr)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        done = self.ledger("doctor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("install the NVIDIA driver", done.stdout + done.stderr)

    def test_the_simulated_node(self):
        self.root.simulated(self, "/alone/gpu-ledger")

    def test_exceptions_are_caught(self):
        # yaml-cpp throws: once in the program, once in the simulator, which has an unwinder of its own.
        self.root.write("tmp/bad.yaml", "a: [\n")
        for given in ("--config=/tmp/bad.yaml", "--sim-scenario=/tmp/bad.yaml"):
            done = self.ledger("once", "--backend=sim", given)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn("/tmp/bad.yaml", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class WithoutGlibc235(Ubuntu2204):
    """What needs GLIBC_2.35 does not load here."""

    forgotten = b"GLIBC_2.35"

    def test_it_starts(self):
        super().test_it_starts()
        libraries = list((self.root.path / "usr/lib").glob("*-linux-gnu/lib[cm].so.6"))
        self.assertEqual(len(libraries), 2)
        for path in libraries:
            self.assertNotIn(self.forgotten, path.read_bytes())


if __name__ == "__main__":
    main(missing())
