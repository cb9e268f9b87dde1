# SPDX-License-Identifier: Apache-2.0
"""The Debian package: made by CPack, installed, upgraded and purged in a clean Debian (a chroot, where no service starts);
the systemd unit and the textfile set-up that come with it.
"""

import os
import pathlib
import re
import shutil
import tempfile
import unittest

import clean_root
import harness
from deploy_parts import SOURCE, call, fetch, main, run

RELEASE = pathlib.Path(os.environ.get("GPU_LEDGER_RELEASE", SOURCE / "build/release"))
UNIT = SOURCE / "deploy/systemd/gpu-ledger.service"
NODE_EXPORTER = shutil.which("prometheus-node-exporter")
SIZE_LIMIT = 8_000_000
EXPOSURE_LIMIT = 3.0  # systemd's own score: 0 is locked up, 10 is root with everything


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not (RELEASE / "CPackConfig.cmake").exists():
        return f"no {RELEASE}/CPackConfig.cmake; build the release first"
    return None if fetch("debian") else "no clean Debian to install into"


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-package."))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        call("cpack", "--config", RELEASE / "CPackConfig.cmake", "-G", "DEB", "-B", cls.folder / "packages",
             cwd=RELEASE, seconds=1800)
        (cls.package,) = (cls.folder / "packages").glob("*.deb")
        cls.clean = clean_root.CleanRoot(fetch("debian"), cls.folder / "root")
        cls.root = cls.clean.path
        shutil.copy(cls.package, cls.root / "gpu-ledger.deb")

    def inside(self, *command):
        return self.clean.run(*command)

    def succeeds(self, *command):
        done = self.inside(*command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    # Tests run in the order of their names.

    def test_1_what_is_in_it(self):
        print(f"package: {self.package.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(self.package.stat().st_size, SIZE_LIMIT)
        self.assertRegex(self.package.name, r"^gpu-ledger_[0-9.]+_[a-z0-9]+\.deb$")
        self.assertRegex(call("dpkg-deb", "--field", self.package, "Depends"), r"^libc6 \(>= 2\.34\)\n$")
        content = call("dpkg-deb", "--contents", self.package)
        files = {line.split()[5]: line.split()[0] for line in content.splitlines() if not line.startswith("d")}
        self.assertEqual(set(files), {"./" + name for name in (
            "etc/default/gpu-ledger", "usr/bin/gpu-ledger", "usr/lib/systemd/system/gpu-ledger.service",
            "usr/share/man/man1/gpu-ledger.1.gz", "usr/share/bash-completion/completions/gpu-ledger",
            "usr/share/zsh/vendor-completions/_gpu-ledger", "usr/share/zsh/site-functions/_gpu-ledger",
            "usr/share/fish/vendor_completions.d/gpu-ledger.fish",
            *(f"usr/share/gpu-ledger/slurm/{name}" for name in ("README.md", "epilog.sh", "prolog.sh")),
            *(f"usr/share/gpu-ledger/scenarios/{path.name}" for path in (SOURCE / "sim/scenarios").iterdir()),
            *(f"usr/share/doc/gpu-ledger/{name}" for name in (
                "README.md", "copyright", "no-exact-time.conf", "root.conf", "textfile.conf")))})
        self.assertEqual({line.split()[1] for line in content.splitlines()}, {"root/root"})
        for program in ("bin/gpu-ledger", "share/gpu-ledger/slurm/prolog.sh", "share/gpu-ledger/slurm/epilog.sh"):
            self.assertEqual(files[f"./usr/{program}"], "-rwxr-xr-x")

    def test_2_installs_where_nothing_else_is(self):
        self.succeeds("dpkg", "--install", "/gpu-ledger.deb")
        self.assertRegex(self.succeeds("gpu-ledger", "--version"), r"^gpu-ledger \d")
        done = self.inside("gpu-ledger", "once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("install the NVIDIA driver", done.stderr)
        self.clean.simulated(self)
        wanted = self.root / "etc/systemd/system/multi-user.target.wants/gpu-ledger.service"
        self.assertTrue(wanted.is_symlink(), "starts with the machine")

    def test_3_a_changed_setting_survives_an_upgrade(self):
        settings = self.root / "etc/default/gpu-ledger"
        settings.write_text(settings.read_text() + "GPU_LEDGER_LISTEN_ADDRESS=:9999\n")
        self.succeeds("dpkg", "--install", "/gpu-ledger.deb")
        self.assertIn(":9999", settings.read_text())

    def test_4_systemd_accepts_the_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        kill = self.root / "bin/kill"  # procps: on every node, but not in this small Debian
        if not kill.exists():
            kill.write_text("")
            kill.chmod(0o755)
        done = run("systemd-analyze", "verify", f"--root={self.root}", "--man=no", "--recursive-errors=no",
                   "/usr/lib/systemd/system/gpu-ledger.service")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotRegex(done.stdout + done.stderr, r"gpu-ledger\.service:\d+")
        done = run("systemd-analyze", "security", "--offline=true", UNIT)
        level = float(re.search(r"exposure level for .*: ([0-9.]+)", done.stdout).group(1))
        print(f"unit: exposure {level}", flush=True)
        self.assertLess(level, EXPOSURE_LIMIT)
        # These would hide GPUs or processes: see the unit.
        text = UNIT.read_text()
        for setting in ("PrivateDevices=", "ProtectClock=", "ProtectProc=", "PrivateUsers=", "DevicePolicy="):
            self.assertNotIn("\n" + setting, text)

    def test_5_leaves_nothing(self):
        state = self.root / "var/lib/private/gpu-ledger"
        state.mkdir(parents=True)
        (state / "books").write_text("")
        self.succeeds("dpkg", "--remove", "gpu-ledger")
        self.assertTrue((state / "books").exists(), "books stay until the purge")
        self.succeeds("dpkg", "--purge", "gpu-ledger")
        left = self.succeeds("find", "/etc", "/usr", "/var/lib", "-name", "*gpu-ledger*", "-not", "-path", "/var/lib/dpkg/*")
        self.assertEqual(left, "")


class Textfile(unittest.TestCase):
    """deploy/systemd/textfile.conf: a link in node_exporter's folder to the file in gpu-ledger's."""

    @unittest.skipUnless(NODE_EXPORTER, "no prometheus-node-exporter")
    def test_a_real_node_exporter_reads_it(self):
        settings = dict(re.findall(r"^Environment=(\w+)=(.*)$", (UNIT.parent / "textfile.conf").read_text(), re.M))
        self.assertEqual(set(settings), {"GPU_LEDGER_TEXTFILE", "GPU_LEDGER_LISTEN_ADDRESS"})
        with tempfile.TemporaryDirectory() as folder:
            runtime, collected = pathlib.Path(folder) / "run", pathlib.Path(folder) / "collected"
            runtime.mkdir()
            collected.mkdir()
            environment = {name: value.replace("/run/gpu-ledger", str(runtime)) for name, value in settings.items()}
            target = pathlib.Path(environment["GPU_LEDGER_TEXTFILE"])
            (collected / target.name).symlink_to(target)
            port = harness.free_port()
            ledger = harness.Program([harness.BINARY, "serve", "--backend=sim", *harness.FAST], environment)
            exporter = harness.Program([
                NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults",
                "--collector.textfile", f"--collector.textfile.directory={collected}"])
            with ledger, exporter:
                def served():
                    try:
                        return "gpu_ledger_device_energy_joules_total" in harness.get(port).text
                    except OSError:
                        return False

                harness.wait_until(served, "gpu-ledger's series from node_exporter")
                self.assertIn("node_textfile_scrape_error 0", harness.get(port).text)
                self.assertEqual(ledger.stop(), 0)
                harness.wait_until(lambda: "gpu_ledger_device" not in harness.get(port).text, "old numbers to go")


if __name__ == "__main__":
    main(missing())
