# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger bill --per=token` over a real Prometheus with a day of two servers, one of which starts again with other work."""

import re
import subprocess
import unittest

import harness
from bill_test import lines_of, run_bill
from prometheus_test import PROMTOOL, Prometheus
from token_servers import NAMES

BEGIN = 1759276800  # 2025-10-01
DAY, EVERY = 86400, 60
# Watts by pod and GPU; chat/vllm-0 shares its GPU.
WATTS = {("chat", "vllm-0", 0, "true"): 300, ("batch", "train-0", 0, "true"): 200, ("chat", "tgi-0", 1, "false"): 150}
IDLE = {0: 100, 1: 50}


def tokens_of(since):
    """(Prompt, generated) so far, by pod; vllm-0 starts again at noon and has less to do."""
    noon = DAY // 2
    vllm = (3000 * since, 400 * since) if since < noon else (600 * (since - noon), 100 * (since - noon))
    return {"vllm-0": vllm, "tgi-0": (1000 * since, 200 * since)}


# What it counted after the last scrape before noon, nobody has seen.
SEEN = DAY // 2 - EVERY
TRUTH = {"vllm-0": (3000 * SEEN + 600 * DAY // 2, 400 * SEEN + 100 * DAY // 2), "tgi-0": (1000 * DAY, 200 * DAY)}


def write_day():
    lines = {}

    def add(series, value, at):
        lines.setdefault(series.split("{")[0], []).append(f"{series} {value} {at}")

    for at in range(BEGIN - EVERY, BEGIN + DAY + 1, EVERY):
        since = at - BEGIN + EVERY
        node = 'node="n1",instance="n1:9400"'
        add(f"process_start_time_seconds{{{node}}}", BEGIN - 999, at)
        for gpu, idle in IDLE.items():
            drawn = idle + sum(watts for (_, _, on, _), watts in WATTS.items() if on == gpu)
            own = f'{node},gpu="{gpu}",uuid="GPU-{gpu}"'
            add(f"gpu_ledger_device_energy_joules_total{{{own}}}", drawn * since, at)
            add(f'gpu_ledger_device_info{{{own},model="NVIDIA H200"}}', 1, at)
            add(f'gpu_ledger_device_unattributed_joules_total{{{own},reason="idle"}}', idle * since, at)
        for (space, pod, gpu, shared), watts in WATTS.items():
            own = f'{node},gpu="{gpu}",namespace="{space}",pod="{pod}",pod_uid="{pod}"'
            add(f'gpu_ledger_pod_energy_joules_total{{{own},energy_estimated="{shared}"}}', watts * since, at)
            add(f"gpu_ledger_pod_gpu_seconds_total{{{own}}}", since // 2, at)
            if shared == "true":
                add(f"gpu_ledger_pod_energy_standard_error_joules{{{own}}}", watts * since / 50, at)
        for pod, counted in tokens_of(max(0, at - BEGIN)).items():
            *names, labels = NAMES[pod[:-2]]
            for name, value in zip(names, counted):
                add(f'{name}{{job="servers",instance="{pod}",namespace="chat",pod="{pod}"{labels and "," + labels}}}', value, at)
        # A server that shows the names of another too.
        for name in NAMES["llamacpp"][:2]:
            add(f'{name}{{job="servers",instance="tgi-0",namespace="chat",pod="tgi-0"}}', since, at)
    text = []
    for name, samples in lines.items():
        counter = name.endswith("_total")
        text += [f"# TYPE {name.removesuffix('_total')} {'counter' if counter else 'gauge'}"]
        text += sorted(samples, key=lambda line: line.split(" ")[0])
    return "\n".join(text) + "\n# EOF\n"


class BillTokensTest(harness.Case):
    def test_a_day(self):
        source = self.write("day.txt", write_day())
        (self.folder / "tsdb").mkdir()
        subprocess.run([PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=744h", source,
                        self.folder / "tsdb"], check=True, capture_output=True, timeout=harness.NET)
        with Prometheus(self.folder, {}, flags=["--storage.tsdb.retention.time=20y"]) as prometheus:
            url = f"http://127.0.0.1:{prometheus.port}"
            span = ("--from=2025-10-01", "--to=2025-10-02")
            ask = lambda *more: run_bill(url, *span, "--per=token", "--price-per-kwh=0.30", *more)
            for step in ("1h", "6h"):
                self.check_pods(lines_of(ask("--by=pod", "--format=csv", f"--step={step}")))
            spread = lines_of(ask("--by=pod", "--format=csv", "--spread=use"))["owner", "chat/tgi-0"]
            self.assertAlmostEqual(float(spread["charged_joules"]), DAY * (150 + 150 * 150 / 650), delta=1)
            self.assertAlmostEqual(float(spread["joules_per_token"]), (150 + 150 * 150 / 650) / 1200, delta=0.0003)
            space = lines_of(ask("--format=csv"))
            self.assertAlmostEqual(float(space["owner", "chat"]["joules_per_token"]), 450 / 3250, delta=0.0003)
            self.assertEqual(space["owner", "batch"]["joules_per_token"], "", "it makes no tokens")
            self.check_refusals(url, ask)
            made = "from http://prometheus:9090, made 2025-10-02 00:05:00Z by gpu-ledger"
            table = re.sub(r"(?m)^from .*$", made, ask("--by=pod").stdout)
            page = (harness.SOURCE / "docs" / "tokens.md").read_text(encoding="utf-8")
            self.assertIn(table, page, "the example in docs/tokens.md is not what the program prints")

    def check_pods(self, rows):
        for pod, (prompt, generated) in TRUTH.items():
            row = rows["owner", f"chat/{pod}"]
            self.assertAlmostEqual(float(row["prompt_tokens"]) / prompt, 1, delta=0.001, msg=pod)
            self.assertAlmostEqual(float(row["generated_tokens"]) / generated, 1, delta=0.001, msg=pod)
            watts = {"vllm-0": 300, "tgi-0": 150}[pod]
            per_token = watts * DAY / (prompt + generated)
            self.assertAlmostEqual(float(row["joules_per_token"]) / per_token, 1, delta=0.001, msg=pod)
            self.assertAlmostEqual(float(row["cost_per_million_tokens"]) / (per_token / 3.6 * 0.30), 1, delta=0.001, msg=pod)
        self.assertAlmostEqual(float(rows["owner", "chat/vllm-0"]["joules_per_token_standard_error"])
                               / float(rows["owner", "chat/vllm-0"]["joules_per_token"]), 0.02, delta=0.001)
        self.assertEqual(rows["owner", "chat/tgi-0"]["joules_per_token_standard_error"], "", "measured")

    def check_refusals(self, url, ask):
        for arguments, code, said in (
                (("--by=label:team",), 2, "tokens are known by namespace, pod and cluster, not by \"label:team\""),
                (("--match=node!=\"\"",), 1, "the server has no tokens of inference servers in this span")):
            done = ask(*arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(said, done.stderr)
        done = run_bill(url, "--serve", "--per=token")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--serve: not together with", done.stderr)
        done = run_bill(url, "--last=1h", "--per=mile")
        self.assertEqual(done.returncode, 2)
        self.assertIn('--per: "mile" is not one of token', done.stderr)


if __name__ == "__main__":
    unittest.main()
