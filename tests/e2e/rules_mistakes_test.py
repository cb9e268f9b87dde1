# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the rules of deploy/prometheus: the rules' own tests notice each of them."""

import concurrent.futures
import shutil
import unittest

import harness
from rules_test import FOLDER, promtool

# Changes that somebody could make by mistake; the unit tests of the rules have to notice each of them.
RECORDING_MISTAKES = [
    ("node.rules.yml", "labels: {owner: host}", "labels: {owner: pod}"),
    (
        "node.rules.yml",
        "sum by (cluster, node, instance, namespace, pod) (rate(gpu_ledger_pod_energy_joules_total[5m]))",
        "rate(sum by (cluster, node, instance, namespace, pod) (gpu_ledger_pod_energy_joules_total)[5m:1m])",
    ),
    ("node.rules.yml", "or on (cluster, node, instance, namespace, pod) node_pod", "or node_pod"),
    ("fleet.rules.yml", "(cluster, namespace) (node_namespace:gpu_ledger_power", "(namespace) (node_namespace:gpu_ledger_power"),
    ("fleet.rules.yml", "[1h] offset 30s", "[1h]"),
]
# Likewise, for tests/bill_test.yml to notice.
BILL_MISTAKES = [
    ("parameters.rules.yml", "vector(0.30)", "vector(0.31)"),
    ("node.rules.yml", ' or gpu_ledger_closed_energy_joules{kind="pod",node!=""}', ""),
    ("node.rules.yml", ' or gpu_ledger_closed_gpu_seconds{kind="pod",node!=""}', ""),
    ("fleet.rules.yml", "/ 3600000", "/ 3600"),
    ("fleet.rules.yml", ":seen[1h]", ":seen[5m]"),
    ("fleet.rules.yml", '{owner="pod"}[1h]) > -1', '{owner="pod"}[1h])'),
    ("fleet.rules.yml", "offset 75s", "offset 5s"),
    ("fleet.rules.yml", "or 0 * (\n", "unless 0 * (\n"),
    ("fleet.rules.yml", "              unless last_over_time(node_account:gpu_ledger_energy_joules:seen[1h])\n", ""),
    ("fleet.rules.yml", "or on (cluster, node, owner, namespace, energy_estimated)\n",
     "or on (cluster, node, owner, namespace, energy_estimated, team)\n"),
    ("fleet.rules.yml", "gpu_ledger:pue and on (cluster) cluster:gpu_ledger_gpus:sum\n            or on (cluster)",
     "gpu_ledger:pue unless on (cluster) cluster:gpu_ledger_gpus:sum\n            or on (cluster)"),
]
# Likewise, for tests/accounts_test.yml to notice.
ACCOUNT_MISTAKES = [
    ("node.rules.yml", "max by (cluster, node) (sum by (cluster, node, instance) (gpu_ledger_device_energy",
     "sum by (cluster, node) (sum by (cluster, node, instance) (gpu_ledger_device_energy"),
    ("node.rules.yml", "or sum by (cluster, instance) (gpu_ledger_device_energy", "or max by (cluster) (gpu_ledger_device_energy"),
    ("node.rules.yml", "delta(gpu_ledger_pod_energy_standard_error_joules[5m])", "gpu_ledger_pod_energy_standard_error_joules"),
    ("node.rules.yml", "on (cluster, node, slurm_job_id) group_left (account, user_name)",
     "on (cluster, node, slurm_job_id) group_left (user_name)"),
    ("fleet.rules.yml", 'energy_error:ratio{owner="pod"}\n', 'energy_error:ratio{owner="pod"} offset 2m\n'),
]
# Likewise in tokens.rules.yml, for tests/tokens_test.yml to notice.
TOKEN_MISTAKES = [
    ("or rate(sglang:prompt_tokens_total{", "or rate(sglang:{"),
    ('llamacpp:tokens_predicted_total{namespace!="",pod!=""', 'llamacpp:{namespace!="",pod!=""'),
    ('or rate(trtllm_prompt', 'and rate(trtllm_prompt'),
    ('vllm:prompt_tokens_total{namespace!="",pod!=""', 'vllm:prompt_tokens_total{pod!=""'),
    (" < 1e9\n", "\n"),
    ("sum by (cluster, job, namespace,", "sum by (cluster, instance, job, namespace,"),
    ("sum by (cluster, job, namespace,", "sum by (cluster, namespace,"),
    ('"model", "$1", "model_name", "(.+)"', '"model", "$1", "model_name", "(.*)"'),
    ("          or 0 * sum by", "          unless 0 * sum by"),
    ("- sum by (cluster, node, instance, gpu) (rate(gpu_ledger_device_un", "+ sum by (cluster, node, instance, gpu) (rate(gpu_ledger_device_un"),
    ("clamp_min(delta(gpu_ledger_pod_energy_standard_error_joules[5m]), 0)", "gpu_ledger_pod_energy_standard_error_joules"),
    ("model) (pod_model:gpu_ledger_tokens:rate5m) > 0)", "model) (pod_model:gpu_ledger_tokens:rate5m))"),
    ('{kind="generation"} > 0', '{kind="generation"}'),
    ("rate5m / 3600000\n", "rate5m / 3600\n"),
]
# In the others, each for the test of its file.
MISTAKES = [
    ("compat.rules.yml", "sum without (energy_estimated)", "max without (energy_estimated)"),
    ("alerts.yml", "> 1024 ^ 3", "> 1e9"),
    ("alerts.yml", "            and gpu_ledger_pod_idle_memory_bytes offset 1h\n", ""),
    ("alerts.yml", "unless on (cluster, node, instance) gpu_idle_process_idle_seconds\n", "\n"),
    ("alerts.yml", "min_over_time(gpu_ledger_pod_idle", "max_over_time(gpu_ledger_pod_idle"),
    (
        "alerts.yml",
        "or (\n            max by (cluster, node, gpu, uuid, xid) (gpu_ledger_xid_errors_total{xid!~",
        "unless (\n            max by (cluster, node, gpu, uuid, xid) (gpu_ledger_xid_errors_total{xid!~",
    ),
    ("alerts.yml", "[1d] offset 15m", "[1m] offset 15m"),
    ("alerts.yml", "|container|host|unknown_owner)_energy", "|container|unknown_owner)_energy"),
    ("alerts.yml", "or 0 * sum by", "or sum by"),
    ("alerts.yml", "gpu_ledger_device_up == 1", "gpu_ledger_device_up == 0"),
    ("alerts.yml", "unless on (instance, node) gpu_ledger_source_up", "and on (instance, node) gpu_ledger_source_up"),
    ("alerts.yml", "> 0 unless on (instance, node) gpu_ledger_device_up == 0", "> 0"),
    ("alerts.yml", "or gpu_ledger_retired_pages_pending == 1\n        for: 1h", "or gpu_ledger_retired_pages_pending == 1"),
    ("alerts.yml", "timestamp_seconds > 180", "timestamp_seconds > 30"),
    ("alerts.yml", "group_left (node) 0 * topk", "group_left () 0 * topk"),
    ("alerts.yml", "topk by (cluster, job, instance) (1,", "bottomk by (cluster, job, instance) (1,"),
]
# Likewise in alerts.yml, for tests/hardware_test.yml to notice.
HARDWARE_MISTAKES = [
    ("sw_thermal|hw_thermal", "sw_thermal"),
    (") > 0.25\n        for: 10m", ") > 0\n        for: 10m"),
    ('unless max by (cluster, node, instance, gpu, uuid) (\n            avg', 'or max by (cluster, node, instance, gpu, uuid) (\n            avg'),
    ('sw_power_cap"}[1h]) > 0.9', 'sw_power_cap"}[1h]) > 0.4'),
    ('max by (cluster, node, gpu, uuid) (increase', 'max by (cluster, node, gpu, uuid) (max_over_time'),
    ('{type="uncorrected"}', '{type=~".*corrected"}'),
    (">= 100", ">= 10"),
    ('{kind=~"replay|recovery"}[15m])) > 0', '{kind="replay"}[15m])) > 0'),
    ("> 2 * 1024 ^ 3", "> 1024 ^ 3"),
    ("or 0 * max by (cluster, node, instance, gpu) (gpu_ledger_device_memory",
     "or max by (cluster, node, instance, gpu) (gpu_ledger_device_memory"),
    ("and (\n            (\n              count by", "or (\n            (\n              count by"),
    ("or sum by (cluster, node, instance, gpu) (gpu_ledger_process_memory", "or sum by (cluster, gpu) (gpu_ledger_process_memory"),
    ("> 0.99 * sum by", "> 0.01 * sum by"),
    ("0.99 * max by (cluster, model)", "1.01 * max by (cluster, model)"),
]


class MistakesTest(harness.Case):
    def test_unit_tests_notice_mistakes(self):
        all_of_them = [(*one, f"{one[0].split('.')[0]}_test.yml") for one in MISTAKES]
        all_of_them += [(*one, "recording_test.yml") for one in RECORDING_MISTAKES]
        all_of_them += [(*one, "bill_test.yml") for one in BILL_MISTAKES]
        all_of_them += [(*one, "accounts_test.yml") for one in ACCOUNT_MISTAKES]
        all_of_them += [("alerts.yml", right, wrong, "hardware_test.yml") for right, wrong in HARDWARE_MISTAKES]
        all_of_them += [("tokens.rules.yml", right, wrong, "tokens_test.yml") for right, wrong in TOKEN_MISTAKES]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(self.notice, range(len(all_of_them)), all_of_them))
        for (_, _, wrong, _), outcome in zip(all_of_them, outcomes):
            with self.subTest(wrong=wrong):
                self.assertEqual(outcome, "noticed")

    def notice(self, number, mistake):
        name, right, wrong, test = mistake
        copy = shutil.copytree(FOLDER, self.folder / str(number))
        text = (copy / name).read_text(encoding="utf-8")
        if right not in text:
            return f"{name} does not have {right!r}"
        (copy / name).write_text(text.replace(right, wrong), encoding="utf-8")
        code, said = promtool("check", "rules", name, folder=copy)
        if code != 0:
            return f"not even a rule:\n{said}"
        code, said = promtool("test", "rules", f"tests/{test}", folder=copy)
        return "noticed" if code != 0 else "nobody noticed"


if __name__ == "__main__":
    unittest.main()
