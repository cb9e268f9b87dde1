# SPDX-License-Identifier: Apache-2.0
"""A client of the API server, as much as the tests need. Standard library only."""

import http.client
import json
import ssl
import urllib.parse

import harness
from parts import Failure, wait_for

# Kind: path before the namespace, plural.
KINDS = {
    "Namespace": ("/api/v1", "namespaces"),
    "Node": ("/api/v1", "nodes"),
    "Pod": ("/api/v1", "pods"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
}
WITHOUT_NAMESPACE = {"Namespace", "Node", "ClusterRole", "ClusterRoleBinding"}


class Api:
    def __init__(self, host, port, authority, token):
        self.host, self.port, self.token = host, port, token
        self.context = ssl.create_default_context(cafile=str(authority))

    def request(self, method, path, body=None, content_type="application/json"):
        """(status, JSON or text) of one request on a connection of its own."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=harness.NET, context=self.context)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            reply = connection.getresponse()
            text = reply.read().decode("utf-8", errors="replace")
            is_json = "json" in reply.getheader("Content-Type", "")
            return reply.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def path(self, kind, namespace=None, name=None):
        base, plural = KINDS[kind]
        middle = f"/namespaces/{namespace}" if namespace and kind not in WITHOUT_NAMESPACE else ""
        return f"{base}{middle}/{plural}" + (f"/{name}" if name else "")

    def call(self, method, path, body=None, accepted=(200, 201, 202), content_type="application/json"):
        status, value = self.request(method, path, body, content_type)
        if status not in accepted:
            reason = value.get("message", value) if isinstance(value, dict) else value
            raise Failure(f"{method} {path} answered {status}: {reason}")
        return value

    def create(self, document):
        """Makes an object. One that is there already stays as it is."""
        meta = document["metadata"]
        path = self.path(document["kind"], meta.get("namespace"))
        return self.call("POST", path, document, accepted=(200, 201, 409))

    def path_of(self, document, namespace):
        """Where the API server keeps an object of any kind, by its own word."""
        version = document["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        found = [one for one in self.call("GET", base)["resources"]
                 if one["kind"] == document["kind"] and "/" not in one["name"]]
        if not found:
            raise Failure(f"no kind {document['kind']} in {version}")
        meta = document["metadata"]
        middle = f"/namespaces/{meta.get('namespace', namespace)}" if found[0]["namespaced"] else ""
        return f"{base}{middle}/{found[0]['name']}/{meta['name']}"

    def apply(self, document, namespace, dry=False):
        """Server-side apply of an object of any kind. Unknown fields are errors."""
        query = "?fieldManager=tests&force=true&fieldValidation=Strict" + ("&dryRun=All" if dry else "")
        return self.call("PATCH", self.path_of(document, namespace) + query, document,
                         content_type="application/apply-patch+yaml")

    def merge(self, path, change):
        return self.call("PATCH", path, change, content_type="application/merge-patch+json")

    def get(self, kind, name, namespace=None):
        status, value = self.request("GET", self.path(kind, namespace, name))
        return value if status == 200 else None

    def list(self, kind, namespace=None, labels=None):
        query = "?" + urllib.parse.urlencode({"labelSelector": labels}) if labels else ""
        return self.call("GET", self.path(kind, namespace) + query)["items"]

    def delete(self, kind, name, namespace=None):
        """Deletes it and waits until it is gone."""
        # Without this a pod without grace would be gone from the API before its processes are gone from the node.
        options = {"gracePeriodSeconds": 1} if kind == "Pod" else {}
        self.call("DELETE", self.path(kind, namespace, name), options, accepted=(200, 202, 404))
        wait_for(lambda: self.get(kind, name, namespace) is None, f"the end of {kind} {namespace}/{name}")

    def running_pod(self, namespace, name):
        def runs():
            pod = self.get("Pod", name, namespace)
            return pod if pod and is_running(pod) else None

        return wait_for(runs, f"{namespace}/{name} to run")

    def running_pods(self, labels, count, namespace):
        """Exactly count pods with these labels, once the containers of all of them run."""

        def all_run():
            pods = self.list("Pod", namespace, labels)
            runs = [pod for pod in pods if is_running(pod) and "deletionTimestamp" not in pod["metadata"]]
            return pods if len(pods) == len(runs) == count else None

        return wait_for(all_run, f"{count} running pods with {labels}")


def is_running(pod):
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and all("running" in status["state"] for status in statuses)
