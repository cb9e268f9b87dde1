# SPDX-License-Identifier: Apache-2.0
"""Prometheus servers that can be lost and come back, and Thanos over them: query, ruler and a sidecar for each."""

import json
import os
import pathlib
import subprocess
import time
import urllib.parse

import harness
from prometheus_test import PROMETHEUS

FETCH = harness.SOURCE / "tests" / "deploy" / "fetch"


def thanos():
    """The program, or why there is none: built once per machine, which a test does not do unless told to."""
    environment = {"GPU_LEDGER_FETCH_SECONDS": "0", **os.environ}
    done = subprocess.run([FETCH, "thanos"], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return pathlib.Path(done.stdout.strip()), ""
    return None, (done.stderr.strip().splitlines() or ["no Thanos"])[-1]


class Api:
    """Whatever answers like Prometheus."""

    def __init__(self, port):
        self.port = port

    def answers(self, path="/-/ready"):
        try:
            return harness.get(self.port, path).status == 200
        except OSError:
            return False

    def ask(self, path, **parameters):
        answer = json.loads(harness.get(self.port, f"/api/v1/{path}?" + urllib.parse.urlencode(parameters)).text)
        if answer["status"] != "success":
            raise AssertionError(f"{parameters.get('query', path)}: {answer.get('error')}")
        return answer["data"]

    def at(self, query, when=None, **more):
        """{labels: value}"""
        data = self.ask("query", query=query, time=when or time.time(), **more)
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in data["result"]}

    def number(self, query, when=None):
        values = self.at(query, when)
        if len(values) != 1:
            raise AssertionError(f"{query}: {values}")
        return next(iter(values.values()))

    def samples(self, selector, begin, end):
        """{labels: {time: value}} of begin < time <= end, as they are stored."""
        data = self.ask("query", query=f"{selector}[{int(end - begin) + 60}s]", time=end)
        return {tuple(sorted((key, value) for key, value in one["metric"].items() if key != "__name__")):
                {float(when): float(value) for when, value in one["values"] if begin < float(when) <= end}
                for one in data["result"]}

    def unhealthy(self):
        groups = self.ask("rules")["groups"]
        return [(rule["name"], rule.get("lastError")) for group in groups for rule in group["rules"] if rule["health"] == "err"]


class Server(Api):
    """A Prometheus with its folder. stop() is a crash, start() begins again on what is there."""

    def __init__(self, folder, name, ports, rules, external=None):
        super().__init__(harness.free_port())
        self.folder, self.program = folder / name, None
        self.folder.mkdir()
        job = {"job_name": "gpu-ledger", "honor_labels": True, "scrape_interval": "1s", "scrape_timeout": "1s",
               "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
        config = {"global": {"external_labels": external or {}}, "rule_files": [str(path) for path in rules],
                  "scrape_configs": [job]}
        (self.folder / "prometheus.json").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        self.start()

    def start(self):
        self.program = harness.Program([
            PROMETHEUS, f"--config.file={self.folder}/prometheus.json", f"--storage.tsdb.path={self.folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{self.port}", "--storage.tsdb.min-block-duration=2h",
            "--storage.tsdb.max-block-duration=2h"])
        harness.wait_until(self.answers, "Prometheus")

    def stop(self):
        self.program.__exit__()


class Thanos(Api):
    """Query over the sidecars of these servers and a ruler with these rules. Every program is ended by close()."""

    def __init__(self, binary, folder, servers, rules):
        super().__init__(harness.free_port())
        self.programs, stores = [], []
        for server in servers:
            stores.append(f"127.0.0.1:{harness.free_port()}")
            self.run(binary, "sidecar", f"--prometheus.url=http://127.0.0.1:{server.port}", f"--tsdb.path={server.folder}/tsdb",
                     f"--grpc-address={stores[-1]}", f"--http-address=127.0.0.1:{harness.free_port()}")
        self.ruler, ruler_store = Api(harness.free_port()), f"127.0.0.1:{harness.free_port()}"
        self.run(binary, "query", f"--http-address=127.0.0.1:{self.port}", f"--grpc-address=127.0.0.1:{harness.free_port()}",
                 "--query.replica-label=replica", *[f"--endpoint={store}" for store in (*stores, ruler_store)])
        self.run(binary, "rule", f"--data-dir={folder}/ruler", *[f"--rule-file={path}" for path in rules],
                 f"--query=http://127.0.0.1:{self.port}", '--label=replica="0"', "--alert.label-drop=replica",
                 f"--http-address=127.0.0.1:{self.ruler.port}", f"--grpc-address={ruler_store}")
        harness.wait_until(lambda: self.answers() and self.ruler.answers(), "Thanos")

    def run(self, *command):
        self.programs.append(harness.Program(command))

    def memory(self):
        """Resident bytes of each program."""
        return [int(pathlib.Path(f"/proc/{one.child.pid}/statm").read_text().split()[1]) * 4096 for one in self.programs]

    def close(self):
        for program in self.programs:
            program.__exit__()
