# SPDX-License-Identifier: Apache-2.0
"""What the tests ask of Kubernetes."""

from stage import IMAGE

SECURITY = {"runAsUser": 0, "privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}}
GROUP = "rbac.authorization.k8s.io"


def sleeper(name, devices=None, seconds=1000000):
    """A container that does nothing; the simulated driver says what it does on a GPU."""
    container = {"name": name, "image": IMAGE, "imagePullPolicy": "Never",
                 "command": ["/bin/busybox", "sleep", str(seconds)]}
    if devices:
        container["resources"] = {"limits": devices}
    return container


def pod_spec(containers, **more):
    # Nothing handles SIGTERM here, so there is no use in waiting for it.
    return {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
            "containers": containers, **more}


def pod(namespace, name, containers, labels=None, **more):
    place = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": place, "spec": pod_spec(containers, **more)}


def workload(kind, namespace, name, spec, labels=None, **more):
    labels = {"app": name, **(labels or {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": labels}, "spec": spec}, **more}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def account(name, rules):
    """A service account with these rights in the whole cluster, and no others."""
    place = {"name": name, "namespace": "gpu-ledger"}
    documents = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}]
    if rules:
        documents += [
            {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
            {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", **place}]}]
    return documents


def ledger(name, port, arguments, folders, environment, token):
    """Our own DaemonSet: gpu-ledger with the simulated driver, as few rights as it needs on the node."""

    def from_field(variable, path):
        return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    container = {
        "name": "gpu-ledger", "image": IMAGE, "imagePullPolicy": "Never", "securityContext": SECURITY,
        "command": ["/usr/bin/gpu-ledger", "serve", "--backend=nvml",
                    "--nvml-library=/usr/lib/gpu-ledger/sim/libnvidia-ml.so.1", f"--listen-address=127.0.0.1:{port}",
                    "--sample-interval=500ms", "--process-scan-interval=1s", "--idle-interval=1s", *arguments],
        "env": [from_field("NODE_NAME", "spec.nodeName"), from_field("NODE_IP", "status.hostIP"),
                *({"name": key, "value": value} for key, value in environment.items())],
        "readinessProbe": {"httpGet": {"host": "127.0.0.1", "port": port, "path": "/readyz"}, "periodSeconds": 1},
        "volumeMounts": [{"name": f"folder-{index}", "mountPath": folder, "readOnly": True}
                         for index, folder in enumerate(folders)]}
    spec = pod_spec(
        [container], hostPID=True, serviceAccountName=name, automountServiceAccountToken=token,
        volumes=[{"name": f"folder-{index}", "hostPath": {"path": folder}} for index, folder in enumerate(folders)])
    return workload("DaemonSet", "gpu-ledger", name, spec)
