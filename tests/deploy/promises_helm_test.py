# SPDX-License-Identifier: Apache-2.0
"""With the real Helm: the names, commands and values of the older systems (tests/data/older_promises.tsv) can be kept."""

import os
import pathlib
import re
import shlex
import tempfile
import unittest

import promises
import yaml
from deploy_parts import CHART, IMAGE, SOURCE, call, fetch, main, pod_specs, render, run

HELM = os.environ.get("GPU_LEDGER_HELM") or fetch("helm")
# As its own README has it, in one file.
ASTRAGO = """
gpu-process-exporter:
  enabled: true

collection:
  schedule: "*/1 * * * *"

gpu:
  count: 4
  devices: [0, 1, 2, 3]
"""


class Names(unittest.TestCase):
    """What people have in their scripts."""

    def check(self, name, objects):
        """A name, or a whole command with several of them."""
        found = 0

        def named(pattern):
            nonlocal found
            values = re.findall(pattern, name)
            found += len(values)
            return values

        (spec, *_) = pod_specs(objects)
        arguments = spec["containers"][0]["args"]
        names = {(one["kind"], one["metadata"]["name"]) for one in objects}
        for namespace in named(r"(?:-n|^namespace) ([a-z-]+)"):
            spaces = {one["metadata"]["namespace"] for one in objects if not one["kind"].startswith("ClusterRole")}
            self.assertEqual(spaces, {namespace})
        for key, value in named(r"-l (\S+)=(\S+)"):
            self.assertEqual(self.pod_labels(objects)[key], value)
        for service in named(r"svc/([a-z-]+)"):
            self.assertIn(("Service", service), names)
        for port in named(r"^port (\d+)|svc/\S+ \d+:(\d+)"):
            port = "".join(port)
            self.assertIn(f"--listen-address=:{port}", arguments)
            (service,) = [one for one in objects if one["kind"] == "Service"]
            self.assertEqual(service["spec"]["ports"][0]["port"], int(port))
        for image in named(r"^\S+/\S+:[\d.]+$"):
            self.assertEqual(spec["containers"][0]["image"], image)
        if named("init container"):
            self.assertIn("accounting", str(spec["initContainers"]))
        for file in named(r"^\S+\.prom$"):
            self.assertIn(f"--textfile=/textfile/{file}", arguments)
        for label in named(r"^nvidia.com/gpu.present$"):
            self.assertIn(label, str(spec["affinity"]))
        for job in named(r"^[a-z-]+$"):
            self.assertIn(("CronJob", job), names)
        if named(r"get (?:cron)?jobs"):
            self.assertIn("CronJob", {kind for kind, _ in names})
        self.assertTrue(found, "nothing was looked at")

    def pod_labels(self, objects):
        for one in objects:
            if one["kind"] == "CronJob":
                return one["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
            if one["kind"] == "DaemonSet":
                return one["spec"]["template"]["metadata"]["labels"]
        return {}

    def rendered(self, arguments):
        text = call(HELM, "template", "gl", CHART, *IMAGE, "--skip-tests", *shlex.split(arguments))
        return [each for each in yaml.safe_load_all(text) if each]

    def test_every_name_can_be_kept(self):
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8")
        for one in promises.of("object"):
            with self.subTest(one.name):
                self.assertIn(f"| `{one.name}` | `{one.by}` |", page, "the table of migration.md has it")
                # The note may tell another way.
                for arguments in [one.by, *re.findall(r"`(--set [^`]+)`", one.note)]:
                    self.check(one.now if one.now != "same" else one.name, self.rendered(arguments))

    def test_every_command_finds_what_it_names(self):
        rows = [one for one in promises.of("command") if one.by.startswith("--")]
        self.assertGreater(len(rows), 5)
        for one in rows:
            with self.subTest(one.name):
                self.check(one.now if one.now != "same" else one.name, self.rendered(one.by))

    def test_cronjobs_of_several_nodes(self):
        """What migration.md says of their names."""
        schedule = "--set fullnameOverride=collector --set collection.schedule='*/1 * * * *'"
        for nodes in ("", "{a}", "{a,b,c}"):
            named = f" --set collection.nodes={nodes}" if nodes else ""
            jobs = [one for one in self.rendered(schedule + named) if one["kind"] == "CronJob"]
            self.assertEqual([one["metadata"].get("annotations", {}).get("gpu-ledger/node", "") for one in jobs],
                             nodes.strip("{}").split(","))
            first, *others = [one["metadata"]["name"] for one in jobs]
            self.assertEqual(first, "collector")
            for name in others:
                self.assertRegex(name, "^collector-[0-9a-f]{10}$")
            self.assertEqual(len(set(others)), len(others))


class Values(unittest.TestCase):
    def write(self, folder, text):
        path = pathlib.Path(folder) / "values.yaml"
        path.write_text(text)
        return path

    def assert_collects(self, objects):
        (job,) = [one for one in objects if one["kind"] == "CronJob"]
        self.assertEqual(job["spec"]["schedule"], "*/1 * * * *")
        (spec,) = pod_specs([job])
        self.assertIn("--gpu-devices=0,1,2,3", spec["containers"][0]["args"])

    def test_the_older_values_work_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            values = self.write(folder, ASTRAGO)
            self.assert_collects(render(HELM, values))
            told = yaml.safe_load(ASTRAGO)
            for one in promises.of("values"):
                value = told
                for key in one.name.split("."):
                    value = value[key]
                words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
                self.assertEqual(words.lower(), one.by)
            off = run(HELM, "template", CHART, *IMAGE, "--values", values, "--set", "gpu-process-exporter.enabled=false")
            self.assertNotEqual(off.returncode, 0)
            self.assertIn("gpu-process-exporter", off.stderr)

    def test_values_of_the_chart_as_it_was_shipped(self):
        """Those that its README leaves out: the folder has an effect, as it should have had there."""
        told = ("--set", "collection.image=busybox:1.36", "--set", "prometheus.serverService=prometheus-server",
                "--set", "prometheus.textfileCollectorPath=/srv/textfile", "--set", "collection.schedule=*/1 * * * *")
        (spec,) = pod_specs(render(HELM, None, *told))
        self.assertIn("/srv/textfile", str([one for one in spec["volumes"] if one["name"] == "textfile"]))
        self.assertNotIn("busybox", str(spec))
        self.assertIn("/srv/textfile", call(HELM, "install", "gl", CHART, "--dry-run=client", *IMAGE, *told).partition("NOTES:")[2])

    def test_the_key_is_an_alias_of_a_subchart(self):
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8")
        (told,) = re.findall(r"```yaml\n(dependencies:.*?)```", page, re.DOTALL)
        with tempfile.TemporaryDirectory() as folder:
            parent = pathlib.Path(folder) / "astrago"
            (parent / "charts").mkdir(parents=True)
            chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
            self.assertIn(f"version: {chart['version']}\n", told)
            (parent / "Chart.yaml").write_text("apiVersion: v2\nname: astrago\nversion: 1.0.0\n" + told)
            call(HELM, "package", CHART, "--destination", parent / "charts")
            inner = {key: value for key, value in yaml.safe_load(ASTRAGO).items() if key != "gpu-process-exporter"}
            for enabled in (True, False):
                image = yaml.safe_load(IMAGE[1].read_text())
                values = self.write(folder, yaml.safe_dump({"gpu-process-exporter": {"enabled": enabled, **image, **inner}}))
                text = call(HELM, "template", "astrago", parent, "--skip-tests", "--values", values)
                objects = [one for one in yaml.safe_load_all(text) if one]
                if enabled:
                    self.assert_collects(objects)
                else:
                    self.assertEqual(objects, [])


if __name__ == "__main__":
    main(None if HELM else "no Helm, and no Go to build it with")
