"""etcd through its JSON gateway: plain HTTP on loopback, no etcdctl. Mixed into Cluster."""

import base64
import json
import urllib.request
import uuid

# etcd takes 128 writes in one transaction, and 1.5 MiB.
WRITES_AT_ONCE = 120
BYTES_AT_ONCE = 1_000_000


def text(key):
    """As the gateway wants keys."""
    return _text(key.encode())


def _text(data):
    return base64.b64encode(data).decode()


class EtcdMixin:
    """Expects `ports` of Cluster."""

    def etcd(self, path, body, timeout=10):
        """One call of the v3 JSON gateway, e.g. etcd("/v3/kv/compaction", {...})."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['etcd']}{path}",
                                         data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        # No proxy: the address is loopback whatever the environment says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as response:
            return json.load(response)

    def etcd_revision(self):
        """The store's current revision: what the API server calls resourceVersion."""
        return int(self.etcd("/v3/maintenance/status", {})["header"]["revision"])

    def compact_etcd(self, revision=None):
        """Drops history up to `revision` (default: all): lists and watches from before get 410.

        A watch is served from the API server's own cache while that reaches back far enough;
        restart the API server (kill_apiserver, start_apiserver) to have it forget as well.
        """
        revision = revision or self.etcd_revision()
        self.etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True}, timeout=60)
        return revision

    def copy_in_etcd(self, keys, uids, name, names):
        """Copies the objects with these keys, e.g. "/registry/pods/default/job-1000-1", once for each of `names`.

        Makes a hundred thousand objects in a minute, where the API server would take half an hour. In a copy
        `name` is replaced, and each of `uids` by a new one. Built-in kinds are protobuf there, with lengths before
        their texts, so that all names must be as long as `name`.
        """
        seeds = [self._value(key) for key in keys]
        uids = {uid.encode() for uid in uids}
        writes, size = [], 0
        for other in names:
            if len(other) != len(name):
                raise ValueError(f"{other} is not as long as {name}")
            own = {uid: str(uuid.uuid4()).encode() for uid in uids}
            for key, seed in zip(keys, seeds):
                value = seed.replace(name.encode(), other.encode())
                for uid, fresh in own.items():
                    value = value.replace(uid, fresh)
                if len(writes) == WRITES_AT_ONCE or size + len(value) > BYTES_AT_ONCE:
                    self._put_all(writes)
                    writes, size = [], 0
                writes.append({"key": text(key.replace(name, other)), "value": _text(value)})
                size += len(value)
        self._put_all(writes)

    def etcd_entries(self, keys_only=False, limit=0):
        """[(key, value, revision)] of what the API server stores; values are base64, or None."""
        asked = {"key": text("/registry/"), "range_end": text("/registry0"),
                 "keys_only": keys_only, "limit": str(limit)}
        return [(base64.b64decode(entry["key"]).decode(), entry.get("value"), int(entry["mod_revision"]))
                for entry in self.etcd("/v3/kv/range", asked, timeout=60).get("kvs", [])]

    def etcd_value(self, key):
        """The value as etcd_entries has it, or None: there is no such key."""
        found = self.etcd("/v3/kv/range", {"key": text(key)}).get("kvs")
        return found[0]["value"] if found else None

    def write_etcd(self, requests):
        """Performs these operations of a transaction in this order, as many at once as etcd takes."""
        for first in range(0, len(requests), WRITES_AT_ONCE):
            self.etcd("/v3/kv/txn", {"success": requests[first:first + WRITES_AT_ONCE]}, timeout=60)

    def _value(self, key):
        return base64.b64decode(self.etcd_value(key))

    def _put_all(self, writes):
        self.write_etcd([{"requestPut": write} for write in writes])
