"""Several replicas of the operator on one installation, each under a user of its own, so that the audit
log tells who wrote what.

    with Replicas(cluster, 3) as replicas:
        replicas.wait_shared()
        replicas[0].kill()
        ...
        assert trespasses(cluster, offset) == []
"""

import collections
import json

import yaml

from holdfast import RBAC_PATH, Operator
from localcluster import wait_for
from losses import seconds_of

SHARDS = 32
LEASES = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases"
USER = "replica-"
_MASK = (1 << 64) - 1


def _hash64(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = ((value ^ byte) * 1099511628211) & _MASK
    return value


def _mixed(value):
    value = ((value ^ (value >> 33)) * 0xFF51AFD7ED558CCD) & _MASK
    value = ((value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53) & _MASK
    return value ^ (value >> 33)


def shard_of(uid):
    """As reconciler/shards.h has it."""
    return _mixed(_hash64(uid)) % SHARDS


def admit(cluster, user):
    """Gives a user the operator's rights."""
    objects = [it for it in yaml.safe_load_all(RBAC_PATH.read_text()) if it["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    for item in objects:
        item["metadata"]["name"] = f"{user}-{item['metadata']['name']}"
        item["subjects"][0]["name"] = user
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
    return cluster.kubeconfig_for(user)


class Replicas:
    """Started together; a list of Operators."""

    def __init__(self, cluster, count, *flags, leases=(), kubeconfigs=None):
        self.cluster = cluster
        self.all = []
        for number in range(count):
            user = f"{USER}{number}"
            kubeconfig = admit(cluster, user)
            if kubeconfigs and number in kubeconfigs:
                kubeconfig = kubeconfigs[number](kubeconfig)
            self.all.append(Operator(cluster, *flags, name=user, kubeconfig=kubeconfig, leases=leases))

    def __enter__(self):
        for operator in self.all:
            operator.spawn()
        for operator in self.all:
            wait_for(f"{operator.name} to be ready", lambda op=operator: op.find_address() and
                     op.get("/readyz")[0] == 200, 120)
        return self

    def __exit__(self, *_):
        for operator in self.all:
            operator.__exit__()

    def __getitem__(self, number):
        return self.all[number]

    def __iter__(self):
        return iter(self.all)

    def wait_shared(self, among=None, limit=120):
        """Until every shard is held by one of these, and each has its fair share."""
        names = {operator.name for operator in (self.all if among is None else among)}
        wait_for(f"the shards to be shared among {sorted(names)}", lambda: fair(held_by(self.cluster), names), limit)


def holders(cluster):
    """{shard: replica's name or ""} as the Leases say."""
    found = {}
    for lease in cluster.api("GET", LEASES)[1]["items"]:
        name = lease["metadata"]["name"]
        if name.startswith("holdfast-shard-"):
            holder = lease["spec"].get("holderIdentity") or ""
            found[int(name.removeprefix("holdfast-shard-"))] = holder.rpartition("-")[0]
    return found


def held_by(cluster):
    """{replica's name: number of shards}"""
    return collections.Counter(holders(cluster).values())


def fair(counts, names):
    return (sum(counts.values()) == SHARDS and set(counts) == set(names)
            and max(counts.values()) - min(counts.values()) <= 1)


def ownership(operator):
    """What /debug/ownership answers."""
    status, text = operator.get("/debug/ownership")
    assert status == 200, text
    return json.loads(text)


# A tenure of a shard, by the audit log: nobody else may write from `began` to `ended`.
Tenure = collections.namedtuple("Tenure", "shard user began ended")
# A write on a job or its pods by a replica, accepted or not.
Write = collections.namedtuple("Write", "user shard at what name code")


def _replica_events(cluster, offset):
    for event in cluster.audit_events(offset)[0]:
        if event["user"]["username"].startswith(USER) and event["verb"] in ("create", "update", "patch", "delete"):
            yield event


def tenures(cluster, offset):
    """From the accepted writes of shard Leases: a tenure begins when the write that took it arrived,
    and ends when the one that gave it to another, or to nobody, was answered. The widest reading: what
    lies outside is no matter of how fast the log was written."""
    changes = collections.defaultdict(list)
    for event in _replica_events(cluster, offset):
        about = event.get("objectRef", {})
        body = event.get("requestObject", {})
        name = about.get("name") or body.get("metadata", {}).get("name", "")
        if about.get("resource") != "leases" or not name.startswith("holdfast-shard-"):
            continue
        if not 200 <= event.get("responseStatus", {}).get("code", 0) < 300:
            continue
        # Each was accepted for the version that it had read: that orders them.
        version = int(body["metadata"].get("resourceVersion", 0))
        changes[int(name.removeprefix("holdfast-shard-"))].append(
            (version, seconds_of(event["requestReceivedTimestamp"]), seconds_of(event["stageTimestamp"]),
             event["user"]["username"] if body["spec"].get("holderIdentity") else None))
    found = []
    for shard, list_of in changes.items():
        list_of.sort()
        for number, (_, began, _, user) in enumerate(list_of):
            later = [change for change in list_of[number + 1:] if change[3] != user]
            if user:
                found.append(Tenure(shard, user, began, later[0][2] if later else float("inf")))
    return found


def job_writes(cluster, offset, uids):
    """All writes on jobs and pods by replicas. `uids`: {(namespace, job's name): uid}"""
    found = []
    for event in _replica_events(cluster, offset):
        about = event.get("objectRef", {})
        if about.get("resource") not in ("durablejobs", "pods"):
            continue
        body = event.get("requestObject", {})
        name = about.get("name") or body.get("metadata", {}).get("name", "")
        job = name if about["resource"] == "durablejobs" else name.rsplit("-", 2)[0]
        uid = uids.get((about.get("namespace"), job))
        if uid:
            found.append(Write(event["user"]["username"], shard_of(uid),
                               seconds_of(event["requestReceivedTimestamp"]),
                               f"{event['verb']} {about['resource']}", name,
                               event.get("responseStatus", {}).get("code", 0)))
    return found


def trespasses(cluster, offset, uids):
    """Writes of a replica on a job whose shard it did not hold then: there may be none, whatever the
    API server answered."""
    held = collections.defaultdict(list)
    for tenure in tenures(cluster, offset):
        held[(tenure.shard, tenure.user)].append(tenure)
    writes = job_writes(cluster, offset, uids)
    assert writes, "no replica wrote anything: the audit log was read wrongly"
    return [write for write in writes if not any(
        tenure.began <= write.at <= tenure.ended for tenure in held[(write.shard, write.user)])]
