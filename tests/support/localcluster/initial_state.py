"""Resets a running cluster to the state of an earlier moment, so that it can serve one test file after the other.

    state = InitialState(cluster)
    ...                            # a test file's work
    state.restore()                # or Unlike: throw the cluster away

restore() writes to etcd what the API server stored at that moment, and deletes the other keys. The API server, the
controllers, the scheduler and kwok get ordinary watch events of it. Nodes and their Leases are different: kwok and the
node controllers must not see them go back in time. restore() corrects nodes through the API.
"""

import datetime
import os
import time

from .etcd import text
from .waiting import ClusterError, wait_for

# To delete more keys takes longer than to start another cluster.
MOST_KEYS_MORE = 3000
ROUNDS = 20
# Controllers react to a change within this time. On a busy machine another round sees it.
QUIET_SECONDS = 0.25
END_LIMIT_SECONDS = 10
# kwok renews a node's Lease every 10 s.
FRESH_LEASE_SECONDS = 25

NODES, NODE_LEASES, EVENTS = "/registry/minions/", "/registry/leases/kube-node-lease/", "/registry/events/"
# The API server renews these about itself.
OWN = ("/registry/masterleases/", "/registry/leases/kube-system/apiserver-")
# The API server has handlers and schemas in memory for these: they are not changed under its feet. It compiles changed
# policies a second later, and nothing says when.
DEFINITIONS = ("/registry/apiextensions.k8s.io/", "/registry/apiregistration.k8s.io/",
               "/registry/validatingadmissionpolic", "/registry/mutatingadmissionpolic",
               "/registry/validatingwebhookconfigurations/", "/registry/mutatingwebhookconfigurations/")
# The order of deletion: nobody can create objects in a namespace that is gone, and no controller creates dependents of
# an owner that is gone.
OWNERS_FIRST = ("/registry/namespaces/", "/registry/holdfast.dev/", "/registry/cronjobs/", "/registry/deployments/",
                "/registry/statefulsets/", "/registry/daemonsets/", "/registry/replicasets/", "/registry/jobs/")


class Unlike(Exception):
    """The cluster cannot be reset; the message says why."""


class InitialState:
    """The state of a cluster when this object is made. Not for clusters with `pods_apart`: it reads one etcd only.

    One thread at a time."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._pids = self._parts()
        wait_for("the control plane to have settled", self._settled, 60, poll=0)
        self._values, self._revisions = self._read()
        self._nodes = {node["metadata"]["name"]: node for node in self._list_nodes()}

    def restore(self):
        """Raises Unlike if the cluster cannot be reset. Then it is in no known state."""
        self._check_processes()
        try:
            for name in self._nodes:
                self._restore_node(name)
            self._wait_namespaces_gone()
            self._restore_stored()
            for name in self._nodes:
                self._check_node(name)
        except (ClusterError, OSError) as error:
            raise Unlike(str(error)) from error
        self._forget_files()

    # -- processes ----------------------------------------------------------------------------

    def _parts(self):
        """{name: pid}; None instead of the pid of a part that does not run."""
        return {name: part["pid"] if part["running"] and not part["paused"] else None
                for name, part in self._cluster.processes().items()}

    def _check_processes(self):
        if not self._cluster.is_up():
            raise Unlike("its supervisor has ended")
        changed = {name for name, _ in self._parts().items() ^ self._pids.items()}
        if changed:
            raise Unlike(f"processes were started, ended or paused: {sorted(changed)}")
        strays = self._strays()
        if strays:
            raise Unlike(f"a client still runs: {strays}")

    def _strays(self):
        """The command lines of this process' descendants that have the cluster's folder or port in their arguments or
        environment, without the cluster's own processes."""
        marks = [str(self._cluster.folder).encode(), str(self._cluster.ports["kube-apiserver"]).encode()]
        parents, told = {}, {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                    parents[int(entry)] = int(stat.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{entry}/cmdline", "rb") as line, open(f"/proc/{entry}/environ", "rb") as environment:
                    told[int(entry)] = line.read().replace(b"\0", b" "), environment.read()
            except OSError:
                continue  # gone meanwhile, or somebody else's
        found, below = [], {os.getpid()}
        while below:
            below = {pid for pid, parent in parents.items() if parent in below and
                     b"/supervisor.py " not in told.get(pid, (b"",))[0]}
            found += [told[pid][0].decode(errors="replace")[:200] for pid in below & told.keys()
                      if any(mark in words for mark in marks for words in told[pid])]
        return found

    # -- nodes --------------------------------------------------------------------------------

    def _list_nodes(self):
        status, nodes = self._cluster.api("GET", "/api/v1/nodes")
        if status != 200:
            raise ClusterError(f"the nodes cannot be listed: {nodes}")
        return nodes["items"]

    def _restore_node(self, name):
        """_restore_stored deletes the nodes that were added."""
        before = self._nodes[name]
        found = [node for node in self._list_nodes() if node["metadata"]["uid"] == before["metadata"]["uid"]]
        if not found:
            raise Unlike(f"the node {name} was deleted")
        if self._cluster.is_dead(name):
            self._cluster.revive_node(name)
        for path in ("", "/status"):
            node = self._cluster.node(name)
            if self._shape(node) != self._shape(before):
                node["metadata"]["labels"], node["spec"] = before["metadata"]["labels"], before["spec"]
                node["status"].update(capacity=before["status"]["capacity"],
                                      allocatable=before["status"]["allocatable"])
                status, answer = self._cluster.api("PUT", f"/api/v1/nodes/{name}{path}", node)
                if status != 200:
                    raise Unlike(f"the node {name} cannot be put back: {answer}")

    def _check_node(self, name):
        node, lease = self._cluster.node(name), self._cluster.node_lease(name)
        if self._shape(node) != self._shape(self._nodes[name]):
            raise Unlike(f"the node {name} is not as it was")
        renewed = (lease or {}).get("spec", {}).get("renewTime", "1970-01-01T00:00:00Z")
        age = time.time() - datetime.datetime.fromisoformat(renewed.replace("Z", "+00:00")).timestamp()
        if age > FRESH_LEASE_SECONDS:
            raise Unlike(f"the node {name} does not renew its Lease")

    @staticmethod
    def _shape(node):
        """The fields of a node that are put back, and whether it is Ready."""
        ready = [condition["status"] for condition in node["status"].get("conditions", [])
                 if condition["type"] == "Ready"]
        return (ready, node["metadata"]["labels"], node["spec"].get("taints", []),
                node["spec"].get("unschedulable", False), node["status"]["capacity"], node["status"]["allocatable"])

    # -- what etcd holds ----------------------------------------------------------------------

    def _read(self):
        """({key: value}, {key: revision}) of what is put back through etcd."""
        kept = [entry for entry in self._cluster.etcd_entries()
                if not entry[0].startswith((*OWN, EVENTS, NODES, NODE_LEASES))]
        return {key: value for key, value, _ in kept}, {key: revision for key, _, revision in kept}

    def _settled(self):
        """Whether nothing is written for a moment, and each namespace has the objects that controllers create in it."""
        before = self._read()[1]
        time.sleep(QUIET_SECONDS)
        revisions = self._read()[1]
        if not self._cluster.options["controller_manager"]:
            return revisions == before
        names = [key.rsplit("/", 1)[1] for key in revisions if key.startswith("/registry/namespaces/")]
        return revisions == before and all(
            f"/registry/serviceaccounts/{name}/default" in revisions and
            f"/registry/configmaps/{name}/kube-root-ca.crt" in revisions for name in names)

    def _wait_namespaces_gone(self):
        """The namespace controller deletes a namespace's objects by its name: it could delete those of the next
        namespace with this name."""
        def gone():
            status, namespaces = self._cluster.api("GET", "/api/v1/namespaces")
            return status == 200 and not any("deletionTimestamp" in namespace["metadata"]
                                             for namespace in namespaces["items"])

        wait_for("the deleted namespaces to be gone", gone, END_LIMIT_SECONDS)

    def _restore_stored(self):
        """Writes until nothing differs any more: controllers may react to each write."""
        for _ in range(ROUNDS):
            deleted, put = self._differences()
            definitions = [key for key in deleted + put if key.startswith(DEFINITIONS)]
            if definitions:
                raise Unlike(f"definitions or policies were changed: {definitions}")
            self._cluster.write_etcd(
                [{"requestDeleteRange": {"key": text(key)}} for key in deleted] +
                [{"requestPut": {"key": text(key), "value": self._values[key]}} for key in put])
            if not put and all(key.startswith(EVENTS) for key in deleted):
                return
            time.sleep(QUIET_SECONDS)
        raise Unlike(f"something keeps writing: {(deleted + put)[:10]}")

    def _differences(self):
        """The keys (to be deleted, to be put back)."""
        limit = len(self._values) + MOST_KEYS_MORE
        found = {key: revision for key, _, revision in self._cluster.etcd_entries(keys_only=True, limit=limit)}
        if len(found) == limit:
            raise Unlike("too many objects are left")
        put = []
        for key, value in self._values.items():
            if found.get(key) != self._revisions[key]:
                if key in found and self._cluster.etcd_value(key) == value:
                    self._revisions[key] = found[key]
                else:
                    put.append(key)
        return sorted((key for key in found if self._is_new(key)), key=self._rank), put

    def _is_new(self, key):
        if key.startswith((NODES, NODE_LEASES)):
            return key.rsplit("/", 1)[1] not in self._nodes
        return key not in self._values and not key.startswith(OWN)

    @staticmethod
    def _rank(key):
        return next((rank for rank, prefix in enumerate(OWNERS_FIRST) if key.startswith(prefix)), len(OWNERS_FIRST))

    # -- files --------------------------------------------------------------------------------

    def _forget_files(self):
        """Operators and users of the next file may have the same names. The API server keeps its audit log open."""
        for path in [*self._cluster.folder.glob("*.log"), *self._cluster.folder.glob("kubeconfigs/user-*")]:
            if path.name != "supervisor.log":
                path.unlink()
        self._cluster.begin_audit()
