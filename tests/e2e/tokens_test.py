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
        text = (FOLDER / "tokens.rules.yml").read_text(encoding="utf-8")
        rules = [re.findall(r'rate\((\S+)\{namespace!="",pod!=""\}\[5m\]\)', rule)
                 for rule in re.findall(r"record: pod_model:gpu_ledger_tokens:rate5m(.+?)labels:", text, re.DOTALL)]
        self.assertEqual([set(each) for each in rules], [{names[which] for names in NAMES.values()} for which in (0, 1)])
        code = (harness.SOURCE / "src/app/bill/tokens.cc").read_text(encoding="utf-8")
        listed = [re.findall(r'"([^"]+)"', each) for each in re.findall(r"Tokens = \{([^}]+)\};", code)]
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

    def test_tokens_find_their_joules_by_each_way_to_scrape_the_exporter(self):
        """docs/tokens.md: whose labels the exporter's series have."""
        own = {"pod": "gpu-ledger-x7k2p", "namespace": "monitoring"}
        server = {"pod": "chat-5d8f7b6c4-kq9zp", "namespace": "inference"}
        copied = [{"source_labels": [f"exported_{name}"], "regex": "(.+)", "target_label": name} for name in own]
        servers = TokenServers(lambda name: (2, 1))
        self.addCleanup(servers.server_close)
        self.addCleanup(servers.shutdown)
        with harness.Ledger(environment=harness.of_age(20)) as ledger:
            target = lambda labels: {"static_configs": [{"targets": [f"127.0.0.1:{ledger.port}"], "labels": labels}]}
            ways = {"honored": {"honor_labels": True, **target({})}, "overridden": target(own),
                    "copied": {"metric_relabel_configs": copied, **target(own)}}
            jobs = [{"job_name": name, **way} for name, way in ways.items()] + [servers.job("vllm", server)]
            joined = ('count(sum by (namespace, pod) (gpu_ledger_pod_energy_joules_total{job="%s"})'
                      " and on (namespace, pod) vllm:prompt_tokens_total) or vector(0)")
            with Prometheus(self.folder, jobs=jobs) as prometheus:
                prometheus.wait_for_answers(["vllm:prompt_tokens_total"]
                                            + ['gpu_ledger_pod_energy_joules_total{job="%s"}' % name for name in ways])
                for name, found in {"honored": 1, "overridden": 0, "copied": 1}.items():
                    harness.wait_to_pass(lambda name=name, found=found: self.assertEqual(
                        prometheus.query(joined % name)[0]["value"][1], str(found), name))


if __name__ == "__main__":
    unittest.main()
