# SPDX-License-Identifier: Apache-2.0
"""Tokens of inference servers: one list of names everywhere, and the labels that deploy/prometheus/scrape.tokens.yml gives them."""

import re
import unittest

import yaml

import harness
from prometheus_test import PROMETHEUS, Prometheus
from token_servers import NAMES, TokenServers

FOLDER = harness.SOURCE / "deploy" / "prometheus"


def example():
    (job,) = yaml.safe_load((FOLDER / "scrape.tokens.yml").read_text(encoding="utf-8"))["scrape_configs"]
    return job


class TokensTest(harness.Case):
    def test_the_rules_the_bill_the_scrape_and_the_page_have_the_same_names(self):
        rules = re.findall(r'__name__=~"([^"]+)",pod!=', (FOLDER / "tokens.rules.yml").read_text(encoding="utf-8"))
        self.assertEqual([set(each.split("|")) for each in rules], [{names[which] for names in NAMES.values()} for which in (0, 1)])
        code = (harness.SOURCE / "src/app/bill/tokens.cc").read_text(encoding="utf-8")
        listed = ["".join(re.findall(r'"([^"]+)"', each)) for each in re.findall(r"Tokens =\n((?: +\"[^\"]+\"\n?)+);", code)]
        self.assertEqual(listed, rules)
        kept = re.compile(example()["metric_relabel_configs"][0]["regex"])
        page = (harness.SOURCE / "docs" / "tokens.md").read_text(encoding="utf-8")
        for *names, _ in NAMES.values():
            for name in names:
                self.assertTrue(kept.fullmatch(name), name)
                self.assertIn(f"| `{name}` |", page)

    def test_a_scraped_server_says_its_pod_and_nothing_but_its_tokens(self):
        if not PROMETHEUS:
            raise AssertionError("prometheus is missing; tools/setup.sh --test installs it")
        servers = TokenServers(lambda name: (2, 1))
        self.addCleanup(servers.server_close)
        self.addCleanup(servers.shutdown)
        port = servers.server_address[1]
        meta = lambda name, **more: {
            "__meta_kubernetes_namespace": "chat", "__meta_kubernetes_pod_name": name, "__meta_kubernetes_pod_ip": "127.0.0.1",
            "__meta_kubernetes_pod_annotation_prometheus_io_path": f"/{name}",
            "__meta_kubernetes_pod_annotation_prometheus_io_port": str(port), **more}
        scraped = {"__meta_kubernetes_pod_annotation_prometheus_io_scrape": "true"}
        # Each pod twice, as one with two ports is found; a pod that does not want to be scraped once.
        found = [{"targets": [f"127.0.0.1:{number}"], "labels": meta(name, **scraped)} for name in NAMES for number in (1, 2)]
        found.append({"targets": [f"127.0.0.1:{port}"], "labels": meta("vllm", __meta_kubernetes_pod_name="other")})
        job = {key: value for key, value in example().items() if key != "kubernetes_sd_configs"}
        with Prometheus(self.folder, jobs=[{**job, "static_configs": found}]) as prometheus:
            harness.wait_until(lambda: len(prometheus.query("up == 1")) == len(NAMES), "a scrape of each")
            self.assertEqual(len(prometheus.targets()), len(NAMES))
            series = prometheus.query('{job="inference-servers",__name__!~"up|scrape_.+"}')
            self.assertEqual({(one["metric"]["pod"], one["metric"]["__name__"]) for one in series},
                             {(pod, name) for pod, names in NAMES.items() for name in names[:2]})
            self.assertEqual({one["metric"]["namespace"] for one in series}, {"chat"})


if __name__ == "__main__":
    unittest.main()
