"""Every version of every DurableJob and pod of a namespace, as etcd itself tells it.

A watch of the API server loses versions when the server is killed, and this record is what the
invariants are judged by, so it is read from below: etcd's own watch, which goes on where it was cut
off. Pods are only readable there when the API server stores them as JSON (STORE_AS_JSON).

    with Cluster(nodes=3, apiserver_flags=[STORE_AS_JSON]) as cluster:
        with Recorder(cluster, "default") as record:
            ...
            record.wait_ended(["job-1"], 60)
            check(record, ...)                  # invariants.py
"""

import base64
import collections
import http.client
import json
import socket
import threading
import time

from localcluster import wait_for

STORE_AS_JSON = "--storage-media-type=application/json"
TERMINAL = {"Succeeded", "Failed", "Cancelled"}
FINALIZER = "holdfast.dev/outcome"
ATTEMPT_LABEL = "holdfast.dev/attempt"

# One version of one object. `revision` is its resourceVersion and orders the versions of all
# objects; `object` is what stood there last when it was `deleted`; `seen` is time.monotonic() here.
Version = collections.namedtuple("Version", "kind name uid revision deleted object seen")


class Recorder:
    """Records from __enter__ to __exit__, in a namespace that is empty at the start. All methods
    may be called while it runs."""

    KINDS = {"job": "/registry/holdfast.dev/durablejobs/{}/", "pod": "/registry/pods/{}/"}

    def __init__(self, cluster, namespace="default"):
        self._cluster = cluster
        self._prefixes = {kind: path.format(namespace) for kind, path in self.KINDS.items()}
        self._grown = threading.Condition()
        self._versions = []
        self._latest = {}  # (kind, name) -> Version
        self._reached = {}
        self._stopped = False
        self._connections = {}
        self._threads = []

    def __enter__(self):
        start = self._start_revision()
        for kind in self._prefixes:
            self._reached[kind] = start
            thread = threading.Thread(target=self._follow, args=(kind,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopped = True
        for connection in list(self._connections.values()):
            if connection.sock:
                connection.sock.shutdown(socket.SHUT_RDWR)  # closing alone wakes no reader
        for thread in self._threads:
            thread.join(timeout=10)

    # -- what was recorded --------------------------------------------------------------------

    def versions(self, kind):
        """{uid: [versions, oldest first]} of what was recorded so far."""
        with self._grown:
            found = collections.defaultdict(list)
            for version in self._versions:
                if version.kind == kind:
                    found[version.uid].append(version)
        for history in found.values():
            history.sort(key=lambda version: version.revision)
        return dict(found)

    def status(self, name):
        """The newest status of a job."""
        with self._grown:
            version = self._latest.get(("job", name))
        return version.object.get("status", {}) if version and not version.deleted else {}

    def unfinished(self, names):
        """Those of the jobs that are not in a terminal phase, or not there yet."""
        return [name for name in names if self.status(name).get("phase") not in TERMINAL]

    def finalizers(self):
        """The names of the pods that still carry ours."""
        with self._grown:
            return [version.name for version in self._latest.values()
                    if version.kind == "pod" and not version.deleted
                    and FINALIZER in version.object["metadata"].get("finalizers", [])]

    def size(self):
        with self._grown:
            return len(self._versions)

    # -- waiting ------------------------------------------------------------------------------

    def wait_grown(self, size, limit):
        """Until so many versions were recorded, or `limit` seconds have passed. How many are."""
        with self._grown:
            self._grown.wait_for(lambda: len(self._versions) >= size, limit)
            return len(self._versions)

    def wait_ended(self, names, limit):
        """Until all these jobs are terminal and no pod carries our finalizer; then all that etcd
        has is in the record."""
        names = list(names)

        def ended():
            return not self.unfinished(names) and not self.finalizers()

        try:
            wait_for("all jobs to end and all pods to be released", ended, limit, poll=0.5)
        except Exception as error:
            left = {name: self.status(name) for name in self.unfinished(names)[:5]}
            raise AssertionError(
                f"{error}; {len(self.unfinished(names))} of {len(names)} jobs have not ended, "
                f"{len(self.finalizers())} pods have our finalizer; the first: "
                f"{json.dumps(left, indent=1)}") from error
        wait_for("the record to be complete", self._is_complete, 60)

    def _is_complete(self):
        for kind, prefix in self._prefixes.items():
            answer = self._cluster.etcd("/v3/kv/range", {
                "key": _encode(prefix), "range_end": _encode(_end_of(prefix)), "keys_only": True})
            stored = {_decode(kv["key"])[len(prefix):]: int(kv["mod_revision"]) for kv in answer.get("kvs", [])}
            if self._newest(kind) != stored:
                return False
        return True

    def _newest(self, kind):
        """{name: revision} of the objects that are there, as far as the record knows."""
        with self._grown:
            return {version.name: version.revision for version in self._latest.values()
                    if version.kind == kind and not version.deleted}

    # -- following etcd -----------------------------------------------------------------------

    def _start_revision(self):
        """What was written up to here is not recorded."""
        return self._cluster.etcd_revision()

    def _follow(self, kind):
        while not self._stopped:
            try:
                self._stream(kind)
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                # etcd was killed: it comes back with all that it had acknowledged.
                with self._grown:
                    self._grown.wait(0.1)

    def _stream(self, kind):
        prefix = self._prefixes[kind]
        connection = http.client.HTTPConnection("127.0.0.1", self._cluster.ports["etcd"])
        self._connections[kind] = connection
        connection.request("POST", "/v3/watch", json.dumps({"create_request": {
            "key": _encode(prefix), "range_end": _encode(_end_of(prefix)),
            "start_revision": str(self._reached[kind] + 1)}}))
        answer = connection.getresponse()
        while line := answer.readline():
            result = json.loads(line)["result"]
            if result.get("canceled"):
                raise AssertionError(f"etcd ended the record's watch: {result}")
            events = result.get("events", [])
            with self._grown:
                for event in events:
                    self._keep(kind, _decode(event["kv"]["key"])[len(prefix):], event)
                self._grown.notify_all()
        connection.close()

    def _keep(self, kind, name, event):
        deleted = event.get("type") == "DELETE"
        body = (self._latest[(kind, name)].object if deleted else json.loads(base64.b64decode(event["kv"]["value"])))
        self._keep_version(kind, name, deleted, body, int(event["kv"]["mod_revision"]))

    def _keep_version(self, kind, name, deleted, body, revision):
        version = Version(kind, name, body["metadata"]["uid"], revision, deleted, body, time.monotonic())
        self._versions.append(version)
        self._latest[(kind, name)] = version
        self._reached[kind] = revision


def _encode(text):
    return base64.b64encode(text.encode()).decode()


def _decode(text):
    return base64.b64decode(text).decode()


def _end_of(prefix):
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
