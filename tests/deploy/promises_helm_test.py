# SPDX-License-Identifier: Apache-2.0
"""With the real Helm: every command of the pages for people renders what it is for, and the names and values of the older
systems (tests/data/older_promises.tsv) can be kept."""

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
PAGES = sorted([SOURCE / "README.md", *SOURCE.glob("docs/*.md"), *SOURCE.glob("deploy/**/*.md")])
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


def commands_of(text):
    """`helm install` and `helm upgrade` of a page, on one line each, and the --set that it tells in passing."""
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"^\s*(helm (?:install|upgrade|template) .*)$", joined, re.MULTILINE):
        words = shlex.split(line, comments=True)
        yield line, [word for word in words[4:] if word not in ("--install", "--create-namespace")]
    for told in re.findall(r"`(--set[^`]*)`", joined):
        yield told, shlex.split(told)


class Commands(unittest.TestCase):
    def test_every_command_has_an_effect(self):
        plain, seen = call(HELM, "template", "gl", CHART, *IMAGE), 0
        for page in PAGES:
            for told, arguments in commands_of(page.read_text(encoding="utf-8")):
                with self.subTest(told, page=str(page.relative_to(SOURCE))):
                    seen += 1
                    # A label of a monitor or a rule shows once there is one.
                    switches = {word.partition(".")[0] for word in arguments
                                if re.match(r"(serviceMonitor|podMonitor)\.additionalLabels", word)}
                    if "prometheusRule.additionalLabels.release=prometheus" in arguments:
                        switches.add("prometheusRule")
                    more = [f"--set={one}.enabled=true" for one in switches]
                    base = call(HELM, "template", "gl", CHART, *IMAGE, *more) if more else plain
                    # A whole command says where the image is; a --set in passing is added to one that does.
                    whole = told.startswith("helm install") or any(one.startswith("image.") for one in arguments)
                    image = () if whole else IMAGE
                    text = call(HELM, "template", "gl", CHART, *image, *more, *arguments, cwd=SOURCE)
                    self.assertTrue(text != base, "changes nothing")
        self.assertGreater(seen, 15)

    def test_a_price_on_the_command_line_is_a_number(self):
        objects = render(HELM, None, "--set", "prometheusRule.enabled=true,prometheusRule.pricePerKwh=0.27,prometheusRule.pue=1.4")
        recorded = {rule.get("record"): rule["expr"] for one in objects if one["kind"] == "PrometheusRule"
                    for group in one["spec"]["groups"] for rule in group["rules"]}
        self.assertEqual((recorded["gpu_ledger:price_per_kwh"], recorded["gpu_ledger:pue"]), ("vector(0.27)", "vector(1.4)"))

    def test_compat_rules_are_rendered(self):
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8")
        (told,) = [arguments for told, arguments in commands_of(page) if "compat" in told]
        rules = [one for one in render(HELM, None, *told) if one["kind"] == "PrometheusRule"]
        recorded = {rule.get("record") for one in rules for group in one["spec"]["groups"] for rule in group["rules"]}
        self.assertIn("my_gpu_process_energy_joules", recorded)
        self.assertIn("namespace:gpu_ledger_power_watts:rate5m", recorded)


class Names(unittest.TestCase):
    """What people have in their scripts."""

    def check(self, name, objects, text):
        (spec, *_) = pod_specs(objects)
        names = {(one["kind"], one["metadata"]["name"]) for one in objects}
        if name.startswith(("-n ", "namespace ")) or " -n " in name:
            namespace = name.split()[-1]
            spaces = {one["metadata"]["namespace"] for one in objects if not one["kind"].startswith("ClusterRole")}
            self.assertEqual(spaces, {namespace})
        elif name.startswith("-l "):
            self.assertIn(name.partition("=")[2], self.pod_labels(objects).get("app", ""))
        elif name.startswith("svc/"):
            self.assertIn(("Service", name[4:]), names)
        elif name == "port 9835":
            self.assertIn("--listen-address=:9835", spec["containers"][0]["args"])
            (service,) = [one for one in objects if one["kind"] == "Service"]
            self.assertEqual(service["spec"]["ports"][0]["port"], 9835)
        elif "init container" in name:
            self.assertIn("accounting", str(spec["initContainers"]))
        elif name.endswith(".prom"):
            self.assertIn(f"--textfile=/textfile/{name}", spec["containers"][0]["args"])
        elif name == "nvidia.com/gpu.present":
            self.assertIn(name, str(spec["affinity"]))
        else:
            self.assertIn(("CronJob", name), names)

    def pod_labels(self, objects):
        for one in objects:
            if one["kind"] == "CronJob":
                return one["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
            if one["kind"] == "DaemonSet":
                return one["spec"]["template"]["metadata"]["labels"]
        return {}

    def test_every_name_can_be_kept(self):
        page = (SOURCE / "docs/migration.md").read_text(encoding="utf-8")
        for one in promises.of("object"):
            with self.subTest(one.name):
                self.assertIn(f"| `{one.name}` | `{one.by}` |", page, "the table of migration.md has it")
                arguments = shlex.split(one.by)
                text = call(HELM, "template", "gl", CHART, *IMAGE, "--skip-tests", *arguments)
                objects = [each for each in yaml.safe_load_all(text) if each]
                self.check(one.now if one.now != "same" else one.name, objects, text)


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
