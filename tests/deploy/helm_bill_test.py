# SPDX-License-Identifier: Apache-2.0
"""The chart's allocation API, with the real Helm."""

import os
import tempfile
import unittest

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

    def test_the_program_takes_its_arguments(self):
        """Those of the golden values, as far as the settings go: the files of Secrets are not there."""
        objects = render(HELM, values_of("bill"))
        (text,) = [one["data"]["config.yaml"] for one in find(objects, "ConfigMap") if "config.yaml" in one["data"]]
        (container,) = find(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            said = run(os.environ["GPU_LEDGER_BINARY"], *(f"--config={file.name}" if one.startswith("--config=") else one
                                                          for one in container["args"]), "--format=csv")
        self.assertIn("--serve: not together with", said.stderr, "every setting was read")


if __name__ == "__main__":
    main(None if HELM else "no Helm, and no Go to build it with")
