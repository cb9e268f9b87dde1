# SPDX-License-Identifier: Apache-2.0
"""A whole Kubernetes node with its control plane, in namespaces of its own.

`run` starts Python inside new mount and network namespaces and in cgroups of its own; nothing here works outside of
them. The node's folders are mounted over the machine's, which stay as they are, and there is no network but loopback and
a bridge. When Python ends, `run` ends all that is left in the cgroups and removes them.
"""

import concurrent.futures
import json
import os
import pathlib
import secrets
import signal

import api
from parts import Child, Failure, call, libraries_of, wait_for, write_image

NODE = "stage-node"
NODE_ADDRESS = "10.99.0.1"
SERVICE_ADDRESS = "10.96.0.1"  # the first of the service range: the API server's own service
IMAGE = "gpu-ledger.test/node:1"
CRI_SOCKET = "/run/containerd/containerd.sock"
USERS = {  # token name: (user, groups)
    "admin": ("admin", "system:masters"),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "scheduler": ("system:kube-scheduler", ""),
    "controllers": ("system:kube-controller-manager", ""),
}
CONTROLLERS = (
    "deployment-controller", "replicaset-controller", "daemonset-controller", "serviceaccount-controller",
    "root-ca-certificate-publisher-controller", "namespace-controller", "garbage-collector-controller",
    "pod-garbage-collector-controller", "node-lifecycle-controller")
# What the kubelet wants to change. Files that already say so are mounted over them: the machine's stay as they are.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
COVERED_FOLDERS = ("/etc", "/var")  # as they are, but what is written stays here
EMPTY_FOLDERS = ("/run", "/var/lib/kubelet", "/var/log")


class Stage:
    """Use as a context; `alone` is a kubelet with static pods and no control plane. Pods of a class in `limited` need a quota
    for it in their namespace, as GKE has it for the classes of the system."""

    def __init__(self, devices, alone=False, limited=()):
        self.folder = pathlib.Path(os.environ["GPU_LEDGER_STAGE_FOLDER"])
        self.cluster = os.environ["GPU_LEDGER_CLUSTER_BINARY"]
        self.cgroup = os.environ["GPU_LEDGER_STAGE_CGROUP"]
        self.devices, self.alone, self.limited = devices, alone, limited
        self.pki, self.manifests, self.logs = (self.folder / name for name in ("pki", "manifests", "logs"))
        self.tokens = {name: secrets.token_hex(16) for name in USERS}
        self.children = []
        self.api = None

    def __enter__(self):
        if os.environ.get("GPU_LEDGER_STAGE_INSIDE") != "yes":
            raise Failure("start this through tests/cluster/run")
        try:
            self.build_node()
            with concurrent.futures.ThreadPoolExecutor() as together:
                runtime = together.submit(self.start_runtime)
                if not self.alone:
                    self.start_control_plane()
                runtime.result()
            self.start_kubelet()
            self.start_device_plugin()
            if not self.alone:
                wait_for(self.node_is_ready, "a ready node with its devices")
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.stop(signal.SIGKILL)

    # The machine

    def build_node(self):
        for folder in (self.pki, self.manifests, self.logs):
            folder.mkdir(exist_ok=True)
        cover = self.folder / "cover"
        cover.mkdir()
        call("mount", "-t", "tmpfs", "stage", cover)
        for folder in COVERED_FOLDERS:
            upper, work = cover / f"upper{folder}", cover / f"work{folder}"
            upper.mkdir(parents=True)
            work.mkdir(parents=True)
            call("mount", "-t", "overlay", "stage", "-o", f"lowerdir={folder},upperdir={upper},workdir={work}", folder)
        for folder in EMPTY_FOLDERS:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            call("mount", "-t", "tmpfs", "stage", folder)
        call("mount", "--make-rshared", "/var/lib/kubelet")
        for name, value in KERNEL_SETTINGS.items():
            setting = pathlib.Path("/proc/sys") / name
            if not setting.exists():
                continue
            instead = self.folder / name.replace("/", ".")
            instead.write_text(f"{value}\n")
            call("mount", "--bind", instead, setting)
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "stage0", "type", "bridge")
        for address in (NODE_ADDRESS, SERVICE_ADDRESS):
            call("ip", "address", "add", f"{address}/32", "dev", "stage0")
        call("ip", "link", "set", "stage0", "up")

    def spawn(self, name, *command, environment=None):
        child = Child(name, command, self.logs, environment)
        self.children.append(child)
        return child

    def component(self, name, *arguments):
        # No cloud is asked who we are; there is no way out of here either.
        return self.spawn(name, self.cluster, name, *arguments, environment={"AWS_EC2_METADATA_DISABLED": "true"})

    # containerd

    def start_runtime(self):
        config = self.folder / "containerd.toml"
        config.write_text(f'''version = 2
root = "{self.folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{CRI_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.internal.v1.opt"]
  path = "{self.folder}/opt"
''')
        network = pathlib.Path("/etc/cni/net.d/10-stage.conflist")
        network.parent.mkdir(parents=True, exist_ok=True)
        # A node without a network of pods is not ready. All pods of the tests use the host's, so no plugin is called.
        network.write_text(json.dumps({"cniVersion": "0.4.0", "name": "stage", "plugins": [
            {"type": "bridge", "bridge": "stage1", "ipam": {"type": "host-local", "subnet": "10.98.0.0/24"}}]}))
        runtime = self.spawn("containerd", "containerd", "--config", config)
        wait_for(lambda: runtime.check() and self.ctr("version"), "containerd")
        archive = self.folder / "image.tar"
        self.write_node_image(archive)
        self.ctr("images", "import", archive)
        archive.unlink()

    def write_node_image(self, path):
        program = pathlib.Path(os.environ["GPU_LEDGER_BINARY"])
        driver = pathlib.Path(os.environ["GPU_LEDGER_SIM"]) / "libnvidia-ml.so.1"
        files = {"/bin/busybox": "/bin/busybox", "/usr/bin/gpu-ledger": program,
                 "/usr/lib/gpu-ledger/sim/libnvidia-ml.so.1": driver}
        for library in libraries_of(program) + libraries_of(driver):
            files[library] = library
        write_image(path, IMAGE, files, ["/bin/busybox", "sleep", "1000000"])

    def ctr(self, *arguments):
        return call("ctr", "--address", CRI_SOCKET, "--namespace", "k8s.io", *arguments)

    def main_pids(self):
        """{container id: pid of its first process}, sandboxes included, from containerd itself."""
        rows = [line.split() for line in self.ctr("tasks", "ls").splitlines()[1:]]
        return {row[0]: int(row[1]) for row in rows if row[2] == "RUNNING"}

    # Control plane

    def make_keys(self):
        def openssl(*arguments):
            call("openssl", *arguments, cwd=self.pki)

        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=stage-ca", "-keyout", "ca.key", "-out", "ca.crt")
        openssl("genrsa", "-out", "accounts.key", "2048")
        for name in ("kube-apiserver", "kubelet"):
            names = f"subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,DNS:{NODE},IP:127.0.0.1," \
                    f"IP:{NODE_ADDRESS},IP:{SERVICE_ADDRESS}"
            (self.pki / f"{name}.ext").write_text(names)
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                    "-keyout", f"{name}.key", "-out", f"{name}.csr")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                    "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        rows = [f'{self.tokens[name]},{user},{name}' + (f',"{groups}"' if groups else "")
                for name, (user, groups) in USERS.items()]
        (self.pki / "tokens.csv").write_text("\n".join(rows) + "\n")
        for name in USERS:
            (self.pki / f"{name}.kubeconfig").write_text(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "stage",
                "contexts": [{"name": "stage", "context": {"cluster": "stage", "user": name}}],
                "clusters": [{"name": "stage", "cluster": {
                    "server": f"https://{SERVICE_ADDRESS}:443", "certificate-authority": str(self.pki / "ca.crt")}}],
                "users": [{"name": name, "user": {"token": self.tokens[name]}}]}))

    def start_control_plane(self):
        self.make_keys()
        self.component("etcd", "--data-dir", self.folder / "etcd")
        key = self.pki / "accounts.key"
        admission = self.folder / "admission.yaml"
        admission.write_text(json.dumps({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [{
                "name": "ResourceQuota", "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [
                        {"resource": "pods", "matchScopes": [
                            {"scopeName": "PriorityClass", "operator": "In", "values": [name]}]}
                        for name in self.limited]}}]}))
        server = self.component(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=443",
            f"--advertise-address={NODE_ADDRESS}", "--service-cluster-ip-range=10.96.0.0/24",
            f"--tls-cert-file={self.pki}/kube-apiserver.crt", f"--tls-private-key-file={self.pki}/kube-apiserver.key",
            f"--token-auth-file={self.pki}/tokens.csv", "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--allow-privileged=true",  # as every distribution has it
            f"--admission-control-config-file={admission}")
        self.api = api.Api(SERVICE_ADDRESS, 443, self.pki / "ca.crt", self.tokens["admin"])
        wait_for(lambda: server.check() and self.api.call("GET", "/readyz"), "the API server")
        self.component("kube-scheduler", f"--kubeconfig={self.pki}/scheduler.kubeconfig", "--leader-elect=false")
        self.component(
            "kube-controller-manager", f"--kubeconfig={self.pki}/controllers.kubeconfig", "--leader-elect=false",
            "--use-service-account-credentials", f"--service-account-private-key-file={key}",
            f"--root-ca-file={self.pki}/ca.crt", "--controllers=" + ",".join(CONTROLLERS))

    def node_is_ready(self):
        for child in self.children:
            child.check()
        node = self.api.get("Node", NODE)
        if not node:
            return False
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
        offered = node["status"].get("allocatable", {})
        return ready and "taints" not in node["spec"] and all(
            offered.get(resource) == str(len(ids)) for resource, ids in self.devices.items())

    # Kubelet

    def start_kubelet(self):
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{CRI_SOCKET}", "cgroupDriver": "cgroupfs", "cgroupRoot": self.cgroup,
            "failCgroupV1": False, "failSwapOn": False, "oomScoreAdj": 0, "protectKernelDefaults": True,
            "staticPodPath": str(self.manifests), "fileCheckFrequency": "1s", "syncFrequency": "1s",
            "nodeStatusUpdateFrequency": "1s", "resolvConf": "", "makeIPTablesUtilChains": False,
            "volumePluginDir": str(self.folder / "plugins"), "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False, "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"}}
        arguments = [f"--hostname-override={NODE}", f"--node-ip={NODE_ADDRESS}"]
        if self.alone:
            config["authentication"] = {"webhook": {"enabled": False}, "anonymous": {"enabled": True}}
            config["authorization"] = {"mode": "AlwaysAllow"}
        else:
            config["tlsCertFile"] = str(self.pki / "kubelet.crt")
            config["tlsPrivateKeyFile"] = str(self.pki / "kubelet.key")
            arguments.append(f"--kubeconfig={self.pki}/kubelet.kubeconfig")
        path = self.folder / "kubelet.json"
        path.write_text(json.dumps(config))
        self.kubelet = self.component("kubelet", f"--config={path}", *arguments)

    def kill_kubelet(self):
        self.kubelet.stop(signal.SIGKILL)
        self.children.remove(self.kubelet)

    def start_device_plugin(self):
        wait_for(lambda: self.kubelet.check() and pathlib.Path("/var/lib/kubelet/device-plugins/kubelet.sock").exists(),
                 "the kubelet's door for device plugins")
        self.component("device-plugin", *(f"{name}={','.join(ids)}" for name, ids in self.devices.items()))
