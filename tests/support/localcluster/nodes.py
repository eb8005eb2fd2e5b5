"""Simulated nodes: made, killed, revived and deleted. Mixed into Cluster."""

from pathlib import Path

from .components import NODE_LABEL
from .waiting import ClusterError, wait_for

HERE = Path(__file__).resolve().parent
DEAD_NODES = "/api/v1/namespaces/kube-system/configmaps/holdfast-test-dead-nodes"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
DEFAULT_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "2000"}
FENCE_LIMIT_SECONDS = 30


class NodesMixin:
    """Expects `api`, `kubectl`, `options` and `log_path` of Cluster."""

    def add_node(self, name, labels=None, capacity=None, wait=True):
        """Creates a simulated node; with `wait` returns when a pod can be scheduled to it."""
        size = dict(DEFAULT_CAPACITY, **(capacity or {}))
        node = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {}, **{
                NODE_LABEL: "fake", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"})},
            "status": {"capacity": size, "allocatable": size},
        }
        self._expect(self.api("POST", "/api/v1/nodes", node), f"create node {name}")
        if wait:
            self.wait_node_ready(name)

    def wait_node_ready(self, name, limit=60):
        """Until the node is Ready and has lost the taints that keep pods away."""
        if not self.options["controller_manager"]:
            wait_for(f"node {name} to be Ready", lambda: self._is_ready(name), limit,
                     self.log_path("kwok"))
            self._patch_node(name, {"spec": {"taints": None}})  # nobody else would
        wait_for(f"node {name} to be Ready and without taints",
                 lambda: self._is_ready(name) and not self.node(name)["spec"].get("taints"),
                 limit, self.log_path("kwok"))

    def node(self, name):
        """The node object."""
        return self._expect(self.api("GET", f"/api/v1/nodes/{name}"), f"get node {name}")

    def node_lease(self, name):
        """The node's Lease, or None."""
        status, lease = self.api("GET", f"{NODE_LEASES}/{name}")
        return lease if status == 200 else None

    def kill_node(self, name):
        """From its return on nothing comes from the node: no renewal, no status of its pods.

        Its object stays, as after a power loss. Deleted pods on it stay Terminating.
        """
        self._patch_dead({name: "dead"})
        self._patch_node(name, {"metadata": {"labels": {NODE_LABEL: None}}})
        wait_for(f"writes of the dead node {name} to be refused",
                 lambda: self._write_as_kwok(name) in (403, 422), FENCE_LIMIT_SECONDS,
                 self.log_path("kube-apiserver"))

    def revive_node(self, name, wait=True):
        """The node comes back: it renews its Lease and reports what became of its pods."""
        self._patch_dead({name: None})
        wait_for(f"writes of the revived node {name} to be accepted",
                 lambda: self._write_as_kwok(name) == 200, FENCE_LIMIT_SECONDS,
                 self.log_path("kube-apiserver"))
        self._patch_node(name, {"metadata": {"labels": {NODE_LABEL: "fake"}}})
        if wait:
            self.wait_node_ready(name)

    def is_dead(self, name):
        """Whether kill_node() was called last, and not revive_node()."""
        status, marks = self.api("GET", DEAD_NODES)
        return status == 200 and name in marks.get("data", {})

    def delete_node(self, name):
        """Removes the node object; its pods stay until pod GC takes them."""
        self._expect(self.api("DELETE", f"/api/v1/nodes/{name}"), f"delete node {name}")
        self._patch_dead({name: None})

    def _install_dead_nodes_policy(self):
        self.kubectl("apply", "-f", str(HERE / "dead-nodes.yaml"))

    def _release_node_leases(self):
        # A new kwok has a new identity and would wait until its predecessor's hold has run out.
        for lease in self._expect(self.api("GET", NODE_LEASES), "list node Leases")["items"]:
            self._expect(self.api("PATCH", f"{NODE_LEASES}/{lease['metadata']['name']}",
                                  {"spec": {"holderIdentity": None}}, "merge"), "release a node Lease")

    def _introduce_nodes(self, alive=None):
        """Takes the living nodes from kwok and gives them back: until it holds their Leases, and once
        more.

        A node that it finds at its start it asks for before it has read the Leases: it tries to create
        one that exists, and tries again after 10 s. A node that comes later has its Lease at once.

        It looks at the pods that a node has when it takes the node's Lease, and passes them over where
        its own watch has not told it yet that the Lease is its own: they would never start. The second
        time it knows.
        """
        listed = self._expect(self.api("GET", f"/api/v1/nodes?labelSelector={NODE_LABEL}%3Dfake"),
                              "list nodes")
        names = [node["metadata"]["name"] for node in listed["items"]]

        def are_held():
            missing = [name for name in names if not
                       (self.node_lease(name) or {}).get("spec", {}).get("holderIdentity")]
            self._take_and_give(missing)
            return not missing

        wait_for("kwok to hold its nodes' Leases", are_held, FENCE_LIMIT_SECONDS,
                 self.log_path("kwok"), alive=alive, poll=0.3)
        self._take_and_give(names)

    def _take_and_give(self, names):
        for label in (None, "fake"):
            for name in names:
                self._patch_node(name, {"metadata": {"labels": {NODE_LABEL: label}}})

    def _is_ready(self, name):
        conditions = self.node(name).get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def _write_as_kwok(self, name):
        """The status of a harmless write by the node: whether it is refused."""
        return self.api("PATCH", f"/api/v1/nodes/{name}/status?dryRun=All",
                        {"metadata": {"annotations": {"holdfast-test/probe": "x"}}}, "merge",
                        user="kwok", groups=("system:masters",))[0]

    def _patch_dead(self, data):
        self._expect(self.api("PATCH", DEAD_NODES, {"data": data}, "merge"), "mark dead nodes")

    def _patch_node(self, name, patch):
        self._expect(self.api("PATCH", f"/api/v1/nodes/{name}", patch, "merge"),
                     f"patch node {name}")

    @staticmethod
    def _expect(answer, what):
        status, body = answer
        if not 200 <= status < 300:
            message = body.get("message") if isinstance(body, dict) else body
            raise ClusterError(f"{what}: {status} {message}")
        return body
