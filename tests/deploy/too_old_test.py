# SPDX-License-Identifier: Apache-2.0
"""A system whose glibc is too old, Debian 11 (2.31): the package and the bare program are refused there, by words that name
glibc. The program itself cannot say it: the loader ends it before it begins. docs/install.md shows these words.
"""

import os
import pathlib
import re
import shutil
import tempfile
import unittest

import clean_root
from deploy_parts import SOURCE, call, fetch, main

RELEASE = pathlib.Path(os.environ.get("GPU_LEDGER_RELEASE", SOURCE / "build/release"))
PAGE = (SOURCE / "docs/install.md").read_text(encoding="utf-8")


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not (RELEASE / "CPackConfig.cmake").exists():
        return f"no {RELEASE}/CPackConfig.cmake; build the release first"
    return None if fetch("debian11") else "no Debian 11 to try it in"


class TooOld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-too-old."))
        cls.addClassCleanup(shutil.rmtree, folder, True)
        given = ("-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")  # quickly, for it is not shipped
        call("cpack", "--config", RELEASE / "CPackConfig.cmake", "-G", "DEB", "-B", folder / "packages", *given, cwd=RELEASE,
             seconds=600)
        (package,) = (folder / "packages").glob("*.deb")
        cls.root = clean_root.CleanRoot(fetch("debian11"), folder / "root")
        shutil.copy(package, cls.root.path / "gpu-ledger.deb")
        shutil.copy(RELEASE / "gpu-ledger", cls.root.path / "gpu-ledger")

    def test_1_it_is_too_old(self):
        version = re.search(r"([0-9.]+)$", self.root.run("ldd", "--version").stdout.splitlines()[0])[1]
        self.assertLess(tuple(map(int, version.split("."))), (2, 34))

    def test_2_the_program(self):
        done = self.root.run("/gpu-ledger", "--version")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        told = "libc.so.6: version `GLIBC_2.34' not found (required by "
        self.assertIn(told, done.stderr)
        self.assertIn(told, PAGE)

    def test_3_apt(self):
        done = self.root.run("apt-get", "install", "--yes", "/gpu-ledger.deb")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout + done.stderr, r"gpu-ledger : Depends: libc6 \(>= 2\.34\) but 2\.31\S* is to be installed")
        self.assertFalse((self.root.path / "usr/bin/gpu-ledger").exists(), "nothing was installed")

    def test_4_dpkg(self):
        """It unpacks first and compares then, as it does with every package."""
        done = self.root.run("dpkg", "--install", "/gpu-ledger.deb")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"gpu-ledger depends on libc6 \(>= 2\.34\); however:\s+Version of libc6:\S+ on system is 2\.31")
        state = self.root.run("dpkg-query", "--show", "--showformat=${Status}", "gpu-ledger").stdout
        self.assertEqual(state, "install ok unpacked", "not set up")
        wanted = self.root.path / "etc/systemd/system/multi-user.target.wants/gpu-ledger.service"
        self.assertFalse(wanted.is_symlink(), "the service would start with the machine")
        self.assertEqual(self.root.run("dpkg", "--purge", "gpu-ledger").returncode, 0)


if __name__ == "__main__":
    main(missing())
