# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger doctor`: each thing is broken in turn, and its line must say so and what to do."""

import contextlib
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import unittest

import harness

ACCOUNTING_ON = "gpus: [{model: H200, accounting: true}]\n"
NO_PODS = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
PRIVATE = ["unshare", "--mount", "--propagation", "private"]


def can_unshare():
    return os.geteuid() == 0 and subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode == 0


class Findings:
    def __init__(self, done):
        self.code, self.text, self.errors = done.returncode, done.stdout, done.stderr
        self.lines = [line.split(": ", 1) for line in done.stdout.splitlines()]

    def of(self, subject):
        """(level, text) of the only line about it."""
        found = [(head[:4].strip(), rest) for head, rest in self.lines if head[6:] == subject]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} lines about {subject}:\n{self.text}")
        return found[0]


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "client"

    def log_message(self, *_):
        pass


class UnixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)


class DoctorTest(harness.Case):
    def doctor(self, *arguments, environment=None, before=()):
        port = harness.free_port()
        given = any("listen-address" in str(each) for each in arguments)
        addresses = [] if given else [f"--listen-address=127.0.0.1:{port}"]
        # Without what this machine may have: every test brings its own.
        sockets = [f"--{name}={self.folder}/none/{name}" for name in ("docker-socket", "podman-socket", "cri-socket")
                   if not any(name in str(each) for each in arguments)]
        done = subprocess.run([*before, harness.BINARY, "doctor", *addresses, *sockets, *map(str, arguments)],
                              capture_output=True, text=True, timeout=harness.NET,
                              env=harness.clean_environment(environment))
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"^(ok    |warn  |FAIL  )\S.*: \S")
            self.assertLess(len(line), 600)
        return Findings(done)

    def simulated(self, scenario=ACCOUNTING_ON, *arguments, **more):
        return self.doctor("--backend=sim", f"--sim-scenario={self.write('s.yaml', scenario)}", *arguments, **more)

    def on_real_names(self, *arguments, **more):
        """The simulated driver, but the real /proc and sockets."""
        environment = {"NVML_SIM_SCENARIO": str(self.write("s.yaml", ACCOUNTING_ON)), **more.pop("environment", {})}
        return self.doctor("--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1", *arguments,
                           environment=environment, **more)

    def assert_said(self, findings, subject, level, *words):
        found, text = findings.of(subject)
        self.assertEqual(found, level, findings.text)
        for word in words:
            self.assertIn(str(word), text)
        self.assertEqual(findings.code, 1 if "FAIL" in findings.text else 0, findings.text + findings.errors)

    @contextlib.contextmanager
    def serving(self, server, answer):
        server.answer = answer
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def test_all_is_well(self):
        findings = self.simulated()
        self.assertEqual(findings.code, 0, findings.text)
        self.assertEqual({head[:4].strip() for head, _ in findings.lines}, {"ok"}, findings.text)
        self.assertEqual(findings.errors, "")

    def test_driver(self):
        self.assert_said(self.doctor("--backend=nvml", f"--nvml-library={self.folder}/none.so"), "driver", "FAIL",
                         "install the NVIDIA driver")
        self.assert_said(self.doctor("--backend=nvml", f"--nvml-library={harness.SIM}/broken/libnvidia-ml.so.1"),
                         "driver", "FAIL", "nvml")
        self.assert_said(self.simulated("gpus: []\n"), "driver", "FAIL", "GPU")
        findings = self.doctor("--backend=nvml", f"--nvml-library={self.folder}/none.so")
        self.assertEqual(findings.of("proc")[0], "ok", "the rest is looked at all the same")
        self.assertIn("1 check failed", findings.errors)

    def test_symbols(self):
        old = harness.SIM / "old" / "libnvidia-ml.so.1"
        self.assert_said(self.simulated(ACCOUNTING_ON, f"--nvml-library={old}"), "symbols", "warn",
                         "nvmlDeviceGetProcessesUtilizationInfo")

    def test_gpus(self):
        # It is found, and answers no more when it is looked at.
        lost = self.simulated(ACCOUNTING_ON + "events: [{at: 0, do: error, call: nvmlDeviceGetTotalEnergyConsumption, code: 15}]\n")
        self.assert_said(lost, "gpus", "FAIL", "GPU 0", "dmesg")
        self.assert_said(self.simulated("gpus: [{model: P100, accounting: true}]\n"), "energy", "warn", "before Volta")
        failing = "".join(f"  - {{at: 0, do: error, call: {call}, code: 3}}\n" for call in
                          ("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"))
        self.assert_said(self.simulated(ACCOUNTING_ON + "events:\n" + failing), "utilization", "warn", "GPU 0")

    def test_accounting(self):
        self.assert_said(self.simulated("gpus: [{model: H200}, {model: T4, accounting: true}]\n"), "accounting", "warn",
                         "GPU 0:", "gpu-ledger accounting on")

    def test_mig(self):
        scenario = ("gpus: [{model: H100, mig: [{gi: 1, ci: 0, profile: 3g.40gb}]}]\n"
                    "processes: [{pid: 91, gpus: 0, mig: {gi: 1, ci: 0}, memory: 20GiB, load: train}]\n")
        self.assert_said(self.simulated(scenario), "mig", "ok", "GPU 0", "can be listed")
        hidden = "".join(f"  - {{at: 0, do: error, call: nvmlDeviceGet{kind}RunningProcesses{version}, code: 4}}\n"
                         for kind in ("Compute", "Graphics", "MPSCompute") for version in ("", "_v2", "_v3"))
        self.assert_said(self.simulated(scenario + "events:\n" + hidden), "mig", "FAIL", "NVIDIA_MIG_MONITOR_DEVICES")
        empty = scenario.split("processes")[0] + "events: [{at: 0.2, do: mig_destroy, gpu: 0, gi: 1, ci: 0}]\n"
        self.assert_said(self.simulated(empty), "mig", "warn", "nvidia-smi mig -cgi")

    def test_processes(self):
        busy = ACCOUNTING_ON + "processes: [{pid: 4194301, gpus: 0, memory: 1GiB, load: gemm}]\n"
        environment = {"NVML_SIM_SCENARIO": str(self.write("busy.yaml", busy))}
        library = f"--nvml-library={harness.SIM}/libnvidia-ml.so.1"
        strangers = self.doctor("--backend=nvml", library, environment=environment)
        self.assert_said(strangers, "processes", "FAIL", "hostPID: true")
        self.assert_said(self.simulated(busy), "processes", "ok", "1 of 1")
        self.assert_said(self.simulated(busy), "cgroups", "ok")
        hidden = "".join(f"  - {{at: 0, do: error, call: nvmlDeviceGet{kind}RunningProcesses{version}, code: 4}}\n"
                         for kind in ("Compute", "Graphics", "MPSCompute") for version in ("", "_v2", "_v3"))
        hidden += "".join(f"  - {{at: 0, do: error, call: {call}, code: 4}}\n" for call in
                          ("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"))
        self.assert_said(self.simulated(busy + "events:\n" + hidden), "processes", "FAIL", "hostPID: true")

    def test_cgroups(self):
        busy = ACCOUNTING_ON + "processes: [{pid: 91, gpus: 0, memory: 1GiB, load: gemm}]\n"
        environment = {"NVML_SIM_SCENARIO": str(self.write("busy.yaml", busy))}
        proc = self.fake_proc({"91/stat": "91 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 555 0 0\n"})
        library = f"--nvml-library={harness.SIM}/libnvidia-ml.so.1"
        look = lambda: self.doctor("--backend=nvml", library, f"--proc-root={proc}", environment=environment)
        self.assert_said(look(), "cgroups", "FAIL", "/proc/PID/cgroup")
        (proc / "91/cgroup").write_text("0::/docker/" + "a" * 64 + "\n1:x:/docker/" + "b" * 64 + "\n")
        self.assert_said(look(), "cgroups", "warn", "cat /proc/PID/cgroup")
        (proc / "91/cgroup").write_text("0::/docker/" + "a" * 64 + "\n")
        self.assert_said(look(), "cgroups", "ok", "1 in other containers")

    def fake_proc(self, files=()):
        root = self.folder / "proc"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        (root / "stat").write_text("btime 1700000000\n")
        for name, text in dict(files).items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        return root

    def test_proc(self):
        nothing = self.on_real_names(f"--proc-root={self.folder}/none")
        self.assert_said(nothing, "proc", "FAIL", "mount the host's /proc")
        if not can_unshare():
            self.skipTest("needs root and namespaces")
        other = ["unshare", "--pid", "--fork", "--mount-proc"]
        self.assert_said(self.on_real_names(before=other), "pid namespace", "FAIL", "hostPID: true")
        if shutil.which("setpriv"):
            hiding = self.folder / "hiding"
            hiding.mkdir()
            os.chmod(self.folder, 0o755)
            before = [*PRIVATE, "sh", "-c", f'mount -t proc -o hidepid=2 proc {hiding} && exec setpriv --reuid=65534 '
                      '--regid=65534 --clear-groups --inh-caps=-all "$@"', "sh"]
            findings = self.on_real_names(f"--proc-root={hiding}", before=before)
            self.assert_said(findings, "proc", "warn", "hidepid", "SYS_PTRACE")

    def test_sockets_that_are_missing_dead_or_silent(self):
        folder = self.folder / "kubelet"
        flag = f"--pod-resources-socket={folder}/kubelet.sock"
        self.assert_said(self.on_real_names(flag), "kubernetes", "ok", "not looked for", folder)
        folder.mkdir()
        self.assert_said(self.on_real_names(flag), "pod-resources", "FAIL", "mount the folder")
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(folder / "kubelet.sock"))
        self.assert_said(self.on_real_names(flag), "pod-resources", "FAIL", "no server answers")
        dead.listen(8)  # takes connections and never says a word
        findings = self.on_real_names(flag, "--docker-socket=" + str(folder / "kubelet.sock"))
        self.assert_said(findings, "pod-resources", "FAIL", "answer")
        self.assert_said(findings, "docker", "ok", "not needed", "answer")
        dead.close()

    def test_a_kubelet_that_lets_only_root_in(self):
        # What an image that is not root meets in place of one that was: docs/migration.md.
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        kubelet = self.folder / "kubelet"
        (kubelet / "pod-resources").mkdir(parents=True)
        served = socket.socket(socket.AF_UNIX)
        self.addCleanup(served.close)
        served.bind(str(kubelet / "pod-resources/kubelet.sock"))
        served.listen(8)
        os.chmod(self.folder, 0o755)
        flags = [f"--pod-resources-socket={kubelet}/pod-resources/kubelet.sock", f"--pods-api-socket={kubelet}/none/p.sock"]
        nobody = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--inh-caps=-all"]
        # The folder of the socket in a pod, that of the kubelet on the node itself.
        for closed in (kubelet / "pod-resources", kubelet):
            os.chmod(closed, 0o750)
            findings = self.on_real_names(*flags, before=nobody)
            self.assert_said(findings, "pod-resources", "FAIL", "may not be opened by uid 65532", "runAsUser: 0")
        port = harness.free_port()
        # The build may be in a folder that only root enters, such as /root.
        library = shutil.copy(harness.SIM / "libnvidia-ml.so.1", self.folder)
        command = [*nobody, harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={library}",
                   f"--listen-address=127.0.0.1:{port}", *harness.FAST, *flags]
        with harness.Program(command, {"NVML_SIM_SCENARIO": str(self.folder / "s.yaml")}) as program:
            def missing():
                shown = harness.metrics_at(port)
                return shown and [value for _, value in shown.find("gpu_ledger_pod_names_missing")]
            harness.wait_until(missing, "the metric")
            self.assertEqual(missing(), [1])
            harness.wait_until(lambda: "runAsUser: 0" in program.log(), "the log to say so")

    def test_pod_sources(self):
        folder = self.folder / "kubelet"
        folder.mkdir()
        flags = [f"--pod-resources-socket={folder}/kubelet.sock", f"--pods-api-socket={folder}/pods.sock"]
        self.assert_said(self.on_real_names(*flags), "pods", "FAIL", "KUBERNETES_SERVICE_HOST", "NODE_NAME")
        self.assert_said(self.on_real_names(*flags, "--pod-source=pods-api"), "pods-api", "FAIL", "pods.sock")
        self.assert_said(self.on_real_names(*flags, "--pod-source=cri"), "cri", "FAIL", "cri-socket")
        self.assert_said(self.on_real_names(*flags, "--pod-source=apiserver"), "apiserver", "FAIL",
                         "KUBERNETES_SERVICE_HOST")
        self.assert_said(self.on_real_names(*flags, "--pod-source=none"), "pods", "warn", "--pod-source=none")
        address = f"--kubelet-address=127.0.0.1:{harness.free_port()}"
        kubelet = self.on_real_names(*flags, "--pod-source=kubelet", address)
        self.assert_said(kubelet, "kubelet", "FAIL", "mount the service account's token")
        self.assert_said(self.on_real_names("--kubernetes-enabled=false"), "kubernetes", "ok", "as the settings say")

    def test_docker_that_answers_or_refuses(self):
        path = str(self.folder / "docker.sock")
        answer = lambda _: (200, json.dumps([{"Id": "a" * 64, "Names": ["/web"]}]).encode())
        with self.serving(UnixServer(path, Answers), answer):
            self.assert_said(self.on_real_names(f"--docker-socket={path}"), "docker", "ok", "answers")
        os.unlink(path)
        with self.serving(UnixServer(path, Answers), lambda _: (500, b"broken")):
            self.assert_said(self.on_real_names(f"--docker-socket={path}"), "docker", "ok", "not needed", "500")
            # Only its daemon can name the container of a process on a GPU.
            proc = self.folder / "proc"
            (proc / "7").mkdir(parents=True)
            (proc / "stat").write_text("btime 1700000000\n")
            (proc / "7/stat").write_text("7 (train) S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 100 1000 200 0\n")
            (proc / "7/cgroup").write_text("0::/system.slice/docker-" + "a" * 64 + ".scope\n")
            scenario = ACCOUNTING_ON + "processes: [{pid: 7, name: train, gpus: 0, memory: 1GiB, load: gemm, real: true}]\n"
            needed = self.on_real_names(f"--docker-socket={path}", f"--proc-root={proc}",
                                        environment={"NVML_SIM_SCENARIO": str(self.write("needed.yaml", scenario))})
            self.assert_said(needed, "docker", "warn", "500")
        self.assert_said(self.on_real_names("--podman-socket="), "podman", "ok", "as the settings say")

    def api_server(self):
        """A server, and the environment and the command before a program that make it the program's API server."""
        if not can_unshare() or not shutil.which("openssl"):
            self.skipTest("needs root, namespaces and openssl")
        account = self.folder / "account"
        account.mkdir()
        (account / "token").write_text("secret")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.folder / "key",
                        "-out", account / "ca.crt", "-days", "2", "-subj", "/CN=test", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(account / "ca.crt", self.folder / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port)}
        # In a mount namespace of its own the program finds the account where every pod has it.
        place = "/run/secrets/kubernetes.io/serviceaccount"
        before = [*PRIVATE, "sh", "-c",
                  f'mount -t tmpfs none /run && mkdir -p {place} && cp {account}/* {place}/ && exec "$@"', "sh"]
        return server, environment, before

    def test_api_server_and_its_rights(self):
        server, environment, before = self.api_server()
        look = lambda *more: self.on_real_names("--kubernetes-enabled=true", "--node-name=n1", *more,
                                                environment=environment, before=before)
        replies = {"now": (403, b'{"kind":"Status","message":"pods is forbidden"}')}
        with self.serving(server, lambda _: replies["now"]):
            self.assert_said(look(), "apiserver", "FAIL", "RBAC", "pods list, watch", "ClusterRole")
            replies["now"] = (401, b"{}")
            self.assert_said(look(), "apiserver", "FAIL", "does not accept the token")
            replies["now"] = (200, json.dumps(NO_PODS).encode())
            self.assert_said(look(), "apiserver", "ok", "this node's pods")
        self.assert_said(look(), "apiserver", "FAIL", f"127.0.0.1:{server.server_port}", "network policies")

    def test_an_api_server_that_takes_its_time_is_no_failing_source(self):
        server, environment, before = self.api_server()
        named, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)
        self.addCleanup(named.set)

        def answer(path):
            (over if "watch" in path else named).wait()
            return 200, json.dumps(NO_PODS).encode()

        port = harness.free_port()
        command = [*before, harness.BINARY, "serve", "--backend=nvml", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
                   f"--listen-address=127.0.0.1:{port}", *harness.FAST, "--kubernetes-enabled=true", "--node-name=n1",
                   f"--pod-resources-socket={self.folder}/none/k.sock", f"--pods-api-socket={self.folder}/none/p.sock"]
        environment["NVML_SIM_SCENARIO"] = str(self.write("s.yaml", ACCOUNTING_ON))
        with self.serving(server, answer), harness.Program(command, environment) as program:
            metrics = lambda: harness.metrics_at(port)
            first = harness.wait_until(metrics, "metrics")
            self.assertFalse(first.find("gpu_ledger_source_up", source="apiserver"), "it has answered already")
            self.assertEqual(first.find("gpu_ledger_pod_names_missing"), [], "not known yet")
            named.set()
            harness.wait_until(lambda: metrics().find("gpu_ledger_source_up", source="apiserver"), "the answer")
            self.assertEqual(metrics().value("gpu_ledger_pod_names_missing"), 0)
            failing = [line for line in program.log().splitlines() if "source fails" in line]
            self.assertEqual([line for line in failing if "name=pod-resources" not in line], [])
            self.assertEqual(len(failing), 1, "its socket is not there")
            over.set()

    def test_textfile(self):
        proc = self.fake_proc()
        look = lambda path: self.simulated(ACCOUNTING_ON, f"--textfile={path}", f"--proc-root={proc}")
        os.chmod(self.folder, 0o755)
        self.assert_said(look(f"{self.folder}/none/x.prom"), "textfile", "FAIL", f"{self.folder}/none")
        self.assert_said(look(f"{self.folder}/x.txt"), "textfile", "FAIL", ".prom")
        self.assert_said(look(f"{self.folder}/proc"), "textfile", "FAIL", "is a folder")
        path = self.folder / "x.prom"
        self.assert_said(look(path), "textfile", "ok", f"--collector.textfile.directory={self.folder}")
        self.assertFalse(path.exists())
        path.write_text("")
        os.utime(path, (time.time() - 900, time.time() - 900))
        self.assert_said(look(path), "textfile", "warn", " minutes ago")
        (proc / "77").mkdir()
        (proc / "77/cmdline").write_text("/bin/node_exporter\0--collector.textfile.directory=/elsewhere\0--x\0")
        self.assert_said(look(path), "textfile", "warn", "reads /elsewhere,", "--collector.textfile.directory")
        (proc / "77/cmdline").write_text("/bin/node_exporter\0--x\0")
        self.assert_said(look(path), "textfile", "warn", "reads no folder,")
        (proc / "77/cmdline").write_text("vi\0/etc/default/prometheus-node-exporter\0")
        self.assert_said(look(path), "textfile", "warn", " minutes ago")
        (proc / "77/cmdline").write_text("/usr/bin/prometheus-node-exporter\0")
        self.assert_said(look(path), "textfile", "warn", "reads /var/lib/prometheus/node-exporter,")
        os.chmod(self.folder, 0o700)
        self.assert_said(look(path), "textfile", "warn", "chmod o+rx")

    def test_read_only_folder(self):
        if not can_unshare():
            self.skipTest("needs root and namespaces")
        shut = self.folder / "shut"
        shut.mkdir()
        before = [*PRIVATE, "sh", "-c", f'mount -t tmpfs -o ro none {shut} && exec "$@"', "sh"]
        files = [f"--textfile={shut}/x.prom", f"--state-file={shut}/state"]
        findings = self.simulated(ACCOUNTING_ON, *files, before=before)
        self.assert_said(findings, "textfile", "FAIL", "Read-only")
        self.assert_said(findings, "state file", "FAIL", "Read-only")

    def test_state_file(self):
        self.assert_said(self.simulated(ACCOUNTING_ON, f"--state-file={self.folder}/state"), "state file", "ok")
        self.assert_said(self.simulated(ACCOUNTING_ON, f"--state-file={self.folder}/none/state"), "state file", "FAIL",
                         f"{self.folder}/none")
        (self.folder / "dir").mkdir()
        folder = self.simulated(ACCOUNTING_ON, f"--state-file={self.folder}/dir")
        self.assert_said(folder, "state file", "FAIL", "no file")
        self.assertEqual(sorted(os.listdir(self.folder)), ["dir", "s.yaml"], "nothing is left behind")

    def test_listen_address(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_said(self.simulated(ACCOUNTING_ON, f"--listen-address={address}"), "listen address", "warn",
                             address, "--listen-address")
        self.assert_said(self.simulated(ACCOUNTING_ON, f"--listen-address=unix:{self.folder}/none/s"), "listen address",
                         "FAIL", f"{self.folder}/none/s")
        self.simulated(ACCOUNTING_ON, f"--listen-address=unix:{self.folder}/free")
        self.assertFalse((self.folder / "free").exists())

    def test_split_error_of_the_running_exporter(self):
        with harness.Ledger(scenario=self.write("s.yaml", ACCOUNTING_ON)) as ledger:
            findings = self.simulated(ACCOUNTING_ON, f"--listen-address=127.0.0.1:{ledger.port}")
            self.assert_said(findings, "split error", "ok", "nothing yet")
        self.assertNotIn("split error:", self.simulated().text, "no exporter runs")
        books = {"at": 1, "processes": [], "gpus": [
            {"index": 2, "attribution_error_ratio": 0.043, "attribution_comparisons": 12}]}
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        with self.serving(server, lambda _: (200, json.dumps(books).encode())):
            findings = self.simulated(ACCOUNTING_ON, f"--listen-address=127.0.0.1:{server.server_port}")
            self.assert_said(findings, "split error", "ok", "GPU 2 off by about 4 % (12 comparisons)")


if __name__ == "__main__":
    unittest.main()
