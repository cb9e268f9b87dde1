# SPDX-License-Identifier: Apache-2.0
"""The chart's allocation API, with the real Helm."""

import os
import pathlib
import tempfile
import unittest

import yaml

from deploy_parts import IMAGE, main, render, run
from helm_test import HELM, find, notes, refused, values_of


class Bill(unittest.TestCase):
    """The allocation API: a pod that asks Prometheus and needs nothing of a node."""

    ON = ("--set", "bill.enabled=true,bill.prometheusUrl=http://prometheus:9090")

    def pod(self, *arguments):
        (one,) = find(render(HELM, None, *self.ON, *arguments), "Deployment")
        return one["spec"]["template"]

    def test_it_needs_a_server_to_ask(self):
        self.assertFalse(find(render(HELM, None), "Deployment"))
        self.assertIn("bill.prometheusUrl is not set", refused(*IMAGE, "--set", "bill.enabled=true"))

    def test_notes_say_where_it_is(self):
        self.assertIn("http://gl-gpu-ledger-bill.gpu-ledger.svc:9003/allocation?", notes(*self.ON))
        self.assertNotIn("/allocation", notes())

    def test_nothing_else_selects_its_pods(self):
        more = "networkPolicy.enabled=true,serviceMonitor.enabled=true,podMonitor.enabled=true,nameOverride=" + "n" * 63
        objects = render(HELM, None, *self.ON, "--set", more)
        labels = find(objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"].items()
        self.assertLessEqual(max(len(value) for _, value in labels), 63)
        selecting = []
        for one in objects:
            spec = one.get("spec", {})
            selector = spec.get("selector") or spec.get("podSelector") or {}
            chosen = selector.get("matchLabels", selector if one["kind"] == "Service" else {})
            if chosen and chosen.items() <= labels:
                selecting.append(one["kind"])
        self.assertEqual(sorted(selecting), ["Deployment", "NetworkPolicy", "Service"])

    def test_it_needs_neither_gpu_nor_rights(self):
        pod = self.pod("--set", "securityContext.privileged=true,hostNetwork=true,runtimeClassName=nvidia")
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        self.assertFalse(spec["automountServiceAccountToken"])
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])
        for name in ("hostPID", "hostNetwork", "runtimeClassName", "volumes", "affinity", "priorityClassName"):
            self.assertNotIn(name, spec)
        self.assertNotIn("env", container, "no NVIDIA_VISIBLE_DEVICES")
        self.assertNotIn("limits", container["resources"])

    def test_it_is_as_closed_as_the_exporter(self):
        for settings, probe in (((), {"path": "/healthz", "port": "bill", "scheme": "HTTP"}),
                                (("webConfig.tlsSecret=c",), {"path": "/healthz", "port": "bill", "scheme": "HTTPS"}),
                                (("webConfig.existingSecret=mine",), None)):
            (container,) = self.pod(*(f"--set={one}" for one in settings))["spec"]["containers"]
            self.assertEqual(container["readinessProbe"].get("httpGet"), probe)
            self.assertEqual("tcpSocket" in container["livenessProbe"], probe is None)
            self.assertEqual("--web-config-file=/etc/gpu-ledger/web/web.yml" in container["args"], bool(settings))

    def test_a_url_is_text(self):
        (container,) = self.pod("--set", "bill.prometheusUrl=http://prometheus:")["spec"]["containers"]
        self.assertIn("--prometheus-url=http://prometheus:", container["args"])

    def test_a_price_list_alone_is_mounted_too(self):
        rows = "bill.priceList[0].per_kwh=0.2"
        objects = render(HELM, None, *self.ON, "--set", rows)
        (files,) = [one["data"] for one in find(objects, "ConfigMap") if one["metadata"]["name"].endswith("-bill")]
        self.assertEqual(yaml.safe_load(files.pop("prices.yaml")), [{"per_kwh": "0.2"}])
        self.assertFalse(files)
        pod = self.pod("--set", rows)
        (container,) = pod["spec"]["containers"]
        self.assertIn("--price-list=/etc/gpu-ledger/config/prices.yaml", container["args"])
        self.assertNotIn("--config=", str(container["args"]))
        self.assertEqual([one["mountPath"] for one in container["volumeMounts"]], ["/etc/gpu-ledger/config"])
        self.assertNotEqual(pod["metadata"]["annotations"],
                            self.pod("--set", rows + "1")["metadata"]["annotations"], "new prices make a new pod")

    def test_the_program_takes_its_arguments(self):
        """Those of the golden values, as far as the settings go: the files of Secrets are not there."""
        objects = render(HELM, values_of("bill"))
        (files,) = [one["data"] for one in find(objects, "ConfigMap") if "config.yaml" in one["data"]]
        (container,) = find(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                pathlib.Path(folder, name).write_text(text)
            arguments = [one.replace("/etc/gpu-ledger/config", folder) for one in container["args"]]
            program = os.environ["GPU_LEDGER_BINARY"]
            said = run(program, *arguments, "--format=csv")
            self.assertIn("--serve: not together with", said.stderr, "every setting was read")
            with open(pathlib.Path(folder, "prices.yaml"), "a") as prices:
                prices.write("- {per_kw: 1}\n")
            self.assertIn('"per_kw" is not one of', run(program, *arguments).stderr, "the rows before it were read")


if __name__ == "__main__":
    main(None if HELM else "no Helm, and no Go to build it with")
