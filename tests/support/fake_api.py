"""An API server of a few lines: objects that a test sets, watches that stay open, and refusals.

It is there for what a real one does not do when asked: to forget who somebody is, or to be slow. It speaks plain http,
and asks for a token.
"""

import http.server
import json
import threading
import urllib.parse

JOBS = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"
COLLECTIONS = ("/durablejobs", "/events", "/leases", "/pods")
TOKEN = "a-token"


def durable_job(name, **status):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "5",
                         "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:1.36"}]}}},
            "status": {"phase": "Running", **status}}


class FakeApi:
    def __init__(self):
        self.objects = {}  # by path
        self.refusal = None  # the HTTP status of every answer
        self.token = TOKEN
        self.seen = []  # (method, path, Authorization)
        self._changed = threading.Condition()
        self._version = 5
        self._rounds = 0  # watches of an earlier round end
        self._server = None

    def __enter__(self):
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                api._answer(self)

            def do_POST(self):
                api._answer(self)

            do_PATCH = do_POST

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def kubeconfig(self, user=None):
        return {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                "users": [{"name": "u", "user": user or {"token": TOKEN}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}]}

    def put(self, path, item):
        with self._changed:
            self._version += 1
            item["metadata"]["resourceVersion"] = str(self._version)
            self.objects[path] = item
            self._changed.notify_all()

    def end_watches(self):
        with self._changed:
            self._rounds += 1
            self._changed.notify_all()

    def refuse(self, status):
        """Every request from now on, and the watches that are open end."""
        self.refusal = status
        self.end_watches()

    def _answer(self, request):
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        length = int(request.headers.get("Content-Length", 0))
        body = json.loads(request.rfile.read(length)) if length else None
        # A watch belongs to the round in which a test could first see it: refuse() ends that one too.
        with self._changed:
            began_in = self._rounds
            self.seen.append((request.command, request.path, request.headers.get("Authorization")))
        if self.refusal:
            return self._refused(request, self.refusal)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._refused(request, 401)
        if query.get("watch"):
            return self._watch(request, url.path, query, began_in)
        if request.command == "POST":
            path = f"{url.path}/{body['metadata']['name']}"
            body["metadata"].update(uid=f"uid-{body['metadata']['name']}", namespace="default")
            self.put(path, body)
            return self._send(request, 201, body)
        if request.command == "PATCH":
            self.objects[url.path]["spec"].update(body["spec"])
            self.put(url.path, self.objects[url.path])
        if url.path in self.objects:
            return self._send(request, 200, self.objects[url.path])
        if not url.path.endswith(COLLECTIONS):
            return self._refused(request, 404)
        items = [item for path, item in self.objects.items() if path.startswith(url.path + "/")]
        return self._send(request, 200, {"kind": "List", "apiVersion": "v1", "items": items,
                                         "metadata": {"resourceVersion": str(self._version)}})

    def _refused(self, request, status):
        reason = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound"}.get(status, "InternalError")
        message = {403: 'durablejobs is forbidden: User "u" cannot list resource',
                   404: 'durablejobs.holdfast.dev "film-17" not found'}.get(status, reason)
        self._send(request, status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                                     "message": message, "code": status})

    def _send(self, request, status, answer):
        text = json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def _watch(self, request, path, query, began_in):
        """Changes until end_watches()."""
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()

        def tell(kind, item):
            line = (json.dumps({"type": kind, "object": item}) + "\n").encode()
            request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

        def of_path():
            return [item for name, item in self.objects.items() if name.startswith(path + "/")]

        with self._changed:
            told = int(query.get("resourceVersion") or self._version)
            if "sendInitialEvents" in query:
                told = self._version
                for item in of_path():
                    tell("ADDED", item)
                tell("BOOKMARK", {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {
                    "resourceVersion": str(told), "annotations": {"k8s.io/initial-events-end": "true"}}})
            while began_in == self._rounds:
                for item in of_path():
                    if int(item["metadata"]["resourceVersion"]) > told:
                        tell("MODIFIED", item)
                told = self._version
                self._changed.wait()
        request.wfile.write(b"0\r\n\r\n")
