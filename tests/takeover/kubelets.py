"""The kubelets of instances that are in moto alone: each gets its Node, and kwok keeps that alive."""

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request

GROUPS = {
    "nodeclaims": "/apis/karpenter.sh/v1/nodeclaims",
    "nodepools": "/apis/karpenter.sh/v1/nodepools",
    "ec2nodeclasses": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/namespaces/default/pods",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "deployments": "/apis/apps/v1/namespaces/default/deployments",
}


class Api:
    """The API server, through kubectl's proxy: no library is needed for that."""

    def __init__(self):
        self.proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.address = "http://" + self.proxy.stdout.readline().split()[-1]

    def call(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": kind}, method=method)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # Definitions that were replaced are out of reach for a moment.
                if error.code != 429:
                    raise
                time.sleep(1)

    def list(self, what):
        return self.call("GET", GROUPS[what])["items"]

    def create(self, what, body):
        return self.call("POST", GROUPS[what], body)

    def patch(self, what, name, body):
        return self.call("PATCH", f"{GROUPS[what]}/{name}", body, "application/merge-patch+json")

    def delete(self, what, name):
        return self.call("DELETE", f"{GROUPS[what]}/{name}")


class Kubelets(threading.Thread):
    def __init__(self, api):
        super().__init__(daemon=True)
        self.api = api
        # NodePools whose new instances do not join yet.
        self.held = set()
        self.start()

    def run(self):
        while True:
            try:
                self.turn()
            # Definitions and labels that are not there yet, and a Node that was made a moment ago.
            except (urllib.error.URLError, OSError, KeyError):
                pass
            time.sleep(1)

    def turn(self):
        nodes = {node["spec"].get("providerID"): node for node in self.api.list("nodes")}
        for claim in self.api.list("nodeclaims"):
            instance = claim.get("status", {}).get("providerID")
            pool = claim["metadata"]["labels"].get("karpenter.sh/nodepool")
            is_going = "deletionTimestamp" in claim["metadata"]
            if instance and instance not in nodes and pool not in self.held and not is_going:
                self.api.create("nodes", node_of(claim))
        for node in nodes.values():
            # What a DaemonSet does that starts a node.
            taints = node["spec"].get("taints", [])
            left = [it for it in taints if it["key"] != "example.com/starting"]
            if "karpenter.sh/registered" in node["metadata"]["labels"] and len(left) < len(taints):
                self.api.patch("nodes", node["metadata"]["name"], {"spec": {"taints": left}})


def node_of(claim):
    """What a kubelet says of itself, by the user data that the autoscaler gave its instance."""
    status, spec = claim["status"], claim["spec"]
    name = "node-" + status["providerID"].rpartition("/")[2]
    taints = [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
    return {
        "metadata": {
            "name": name,
            "labels": {**claim["metadata"]["labels"], "kubernetes.io/hostname": name},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {
            "providerID": status["providerID"],
            "taints": taints + spec.get("taints", []) + spec.get("startupTaints", []),
        },
        "status": {"capacity": status["capacity"], "allocatable": status["allocatable"]},
    }
