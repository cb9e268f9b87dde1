# SPDX-License-Identifier: Apache-2.0
"""The RPM: made by CPack, installed, upgraded and removed by the real rpm in a clean Ubuntu 22.04 (or Debian 12, where that
cannot be had). That root has no list of RPMs: a package of the test says what an older and a newer system offer.
"""

import os
import pathlib
import re
import shutil
import tempfile
import unittest

import clean_root
from deploy_parts import SOURCE, call, fetch, main, run

RELEASE = pathlib.Path(os.environ.get("GPU_LEDGER_RELEASE", SOURCE / "build/release"))
SIZE_LIMIT = 9_000_000
FOLDERS = {"/usr/share/doc/gpu-ledger", "/usr/share/gpu-ledger", "/usr/share/gpu-ledger/scenarios",
           "/usr/share/gpu-ledger/slurm",
           "/usr/share/licenses/gpu-ledger"}
DOCS = {"README.md", "no-exact-time.conf", "root.conf", "textfile.conf"}
EXECUTABLE = {"/usr/bin/gpu-ledger", "/usr/share/gpu-ledger/slurm/prolog.sh", "/usr/share/gpu-ledger/slurm/epilog.sh"}
FILES = {"/etc/sysconfig/gpu-ledger", "/usr/bin/gpu-ledger", "/usr/lib/systemd/system/gpu-ledger.service",
         "/usr/share/man/man1/gpu-ledger.1.gz", "/usr/share/licenses/gpu-ledger/LICENSE",
         "/usr/share/bash-completion/completions/gpu-ledger", "/usr/share/fish/vendor_completions.d/gpu-ledger.fish",
         "/usr/share/zsh/site-functions/_gpu-ledger", "/usr/share/zsh/vendor-completions/_gpu-ledger",
         *(f"/usr/share/gpu-ledger/slurm/{name}" for name in ("README.md", "epilog.sh", "prolog.sh")),
         *(f"/usr/share/gpu-ledger/scenarios/{path.name}" for path in (SOURCE / "sim/scenarios").iterdir()),
         *(f"/usr/share/doc/gpu-ledger/{name}" for name in DOCS)}
SYSTEMCTL = '#!/bin/sh\necho "$@" >>/systemctl.log\n'


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("rpmbuild"):
        return "no rpmbuild (package rpm)"
    if not (RELEASE / "CPackConfig.cmake").exists():
        return f"no {RELEASE}/CPackConfig.cmake; build the release first"
    return None if clean_system() else "no clean system to install into"


def clean_system():
    return fetch("ubuntu") or fetch("debian")


def build(folder, version=None):
    given = ["-R", version, "-D", "CPACK_RPM_COMPRESSION_TYPE=gzip"] if version else []  # quickly, for it is not shipped
    call("cpack", "--config", RELEASE / "CPackConfig.cmake", "-G", "RPM", "-B", folder, *given, cwd=RELEASE, seconds=1800)
    (package,) = folder.glob("*.rpm")
    return package


class Rpm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-rpm."))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.package = build(cls.folder / "packages")
        cls.newer = build(cls.folder / "newer", "99.0.0")
        cls.root = clean_root.CleanRoot(clean_system(), cls.folder / "root")
        # Says what it was asked for. systemd itself must not run here.
        cls.root.write("usr/bin/systemctl", SYSTEMCTL, 0o755)
        (cls.root.path / "run/systemd/system").mkdir(parents=True)
        call("rpm", "--root", cls.root.path, "--initdb")
        cls.before = cls.files()

    @classmethod
    def files(cls):
        found = clean_root.everything_in(cls.root.path)
        own_books = ("var/lib/rpm", "root/.rpmdb", "systemctl.log")
        return {name: mode for name, mode in found.items() if not name.startswith(own_books)}

    def rpm(self, *arguments):
        done = run("unshare", "--mount", "--net", "--ipc", "--uts", "rpm", "--root", self.root.path, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotRegex(done.stderr, "error:|scriptlet")
        return done.stdout

    def asked_of_systemd(self):
        log = self.root.path / "systemctl.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [re.sub(r"--\S+ ", "", line) for line in lines]

    # Tests run in the order of their names.

    def test_1_what_it_says_of_itself(self):
        print(f"package: {self.package.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(self.package.stat().st_size, SIZE_LIMIT)
        self.assertRegex(self.package.name, r"^gpu-ledger-[0-9.]+-1\.(x86_64|aarch64)\.rpm$")
        tags = "%{LICENSE}|%{VENDOR}|%{SUMMARY}|%{PREFIXES}|%{DESCRIPTION}"
        text = call("rpm", "-qp", "--queryformat", tags, self.package)
        licence, vendor, summary, relocations, description = text.split("|")
        self.assertEqual((licence, vendor, relocations), ("Apache-2.0", "the gpu-ledger authors", "(none)"))
        self.assertIn("who spends a GPU", summary)
        self.assertIn("Every joule", description)

    def test_2_what_it_needs(self):
        needed = call("rpm", "-qp", "--requires", self.package).splitlines()
        foreign = [one for one in needed if not re.match(
            r"lib[cm]\.so\.6\(|ld-linux-[a-z0-9-]+\.so\.\d\(|/bin/sh$|rtld\(GNU_HASH\)$|rpmlib\(|config\(gpu-ledger\)", one)]
        self.assertEqual(foreign, [])
        versions = [tuple(map(int, text.split("."))) for one in needed for text in re.findall(r"GLIBC_([0-9.]+)", one)]
        self.assertEqual(max(versions), (2, 34), "what docs/install.md says")

    def test_2b_a_system_that_is_too_old(self):
        """Told so before anything is installed; one that offers the rest too is not."""
        needed = call("rpm", "-qp", "--requires", self.package).splitlines()
        offered = [one for one in needed if not one.startswith(("rpmlib(", "config("))]
        newest = [one for one in offered if "(GLIBC_2.34)" in one]
        self.assertTrue(newest)
        for name, provides in (("old", set(offered) - set(newest)), ("new", offered)):
            database = self.folder / f"{name}-system"
            call("rpm", "--root", database, "--initdb")
            call("rpm", "--root", database, "--install", "--justdb", "--nodeps", self.stand_in(name, provides))
            done = run("rpm", "--root", database, "--install", "--test", self.package)
            refused = re.findall(r"^\t(\S+) is needed by gpu-ledger-", done.stderr, re.MULTILINE)
            self.assertEqual(sorted(refused), sorted(newest) if name == "old" else [], done.stderr)
            self.assertEqual(done.returncode == 0, name == "new", done.stderr)

    def stand_in(self, name, provides):
        """A package that offers this and is empty."""
        spec = self.folder / f"{name}.spec"
        lines = [f"Provides: {one}" for one in sorted(provides) if not one.startswith("/")]
        files = [f"%ghost {one}" for one in provides if one.startswith("/")]
        spec.write_text("\n".join([f"Name: {name}-glibc", "Version: 1", "Release: 1", "Summary: s", "License: Apache-2.0",
                                   *lines, "%description", "d", "%files", *files, ""]))
        call("rpmbuild", "-bb", "--define", f"_topdir {self.folder}/{name}", spec)
        (package,) = (self.folder / name / "RPMS").glob("*/*.rpm")
        return package

    def test_3_installs(self):
        self.rpm("--install", "--nodeps", self.package)
        new = {"/" + name: mode for name, mode in self.files().items() if name not in self.before}
        parents = {"/etc/sysconfig", "/usr/share/licenses", "/usr/lib/systemd", "/usr/lib/systemd/system",
                   "/usr/share/man/man1", "/usr/share/bash-completion", "/usr/share/bash-completion/completions",
                   "/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh",
                   "/usr/share/zsh/site-functions", "/usr/share/zsh/vendor-completions"}  # of the system; this root may lack some of them
        self.assertEqual(set(new) - parents, FILES | FOLDERS)
        self.assertEqual({name for name in FILES if new[name] != "0o100644"}, EXECUTABLE)
        self.assertEqual({new[name] for name in EXECUTABLE}, {"0o100755"})
        owned = set(self.rpm("-ql", "gpu-ledger").split())
        self.assertEqual(owned, FILES | FOLDERS, "no folder of the system is the package's")
        self.assertEqual(self.rpm("-q", "--configfiles", "gpu-ledger").split(), ["/etc/sysconfig/gpu-ledger"])
        self.assertEqual(self.asked_of_systemd(),
                         ["enable gpu-ledger.service", "daemon-reload", "start gpu-ledger.service"])
        self.rpm("--verify", "--nodeps", "gpu-ledger")

    def test_4_runs(self):
        done = self.root.run("gpu-ledger", "--version")
        self.assertRegex(done.stdout, r"^gpu-ledger \d", done.stderr)
        done = self.root.run("gpu-ledger", "once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("install the NVIDIA driver", done.stderr)
        self.root.simulated(self)
        unit = (self.root.path / "usr/lib/systemd/system/gpu-ledger.service").read_text()
        self.assertIn("\nEnvironmentFile=-/etc/sysconfig/gpu-ledger\n", unit)
        man = call("gzip", "-dc", self.root.path / "usr/share/man/man1/gpu-ledger.1.gz")
        self.assertEqual(man, (SOURCE / "docs/gpu-ledger.1").read_text())

    def test_5_a_changed_setting_survives_an_upgrade(self):
        settings = self.root.path / "etc/sysconfig/gpu-ledger"
        settings.write_text(settings.read_text() + "GPU_LEDGER_LISTEN_ADDRESS=:9999\n")
        self.rpm("--upgrade", "--nodeps", self.newer)
        self.assertEqual(self.rpm("-q", "--queryformat", "%{VERSION}", "gpu-ledger"), "99.0.0")
        self.assertIn(":9999", settings.read_text())
        self.assertEqual(self.asked_of_systemd(), ["daemon-reload", "try-restart gpu-ledger.service", "daemon-reload"],
                         "neither enabled nor stopped")

    def test_6_leaves_books_and_changed_settings(self):
        books = self.root.write("var/lib/private/gpu-ledger/books", "")
        self.rpm("--erase", "gpu-ledger")
        self.assertEqual(self.asked_of_systemd(),
                         ["stop gpu-ledger.service", "disable gpu-ledger.service", "daemon-reload"])
        self.assertTrue(books.exists())
        left = {name for name in self.files() if name not in self.before and "gpu-ledger" in name}
        self.assertEqual(left, {"etc/sysconfig/gpu-ledger.rpmsave", "var/lib/private/gpu-ledger",
                                "var/lib/private/gpu-ledger/books"})

    def test_7_without_systemd(self):
        (self.root.path / "usr/bin/systemctl").unlink()
        self.rpm("--install", "--nodeps", self.package)
        self.rpm("--erase", "gpu-ledger")


if __name__ == "__main__":
    main(missing())
