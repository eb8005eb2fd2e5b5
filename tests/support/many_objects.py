"""An API server of very many finished jobs, and of some that run, with their pods and nodes, all at rest
(resting_objects.py): as much of one as an operator asks that has nothing to do but read. It answers lists and watches
as servers without streamed lists do: a list at version 0 comes in one body, whatever its limit. It selects jobs by
status.settled and status.shard, and pods by their labels.

    with ManyObjects(100_000) as server:
        ... an operator on server.kubeconfig(folder) ...
        server.cut_off(12)
        server.expire("durablejobs")
        server.lists  # (plural, whether of metadata alone, query) of each list
        server.writes  # should be empty
"""

import collections
import itertools
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from resting_objects import BARE_TEXTS, NODE_TEXT, SHARDS, TEXTS, values

VERSION = 100_000_000  # of each list; leases are written from there on
BATCH = 500
RENEWAL_SECONDS = 10  # of a node's Lease
KEPT_EVENTS = 100_000
PAUSE = 0.25  # of a watch without events
BOOKMARK_SECONDS = 60  # and 2 s before the end, as the API server has it
OPERATORS, NODES = "holdfast-system", "kube-node-lease"
LEASES = re.compile(f"/namespaces/({OPERATORS}|{NODES})/leases")
OTHER_KINDS = ("leases", "nodes", "jobqueues", "workerpools")
EXPIRED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
           "message": "too old resource version"}


class ManyObjects:
    def __init__(self, count, bookmarks=True, running=0, selects=True, pods=None, nodes=1, streams=False):
        """count: finished jobs, of which the last ones have pods; pods: how many, by default all. running: further
        jobs, after them, with pods. selects: by a field; else it refuses that. streams: lists through watches."""
        self.selects, self.bookmarks, self.streams = selects, bookmarks, streams
        self.finished, self.count, self.nodes = count, count + running, nodes
        self.first = {"durablejobs": 0, "pods": 0 if pods is None else max(0, count - pods)}
        self.lists = []
        self.walks = {}  # over finished jobs, by selector: the last one
        self.sent = 0  # bytes of lists
        self.writes = []  # other than of the operator's Leases
        # By namespace: {name: (version, text)}, and (version, text) of each event.
        self.leases = {OPERATORS: {}, NODES: {}}
        self.events = {namespace: collections.deque(maxlen=KEPT_EVENTS) for namespace in self.leases}
        self.version = VERSION
        self.lock = threading.Lock()
        self.has_news = threading.Condition(self.lock)  # of the operator's Leases
        self.is_cut = threading.Event()
        self.is_silent = threading.Event()  # nothing is answered, and no connection breaks
        self.is_over = threading.Event()
        self.expired = collections.Counter()

    def __enter__(self):
        handler = type("Handler", (_Handler,), {"objects": self})
        self.server = _Server(("127.0.0.1", 0), handler)
        for node in range(self.nodes):
            self.renew(node)
        for work in (self.server.serve_forever, self.renew_nodes):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.is_cut.set()
        self.is_over.set()
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

    def renew_nodes(self):
        """A tenth of the nodes each second, so that a watch has few events at a time."""
        for turn in itertools.count():
            if self.is_over.wait(1):
                return
            for node in range(turn % RENEWAL_SECONDS, self.nodes, RENEWAL_SECONDS):
                self.renew(node)

    def renew(self, node):
        name = f"node-{node}"
        self.put_lease(NODES, {
            "metadata": {"name": name, "namespace": NODES, "uid": f"lease-uid-{node}"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40,
                     "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}})

    def put_lease(self, namespace, body, must_fit=False):
        """Its text. None: it must replace the version that it names, or be new, and does not."""
        with self.lock:
            meta, leases = body["metadata"], self.leases[namespace]
            name, before = meta["name"], meta.get("resourceVersion", "0")
            if must_fit and int(before) != leases.get(name, (0, ""))[0]:
                return None
            self.version += 1
            meta["resourceVersion"] = str(self.version)
            meta.setdefault("uid", "uid-of-" + name)
            type_, text = b"MODIFIED" if name in leases else b"ADDED", json.dumps(body).encode()
            leases[name] = (self.version, text)
            self.events[namespace].append((self.version, event(type_, text)))
            if namespace == OPERATORS:
                self.has_news.notify_all()
        return text

    def events_since(self, namespace, version):
        """Their texts; and up to which version these are all. It waits for some for PAUSE, and only those of the
        operator's Leases end that: somebody waits for them."""
        if namespace != OPERATORS:
            self.is_cut.wait(PAUSE)
        events = self.events.get(namespace, ())
        with self.lock:
            if namespace == OPERATORS:
                self.has_news.wait_for(lambda: events and events[-1][0] > version, PAUSE)
            newest_first = itertools.takewhile(lambda one: one[0] > version, reversed(events))
            return [text for _, text in newest_first][::-1], self.version

    def selected(self, plural, query):
        """Between which numbers those are that the request selects, and the shards that it leaves out. None: the server
        cannot."""
        fields = query.get("fieldSelector", "").split(",") if plural == "durablejobs" else []
        if not self.selects and any(field.startswith("status.") for field in fields):
            return None
        labels = query.get("labelSelector", "") if plural == "pods" else ""
        if "holdfast.dev/worker-pool" in labels:
            return 0, 0, set()
        shards = [field.removeprefix("status.shard!=") for field in fields if field.startswith("status.shard!=")]
        shards += re.findall(r"\d+-of-\d+", labels)
        others = {int(shard.partition("-")[0]) for shard in shards if shard.endswith(f"-of-{SHARDS}")}
        first = self.finished if "status.settled!=true" in fields else self.first[plural]
        last = self.finished if "status.settled=true" in fields else self.count
        return (first, last if len(others) < SHARDS else first, others)

    def texts(self, plural, bare, numbers):
        """Those of these jobs or pods."""
        texts = BARE_TEXTS if bare else TEXTS
        finished, running = texts[plural, "finished"], texts[plural, "running"]
        for number in numbers:
            yield (finished if number < self.finished else running) % values(number, self.nodes)

    def others(self, plural, path):
        """The texts of all objects of another kind."""
        if plural == "nodes":
            return [NODE_TEXT % values(node, self.nodes) for node in range(self.nodes)]
        namespace = LEASES.search(path)
        with self.lock:
            return [text for _, text in self.leases[namespace[1]].values()] if namespace else []


def numbers_of(first, last, others):
    return range(first, last) if not others else (one for one in range(first, last) if one % SHARDS not in others)


def event(type_, text):
    return b'{"type":"%s","object":%s}\n' % (type_, text)


def bookmark(version, **meta):
    return event(b"BOOKMARK", json.dumps({"metadata": {"resourceVersion": str(version), **meta}}).encode())


def in_batches(texts):
    texts = iter(texts)
    while batch := list(itertools.islice(texts, BATCH)):
        yield batch


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a replica takes all shards at once

    def handle_error(self, *client):
        """A client that gives up is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*client)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the last chunk of a page waits for the client's delayed acknowledgement
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
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, reason, message):
        self.answer(code, {"kind": "Status", "code": code, "reason": reason, "message": message})

    def chunk(self, data):
        """How many bytes."""
        if self.objects.is_cut.is_set():
            raise ConnectionError
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        return len(data)

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
            if plural in self.objects.first or plural in OTHER_KINDS:
                selected = self.objects.selected(plural, query) if plural in self.objects.first else ()
                if "watch" in query:
                    self.watch(plural, query, selected)
                else:
                    self.list(plural, url, query, selected)
            else:
                self.get(url.path, plural)
        except OSError:
            self.close_connection = True

    def get(self, path, name):
        leases = LEASES.search(path)
        found = self.objects.leases[leases[1]].get(name) if leases else None
        if found:
            self.answer(200, found[1])
        else:
            self.refuse(404, "NotFound", "not found")

    def is_bare(self):
        return "PartialObjectMetadata" in self.headers.get("Accept", "")

    def list(self, plural, url, query, selected):
        objects = self.objects
        began = time.monotonic()
        version = objects.version
        if selected == ():
            items = b",".join(objects.others(plural, url.path))
            meta = b'{"resourceVersion":"%d"}' % version
            return self.answer(200, b'{"kind":"List","metadata":%s,"items":[%s]}' % (meta, items))
        objects.lists.append((plural, self.is_bare(), url.query))
        if selected is None:
            return self.refuse(400, "BadRequest", "field label not supported: status.settled")
        first, last, others = selected
        limit = 0 if query.get("resourceVersion") == "0" else int(query.get("limit", 0))
        numbers = numbers_of(int(query.get("continue", first)), last, others)
        page = list(itertools.islice(numbers, limit + 1)) if limit else list(numbers)
        meta = {"resourceVersion": str(version)}
        if limit and len(page) > limit:
            meta["continue"] = str(page.pop())
        self.begin_chunks()
        sent = self.chunk(b'{"kind":"List","metadata":%s,"items":[' % json.dumps(meta).encode())
        separator = b""
        for batch in in_batches(objects.texts(plural, self.is_bare(), page)):
            sent += self.chunk(separator + b",".join(batch))
            separator = b","
        sent += self.chunk(b"]}")
        self.wfile.write(b"0\r\n\r\n")
        self.note(query, began, len(page), sent, is_last="continue" not in meta)

    def note(self, query, began, jobs, sent, is_last):
        objects, selector = self.objects, query.get("fieldSelector", "")
        with objects.lock:
            objects.sent += sent
            if "status.settled=true" not in selector:
                return
            if "continue" not in query:
                objects.walks[selector] = {"began": began, "jobs": 0, "sending": 0.0}
            walk = objects.walks[selector]
            walk["jobs"] += jobs
            walk["sending"] += time.monotonic() - began
            walk["ended"] = time.monotonic() if is_last else None

    def stream(self, plural, selected):
        """All objects, as a watch's first events; the version up to which these are."""
        objects, sent, version = self.objects, 0, self.objects.version
        texts = (objects.texts(plural, self.is_bare(), numbers_of(*selected)) if selected
                 else objects.others(plural, self.path))
        for batch in in_batches(texts):
            sent += self.chunk(b"".join(event(b"ADDED", text) for text in batch))
        sent += self.chunk(bookmark(version, annotations={"k8s.io/initial-events-end": "true"}))
        with objects.lock:
            objects.sent += sent
        return version

    def watch(self, plural, query, selected):
        objects = self.objects
        if "sendInitialEvents" in query and (selected is None or not objects.streams):
            return self.refuse(422, "Invalid", "sendInitialEvents is forbidden for watch")
        self.begin_chunks()
        expired = objects.expired[plural]
        until = time.monotonic() + int(query["timeoutSeconds"])
        last_bookmark = until - 2
        bookmark_due = min(time.monotonic() + BOOKMARK_SECONDS, last_bookmark)
        told = self.stream(plural, selected) if "sendInitialEvents" in query else int(query["resourceVersion"])
        namespace = LEASES.search(self.path)
        while time.monotonic() < until:
            if objects.is_cut.is_set():
                raise ConnectionError
            if objects.is_silent.is_set():
                objects.is_cut.wait(PAUSE)
                continue
            events, told = objects.events_since(namespace and namespace[1], told)
            if objects.expired[plural] > expired:
                self.chunk(event(b"ERROR", json.dumps(EXPIRED).encode()))
                break
            if time.monotonic() >= bookmark_due and objects.bookmarks:
                is_last = bookmark_due >= last_bookmark
                bookmark_due = until + 1 if is_last else min(bookmark_due + BOOKMARK_SECONDS, last_bookmark)
                events.append(bookmark(told))
            if events:
                self.chunk(b"".join(events))
        self.wfile.write(b"0\r\n\r\n")

    def body(self):
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) < length:
            raise ConnectionError
        return data

    def write(self, status):
        """Of the operator's own Leases. Other writes are noted, and change nothing."""
        data = self.body()
        body = json.loads(data) if data else {}
        if f"/namespaces/{OPERATORS}/leases" in self.path:
            text = self.objects.put_lease(OPERATORS, body, must_fit=True)
            reason = "AlreadyExists" if self.command == "POST" else "Conflict"
            return self.answer(status, text) if text else self.refuse(409, reason, "the Lease has another version")
        self.objects.writes.append(f"{self.command} {self.path}")
        self.answer(status, body)

    def do_POST(self):
        self.write(201)

    def do_PUT(self):
        self.write(200)

    def do_PATCH(self):
        self.write(200)

    def do_DELETE(self):
        self.body()
        if self.objects.leases[OPERATORS].pop(self.path.rsplit("/", 1)[1], None) is None:
            self.objects.writes.append(f"DELETE {self.path}")
        self.answer(200, {"kind": "Status", "status": "Success"})
