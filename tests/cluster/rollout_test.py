# SPDX-License-Identifier: Apache-2.0
"""What deploy/ holds, on a real cluster: every object is accepted by the API server, with the real definitions of the
kinds that are not Kubernetes' own; the chart is installed, upgraded and removed by the real Helm; the plain manifests run.
"""

import contextlib
import copy
import http.client
import json
import os
import pathlib
import ssl
import sys
import time
import unittest

import yaml

import deploy_parts
import harness
import manifests
import parts
import stage as stage_parts
from deploy_parts import CHART, HERE, KUBERNETES
from scenario import DEVICES, Scenario
from scene import given_gpu
from stage import NODE, NODE_ADDRESS, Stage

HELM, CRDS = os.environ.get("GPU_LEDGER_HELM"), os.environ.get("GPU_LEDGER_CRDS")
REPOSITORY, TAG = "gpu-ledger.test/release", "1"
RELEASE, NAMESPACE, PORT = "gl", "gpu-ledger", 9400
DRIVER = "/usr/lib/gpu-ledger/sim/libnvidia-ml.so.1"
POD_ENERGY = "gpu_ledger_pod_energy_joules_total"
stage = scenario = None
curtain = contextlib.ExitStack()

# CronJobs and quotas are tried here only.
stage_parts.CONTROLLERS += ("job-controller", "cronjob-controller", "resourcequota-controller")


def say(text):
    print(f"cluster: {text}", file=sys.stderr, flush=True)


def setUpModule():
    global stage, scenario
    stage = curtain.enter_context(Stage(DEVICES, limited=("limited",)))
    try:
        folder = stage.folder / "driver"
        folder.mkdir()
        scenario = Scenario(folder / "scenario.yaml")
        import_image()
        for name in (NAMESPACE, "elsewhere", "monitoring", "restricted", "team"):
            stage.api.create(manifests.namespace(name))
        for name in (NAMESPACE, "team"):
            parts.wait_for(lambda: stage.api.get("ServiceAccount", "default", name), "a default service account")
        label("namespaces/restricted", "pod-security.kubernetes.io/enforce", "restricted")
        label(f"nodes/{NODE}", "nvidia.com/gpu.present", "true")
        create_kinds()
        start_work()
    except BaseException:
        curtain.close()
        raise


def tearDownModule():
    curtain.close()


def label(what, name, value):
    stage.api.merge(f"/api/v1/{what}", {"metadata": {"labels": {name: value}}})


def import_image():
    """The program under test with the simulated driver beside it, started as the real image is: by its entry point."""
    program, driver = pathlib.Path(os.environ["GPU_LEDGER_BINARY"]), pathlib.Path(os.environ["GPU_LEDGER_SIM"])
    files = {"/usr/bin/gpu-ledger": program, DRIVER: driver / "libnvidia-ml.so.1"}
    for library in parts.libraries_of(program) + parts.libraries_of(driver / "libnvidia-ml.so.1"):
        files[library] = library
    archive = stage.folder / "release.tar"
    parts.write_image(archive, f"{REPOSITORY}:{TAG}", files, ["serve"], ["/usr/bin/gpu-ledger"])
    stage.ctr("images", "import", archive)
    archive.unlink()


def create_kinds():
    if not CRDS:
        return
    names = []
    for path in sorted(pathlib.Path(CRDS).glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        stage.api.apply(document, NAMESPACE)
        names.append(document["metadata"]["name"])
    for name in names:
        def served():
            status = stage.api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")["status"]
            conditions = status.get("conditions") or []  # null in the first moment
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

        parts.wait_for(served, f"the kind {name}")


def start_work():
    """A pod that works on a GPU."""
    stage.api.create(manifests.pod("team", "train", [manifests.sleeper("trainer", {"nvidia.com/gpu": 1})]))
    pod = stage.api.running_pod("team", "train")
    container_id = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    pid = stage.main_pids()[container_id]
    scenario.add(pid, given_gpu(pid))
    scenario.write()


def skipped_kinds():
    return () if CRDS else ("ServiceMonitor", "PodMonitor", "PrometheusRule", "SecurityContextConstraints")


def simulated_environment():
    values = {"GPU_LEDGER_BACKEND": "nvml", "GPU_LEDGER_NVML_LIBRARY": DRIVER, **scenario.environment()}
    return [{"name": key, "value": value} for key, value in values.items()]


def simulated(spec, port=PORT):
    """A pod spec of ours as it can run here: the test's image and driver, the host's network."""
    spec = copy.deepcopy(spec)
    spec["hostNetwork"] = True
    spec.setdefault("volumes", []).append({"name": "driver", "hostPath": {"path": str(scenario.path.parent)}})
    for container in spec.get("initContainers", []) + spec["containers"]:
        if not container["image"].startswith("REGISTRY/gpu-ledger:"):
            container.update(manifests.sleeper(container["name"]))
            container.pop("securityContext", None)
            continue
        container.update(image=f"{REPOSITORY}:{TAG}", imagePullPolicy="Never")
        container["env"] += simulated_environment()
        container.setdefault("volumeMounts", []).append(
            {"name": "driver", "mountPath": str(scenario.path.parent), "readOnly": True})
        if "ports" in container:
            container["args"].append(f"--listen-address={NODE_ADDRESS}:{port}")
            container["ports"][0]["containerPort"] = port
    return spec


def metrics(port=PORT):
    return harness.Metrics(text_of(port))


def text_of(port, path="/metrics"):
    connection = http.client.HTTPConnection(NODE_ADDRESS, port, timeout=harness.NET)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        text = reply.read().decode()
    finally:
        connection.close()
    if reply.status != 200:
        raise parts.Failure(f"{path} answered {reply.status}")
    return text


def works(port=PORT, **labels):
    """Once the working pod has a name and pays."""
    parts.wait_for(lambda: metrics(port).total(POD_ENERGY, pod="train", namespace="team", **labels) > 0,
                   f"joules of team/train on port {port}")


def pods_of(labels, namespace=NAMESPACE):
    return stage.api.list("Pod", namespace, labels)


def said(namespace=NAMESPACE, lines=30):
    logs = sorted(pathlib.Path("/var/log/pods").glob(f"{namespace}_*/*/*.log"))
    return "\n".join(line for path in logs for line in path.read_text(errors="replace").splitlines()[-lines:])


class Accepted(unittest.TestCase):
    """Strict dry runs: an unknown field, a wrong type or a wrong value is an error."""

    def check(self, objects, namespace=NAMESPACE):
        for one in objects:
            if one["kind"] in skipped_kinds():
                continue
            with self.subTest(one["kind"], name=one["metadata"]["name"]):
                stage.api.apply(one, namespace, dry=True)

    def test_the_check_can_fail(self):
        wrong = deploy_parts.documents(KUBERNETES / "deployment/deployment.yaml")[0]
        wrong["spec"]["template"]["spec"]["containers"][0]["securityContex"] = {}
        with self.assertRaisesRegex(parts.Failure, "securityContex"):
            stage.api.apply(wrong, NAMESPACE, dry=True)

    def test_the_chart(self):
        for path in sorted((HERE / "golden").glob("*.values.yaml")):
            with self.subTest(path.name):
                self.check(deploy_parts.documents(path.with_name(path.name.replace(".values.", ".golden."))))

    @unittest.skipUnless(HELM, "no Helm")
    def test_the_chart_on_every_platform(self):
        label(f"namespaces/{NAMESPACE}", "resource.kubernetes.io/admin-access", "true")  # as the page says, for DRA
        self.assertGreater(len(deploy_parts.PLATFORMS), 10)
        for path in deploy_parts.PLATFORMS:
            with self.subTest(path.name):
                self.check(deploy_parts.render(HELM, path))

    @unittest.skipUnless(HELM, "no Helm")
    def test_a_claim_with_admin_access_needs_the_label(self):
        objects = deploy_parts.render(HELM, CHART / "platforms/dra.yaml", namespace="team")
        (claim,) = [one for one in objects if one["kind"] == "ResourceClaimTemplate"]
        with self.assertRaisesRegex(parts.Failure, "admin-access"):
            stage.api.apply(claim, "team", dry=True)

    @unittest.skipUnless(HELM, "no Helm")
    def test_the_quota_for_gke_lets_the_pod_in(self):
        """GKE's rule for the classes of the system, here for a class of the test's own."""
        stage.api.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "limited"},
                         "value": 1000}, "")
        objects = deploy_parts.render(HELM, CHART / "platforms/gke.yaml", "--set", "priorityClassName=limited", namespace="monitoring")
        (spec,) = deploy_parts.pod_specs(objects)
        spec.pop("serviceAccountName")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
        with self.assertRaisesRegex(parts.Failure, "insufficient quota"):
            stage.api.apply(pod, "monitoring", dry=True)
        (quota,) = [one for one in objects if one["kind"] == "ResourceQuota"]
        stage.api.apply(quota, "monitoring")
        self.addCleanup(stage.api.call, "DELETE", stage.api.path_of(quota, "monitoring"))

        def admitted():  # once the controller has counted what is there
            return stage.api.apply(pod, "monitoring", dry=True)

        parts.wait_for(admitted, "a pod with the quota")

    def test_why_a_privileged_container_is_not_told_to_gain_nothing(self):
        (daemonset,) = [one for one in deploy_parts.documents(HERE / "golden/privileged.golden.yaml") if one["kind"] == "DaemonSet"]
        daemonset["spec"]["template"]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = False
        with self.assertRaisesRegex(parts.Failure, "allowPrivilegeEscalation"):
            stage.api.apply(daemonset, NAMESPACE, dry=True)

    @unittest.skipUnless(HELM, "no Helm")
    def test_rules_and_dashboards(self):
        self.check(deploy_parts.render(HELM, None, "--set", "prometheusRule.enabled=true", "--set",
                                       "prometheusRule.rules={alerts,node,fleet,parameters,compat}", "--set",
                                       "dashboards.enabled=true"))

    def test_plain_manifests(self):
        paths = sorted(KUBERNETES.glob("*/*.yaml"))
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            with self.subTest(str(path.relative_to(KUBERNETES))):
                self.check(deploy_parts.documents(path))

    def test_nothing_of_the_host_is_restricted(self):
        """The Pod Security admission of a namespace that enforces "restricted" lets these in, and not the DaemonSet."""

        def as_pod(spec):
            return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}

        restricted = deploy_parts.documents(HERE / "golden/restricted.golden.yaml")
        sidecar = deploy_parts.documents(KUBERNETES / "sidecar/pod.yaml")
        for spec in (*deploy_parts.pod_specs(restricted), *deploy_parts.pod_specs(sidecar)):
            spec.pop("serviceAccountName", None)
            stage.api.apply(as_pod(spec), "restricted", dry=True)
        (spec,) = deploy_parts.pod_specs(deploy_parts.documents(HERE / "golden/default.golden.yaml"))
        spec.pop("serviceAccountName")
        with self.assertRaisesRegex(parts.Failure, "hostPID|host namespaces"):
            stage.api.apply(as_pod(spec), "restricted", dry=True)


@unittest.skipUnless(HELM, "no Helm")
class Release(unittest.TestCase):
    """Tests run in the order of their names."""

    values = None

    @classmethod
    def setUpClass(cls):
        cls.values = stage.folder / "values.yaml"
        cls.write()

    @classmethod
    def write(cls, **more):
        registry, _, repository = REPOSITORY.partition("/")
        values = {
            "image": {"registry": registry, "repository": repository, "tag": TAG, "pullPolicy": "Never"},
            "hostNetwork": True,  # the stage has no network of pods
            "state": {"type": "hostPath"},
            "extraArgs": ["--sample-interval=500ms", "--process-scan-interval=1s"],
            "extraEnv": simulated_environment(),
            "extraVolumes": [{"name": "driver", "hostPath": {"path": str(scenario.path.parent)}}],
            "extraVolumeMounts": [{"name": "driver", "mountPath": str(scenario.path.parent), "readOnly": True}],
            **more}
        cls.values.write_text(json.dumps(values))

    def helm(self, *arguments):
        begin = time.monotonic()
        home = stage.folder / "helm"
        done = deploy_parts.run(
            HELM, *arguments, "--kubeconfig", stage.pki / "admin.kubeconfig", "--namespace", NAMESPACE, seconds=2 * harness.NET,
            env={**os.environ, "HELM_CACHE_HOME": str(home), "HELM_CONFIG_HOME": str(home), "HELM_DATA_HOME": str(home)})
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}\n{said()}")
        say(f"helm {arguments[0]} took {time.monotonic() - begin:.1f} s")
        return done.stdout

    def pod(self):
        pods = pods_of(f"app.kubernetes.io/instance={RELEASE}")
        (pod,) = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        return pod

    def test_1_install(self):
        out = self.helm("install", RELEASE, CHART, "--values", self.values, "--wait", "--timeout=120s")
        self.assertIn("rollout status", out, "NOTES.txt")
        works(container="trainer")
        seen = metrics()
        self.assertEqual(seen.value("gpu_ledger_source_up", source="pods-api"), 1)
        self.assertEqual(len(seen.find("gpu_ledger_allocation_info", pod="train")), 1)
        for gpu, joules in seen.imbalance().items():
            self.assertLess(abs(joules), 0.001, f"the books of GPU {gpu}")
        memory = seen.value("process_resident_memory_bytes")
        say(f"gpu-ledger in the chart's pod: {memory / 2**20:.1f} MiB resident")
        self.assertLess(memory, 100 * 2**20, "well below the limit of 128 MiB")

    def test_1_the_releases_own_test(self):
        self.assertRegex(self.helm("test", RELEASE, "--timeout=120s"), r"Phase: +Succeeded")
        # --logs would ask the API server for a node by a name that nobody here can look up.
        for line in ("ok    driver: ", "ok    processes: ", "ok    cgroups: ", "ok    pod-resources: ", "ok    pods-api: "):
            self.assertIn(line, said())
        self.assertEqual(len(pods_of(f"app.kubernetes.io/instance={RELEASE}")), 1, "nobody takes it for an exporter")

    def test_2_the_process_is_as_poor_as_the_chart_says(self):
        container_id = self.pod()["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        status = pathlib.Path(f"/proc/{stage.main_pids()[container_id]}/status").read_text()
        for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
            self.assertIn(line, status)
        self.assertEqual(self.pod()["status"]["containerStatuses"][0]["restartCount"], 0)

    def test_3_an_upgrade_keeps_the_books(self):
        before, old = metrics(), self.pod()["metadata"]["uid"]
        self.write(podLabels={"second": "yes"}, accounting={"enabled": True})
        self.helm("upgrade", RELEASE, CHART, "--values", self.values, "--wait", "--timeout=120s")
        parts.wait_for(lambda: self.pod()["metadata"]["uid"] != old and metrics(), "the new pod")
        (first,) = self.pod()["status"]["initContainerStatuses"]
        self.assertEqual((first["name"], first["state"]["terminated"]["exitCode"]), ("accounting", 0))
        works()
        after = metrics().counters()
        for key, value in before.counters().items():
            if key[0].startswith("gpu_ledger_pod_energy"):
                self.assertGreaterEqual(after.get(key, 0), value, f"{key} fell")

    def test_3b_a_certificate_is_tls_and_a_privileged_container_starts(self):
        key, certificate = stage.folder / "tls.key", stage.folder / "tls.crt"
        parts.call("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                   "-subj", "/CN=gpu-ledger", "-addext", f"subjectAltName=IP:{NODE_ADDRESS}", "-keyout", key, "-out", certificate)
        stage.api.apply({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "certificate"},
                         "stringData": {"tls.crt": certificate.read_text(), "tls.key": key.read_text()}}, NAMESPACE)
        self.write(webConfig={"tlsSecret": "certificate"}, securityContext={"privileged": True}, accounting={"enabled": True})
        # --wait: the kubelet's probes pass.
        out = self.helm("upgrade", RELEASE, CHART, "--values", self.values, "--wait", "--timeout=120s")
        self.assertIn("https://localhost", out, "NOTES.txt")
        connection = http.client.HTTPSConnection(NODE_ADDRESS, PORT, timeout=harness.NET,
                                                 context=ssl.create_default_context(cafile=str(certificate)))
        connection.request("GET", "/readyz")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        container = self.pod()["status"]["containerStatuses"][0]
        self.assertEqual(container["restartCount"], 0)
        status = pathlib.Path(f"/proc/{stage.main_pids()[container['containerID'].removeprefix('containerd://')]}/status")
        self.assertNotIn("CapEff:\t0000000000000000", status.read_text(), "it is privileged")

    def test_4_the_process_file_system_instead_of_host_pids(self):
        # Whoever is not root cannot reach the kubelet's sockets, but the API server names its pods.
        self.write(hostPID=False, hostProc=True, metadata={"source": "apiserver"}, kubelet={"podResources": False},
                   securityContext={"runAsUser": 65532}, state={"type": "emptyDir"})
        self.helm("upgrade", RELEASE, CHART, "--values", self.values, "--wait", "--timeout=120s")
        parts.wait_for(lambda: metrics().find("gpu_ledger_source_up", source="apiserver"), "the new pod")
        works(container="trainer")

    def test_5_a_schedule_writes_the_textfile(self):
        self.write(collection={"schedule": "0 0 1 1 *", "nodes": [NODE], "sampleInterval": "1s"})
        self.helm("upgrade", RELEASE, CHART, "--values", self.values, "--wait", "--timeout=120s")
        parts.wait_for(lambda: not pods_of(f"app.kubernetes.io/instance={RELEASE}"), "the DaemonSet's pod to go")
        (cron,) = stage.api.call("GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs")["items"]
        textfile = pathlib.Path("/var/lib/node_exporter/textfile_collector/gpu-ledger.prom")
        totals = []
        for number in (1, 2):
            run_job(cron["spec"]["jobTemplate"], f"by-hand-{number}")
            found = harness.Metrics(textfile.read_text())
            totals.append(found.total(POD_ENERGY, pod="train", namespace="team"))
        self.assertGreater(totals[0], 0)
        self.assertGreater(totals[1], totals[0], "the books of the first pass go on in the second")

    def test_6_uninstall(self):
        self.helm("uninstall", RELEASE, "--wait", "--timeout=120s")
        parts.wait_for(lambda: not [one for one in pods_of(f"app.kubernetes.io/instance={RELEASE}")
                                    if one["status"]["phase"] == "Running"], "no pods")
        roles = stage.api.list("ClusterRole", labels=f"app.kubernetes.io/instance={RELEASE}")
        self.assertEqual(roles, [])


def run_job(template, name):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE},
           "spec": template["spec"]}
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    stage.api.call("POST", path, job)

    def finished():
        status = stage.api.call("GET", f"{path}/{name}")["status"]
        if status.get("failed"):
            raise AssertionError(f"{name} failed:\n{said()}")
        return status.get("succeeded")

    parts.wait_for(finished, f"the end of {name}")


class Plain(unittest.TestCase):
    """The plain manifests run as they are, but for the image and the driver."""

    @classmethod
    def setUpClass(cls):
        for one in deploy_parts.documents(KUBERNETES / "daemonset/daemonset.yaml"):
            if one["kind"] not in ("DaemonSet", "Service"):
                stage.api.apply(one, NAMESPACE)

    def remove(self, document, namespace=NAMESPACE):
        path = stage.api.path_of(document, namespace)
        stage.api.call("DELETE", path, {"propagationPolicy": "Foreground"}, accepted=(200, 202, 404))
        parts.wait_for(lambda: stage.api.request("GET", path)[0] == 404, f"the end of {document['kind']}")

    def run_workload(self, path, port):
        (workload,) = [one for one in deploy_parts.documents(path) if one["kind"] in ("DaemonSet", "Deployment")]
        spec = workload["spec"]["template"]["spec"]
        workload["spec"]["template"]["spec"] = simulated(spec, port)
        stage.api.apply(workload, NAMESPACE)
        self.addCleanup(self.remove, workload)
        parts.wait_for(lambda: text_of(port, "/readyz"), f"{workload['kind']} on port {port}")
        works(port, container="trainer")

    def test_daemonset(self):
        self.run_workload(KUBERNETES / "daemonset/daemonset.yaml", 9410)

    def test_deployment(self):
        self.run_workload(KUBERNETES / "deployment/deployment.yaml", 9411)

    def test_sidecar(self):
        (pod,) = deploy_parts.documents(KUBERNETES / "sidecar/pod.yaml")
        pod["spec"] = simulated(pod["spec"], 9412)
        pod["spec"]["terminationGracePeriodSeconds"] = 1
        for key in ("runAsNonRoot", "runAsUser"):
            pod["spec"]["containers"][1]["securityContext"][key] = pod["spec"]["securityContext"].pop(key)
        stage.api.apply(pod, "team")
        self.addCleanup(self.remove, pod, "team")
        parts.wait_for(lambda: text_of(9412, "/readyz"), "the sidecar")
        parts.wait_for(lambda: metrics(9412).total("gpu_ledger_device_energy_joules_total") > 0, "joules")
        self.assertEqual(metrics(9412).find("gpu_idle_device_power_watts")[0][0]["pod"], "training")
        self.assertEqual(metrics(9412).find(POD_ENERGY), [], "it cannot see whose processes they are")

    def test_cronjob(self):
        (cron,) = deploy_parts.documents(KUBERNETES / "cronjob/cronjob.yaml")
        template = json.loads(json.dumps(cron).replace("node-1", NODE))["spec"]["jobTemplate"]
        spec = template["spec"]["template"]["spec"]
        template["spec"]["template"]["spec"] = simulated(spec)
        run_job(template, "plain-cron")
        textfile = pathlib.Path("/var/lib/node_exporter/textfile_collector/gpu-ledger.prom")
        self.assertGreater(harness.Metrics(textfile.read_text()).total(POD_ENERGY, pod="train"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
