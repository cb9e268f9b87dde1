# SPDX-License-Identifier: Apache-2.0
"""The chart with the real Helm: lint, what it renders for a handful of values, what the schema refuses, what is hardened.

GPU_LEDGER_UPDATE_GOLDEN=yes writes the expected objects anew.
"""

import json
import os
import pathlib
import tempfile
import unittest

import yaml

from deploy_parts import CHART, HERE, KUBERNETES, SOURCE, call, documents, fetch, main, pod_specs, render, run

HELM = os.environ.get("GPU_LEDGER_HELM") or fetch("helm")
GOLDEN = HERE / "golden"
SETS = sorted(path.name.removesuffix(".values.yaml") for path in GOLDEN.glob("*.values.yaml"))


def values_of(name):
    return GOLDEN / f"{name}.values.yaml"


def find(objects, kind):
    return [one for one in objects if one["kind"] == kind]


class Chart(unittest.TestCase):
    def test_lint(self):
        for name in SETS:
            with self.subTest(name):
                call(HELM, "lint", "--strict", CHART, "--values", values_of(name))

    def test_golden(self):
        for name in SETS:
            with self.subTest(name):
                objects = render(HELM, values_of(name))
                path = GOLDEN / f"{name}.golden.yaml"
                if os.environ.get("GPU_LEDGER_UPDATE_GOLDEN") == "yes":
                    path.write_text(yaml.safe_dump_all(objects, sort_keys=False, width=120))
                self.assertEqual(objects, documents(path), "GPU_LEDGER_UPDATE_GOLDEN=yes accepts the new ones")

    def test_wrong_values_are_refused(self):
        for wrong in ("metadata.source=podsapi", "port=0", "port=abc", "gpu.devices={first}", "logLevel=loud",
                      "hostPID=maybe", "textfile.name=gpu.txt", "textfile.directory=here", "collection.schedule=hourly",
                      "state.type=disk", "image.digest=abc", "serviceMonitor.interval=fast", "collectors.gpu=true",
                      "prometheusRule.pue=0.5", "prometheusRule.pricePerKwh=cheap", "prometheusRule.rules={all}", "resource.limits.memory=1Gi",
                      "extraArgs={serve}", "exactTime.duty=often", "exactTime.mode=on", "service.type=Nodeport", "kubelet.rootDir=var"):
            with self.subTest(wrong):
                done = run(HELM, "template", CHART, "--set", wrong)
                self.assertNotEqual(done.returncode, 0)
                name = wrong.partition("=")[0].split(".")[0]
                self.assertIn(name, done.stderr, "the message names the value")

    def test_a_port_that_would_have_no_effect_is_refused(self):
        done = run(HELM, "template", CHART, "--set", "extraEnv[0].name=HTTP_PORT", "--set-string", "extraEnv[0].value=9835")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("set port and service.port", done.stderr)

    def test_every_value_has_a_default_and_a_type(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())

        def compare(shape, value, path):
            if "$ref" in shape:
                shape = schema["$defs"][shape["$ref"].rpartition("/")[2]]
            if "properties" not in shape or not isinstance(value, dict) or not value:
                return
            known = set(shape["properties"]) - {"enabled" if not path else "", "gpu-process-exporter", "count"}
            self.assertEqual(known, set(value), f"values.yaml and schema at {path or 'the top'}")
            for key in value:
                compare(shape["properties"][key], value[key], f"{path}.{key}")

        compare(schema, defaults, "")

    def test_rights_follow_the_source_of_names(self):
        expected = {"auto": ["pods"], "apiserver": ["pods"], "kubelet": ["nodes/pods"], "pods-api": None, "cri": None,
                    "none": None}
        for source, resources in expected.items():
            with self.subTest(source):
                objects = render(HELM, None, "--set", f"metadata.source={source}")
                (spec,) = pod_specs(objects)
                self.assertEqual(spec["automountServiceAccountToken"], resources is not None)
                roles = find(objects, "ClusterRole")
                self.assertEqual([rule["resources"] for role in roles for rule in role["rules"]],
                                 [resources] if resources else [])
                self.assertEqual(any("containerd" in str(volume) for volume in spec["volumes"]), source == "cri")

    def test_exact_time_is_one_switch(self):
        for switch, capabilities in (("true", {"drop": ["ALL"], "add": ["SYS_ADMIN"]}), ("false", {"drop": ["ALL"]})):
            with self.subTest(switch):
                (spec,) = pod_specs(render(HELM, None, "--set", f"exactTime.enabled={switch}"))
                (container,) = spec["containers"]
                self.assertEqual("--exact-time=on" in container["args"], switch == "true")
                self.assertEqual(container["securityContext"]["capabilities"], capabilities)

    def test_the_test_is_the_exporters_pod(self):
        for name in SETS:
            with self.subTest(name):
                objects = render(HELM, values_of(name), tests=True)
                pods, (one, *_) = find(objects, "Pod"), find(objects, "DaemonSet") or [None]
                self.assertEqual(len(pods), 1 if one else 0)
                if not one:
                    continue
                template, spec = one["spec"]["template"], pods[0]["spec"]
                self.assertEqual(pods[0]["metadata"]["annotations"]["helm.sh/hook"], "test")
                selector = one["spec"]["selector"]["matchLabels"].items()
                self.assertFalse(selector <= pods[0]["metadata"]["labels"].items(), "the DaemonSet would adopt it")
                (tester,), exporter = spec["containers"], template["spec"]["containers"][0]
                self.assertEqual((tester["args"][0], tester["args"][1:]), ("doctor", exporter["args"][1:]))
                for key in ("image", "env", "securityContext", "volumeMounts"):
                    self.assertEqual(tester.get(key), exporter.get(key), key)
                for key in ("hostPID", "serviceAccountName", "volumes", "affinity", "tolerations", "securityContext"):
                    self.assertEqual(spec.get(key), template["spec"].get(key), key)

    def test_rules_and_dashboards_are_those_of_the_repository(self):
        objects = render(HELM, None, "--set", "prometheusRule.enabled=true", "--set",
                         "prometheusRule.rules={alerts,recording,parameters,compat}", "--set", "dashboards.enabled=true")
        rules = {one["metadata"]["name"]: one["spec"] for one in find(objects, "PrometheusRule")}
        for name in ("alerts", "recording", "parameters", "compat"):
            files = list((SOURCE / "deploy/prometheus").glob(f"{name}*.yml"))
            self.assertEqual(rules[f"gl-gpu-ledger-{name}"], yaml.safe_load(files[0].read_text()))
        boards = {key: text for one in find(objects, "ConfigMap") for key, text in one["data"].items()}
        for path in (SOURCE / "deploy/grafana").glob("*.json"):
            self.assertEqual(boards[path.name], path.read_text())

    def test_the_package_holds_what_links_point_to(self):
        with tempfile.TemporaryDirectory() as folder:
            call(HELM, "package", CHART, "--destination", folder)
            (archive,) = pathlib.Path(folder).iterdir()
            objects = yaml.safe_load_all(call(HELM, "template", archive, "--set", "prometheusRule.enabled=true"))
            self.assertEqual(len([one for one in objects if one and one["kind"] == "PrometheusRule"]), 3)
            names = call("tar", "-tf", archive)
            self.assertNotIn("files/prometheus/tests", names)
            self.assertLess(archive.stat().st_size, 300_000, "Helm keeps the chart in a Secret of at most 1 MiB")


class Hardened(unittest.TestCase):
    """What holds for the chart and for the plain manifests alike."""

    def objects(self):
        for name in SETS:
            yield name, render(HELM, values_of(name), tests=True)
        for path in sorted(KUBERNETES.glob("*/*.yaml")):
            yield path.parent.name, documents(path)

    def test_containers(self):
        seen = 0
        for name, objects in self.objects():
            for spec in pod_specs(objects):
                for container in spec.get("initContainers", []) + spec["containers"]:
                    if "gpu-ledger" not in container["image"]:
                        continue
                    seen += 1
                    with self.subTest(name, container=container["name"]):
                        context = container["securityContext"]
                        self.assertFalse(context.get("privileged", False))
                        self.assertFalse(context["allowPrivilegeEscalation"])
                        self.assertTrue(context["readOnlyRootFilesystem"])
                        self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                        if container["name"] == "gpu-ledger" and name not in ("everything", "exact-time"):
                            self.assertNotIn("add", context["capabilities"])
                        self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertGreater(seen, 10)

    def test_pods(self):
        for name, objects in self.objects():
            for spec in pod_specs(objects):
                with self.subTest(name):
                    self.assertFalse(spec.get("hostIPC", False))
                    if name != "everything":
                        self.assertFalse(spec.get("hostNetwork", False))
                    if name in ("restricted", "sidecar"):
                        self.assertFalse(spec.get("hostPID", False))
                        self.assertFalse([one for one in spec.get("volumes", []) if "hostPath" in one])
                    for volume in spec.get("volumes", []):
                        path = volume.get("hostPath", {}).get("path", "")
                        self.assertNotIn(path, ("/", "/var", "/run", "/var/run", "/var/lib", "/var/lib/kubelet", "/etc"))
                        self.assertFalse(path.endswith(".sock"), "a socket that is mounted dies with its kubelet")

    def test_nobody_may_more_than_look_at_pods(self):
        for name, objects in self.objects():
            for role in find(objects, "ClusterRole"):
                for rule in role["rules"]:
                    with self.subTest(name):
                        self.assertIn((tuple(rule["resources"]), tuple(rule["verbs"])),
                                      {(("pods",), ("list", "watch")), (("nodes/pods",), ("get",))})


if __name__ == "__main__":
    main(None if HELM else "no Helm, and no Go to build it with")
