# SPDX-License-Identifier: Apache-2.0
"""The pages for people: links lead somewhere, and metrics, settings and Helm values that they name exist."""

import json
import re
import subprocess
import unittest

import harness

SOURCE = harness.SOURCE
PAGES = sorted(
    path
    for path in [*SOURCE.glob("*.md"), *SOURCE.glob("docs/**/*.md"), *SOURCE.glob("deploy/**/*.md")]
    if path.name != "CHANGELOG.md"
)
# What other programs are told on these pages.
FOREIGN_FLAGS = set(
    "add-architecture address alert.label-drop all build build-arg cap-add cap-drop check collector.textfile.directory create-namespace data-dir enable-metrics "
    "endpoint gpu-reset gpus grpc-address id ignore-missing ignorefile key label logs metrics name namespace network now pid platform preset privileged "
    "prometheus.url query query.replica-label read-only release replicas rule-file rm run runtime security-opt set signal "
    "storage.tsdb.max-block-duration storage.tsdb.min-block-duration storage.tsdb.retention.time strict target test test-dir tsdb.path user volumes-from workflow write".split()
) | {"no-collector.NAME"}
# Named on these pages as what they were called before.
OLDER = {"my_gpu_process_energy_joules", "DCGM_FI_DEV_VGPU_LICENSE_STATUS"}
METRIC = re.compile(
    r"\b(?:gpu_ledger|my_gpu_process|gpu_idle|gpu_process|dcgm|DCGM_FI)_\w*[A-Za-z0-9](?![\w*:/-]|\.\w)"
)
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def text_of(path):
    return path.read_text(encoding="utf-8")


def anchors_of(path):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", text_of(path)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class DocsTest(unittest.TestCase):
    def for_each(self, check):
        self.assertGreater(len(PAGES), 20)
        for path in PAGES:
            with self.subTest(page=str(path.relative_to(SOURCE))):
                check(path, text_of(path))

    def test_links(self):
        def check(path, text):
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                page = (path.parent / name).resolve() if name else path
                self.assertTrue(page.exists(), target)
                if anchor:
                    self.assertIn(anchor, anchors_of(page), target)

        self.for_each(check)

    def test_every_page_is_linked(self):
        linked = set()
        for path in PAGES:
            for target in re.findall(r"\]\(([^)\s#]+)", text_of(path)):
                place = (path.parent / target).resolve()
                linked |= {place, place / "README.md"}
        lonely = [str(path.relative_to(SOURCE)) for path in PAGES if path not in linked and path.parent != SOURCE]
        self.assertEqual([name for name in lonely if "/decisions/" not in name], [])

    def test_metrics_exist(self):
        known = set(METRIC.findall(text_of(SOURCE / "docs" / "metrics.md")))
        self.assertGreater(len(known), 120)
        for path in (SOURCE / "deploy" / "prometheus").glob("*.yml"):
            known |= set(re.findall(r"(?:record|name): ([\w:]+)", text_of(path)))
        found = []

        def check(_, text):
            # Recorded names have colons; the rules' own tests look after them.
            for name in METRIC.findall(re.sub(r"\w*:gpu_ledger\w*(:\w+)?", "", text)):
                found.append(name)
                family = any(each.startswith(name + "_") for each in known)
                exists = name in known or SUFFIX.sub("", name) in known or family or name.endswith("_doc")
                self.assertTrue(exists or name in OLDER, f"{name} is not in docs/metrics.md")

        self.for_each(check)
        self.assertGreater(len(found), 200)

    def test_settings_exist(self):
        told = subprocess.run([harness.BINARY, "--help"], capture_output=True, text=True, check=True).stdout
        settings = text_of(SOURCE / "docs" / "settings.md") + told
        known = {name.replace("[no-]", "") for name in re.findall(r"--((?:\[no-\])?[a-z][\w.-]*)", settings)}

        def check(_, text):
            for name in re.findall(r"(?<![\w-])--([a-z][\w.-]*\w)", text):
                if name not in FOREIGN_FLAGS:
                    self.assertIn(name.removeprefix("no-"), known, f"--{name}")

        self.for_each(check)

    def test_every_field_of_the_snapshot_is_described(self):
        text = text_of(SOURCE / "docs" / "snapshot.md")
        sections = {title: set(re.findall(r"`([\w.]+)`", body))
                    for title, body in re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", text)}
        seen = set()

        def check(value, where):
            if isinstance(value, dict):
                for name, inner in value.items():
                    if not name.isdigit():  # xid_errors
                        self.assertIn(name, sections[where], f"{where} of docs/snapshot.md")
                    seen.add((where, name))
                    check(inner, name if where == "The whole" and isinstance(inner, list) else where)
            elif isinstance(value, list):
                for inner in value:
                    check(inner, where)

        for name in ("mixed_node", "sick_gpu"):
            snapshot = json.loads(text_of(SOURCE / "tests" / "golden" / "expected" / f"{name}.json"))
            check(snapshot, "The whole")
            self.assertEqual(next(iter(snapshot)), "schema_version", "the first of all")
            self.assertIn(f"`schema_version` is {snapshot['schema_version']}.", text)
        self.assertGreater(len(seen), 90)
        self.assertIn(("owners", "account"), seen)

    def test_helm_values_exist(self):
        values = text_of(SOURCE / "deploy" / "helm" / "gpu-ledger" / "values.yaml")

        def check(_, text):
            for name in re.findall(r"--set ([\w-]+)", text):
                self.assertRegex(values, rf"(?m)^{name}:", f"--set {name}")

        self.for_each(check)


if __name__ == "__main__":
    unittest.main()
