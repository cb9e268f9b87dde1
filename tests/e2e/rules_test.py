# SPDX-License-Identifier: Apache-2.0
"""The rules, alerts and scrape examples of deploy/prometheus, with a real promtool and a real Prometheus."""

import json
import re
import subprocess
import unittest

import yaml

import harness
import promises
from prometheus_test import PROMETHEUS, PROMTOOL, Prometheus

FOLDER = harness.SOURCE / "deploy" / "prometheus"
RULES = sorted(FOLDER.glob("*.rules.yml")) + [FOLDER / "alerts.yml"]

# Scrape configurations to copy, each with a job for /metrics and one for /gpu/metrics.
EXAMPLES = {"static": "prometheus.yml", "operator": "servicemonitor.yml", "kubernetes": "scrape.kubernetes.yml"}
EXPORTER = {"pod": "gpu-ledger-x7k2p", "namespace": "monitoring", "container": "gpu-ledger"}


def promtool(*arguments, folder=FOLDER):
    done = subprocess.run(
        [PROMTOOL, *[str(argument) for argument in arguments]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=harness.NET,
    )
    return done.returncode, done.stdout + done.stderr


def only(found):
    if len(found) != 1:
        raise AssertionError(f"{len(found)} series, expected one: {found}")
    return found[0]


class RulesTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not PROMETHEUS or not PROMTOOL:
            raise AssertionError("prometheus and promtool are missing; tools/setup.sh --test installs them")

    def test_rules_are_valid(self):
        for path in RULES:
            code, said = promtool("check", "rules", path)
            self.assertEqual(code, 0, said)
        code, said = promtool("check", "config", "prometheus.yml")
        self.assertEqual(code, 0, said)

    def test_unit_tests_pass(self):
        code, said = promtool("test", "rules", *sorted((FOLDER / "tests").glob("*.yml")))
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("SUCCESS"), len(list((FOLDER / "tests").glob("*.yml"))))

    def test_every_rule_has_a_unit_test(self):
        tests = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "tests").glob("*.yml"))
        rules = "".join(path.read_text(encoding="utf-8") for path in RULES)
        recorded = re.findall(r"- record: (\S+)", rules)
        self.assertGreater(len(recorded), 30)
        for name in recorded:
            used = len(re.findall(rf"(?<![\w:]){name}(?![\w:])", rules)) > 1  # then it is tested by what it makes
            self.assertTrue(name in tests or used, f"{name} is recorded and not tested")
        alerts = re.findall(r"- alert: (\S+)", rules)
        self.assertGreater(len(alerts), 10)
        for name in alerts:
            self.assertRegex(tests, rf"alertname: {name}, exp_alerts: \[\]", "never seen silent")
            self.assertRegex(tests, rf"alertname: {name}\n +exp_alerts:\n", "never seen to fire")

    def test_every_alert_has_a_runbook(self):
        alerts = re.findall(r"- alert: (\S+)", (FOLDER / "alerts.yml").read_text(encoding="utf-8"))
        page = (harness.SOURCE / "docs" / "operations.md").read_text(encoding="utf-8")
        sections = re.findall(r"^### (GpuLedger\w+)\n\n\w", page, re.MULTILINE)
        self.assertEqual(sorted(sections), sorted(alerts))

    def test_older_queries_work_as_they_are_with_the_compat_rules(self):
        labels = ['pid="%d",gpu="0",pod="%s",namespace="ml"' % each for each in enumerate(("training-job", "training-job-123"), 1)]
        series = [{"series": f"my_gpu_process_energy_joules_total{{{one},energy_estimated=\"{kind}\"}}", "values": "0+600x300"}
                  for one in labels for kind in ("false", "true")]
        series += [{"series": f"my_gpu_process_{name}{{{one}}}", "values": "1x300"}
                   for one in labels for name in ("active", "sm_utilization_ratio")]
        queries = promises.of("query", "my-gpu-exporter")
        self.assertGreater(len(queries), 10)

        def same(one):
            """How many series the older query and today's have alike, and as many as either has."""
            now = one.name if one.now == "same" else one.now
            return f"count(abs(({one.name}) - ({now})) < 1e-9) == count({now}) == count({one.name}) > bool 0"

        # JSON is YAML too.
        tests = {"rule_files": [str(FOLDER / "compat.rules.yml")], "evaluation_interval": "15s", "tests": [{
            "interval": "15s", "input_series": series,
            "promql_expr_test": [{"expr": same(one), "eval_time": "70m",
                                  "exp_samples": [{"labels": "{}", "value": 1}]} for one in queries]}]}
        code, said = promtool("test", "rules", self.write("older.yml", json.dumps(tests)))
        self.assertEqual(code, 0, said)


class LabelsTest(harness.Case):
    """Whose labels a series has, when the target has some of the same names."""

    def test_honor_labels(self):
        with harness.Ledger(*harness.FAST, environment=harness.of_age(20)) as ledger:  # all of its pods are there
            target = {"targets": [f"127.0.0.1:{ledger.port}"], "labels": EXPORTER}
            jobs = [
                {"job_name": "plain", "static_configs": [target]},
                {"job_name": "honored", "honor_labels": True, "static_configs": [target]},
            ]
            places = {"static": "127.0.0.1", "operator": "node-7", "kubernetes": "node-7"}
            jobs += self.static_jobs(ledger.port) + self.operator_jobs(ledger.port) + self.kubernetes_jobs(ledger.port)
            with Prometheus(self.folder, jobs=jobs) as prometheus:
                harness.wait_until(lambda: len(prometheus.query("gpu_ledger_build_info")) == 5, "five scrapes")
                harness.wait_until(
                    lambda: len(prometheus.query('my_gpu_process_active{process_name="spin-wait"}')) == 5,

                    "the notebook",
                )
                # A scrape that a busy machine delays takes a job's series away until the next.
                harness.wait_to_pass(lambda: self.check_pitfalls(prometheus))
                for job, node in places.items():
                    harness.wait_to_pass(lambda job=job: self.check_right(prometheus, job))
                    harness.wait_to_pass(lambda job=job, node=node: self.check_gpu_metrics(prometheus, job, node))

    def check_pitfalls(self, prometheus):
        """What docs/cookbook.md warns of."""
        notebook = 'my_gpu_process_active{process_name="spin-wait",job="%s"}'
        plain = only(prometheus.query(notebook % "plain"))
        self.assertEqual(plain["metric"]["exported_pod"], "notebook-7f9c-x2x4q")
        self.assertEqual(plain["metric"]["pod"], EXPORTER["pod"])
        honored = only(prometheus.query(notebook % "honored"))
        self.assertEqual(honored["metric"]["pod"], "notebook-7f9c-x2x4q")
        self.assertNotIn("exported_pod", honored["metric"])
        # Not the exporter's, but so it looks.
        slurm = only(prometheus.query('my_gpu_process_active{process_name="gmx_mpi",job="honored"}'))
        self.assertEqual(slurm["metric"]["pod"], EXPORTER["pod"])

    def check_right(self, prometheus, job):
        pod = only(prometheus.query('my_gpu_process_active{process_name="spin-wait",job="%s"}' % job))
        self.assertEqual((pod["metric"]["namespace"], pod["metric"]["pod"]), ("research", "notebook-7f9c-x2x4q"))
        for query in ('my_gpu_process_active{process_name="gmx_mpi",job="%s"}', 'gpu_ledger_device_info{job="%s"}'):
            found = prometheus.query(query % job)
            self.assertTrue(found, query)
            for series in found:
                self.assertFalse(EXPORTER.keys() & series["metric"].keys(), series["metric"])
        namespaces = {
            series["metric"].get("namespace")
            for series in prometheus.query('{__name__=~".+",job="%s",namespace!=""}' % job)
        }
        self.assertEqual(namespaces, {"ml-team", "research", "inference"})

    def check_gpu_metrics(self, prometheus, job, node):
        """The second job of an example, and the join that it tells of."""
        (join,) = set(re.findall(r"(dcgm_.* on \(instance, uuid\) .*device_info)$",
                                 (FOLDER / EXAMPLES[job]).read_text(encoding="utf-8"), re.MULTILINE))
        self.assertIn(join, (FOLDER / "README.md").read_text(encoding="utf-8"))
        join = join.replace("dcgm_gpu_temp", f'dcgm_gpu_temp{{job="{job}-gpu"}}')
        joined = prometheus.query(join.replace("device_info", f'device_info{{job="{job}"}}'))
        self.assertEqual({one["metric"]["node"] for one in joined}, {node})
        self.assertEqual(len({one["metric"]["uuid"] for one in joined}),
                         len(prometheus.query(f'gpu_ledger_device_up{{job="{job}"}} == 1')))
        self.assertTrue(all(one["metric"]["model"] for one in joined))
        named = prometheus.query(f'dcgm_gpu_temp{{pod_name!="",job="{job}-gpu"}}')
        self.assertTrue(named)
        self.assertFalse([one for one in named if "pod" in one["metric"]], "the exporter's own")
        self.assertEqual(len(prometheus.query(f'up{{job=~"{job}(-gpu)?"}}')), 2, "of each path")

    def test_the_prometheus_to_apply_scrapes_the_same(self):
        path = harness.SOURCE / "deploy/kubernetes/prometheus/prometheus.yaml"
        objects = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(path.read_text())}
        config = objects["ConfigMap", "gpu-ledger-prometheus"]["data"]["prometheus.yml"]
        example = yaml.safe_load((FOLDER / "scrape.kubernetes.yml").read_text())
        self.assertEqual(yaml.safe_load(config)["scrape_configs"], example["scrape_configs"])
        pod = objects["Deployment", "gpu-ledger-prometheus"]["spec"]["template"]
        self.assertEqual(objects["Service", "gpu-ledger-prometheus"]["spec"]["selector"], pod["metadata"]["labels"])
        # Debian's has no part for Kubernetes.
        static = re.sub(r"kubernetes_sd_configs:\n +- role: pod", "static_configs: []", config)
        code, said = promtool("check", "config", "--syntax-only", self.write("prometheus.yml", static))
        self.assertEqual(code, 0, said)

    def jobs_of(self, name, found, port, labels):
        """An example's two jobs, for a target that is found without a cluster."""
        self.assertEqual(len(found), 2)
        for job, suffix in zip(found, ("", "-gpu")):
            job = {key: value for key, value in job.items() if not key.endswith("_sd_configs")}
            target = {"targets": [f"127.0.0.1:{port}"], "labels": labels}
            yield {**job, "job_name": name + suffix, "static_configs": [target]}

    def static_jobs(self, port):
        example = yaml.safe_load((FOLDER / EXAMPLES["static"]).read_text(encoding="utf-8"))
        return list(self.jobs_of("static", example["scrape_configs"], port, {}))

    def operator_jobs(self, port):
        """What the operator makes of it: the target's labels are there before the relabelling of the user."""
        example = yaml.safe_load((FOLDER / EXAMPLES["operator"]).read_text(encoding="utf-8"))
        snake = lambda rule: {re.sub("[A-Z]", lambda upper: "_" + upper[0].lower(), key): value for key, value in rule.items()}
        found = [{"honor_labels": one["honorLabels"], "metrics_path": one.get("path", "/metrics"),
                  "relabel_configs": [snake(rule) for rule in one["relabelings"]]} for one in example["spec"]["endpoints"]]
        return list(self.jobs_of("operator", found, port, {**EXPORTER, "__meta_kubernetes_pod_node_name": "node-7"}))

    def kubernetes_jobs(self, port):
        example = yaml.safe_load((FOLDER / EXAMPLES["kubernetes"]).read_text(encoding="utf-8"))
        meta = {
            "__meta_kubernetes_pod_label_app_kubernetes_io_name": "gpu-ledger",
            "__meta_kubernetes_pod_container_port_number": "9400",
            "__meta_kubernetes_pod_node_name": "node-7",
        }
        return list(self.jobs_of("kubernetes", example["scrape_configs"], port, meta))


if __name__ == "__main__":
    unittest.main()
