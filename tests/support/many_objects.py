"""An API server of very many finished jobs with their pods, and of some that run, at rest: as much of one as an operator asks
that has nothing to do but read. It answers lists and watches as servers without streamed lists do: a list
at version 0 comes in one body, whatever its limit. It selects jobs by status.settled and status.shard: job N has the shard
N modulo 32 of 32.

    with ManyObjects(100_000) as server:
        ... an operator on server.kubeconfig(folder) ...
        server.cut_off(12)
        server.expire("durablejobs")
        server.lists  # (path, query) of each list
"""

import collections
import json
import pathlib
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = 1_000_000  # of each list; leases are written from there on
BATCH = 500
SHARDS = 32
EXPIRED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
           "message": "too old resource version"}
BEGAN, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
MANAGED = [{"manager": f"manager-{i}", "operation": "Update", "apiVersion": "v1", "time": ENDED,
            "fieldsType": "FieldsV1", "fieldsV1": {f"f:field-{i}-{j}": {} for j in range(25)}} for i in range(2)]


def _meta(kind, **more):
    return {"name": kind + "-NUMBER", "namespace": "default", "uid": kind + "-uid-NUMBER",
            "resourceVersion": "VERSION", "creationTimestamp": BEGAN, "managedFields": MANAGED, **more}


def _job():
    template = {"metadata": {}, "spec": {"containers": [
        {"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
            "metadata": _meta("job", generation=1), "spec": {"template": template}, "status": {
                "phase": "Succeeded", "attempt": 1, "failures": 0, "disruptions": 0, "observedGeneration": 1,
                "startTime": BEGAN,
                "completionTime": ENDED, "settled": True, "shard": "SHARD-of-32", "history": [
                    {"attempt": 1, "podName": "pod-NUMBER", "nodeName": "node-1", "outcome": "Succeeded",
                     "reason": "Completed", "exitCode": 0, "startTime": BEGAN, "endTime": ENDED}],
                "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached",
                                "message": "x" * 500, "lastTransitionTime": ENDED}]}}


def _running_job():
    job = _job()
    job["status"] = {
        "phase": "Running", "attempt": 2, "failures": 1, "disruptions": 0, "observedGeneration": 1, "startTime": BEGAN,
        "shard": "SHARD-of-32",
        "history": [{"attempt": 1, "podName": "pod-NUMBER", "nodeName": "node-1", "outcome": "Failed", "reason": "Error",
                     "exitCode": 1, "startTime": BEGAN, "endTime": ENDED}],
        "waiting": {"reason": "PodRunning", "message": "pod pod-NUMBER runs", "since": ENDED}}
    return job


def _pod():
    owner = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": "job-NUMBER",
             "uid": "job-uid-NUMBER", "controller": True}
    labels = {"holdfast.dev/job-uid": "job-uid-NUMBER", "holdfast.dev/job-name": "job-NUMBER",
              "holdfast.dev/attempt": "1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _meta("pod", labels=labels, ownerReferences=[owner]),
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "busybox:1.36",
                                                           "args": ["x" * 500]}]},
            "status": {"phase": "Succeeded", "containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": ENDED}}}]}}


def _split(text):
    """Pieces between which the number and the version go."""
    return text.replace("VERSION", "NUMBER").encode().split(b"NUMBER")


class ManyObjects:
    def __init__(self, count, bookmarks=True, running=0, selects=True):
        """count: finished jobs. running: further ones, after them. selects: by a field; else it refuses that."""
        self.selects = selects
        self.lists = []
        self.finished, count = count, count + running
        self.count = count
        self.bookmarks = bookmarks
        self.whole = {"durablejobs": _split(json.dumps(_job())), "pods": _split(json.dumps(_pod()))}
        self.running = {**self.whole, "durablejobs": _split(json.dumps(_running_job()))}
        self.bare = {"durablejobs": _split(json.dumps({"metadata": _job()["metadata"]})),
                     "pods": _split(json.dumps({"metadata": _pod()["metadata"]}))}
        self.leases = {}
        self.events = []
        self.version = VERSION
        self.lock = threading.Lock()
        self.is_cut = threading.Event()
        self.is_silent = threading.Event()  # nothing is answered, and no connection breaks
        self.expired = collections.Counter()

    def __enter__(self):
        handler = type("Handler", (_Handler,), {"objects": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.is_cut.set()
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, folder):
        path = pathlib.Path(folder) / "many-objects.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": f"http://127.0.0.1:{self.server.server_address[1]}"}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))
        return str(path)

    def cut_off(self, seconds):
        """Every connection breaks, and nothing is answered."""
        self.is_cut.set()
        time.sleep(seconds)
        self.is_cut.clear()

    def expire(self, plural):
        """The watches of this kind end, for their version is too old."""
        self.expired[plural] += 1

    def selected(self, plural, query):
        """Between which numbers those are that the request selects, and the shards that it leaves out. None: the server
        cannot."""
        fields = query.get("fieldSelector", "").split(",") if plural == "durablejobs" else []
        if not self.selects and any(field.startswith("status.") for field in fields):
            return None
        first = self.finished if "status.settled!=true" in fields else 0
        others = {int(field.removeprefix("status.shard!=").removesuffix(f"-of-{SHARDS}"))
                  for field in fields if field.startswith("status.shard!=") and field != "status.shard!=none"}
        return first, self.finished if "status.settled=true" in fields else self.count, others

    def items(self, plural, bare, first, last, others=()):
        """Their texts, some hundreds at a time."""
        finished, running = ((self.bare,) * 2 if bare else (self.whole, self.running))
        for begin in range(first, last, BATCH):
            texts = [str(number).encode().join((finished if number < self.finished else running)[plural])
                     .replace(b"SHARD", str(number % SHARDS).encode())
                     for number in range(begin, min(begin + BATCH, last)) if number % SHARDS not in others]
            if texts:
                yield b",".join(texts)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = None

    def log_message(self, *_):
        pass

    def parse_request(self):
        if self.objects.is_cut.is_set():
            self.close_connection = True
            return False
        while self.objects.is_silent.is_set() and not self.objects.is_cut.wait(0.1):
            pass
        return super().parse_request()

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunk(self, data):
        if self.objects.is_cut.is_set():
            raise ConnectionError
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def begin_chunks(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        plural = url.path.rsplit("/", 1)[1]
        try:
            if "watch" in query:
                self.watch(plural, query)
            elif plural in self.objects.whole:
                self.list(plural, url, query)
            elif plural == "leases" and "holdfast-system" in url.path:
                items = list(self.objects.leases.values())
                self.answer(200, {"metadata": {"resourceVersion": str(self.objects.version)}, "items": items})
            elif plural in ("leases", "nodes"):
                self.answer(200, {"metadata": {"resourceVersion": str(self.objects.version)}, "items": []})
            elif plural in self.objects.leases:
                self.answer(200, self.objects.leases[plural])
            else:
                self.answer(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})
        except OSError:
            self.close_connection = True

    def list(self, plural, url, query):
        objects = self.objects
        bare = "PartialObjectMetadata" in self.headers.get("Accept", "")
        objects.lists.append((plural, bare, url.query))
        selected = objects.selected(plural, query)
        if selected is None:
            return self.answer(400, {"kind": "Status", "code": 400, "reason": "BadRequest",
                                     "message": "field label not supported: status.settled"})
        limit = 0 if query.get("resourceVersion") == "0" else int(query.get("limit", 0))
        first = int(query.get("continue", selected[0]))
        last = min(first + limit, selected[1]) if limit else selected[1]
        more = {"continue": str(last)} if last < selected[1] else {}
        self.begin_chunks()
        self.chunk(b'{"kind":"List","metadata":%s,"items":[' % json.dumps(
            {"resourceVersion": str(objects.version), **more}).encode())
        separator = b""
        for text in objects.items(plural, bare, first, last, selected[2]):
            self.chunk(separator + text)
            separator = b","
        self.chunk(b"]}")
        self.wfile.write(b"0\r\n\r\n")

    def watch(self, plural, query):
        if "sendInitialEvents" in query:
            return self.answer(422, {"kind": "Status", "code": 422, "reason": "Invalid",
                                     "message": "sendInitialEvents is forbidden for watch"})
        self.begin_chunks()
        told, expired = int(query["resourceVersion"]), self.objects.expired[plural]
        until = time.monotonic() + int(query["timeoutSeconds"])
        bookmark_due = until - 2  # as the API server has it
        while time.monotonic() < until:
            if self.objects.is_cut.wait(0.05):
                raise ConnectionError
            with self.objects.lock:
                events = [event for version, event in self.objects.events if version > told]
                told = self.objects.version
            if "holdfast-system" not in self.path:
                events = []
            if self.objects.is_silent.is_set():
                continue
            if self.objects.expired[plural] > expired:
                self.chunk(json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n")
                break
            if time.monotonic() >= bookmark_due and self.objects.bookmarks:
                bookmark_due = until + 1
                events.append({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(told)}}})
            for event in events:
                self.chunk(json.dumps(event).encode() + b"\n")
        self.wfile.write(b"0\r\n\r\n")

    def write_lease(self, status):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "/leases" not in self.path:
            return self.answer(201, body)
        with self.objects.lock:
            self.objects.version += 1
            meta = body["metadata"]
            meta["resourceVersion"] = str(self.objects.version)
            meta.setdefault("uid", "uid-of-" + meta["name"])
            is_new = meta["name"] not in self.objects.leases
            self.objects.leases[meta["name"]] = body
            self.objects.events.append(
                (self.objects.version, {"type": "ADDED" if is_new else "MODIFIED", "object": body}))
        self.answer(status, body)

    def do_POST(self):
        self.write_lease(201)

    def do_PUT(self):
        self.write_lease(200)

    def do_DELETE(self):
        self.objects.leases.pop(self.path.rsplit("/", 1)[1], None)
        self.answer(200, {"kind": "Status", "status": "Success"})
