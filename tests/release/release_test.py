# SPDX-License-Identifier: Apache-2.0
"""What tools/release.sh made in GPU_LEDGER_DIST, as somebody who downloads it has it: names, checksums, signature, that
programs start on their architecture, fields of packages, image, chart and SBOM. Run it with tests/release/run."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import unittest

import harness
import yaml
from deploy_parts import CHART, SOURCE, call, fetch, main, run
from oci_layout import Layout

DIST = pathlib.Path(os.environ["GPU_LEDGER_DIST"])
VERSION = DIST.name
BASE = f"gpu-ledger-{VERSION}"
HOST = "amd64"
MACHINES = {"amd64": ("x86_64", "Advanced Micro Devices X86-64"), "arm64": ("aarch64", "AArch64")}
BUILT = [name for name in MACHINES if (DIST / f"{BASE}-linux-{name}.tar.gz").exists()]
# Debian's source packages of all that is linked or compiled in.
LIBRARIES = {"openssl", "grpc", "protobuf", "boost", "fmtlib", "spdlog", "yaml-cpp", "zlib", "abseil", "c-ares", "eigen3",
             "nlohmann-json3", "gcc", "libxcrypt"}


def unpack(archive, folder):
    with tarfile.open(archive) as file:
        file.extractall(folder)


def layer_of(architecture):
    """Manifest, config and the tar of the image's files."""
    layout = Layout(DIST / f"{BASE}-image.tar")
    index = layout.json(layout.index["manifests"][0])
    (one,) = [one for one in index["manifests"] if one["platform"]["architecture"] == architecture]
    manifest = layout.json(one)
    (layer,) = manifest["layers"]
    return manifest, layout.json(manifest["config"]), gzip.decompress(layout.blob(layer))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-ledger-release."))
        self.addCleanup(shutil.rmtree, self.folder, True)


class Download(Folder):
    def test_names(self):
        expected = {"SHA256SUMS", "SHA256SUMS.sig", "gpu-ledger-release.pub", f"{BASE}-source.tar.gz", f"{BASE}-chart.tgz",
                    f"{BASE}-chart.tar", f"{BASE}-image.tar", f"{BASE}-image.digest"}
        for name in BUILT:
            expected |= {f"{BASE}-linux-{name}.tar.gz", f"{BASE}-linux-{name}.cdx.json", f"gpu-ledger_{VERSION}_{name}.deb",
                         f"{BASE}-1.{MACHINES[name][0]}.rpm"}
        self.assertIn(HOST, BUILT)
        self.assertEqual({path.name for path in DIST.iterdir()}, expected)

    def commands(self):
        """The lines of docs/install.md that verify a download."""
        page = (SOURCE / "docs/install.md").read_text(encoding="utf-8")
        (block,) = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "SHA256SUMS.sig" in block]
        return block

    def verify(self):
        return run("sh", "-ec", self.commands(), cwd=self.folder)

    def test_verifies_as_documented_and_fails_for_a_changed_byte(self):
        names = ["SHA256SUMS", "SHA256SUMS.sig", "gpu-ledger-release.pub", f"{BASE}-linux-{HOST}.tar.gz"]
        for name in names:
            shutil.copy(DIST / name, self.folder)
        done = self.verify()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Verified OK", done.stdout + done.stderr)
        self.assertIn(f"{names[-1]}: OK", done.stdout)
        for name in (names[0], names[-1]):
            with self.subTest(name):
                data = bytearray((DIST / name).read_bytes())
                data[10] ^= 1
                (self.folder / name).write_bytes(data)
                self.assertNotEqual(self.verify().returncode, 0)
                shutil.copy(DIST / name, self.folder)

    def test_checksums_name_every_file(self):
        call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
        named = {line.split()[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
        beside = {"SHA256SUMS", "SHA256SUMS.sig", "gpu-ledger-release.pub"}
        self.assertEqual(named, {path.name for path in DIST.iterdir()} - beside)

    def test_sources(self):
        unpack(DIST / f"{BASE}-source.tar.gz", self.folder)
        self.assertIn(f"VERSION {VERSION} ", (self.folder / BASE / "CMakeLists.txt").read_text())


class Programs(Folder):
    def unpacked(self, architecture):
        unpack(DIST / f"{BASE}-linux-{architecture}.tar.gz", self.folder)
        return self.folder / f"{BASE}-linux-{architecture}"

    def test_start_on_their_architecture(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                program = self.unpacked(architecture) / "gpu-ledger"
                header = call("readelf", "-hW", program)
                self.assertRegex(header, f"Machine: +{MACHINES[architecture][1]}")
                needed = set(re.findall(r"NEEDED.*\[(.*)\]", call("readelf", "-dW", program)))
                self.assertLessEqual({name for name in needed if not name.startswith("ld-linux")},
                                     {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"})
                emulated = []
                if architecture != HOST:  # with the glibc of the image, as there is no other here
                    root = self.folder / "root"
                    with tarfile.open(fileobj=io.BytesIO(layer_of(architecture)[2])) as file:
                        file.extractall(root)
                    emulated = [f"qemu-{MACHINES[architecture][0]}-static", "-L", root]
                self.assertRegex(call(*emulated, program, "--version"), rf"^gpu-ledger {re.escape(VERSION)}\b")
                self.assertIn("serve", call(*emulated, program, "--help"))

    def test_tell_nothing_of_the_machine_that_built_them(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                folder = self.unpacked(architecture)
                program = (folder / "gpu-ledger").read_bytes()
                for path in (SOURCE, pathlib.Path.home() / ".cache"):
                    self.assertNotIn(str(path).encode(), program)
                self.assertEqual({"gpu-ledger", "gpu-ledger.1", "gpu-ledger.service", "gpu-ledger.default", "LICENSE",
                                  "README.md", "CHANGELOG.md", "gpu-ledger.cdx.json", "no-exact-time.conf", "root.conf",
                                  "textfile.conf"}, {path.name for path in folder.iterdir()})
                with tarfile.open(DIST / f"{folder.name}.tar.gz") as file:
                    owners = {(one.uid, one.gid, one.uname, one.mtime) for one in file}
                self.assertEqual(len(owners), 1, "one owner and one time for all")
                self.assertEqual(owners.pop()[:3], (0, 0, ""))

    def test_packages(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                package = DIST / f"gpu-ledger_{VERSION}_{architecture}.deb"
                fields = dict(re.findall(r"^(\S+): (.*)$", call("dpkg-deb", "--field", package), re.MULTILINE))
                self.assertEqual((fields["Package"], fields["Version"], fields["Architecture"]),
                                 ("gpu-ledger", VERSION, architecture))
                self.assertRegex(fields["Depends"], r"^libc6 \(>= 2\.\d+\)$")
                call("dpkg-deb", "--extract", package, self.folder / f"deb-{architecture}")
                installed = (self.folder / f"deb-{architecture}/usr/bin/gpu-ledger").read_bytes()
                self.assertEqual(installed, (self.unpacked(architecture) / "gpu-ledger").read_bytes(), "as in the tarball")
                rpm = DIST / f"{BASE}-1.{MACHINES[architecture][0]}.rpm"
                told = call("rpm", "-qp", "--queryformat", "%{NAME} %{VERSION} %{ARCH} %{LICENSE}\n", rpm)
                self.assertEqual(told.strip(), f"gpu-ledger {VERSION} {MACHINES[architecture][0]} Apache-2.0")
                self.assertIn("/usr/bin/gpu-ledger\n", call("rpm", "-qpl", rpm))
                for need in call("rpm", "-qp", "--requires", rpm).split("\n"):
                    self.assertNotRegex(need, r"lib(ssl|crypto|z|stdc\+\+|yaml-cpp|grpc)", "all but glibc is inside")


class Image(Folder):
    def test_one_index_for_all_architectures(self):
        layout = Layout(DIST / f"{BASE}-image.tar")
        (root,) = layout.index["manifests"]
        self.assertEqual(root["digest"], (DIST / f"{BASE}-image.digest").read_text().strip())
        index = layout.json(root)
        self.assertEqual([one["platform"] for one in index["manifests"]],
                         [{"architecture": name, "os": "linux"} for name in sorted(BUILT)])
        for one in index["manifests"]:
            manifest = layout.json(one)
            layout.json(manifest["config"])
            for layer in manifest["layers"]:
                layout.blob(layer)
        self.assertEqual(layout.unread(), set())

    def test_settings_are_the_dockerfiles(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                _, config, plain = layer_of(architecture)
                self.assertEqual(config["architecture"], architecture)
                self.assertEqual(config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(plain).hexdigest()])
                said = config["config"]
                self.assertEqual((said["User"], said["Entrypoint"], said["Cmd"]),
                                 ("65532:65532", ["/usr/bin/gpu-ledger"], ["serve"]))
                self.assertEqual(said["ExposedPorts"], {"9400/tcp": {}})
                self.assertEqual(said["Env"], [
                    "PATH=/usr/bin", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib64", "NVIDIA_VISIBLE_DEVICES=all",
                    "NVIDIA_DRIVER_CAPABILITIES=utility"])
                labels = {key.removeprefix("org.opencontainers.image."): value for key, value in said["Labels"].items()}
                self.assertEqual((labels["title"], labels["licenses"], labels["version"]),
                                 ("gpu-ledger", "Apache-2.0", VERSION))
                self.assertRegex(labels["revision"], r"^[0-9a-f]{40}(-dirty)?$")

    def test_files(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                with tarfile.open(fileobj=io.BytesIO(layer_of(architecture)[2])) as file:
                    entries = {one.name: one for one in file}
                    program = file.extractfile("usr/bin/gpu-ledger").read()
                files = {name for name, one in entries.items() if one.isfile()}
                self.assertEqual({name for name in files if "bin/" in name}, {"usr/bin/gpu-ledger"}, "no shell")
                self.assertLessEqual({"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                                      "libresolv.so.2"}, {os.path.basename(name) for name in files})
                self.assertLessEqual({"etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/debian_version"}, files)
                state = entries.pop("var/lib/gpu-ledger")
                self.assertEqual((state.uid, state.gid), (65532, 65532))
                self.assertEqual({(one.uid, one.gid) for one in entries.values()}, {(0, 0)})
                self.assertEqual((entries["tmp"].mode, entries["usr/bin/gpu-ledger"].mode), (0o1777, 0o755))
                bill = json.loads((DIST / f"{BASE}-linux-{architecture}.cdx.json").read_text())
                self.assertEqual(bill["metadata"]["component"]["hashes"][0]["content"], hashlib.sha256(program).hexdigest())

    @unittest.skipUnless(shutil.which("podman") and os.geteuid() == 0, "no podman, or not root")
    def test_a_real_engine_takes_it(self):
        (self.folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{self.folder}/data"\nrunroot = "{self.folder}/run"\n')
        environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"), "TMPDIR": str(self.folder)}
        podman = ["podman", f"--tmpdir={self.folder}/tmp"]
        for architecture in BUILT:
            with self.subTest(architecture):
                image = call(*podman, "pull", "--quiet", f"--signature-policy={self.folder}/policy.json",
                             f"--arch={architecture}", f"oci-archive:{DIST}/{BASE}-image.tar", env=environment).strip()
                (told,) = json.loads(call(*podman, "image", "inspect", image, env=environment))
                self.assertEqual((told["Architecture"], told["User"]), (architecture, "65532:65532"))


class Chart(Folder):
    def test_versions(self):
        unpack(DIST / f"{BASE}-chart.tgz", self.folder)
        said = yaml.safe_load((self.folder / "gpu-ledger/Chart.yaml").read_text())
        self.assertEqual((said["name"], said["version"], said["appVersion"]), ("gpu-ledger", VERSION, VERSION))

    def test_is_what_helm_packs(self):
        helm = os.environ.get("GPU_LEDGER_HELM") or fetch("helm")
        if not helm:
            self.skipTest("no Helm")
        call(helm, "package", CHART, "--destination", self.folder)
        with tarfile.open(self.folder / f"{BASE}.tgz") as theirs, tarfile.open(DIST / f"{BASE}-chart.tgz") as ours:
            content = {one.name: theirs.extractfile(one).read() for one in theirs if one.isfile()}
            packed = {one.name: ours.extractfile(one).read() for one in ours if one.isfile()}
            self.assertEqual({one.type for one in ours if not one.isdir()}, {tarfile.REGTYPE}, "no links")
        chart = "gpu-ledger/Chart.yaml"  # Helm writes this one anew
        self.assertEqual(yaml.safe_load(packed.pop(chart)), yaml.safe_load(content.pop(chart)))
        self.assertEqual(packed, content)
        call(helm, "lint", "--strict", DIST / f"{BASE}-chart.tgz", "--set", "image.registry=registry.example")

    def test_is_an_artefact_of_the_kind_that_helm_pulls(self):
        layout = Layout(DIST / f"{BASE}-chart.tar")
        manifest = layout.json(layout.index["manifests"][0])
        self.assertEqual(manifest["config"]["mediaType"], "application/vnd.cncf.helm.config.v1+json")
        (layer,) = manifest["layers"]
        self.assertEqual(layer["mediaType"], "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
        self.assertEqual(layout.blob(layer), (DIST / f"{BASE}-chart.tgz").read_bytes())
        said = layout.json(manifest["config"])
        self.assertEqual((said["name"], said["version"], said["apiVersion"]), ("gpu-ledger", VERSION, "v2"))
        whole = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual(said, {key: whole[key] for key in said}, "Helm refuses a field of another type")
        self.assertEqual(layout.unread(), set())


class Registry(Folder):
    """A real registry on loopback: what docs/releasing.md puts there comes back."""

    def setUp(self):
        super().setUp()
        self.helm, self.crane = fetch("helm"), fetch("crane")
        if not self.helm or not self.crane:
            self.skipTest("no Helm or no registry, and no Go to build them with")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        log = (self.folder / "log").open("w")
        server = subprocess.Popen([self.crane, "registry", "serve", "--address", self.address, "--disk", self.folder / "registry"],
                                  stdout=log, stderr=log)
        self.addCleanup(log.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        (self.folder / "registry").mkdir()
        try:
            harness.wait_until(lambda: run(self.crane, "catalog", self.address, "--insecure").returncode == 0, "the registry")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n" + (self.folder / "log").read_text()) from None

    def unpacked(self, name):
        unpack(DIST / f"{BASE}-{name}.tar", self.folder / name)
        return self.folder / name

    def pulled(self, repository):
        where = self.folder / repository
        where.mkdir()
        call(self.helm, "pull", f"oci://{self.address}/{repository}/gpu-ledger", "--version", VERSION, "--plain-http",
             "--destination", where)
        return (where / f"gpu-ledger-{VERSION}.tgz").read_bytes()

    def test_the_chart(self):
        chart = DIST / f"{BASE}-chart.tgz"
        call(self.helm, "push", chart, f"oci://{self.address}/charts", "--plain-http")
        self.assertEqual(self.pulled("charts"), chart.read_bytes())
        call(self.crane, "push", "--insecure", self.unpacked("chart"), f"{self.address}/artefacts/gpu-ledger:{VERSION}")
        self.assertEqual(self.pulled("artefacts"), chart.read_bytes(), "the artefact is what helm push makes")
        rendered = call(self.helm, "template", "gl", f"oci://{self.address}/artefacts/gpu-ledger", "--version", VERSION,
                        "--plain-http", "--set", "image.registry=registry.example")
        self.assertIn(f"image: registry.example/gpu-ledger:{VERSION}", rendered)

    def test_the_image(self):
        call(self.crane, "push", "--insecure", "--index", self.unpacked("image"), f"{self.address}/gpu-ledger:{VERSION}")
        digest = (DIST / f"{BASE}-image.digest").read_text().strip()
        name = f"{self.address}/gpu-ledger@{digest}"  # as the chart's image.digest asks for it
        for architecture in BUILT:
            config = json.loads(call(self.crane, "config", "--insecure", "--platform", f"linux/{architecture}", name))
            self.assertEqual(config["architecture"], architecture)


class Sbom(unittest.TestCase):
    def test_required_fields(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                bill = json.loads((DIST / f"{BASE}-linux-{architecture}.cdx.json").read_text())
                self.assertEqual((bill["bomFormat"], bill["specVersion"], bill["version"]), ("CycloneDX", "1.5", 1))
                self.assertRegex(bill["serialNumber"],
                                 r"^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
                self.assertRegex(bill["metadata"]["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
                references = set()
                for part in [bill["metadata"]["component"], *bill["components"]]:
                    self.assertIn(part["type"], ("application", "library"))
                    self.assertTrue(part["name"] and part["version"] and part["licenses"], part)
                    self.assertRegex(part["purl"], r"^pkg:(deb/debian|generic)/[^@?]+@[^?]+\?arch=")
                    self.assertNotIn(part["bom-ref"], references)
                    references.add(part["bom-ref"])
                named = {one["ref"] for one in bill["dependencies"]}
                self.assertEqual(named, references)
                self.assertLessEqual({one for each in bill["dependencies"] for one in each.get("dependsOn", [])}, references)

    def test_names_all_that_is_linked(self):
        for architecture in BUILT:
            with self.subTest(architecture):
                bill = json.loads((DIST / f"{BASE}-linux-{architecture}.cdx.json").read_text())
                facts = {part["name"]: {one["name"]: one["value"] for one in part["properties"]} for part in bill["components"]}
                sources = {re.sub(r"(1\.\d+|-\d+)?(-cross)?$", "", one["gpu-ledger:source-package"]) for one in facts.values()}
                self.assertLessEqual(LIBRARIES, sources)
                self.assertTrue(any(name.startswith("libstdc++") for name in facts))
                linked = " ".join(one["gpu-ledger:linked"] for one in facts.values())
                for archive in ("libssl.a", "libcrypto.a", "libgrpc++_unsecure.a", "libprotobuf-lite.a", "libcares.a",
                                "libyaml-cpp.a", "libz.a", "libcrypt.a", "libstdc++.a", "libabsl_strings.a"):
                    self.assertIn(archive, linked)
        version = call("dpkg-query", "--show", "--showformat=${Version}", f"libssl-dev:{HOST}")
        bill = json.loads((DIST / f"{BASE}-linux-{HOST}.cdx.json").read_text())
        self.assertIn(("libssl-dev", version), [(part["name"], part["version"]) for part in bill["components"]])

    def test_a_library_without_a_licence_stops_it(self):
        build = SOURCE / "build/release"
        script = ("import pathlib, sys; sys.path.insert(0, sys.argv[1]); import sbom; del sbom.LICENCES['zlib']; "
                  "sbom.bill(*map(pathlib.Path, sys.argv[2:4]), '1', 'amd64', '/')")
        done = run("python3", "-c", script, SOURCE / "tools", build, build / "gpu-ledger")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^sbom: zlib is linked .* no licence")


if __name__ == "__main__":
    main()
