# SPDX-License-Identifier: Apache-2.0
"""Every command of the pages for people that renders or applies something is run: `helm install` and each `--set` with the real
Helm, blocks with `kubectl apply` with a kubectl that only writes down what it is given."""

import os
import pathlib
import re
import shlex
import tempfile
import unittest

import yaml
from deploy_parts import CHART, IMAGE, SOURCE, call, environment, fetch, main, pod_specs, render, run

HELM = os.environ.get("GPU_LEDGER_HELM") or fetch("helm")
PAGES = sorted([SOURCE / "README.md", *SOURCE.glob("docs/**/*.md"), *SOURCE.glob("deploy/**/*.md")])
VALUES = set(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")))
KUBECTL = """#!/bin/sh
case "$*" in
  "get nodes "*) printf 'node/gpu-a\\nnode/gpu-b\\n' ;;
  "apply -f -") { echo; echo ---; cat; } >>"$APPLIED" ;;
  "apply -f "*) { echo; echo ---; cat "$3"; } >>"$APPLIED" ;;
esac
"""


def blocks_of(text):
    return re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def passages_of(text):
    """Paragraphs, rows of tables and points of lists: what stands in one of them belongs together."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\||\s*[*-] |\s*\d+\. )", prose)]


def split_settings(value):
    """Of `a=1,b={x,y}` a=1 and b={x,y}, as Helm has it."""
    return re.findall(r"(?:[^,{]|\{[^}]*\})+", value)


def settings_in(words):
    """The arguments with one setting each, without those that say where."""
    found, words = [], iter(words)
    for word in words:
        if word == "--set":
            found += [("--set", one) for one in split_settings(next(words))]
        elif word in ("-f", "--values"):
            found.append(("--values", next(words)))
        elif word in ("-n", "--namespace"):
            next(words)
        elif word not in ("--install", "--create-namespace", "--reuse-values"):
            raise AssertionError(f"{word} is unknown here")
    return found


def told_in(passage):
    """Settings in code: `--set a.b=c`, or `a.b=c` where a is a value of the chart."""
    found = []
    for code in re.findall(r"`([^`]+)`", passage):
        if re.match(r"--.*--set |--set ", code):
            found += settings_in(shlex.split(code))
        elif re.match(r"[\w.-]+=", code) and re.split(r"[.=]", code)[0] in VALUES:
            found += settings_in(["--set", *shlex.split(code)])
    return found


def helm_commands():
    """The page, what it tells, its settings."""
    for page in PAGES:
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(SOURCE))
        for line in re.findall(r"^\s*(helm (?:install|upgrade|template) .*)$", text.replace("\\\n", " "), re.MULTILINE):
            yield name, line, settings_in(shlex.split(line, comments=True)[4:])
        for passage in passages_of(text):
            if told := told_in(passage):
                yield name, passage, told


def rendering(settings):
    """What Helm renders, or what it says when it refuses."""
    where = () if any(key.startswith(("image.repository", "image.registry")) for _, key in settings) else IMAGE
    done = run(HELM, "template", "gl", CHART, *where, *[word for one in settings for word in one], cwd=SOURCE)
    return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr


@unittest.skipUnless(HELM, "no Helm, and no Go to build it with")
class Helm(unittest.TestCase):
    def assert_effect(self, settings):
        """Each of them changes what the others make."""
        good, text = rendering(settings)
        self.assertTrue(good, text)
        for one in settings:
            others = [other for other in settings if other is not one]
            self.assertTrue(rendering(others) != (True, text), f"{one[1]} changes nothing")

    def test_every_setting_has_an_effect(self):
        seen = 0
        for page, told, settings in helm_commands():
            with self.subTest(told, page=page):
                seen += len(settings)
                self.assert_effect(settings)
        self.assertGreater(seen, 50)

    def test_a_setting_without_effect_is_noticed(self):
        for told in ("`serviceMonitor.gpuMetrics=true`", "`--set prometheusRule.enabled=true --set serviceMonitor.gpuMetrics=true`",
                     "`collectors.dcgm-modern=true` and\n`prometheusRule.rules={node,alerts}`"):
            ((*settings,),) = [told_in(passage) for passage in passages_of(told)]
            with self.assertRaisesRegex(AssertionError, "(gpuMetrics|rules).* changes nothing"):
                self.assert_effect(settings)

    def recorded(self, *arguments):
        """Recording rules of the PrometheusRules: {name: expression}."""
        rules = [one for one in render(HELM, None, *arguments) if one["kind"] == "PrometheusRule"]
        return {rule.get("record"): rule["expr"] for one in rules for group in one["spec"]["groups"] for rule in group["rules"]}

    def test_a_price_on_the_command_line_is_a_number(self):
        recorded = self.recorded("--set", "prometheusRule.enabled=true,prometheusRule.pricePerKwh=0.27,prometheusRule.pue=1.4")
        self.assertEqual((recorded["gpu_ledger:price_per_kwh"], recorded["gpu_ledger:pue"]), ("vector(0.27)", "vector(1.4)"))

    def test_compat_rules_are_rendered(self):
        (told,) = [settings for page, told, settings in helm_commands() if page == "docs/migration.md" and "compat}" in told]
        recorded = self.recorded(*[word for one in told for word in one])
        self.assertIn("my_gpu_process_energy_joules", recorded)
        self.assertIn("namespace:gpu_ledger_power_watts:rate5m", recorded)

    def notes(self, *arguments):
        out = call(HELM, "install", "gl", CHART, "--namespace", "ns", "--dry-run=client", *IMAGE, *arguments)
        return out.partition("NOTES:\n")[2]

    def test_the_notes_tell_commands_that_work(self):
        said = self.notes()
        objects = render(HELM, None, namespace="ns", tests=True)
        named = {(one["kind"].lower(), one["metadata"]["name"]) for one in objects}
        found = re.findall(r"\b(daemonset)[ /]([a-z-]+)", said)
        self.assertGreater(len(found), 3)
        self.assertLessEqual(set(found), named)
        self.assertEqual(set(re.findall(r"kubectl -n (\S+)", said)), {"ns"})
        self.assertIn("helm -n ns test gl --logs", said)
        self.assertTrue([one for one in objects if one["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"])
        (port,) = re.findall(r"port-forward \S+ (\d+)", said)
        self.assertIn(f"--listen-address=:{port}", next(pod_specs(objects))["containers"][0]["args"])
        told = re.findall(r"(?:--set|\bSet) (\w+=[\w\"]+)", said)
        self.assertGreater(len(told), 2, said)
        for one in told:
            with self.subTest(one):
                self.assert_effect(settings_in(["--set", *shlex.split(one)]))

    def test_the_notes_of_a_schedule(self):
        schedule = ("--set", "collection.schedule=*/1 * * * *")
        said = self.notes(*schedule)
        (path,) = re.findall(r"writes (\S+) by", said)
        (folder,) = re.findall(r"--collector.textfile.directory=(\S+)", said)
        (spec,) = pod_specs(render(HELM, None, *schedule))
        self.assertIn(f"--textfile=/textfile/{path.removeprefix(folder + '/')}", spec["containers"][0]["args"])
        self.assertIn(folder, [one.get("hostPath", {}).get("path") for one in spec["volumes"]])
        self.assertIn("--set collection.nodes='{NODE,NODE}'", said)
        self.assertNotIn("collection.nodes", self.notes(*schedule, "--set", "collection.nodes={a,b}"))


class Kubectl(unittest.TestCase):
    """Blocks of a page, run in its folder."""

    def applied(self, page, block):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            for name in ("kubectl", "oc"):
                (place / name).write_text(KUBECTL)
                (place / name).chmod(0o755)
            variables = environment(PATH=f"{place}:{os.environ['PATH']}", APPLIED=str(place / "applied"))
            call("bash", "-euo", "pipefail", "-c", block, cwd=page.parent, env=variables)
            text = (place / "applied").read_text(encoding="utf-8")
        self.assertNotIn("REGISTRY", text)
        objects = [one for one in yaml.safe_load_all(text) if one]
        self.assertTrue(objects)
        for one in objects:
            self.assertTrue(one["apiVersion"] and one["metadata"]["name"], one)
        return objects

    def test_every_block_applies_what_it_names(self):
        seen = []
        for page in PAGES:
            for block in blocks_of(page.read_text(encoding="utf-8")):
                if "kubectl apply" not in block:
                    continue
                with self.subTest(str(page.relative_to(SOURCE))):
                    seen.append(page.parent.name)
                    objects = self.applied(page, block)
                    for spec in pod_specs(objects):
                        for container in spec["containers"]:
                            self.assertNotIn("node-1", str(spec))
                            if "gpu-ledger" in container["image"]:
                                self.assertRegex(container["image"], r"^registry.example/team/gpu-ledger:")
                    kinds = {"svc": "service"}
                    named = {(one["kind"].lower(), one["metadata"]["name"]) for one in objects}
                    for kind, name in re.findall(r"\b(daemonset|deployment|svc|pod)/([a-z-]+)\s", block):
                        self.assertIn((kinds.get(kind, kind), name), named)
        self.assertEqual(sorted(seen), ["cronjob", "daemonset", "deployment", "kubernetes", "prometheus", "prometheus", "sidecar"])

    def only_block(self, name):
        page = SOURCE / name
        (block,) = [one for one in blocks_of(page.read_text(encoding="utf-8")) if "kubectl apply" in one]
        return self.applied(page, block)

    def test_a_cronjob_for_each_node(self):
        jobs = [one for one in self.only_block("deploy/kubernetes/cronjob/README.md") if one["kind"] == "CronJob"]
        self.assertEqual(len({one["metadata"]["name"] for one in jobs}), 2)
        for node, spec in zip(("gpu-a", "gpu-b"), pod_specs(jobs)):
            self.assertIn(node, str(spec))

    def test_the_rules_of_the_operator(self):
        rules = self.only_block("deploy/prometheus/README.md")
        self.assertEqual({one["kind"] for one in rules}, {"PrometheusRule"})
        self.assertEqual([one["metadata"]["name"] for one in rules],
                         [f"gpu-ledger-{name}" for name in ("parameters", "node", "fleet", "alerts")])
        for one, name in zip(rules, ("parameters.rules", "node.rules", "fleet.rules", "alerts")):
            file = (SOURCE / f"deploy/prometheus/{name}.yml").read_text(encoding="utf-8")
            self.assertEqual(one["spec"], yaml.safe_load(file))

    def test_files_that_are_named_alone(self):
        found = 0
        for page in SOURCE.glob("deploy/**/*.md"):
            for name in re.findall(r"\b(?:kubectl|oc) apply -f ([\w./-]+\w)", page.read_text(encoding="utf-8")):
                found += 1
                self.assertTrue(list(yaml.safe_load_all((page.parent / name).read_text(encoding="utf-8"))), name)
        self.assertGreater(found, 1)


if __name__ == "__main__":
    main()
