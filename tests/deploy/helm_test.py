# SPDX-License-Identifier: Apache-2.0
"""The chart with the real Helm: lint, what it renders for a handful of values, what the schema refuses, what is hardened.

GPU_LEDGER_UPDATE_GOLDEN=yes writes the expected objects anew.
"""

import json
import os
import pathlib
import re
import tempfile
import unittest

import yaml

from deploy_parts import (CHART, HERE, IMAGE, KUBERNETES, PLATFORMS, SOURCE, call, documents, fetch, main, pod_specs, render,
                          run)

HELM = os.environ.get("GPU_LEDGER_HELM") or fetch("helm")
GOLDEN = HERE / "golden"
SETS = sorted(path.name.removesuffix(".values.yaml") for path in GOLDEN.glob("*.values.yaml"))


# Accepted without a default.
OF_AN_OLDER_CHART = (".enabled", ".gpu-process-exporter", ".gpu.count", ".collection.image", ".prometheus")

# Platforms whose runtime gives GPUs to nobody but a privileged container.
PRIVILEGED = ("gke", "driver-container", "privileged")


def values_of(name):
    return GOLDEN / f"{name}.values.yaml"


def refused(*arguments):
    """What Helm says to values that it refuses."""
    done = run(HELM, "template", "gl", CHART, *arguments)
    if done.returncode == 0:
        raise AssertionError(f"accepted: {arguments}")
    return "\n".join(line for line in done.stderr.splitlines() if not line.startswith("level=INFO"))


def notes(*arguments):
    out = call(HELM, "install", "gl", CHART, "--namespace", "gpu-ledger", "--dry-run=client", *IMAGE, *arguments)
    return out.partition("NOTES:\n")[2]


def find(objects, kind):
    return [one for one in objects if one["kind"] == kind]


class Chart(unittest.TestCase):
    def test_lint(self):
        for values in [*map(values_of, SETS), *PLATFORMS]:
            with self.subTest(values.name):
                call(HELM, "lint", "--strict", CHART, *IMAGE, "--values", values)

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
                      "extraArgs={serve}", "allNodes=maybe", "service.nodePort=70000", "nodeSelctor.zone=a",
                      "revisionHistoryLimit=-1", "serviceMonitor.scheme=ftp", "serviceMonitor.intervall=5s",
                      "webConfig.tlssecret=a", "image.name=a", "hostAliases=a", "securityContext.priviledged=true", "podSecurityContext.privileged=true",
                      "affinity.nodeAfinity.a=b", "readinessProbe.periodSecond=1", "resources.limit.cpu=1", "updateStrategy.typ=OnDelete", "exactTime.duty=often", "exactTime.mode=on", "service.type=Nodeport", "kubelet.rootDir=var",
                      "prometheus.textfileCollectorPath=here", "prometheusRule.runbookUrl=operations.md",
                      "bill.prometheusUrl=prometheus", "bill.prometheusUrl=http://a b", "bill.prometheusUrl=http://a#b", "bill.priceList[0].per_kw=1", "bill.priceList[0].pue=0.5", "bill.service.port=0", "bill.confg.a=b"):
            with self.subTest(wrong):
                said = refused(*IMAGE, "--set", wrong)
                name = wrong.partition("=")[0].split(".")[0].partition("[")[0]
                lines = [line for line in said.splitlines() if line.startswith("- at ")]
                self.assertEqual(len(lines), 1, said)
                self.assertIn(name, lines[0], "the one line names the value")

    def test_a_port_that_would_have_no_effect_is_refused(self):
        said = refused(*IMAGE, "--set", "extraEnv[0].name=HTTP_PORT", "--set-string", "extraEnv[0].value=9835")
        self.assertIn("set port and service.port", said)
        for one in ("service.nodePort=30400", "service.externalTrafficPolicy=Local"):
            self.assertIn(f"{one.partition('=')[0]} has no effect with service.type ClusterIP", refused(*IMAGE, "--set", one))

    def test_it_is_not_switched_off_by_a_value(self):
        for name in ("enabled", "gpu-process-exporter.enabled"):
            self.assertTrue(render(HELM, None, "--set", f"{name}=true"))
            (line,) = [line for line in refused(*IMAGE, "--set", f"{name}=false").splitlines() if name in line]
            self.assertIn(f"{name}: false", line)
            self.assertIn("helm uninstall", line)

    def test_names_of_the_cluster_are_found_on_the_hosts_network(self):
        policies = {(): "ClusterFirst", ("hostNetwork=true",): "ClusterFirstWithHostNet", ("dnsPolicy=Default",): "Default",
                    ("hostNetwork=true", "dnsPolicy=ClusterFirst"): "ClusterFirst"}
        for settings, policy in policies.items():
            (spec,) = pod_specs(render(HELM, None, *(f"--set={one}" for one in settings)))
            self.assertEqual(spec["dnsPolicy"], policy, settings)

    def test_the_simulated_driver_has_a_place_to_write(self):
        """It is unpacked there, and the rest of the filesystem is read-only."""
        for settings in ("config.backend=sim", "extraArgs={--backend=sim}"):
            for more in ((), ("--set", "collection.schedule=0 * * * *")):
                (spec,) = pod_specs(render(HELM, None, "--set", settings, *more))
                (container,) = spec["containers"]
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                self.assertIn({"name": "tmp", "mountPath": "/tmp"}, container["volumeMounts"])
                (volume,) = [one for one in spec["volumes"] if one["name"] == "tmp"]
                self.assertIn("emptyDir", volume)
        (spec,) = pod_specs(render(HELM, None, "--set", "config.backend=nvml"))
        self.assertNotIn("/tmp", str(spec))

    def test_one_cronjob_for_each_node(self):
        several = ("--set", "collection.schedule=*/1 * * * *", "--set", "fullnameOverride=collector")
        objects = render(HELM, None, *several, "--set", "collection.nodes={gpu-1,gpu-2,gpu-3}")
        jobs = {one["metadata"]["name"]: next(pod_specs([one])) for one in find(objects, "CronJob")}
        self.assertEqual(len(jobs), 3)
        self.assertIn("gpu-1", str(jobs["collector"]["affinity"]), "the first has the plain name")
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            self.assertEqual(len([one for one in jobs.values() if f"'{node}'" in str(one["affinity"])]), 1)
        fewer = render(HELM, None, *several, "--set", "collection.nodes={gpu-1,gpu-3}")
        self.assertLess({one["metadata"]["name"] for one in find(fewer, "CronJob")}, set(jobs), "names stay")

    def test_notes_of_cronjobs(self):
        schedule = ("--set", "collection.schedule=*/1 * * * *")
        alone = notes(*schedule)
        for part in ("ONE node", "collection.nodes", "textfile.enabled=true", "/var/lib/node_exporter/textfile_collector/gpu-ledger.prom"):
            self.assertIn(part, alone)
        named = notes(*schedule, "--set", "collection.nodes={gpu-1,gpu-2}")
        self.assertNotIn("ONE node", named)
        self.assertIn("gpu-1, gpu-2", named)
        self.assertNotIn("0 desired pods", alone + named)

    def test_runbooks(self):
        page = "https://git.example/gpu-ledger/docs/operations.md"
        sections = re.findall(r"^### (GpuLedger\w+)$", (SOURCE / "docs/operations.md").read_text(encoding="utf-8"), re.M)
        for url in ("", page):
            objects = render(HELM, None, "--set", f"prometheusRule.enabled=true,prometheusRule.runbookUrl={url}")
            alerts = [rule for one in find(objects, "PrometheusRule") for group in one["spec"]["groups"]
                      for rule in group["rules"] if "alert" in rule]
            self.assertEqual(sorted(rule["alert"] for rule in alerts), sorted(sections))
            for rule in alerts:
                link = f"{url}#{rule['alert'].lower()}" if url else None
                self.assertEqual(rule["annotations"].get("runbook_url"), link)
                self.assertIn("summary", rule["annotations"])

    def test_what_may_be_null_renders_as_null(self):
        properties = json.loads((CHART / "values.schema.json").read_text())["properties"]
        definitions = json.loads((CHART / "values.schema.json").read_text())["$defs"]
        names = [name for name, shape in properties.items()
                 if "null" in definitions.get(shape.get("$ref", "").rpartition("/")[2], {}).get("type", ())]
        self.assertIn("securityContext", names)
        everything = ("--set", "scc.create=true,accounting.enabled=true,serviceMonitor.enabled=true")
        for name in names:
            with self.subTest(name):
                self.assertTrue(render(HELM, None, *everything, "--set", f"{name}=null"))

    def test_every_value_has_a_default_and_a_type(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())

        def compare(shape, value, path):
            if "$ref" in shape:
                shape = schema["$defs"][shape["$ref"].rpartition("/")[2]]
            if "properties" not in shape or not isinstance(value, dict) or not value:
                return
            known = {key for key in shape["properties"] if f"{path}.{key}" not in OF_AN_OLDER_CHART}
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
                self.assertEqual("exactTime.enabled=true" in notes("--set", f"exactTime.enabled={switch}"), switch == "false")
        self.assertNotIn("exactTime", notes("--set", "nvidia.migMonitor=true"), "it has what it needs")

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
                         "prometheusRule.rules={alerts,node,fleet,parameters,tokens,compat}", "--set", "dashboards.enabled=true")
        rules = {one["metadata"]["name"]: one["spec"] for one in find(objects, "PrometheusRule")}
        for name in ("alerts", "node", "fleet", "parameters", "tokens", "compat"):
            files = list((SOURCE / "deploy/prometheus").glob(f"{name}*.yml"))
            self.assertEqual(rules[f"gl-gpu-ledger-{name}"], yaml.safe_load(files[0].read_text()))
        boards = {key: text for one in find(objects, "ConfigMap") for key, text in one["data"].items()}
        for path in (SOURCE / "deploy/grafana").glob("*.json"):
            self.assertEqual(boards[path.name], path.read_text())

    def test_the_package_holds_what_links_point_to(self):
        with tempfile.TemporaryDirectory() as folder:
            call(HELM, "package", CHART, "--destination", folder)
            (archive,) = pathlib.Path(folder).iterdir()
            objects = yaml.safe_load_all(call(HELM, "template", archive, *IMAGE, "--set", "prometheusRule.enabled=true"))
            self.assertEqual(len([one for one in objects if one and one["kind"] == "PrometheusRule"]), 4)
            names = call("tar", "-tf", archive)
            self.assertNotIn("files/prometheus/tests", names)
            self.assertIn("gpu-ledger/platforms/gke.yaml", names)
            self.assertLess(archive.stat().st_size, 300_000, "Helm keeps the chart in a Secret of at most 1 MiB")


class Image(unittest.TestCase):
    """There is no public image, so somebody must say where theirs is."""

    def image_of(self, *settings):
        text = call(HELM, "template", "gl", CHART, "--skip-tests", *(f"--set={one}" for one in settings))
        (spec,) = pod_specs(one for one in yaml.safe_load_all(text) if one)
        return spec["containers"][0]["image"]

    def test_nothing_is_rendered_without_one(self):
        for more in ((), ("--set", "collection.schedule=0 * * * *")):
            (line,) = [line for line in refused(*more).splitlines() if "image" in line]
            for part in ("image.registry is not set", "deploy/docker", "--set image.registry=", "--set image.repository="):
                self.assertIn(part, line)

    def test_it_is_where_the_values_say(self):
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
        self.assertEqual(self.image_of("image.registry=a.example"), f"a.example/gpu-ledger:{version}")
        self.assertEqual(self.image_of("global.imageRegistry=b.example/team"), f"b.example/team/gpu-ledger:{version}")
        self.assertEqual(self.image_of("image.repository=gpu-ledger", "image.tag=dev"), "gpu-ledger:dev")
        self.assertEqual(self.image_of("image.registry=a.example", "image.repository=x/y"), f"a.example/x/y:{version}")


class Platforms(unittest.TestCase):
    def test_every_file_has_an_effect_and_a_place_in_the_page(self):
        self.assertGreater(len(PLATFORMS), 10)
        page = (SOURCE / "docs/platforms.md").read_text(encoding="utf-8")
        anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^##+ (.+)$", page, re.M)}
        plain = render(HELM)
        for path in PLATFORMS:
            with self.subTest(path.name):
                self.assertNotEqual(render(HELM, path), plain)
                (anchor,) = set(re.findall(r"docs/platforms\.md#([a-z0-9-]+)", path.read_text()))
                self.assertIn(anchor, anchors)
                self.assertIn(f"../deploy/helm/gpu-ledger/platforms/{path.name}", page)

    def test_they_can_be_combined(self):
        folder = CHART / "platforms"
        for path in PLATFORMS:
            with self.subTest(path.name):
                (spec,) = pod_specs(render(HELM, path, "--values", folder / "mig.yaml"))
                self.assertIn({"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"}, spec["containers"][0]["env"])

    def test_gke_finds_the_driver_and_may_have_the_priority(self):
        objects = render(HELM, CHART / "platforms/gke.yaml")
        (spec,) = pod_specs(objects)
        (quota,) = find(objects, "ResourceQuota")
        self.assertIn(spec["priorityClassName"], quota["spec"]["scopeSelector"]["matchExpressions"][0]["values"])
        (driver,) = [one for one in spec["volumes"] if one["name"] == "driver"]
        (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "driver"]
        self.assertEqual(driver["hostPath"]["path"], "/home/kubernetes/bin/nvidia")
        dockerfile = (SOURCE / "deploy/docker/Dockerfile").read_text()
        self.assertIn(f"LD_LIBRARY_PATH={mount['mountPath']}/lib64", dockerfile)

    def test_dra_asks_for_all_gpus_and_takes_none(self):
        objects = render(HELM, CHART / "platforms/dra.yaml")
        (spec,) = pod_specs(objects)
        (template,) = find(objects, "ResourceClaimTemplate")
        (claim,) = spec["resourceClaims"]
        self.assertEqual(claim["resourceClaimTemplateName"], template["metadata"]["name"])
        self.assertEqual(spec["containers"][0]["resources"]["claims"], [{"name": claim["name"]}])
        (request,) = template["spec"]["spec"]["devices"]["requests"]
        self.assertTrue(request["exactly"]["adminAccess"])

    def test_nodes_are_found_by_the_same_labels_everywhere(self):
        (spec,) = pod_specs(render(HELM))
        terms = spec["affinity"]["nodeAffinity"]
        for kind in ("daemonset", "deployment"):
            (plain,) = pod_specs(documents(KUBERNETES / kind / f"{kind}.yaml"))
            self.assertEqual(plain["affinity"]["nodeAffinity"], terms, kind)
        page = (SOURCE / "docs/platforms.md").read_text(encoding="utf-8")
        for term in terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]:
            (expression,) = term["matchExpressions"]
            self.assertIn(f"`{expression['key']}", page)

    def test_nodes_without_feature_discovery(self):
        """What each platform's own nodes are labelled with, when nobody has installed anything."""
        nodes = {"gke": {"cloud.google.com/gke-accelerator": "nvidia-l4"}, "aks": {"kubernetes.azure.com/accelerator": "nvidia"},
                 "eks": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
                 "eks-bottlerocket": {"eks.amazonaws.com/instance-gpu-manufacturer": "nvidia"},
                 "talos": {"extensions.talos.dev/nvidia-container-toolkit-production": "570.148.08-v1.17.8"},
                 "openshift": {"feature.node.kubernetes.io/pci-10de.present": "true"},
                 "k3s": {"nvidia.com/gpu.present": "true"}, "rke2": {"nvidia.com/gpu.present": "true"}}  # by hand
        for platform, labels in nodes.items():
            with self.subTest(platform):
                (spec,) = pod_specs(render(HELM, CHART / "platforms" / f"{platform}.yaml"))
                self.assertTrue(self.admits(spec, labels))
                self.assertFalse(self.admits(spec, {"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m7i.large"}))
        by_hand = "kubectl label node NODE nvidia.com/gpu.present=true"
        for platform in ("k3s", "rke2"):
            self.assertIn(by_hand, (CHART / "platforms" / f"{platform}.yaml").read_text())

    def admits(self, spec, labels):
        """As the scheduler does it: any of the terms."""
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        holds = lambda one: one["key"] in labels and (one["operator"] == "Exists" or labels[one["key"]] in one["values"])
        return any(all(map(holds, term["matchExpressions"])) for term in terms)

    def test_one_switch_for_all_nodes(self):
        anti = "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1"
        (spec,) = pod_specs(render(HELM, None, "--set", "allNodes=true"))
        self.assertNotIn("affinity", spec)
        (spec,) = pod_specs(render(HELM, None, "--set", "allNodes=true", "--set", anti))
        self.assertEqual(list(spec["affinity"]), ["podAntiAffinity"])

    def test_notes_say_what_to_do_without_a_matching_node(self):
        said = notes()
        for part in ("0 desired pods", "kubectl label node NODE nvidia.com/gpu.present=true", "--set allNodes=true"):
            self.assertIn(part, said)
        self.assertNotIn("kubectl label node", notes("--set", "allNodes=true"))


class Tls(unittest.TestCase):
    ALONE = ("--set", "webConfig.tlsSecret=certificate")
    MONITORS = ("--set", "serviceMonitor.enabled=true", "--set", "podMonitor.enabled=true")

    def probes(self, *arguments):
        (spec,) = pod_specs(render(HELM, None, *arguments))
        container = spec["containers"][0]
        return [container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")]

    def endpoints(self, *arguments):
        for one in render(HELM, None, *self.MONITORS, *arguments):
            if one["kind"].endswith("Monitor"):
                yield from one["spec"].get("endpoints") or one["spec"]["podMetricsEndpoints"]

    def test_a_certificate_is_enough(self):
        objects = render(HELM, None, *self.ALONE)
        (spec,) = pod_specs(objects)
        (secret,) = find(objects, "Secret")
        config = yaml.safe_load(secret["stringData"]["web.yml"])["tls_server_config"]
        (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "tls"]
        self.assertEqual(config, {"cert_file": f"{mount['mountPath']}/tls.crt", "key_file": f"{mount['mountPath']}/tls.key"})
        self.assertIn("--web-config-file=/etc/gpu-ledger/web/web.yml", spec["containers"][0]["args"])
        self.assertIn("https://localhost:9400/", notes(*self.ALONE))
        self.assertIn("http://localhost:9400/", notes())

    def test_probes(self):
        self.assertEqual([one["httpGet"].get("scheme") for one in self.probes()], [None] * 3)
        self.assertEqual([one["httpGet"].get("scheme") for one in self.probes(*self.ALONE)], ["HTTPS"] * 3)
        for closed in ("webConfig.config.basic_auth_users.me=hash", "webConfig.existingSecret=mine",
                       "webConfig.config.tls_server_config.client_auth_type=RequireAndVerifyClientCert"):
            for one in self.probes(*self.ALONE, "--set", closed):
                self.assertEqual((one.get("tcpSocket"), one.get("httpGet")), ({"port": "metrics"}, None), closed)

    def test_the_certificate_joins_what_the_config_says(self):
        (secret,) = find(render(HELM, None, *self.ALONE, "--set", "webConfig.config.basic_auth_users.me=hash"), "Secret")
        self.assertEqual(set(yaml.safe_load(secret["stringData"]["web.yml"])), {"tls_server_config", "basic_auth_users"})

    def test_monitors(self):
        plain = list(self.endpoints())
        self.assertEqual([(one["scheme"], one.get("tlsConfig")) for one in plain], [("http", None)] * 2)
        for one in self.endpoints(*self.ALONE):
            self.assertEqual(one["scheme"], "https")
            self.assertEqual(one["tlsConfig"], {"ca": {"secret": {"name": "certificate", "key": "ca.crt"}},
                                                "serverName": "gl-gpu-ledger.gpu-ledger.svc"})
        own = ("--set", "serviceMonitor.tlsConfig.insecureSkipVerify=true", "--set", "podMonitor.tlsConfig.insecureSkipVerify=true")
        for one in self.endpoints(*self.ALONE, *own):
            self.assertEqual(one["tlsConfig"], {"insecureSkipVerify": True})
        said = refused(*IMAGE, *self.ALONE, "--set", "podMonitor.enabled=true,podMonitor.namespace=monitoring")
        self.assertIn("podMonitor.tlsConfig", said)


class Scraped(unittest.TestCase):
    """Rules and dashboards tell nodes apart by the label node: every way to scrape sets it."""

    def assert_node(self, rules, where):
        self.assertIn("node", [rule.get("target_label", rule.get("targetLabel")) for rule in rules], where)

    def test_monitors_of_the_chart(self):
        for own in ((), ("--set", "serviceMonitor.relabelings[0].action=labeldrop", "--set", "serviceMonitor.relabelings[0].regex=x")):
            for name in ("serviceMonitor", "podMonitor"):
                (one,) = [one for one in render(HELM, None, "--set", f"{name}.enabled=true,{name}.gpuMetrics=true", *own)
                          if one["kind"].endswith("Monitor")]
                endpoints = one["spec"].get("endpoints") or one["spec"]["podMetricsEndpoints"]
                self.assertEqual(len(endpoints), 2)
                for endpoint in endpoints:
                    self.assert_node(endpoint["relabelings"], name)

    def test_files(self):
        folder = SOURCE / "deploy/prometheus"
        (one,) = documents(folder / "servicemonitor.yml")
        for endpoint in one["spec"]["endpoints"]:
            self.assert_node(endpoint["relabelings"], "servicemonitor.yml")
        texts = {name: (folder / name).read_text() for name in ("prometheus.yml", "scrape.kubernetes.yml")}
        (config,) = [one for one in documents(KUBERNETES / "prometheus/prometheus.yaml") if one["kind"] == "ConfigMap"]
        texts["prometheus.yaml"] = config["data"]["prometheus.yml"]
        for page in ("docs/install.md", "deploy/prometheus/README.md"):
            found = re.findall(r"```yaml\n(scrape_configs:.*?)```", (SOURCE / page).read_text(encoding="utf-8"), re.DOTALL)
            self.assertTrue(found, page)
            texts.update({f"{page} {number}": text for number, text in enumerate(found)})
        for name, text in texts.items():
            jobs = yaml.safe_load(text)["scrape_configs"]
            self.assertTrue(jobs, name)
            for job in jobs:
                self.assert_node(job["relabel_configs"], f"{name}: {job['job_name']}")


class Hardened(unittest.TestCase):
    """What holds for the chart and for the plain manifests alike."""

    def objects(self):
        for name in SETS:
            yield name, render(HELM, values_of(name), tests=True)
        for path in PLATFORMS:
            yield path.stem, render(HELM, path, tests=True)
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
                        self.assertTrue(context["readOnlyRootFilesystem"])
                        self.assertEqual(context.get("privileged", False), name in PRIVILEGED)
                        if name in PRIVILEGED:
                            # The API server refuses what would take rights away from a privileged container.
                            self.assertFalse({"allowPrivilegeEscalation", "capabilities"} & set(context))
                            continue
                        self.assertFalse(context["allowPrivilegeEscalation"])
                        self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                        if container["name"] == "gpu-ledger" and name not in ("everything", "exact-time", "mig"):
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
