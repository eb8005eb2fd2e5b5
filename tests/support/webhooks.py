"""A receiver of notifications over HTTPS, and the operator's file of targets.

    with Receiver(folder) as receiver:
        flags = targets_flags(folder, [receiver.target("chat", events=["Failed"])])
        with Operator(cluster, *flags): ...
        receiver.answers = [500, 204]  # the first messages; later ones get the last answer
        message = receiver.wait(lambda m: m.event["data"]["name"] == "hello", 30)
"""

import base64
import contextlib
import dataclasses
import http.server
import json
import os
import pathlib
import ssl
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
from localcluster import wait_for  # noqa: E402
from localcluster.pki import Authority  # noqa: E402
from localcluster.python_packages import python_packages  # noqa: E402

sys.path.append(str(python_packages()))

from cloudevents.v1.http import from_http  # noqa: E402
from standardwebhooks.webhooks import Webhook  # noqa: E402


def new_secret():
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


@dataclasses.dataclass
class Received:
    """One request, as it came. `event`: its body, read by the SDK of CloudEvents."""
    at: float
    path: str
    headers: dict
    body: bytes
    answer: object

    @property
    def event(self):
        return from_http(self.headers, self.body)

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def job(self):
        return self.event.data["name"]

    @property
    def what(self):
        return self.event.data["event"]


class Receiver:
    """An HTTPS server on a port of its own. An answer is a status, (status, headers), "hang", "close" (no answer),
    or "head" (the head alone, then the connection ends)."""

    def __init__(self, folder, name="localhost"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.secret = new_secret()
        self.answers = [204]
        self.received = []
        self.connections = 0
        self._lock = threading.Lock()
        self._released = threading.Event()
        self.authority = Authority(self.folder / "pki")
        self.authority.create()
        certificate, key = self.authority.server(f"for-{name}", [f"DNS:{name}"])
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self.secret_file = self.folder / "secret"
        self.secret_file.write_text(self.secret + "\n")
        self._server = None
        self.port = 0

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """The same port each time, so that a receiver can go away and come back."""
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                receiver.connections += 1
                self.request.settimeout(60)
                self.request = receiver._context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_POST(self):
                receiver._handle(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a refused handshake is the test's business

        self._released.clear()
        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self):
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {key.lower(): value for key, value in handler.headers.items()}
        with self._lock:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.received.append(Received(time.monotonic(), handler.path, headers, body, answer))
        handler.close_connection = True
        if answer == "hang":
            self._released.wait(120)
        if answer in ("hang", "close"):
            return
        status, extra = answer if isinstance(answer, tuple) else (200 if answer == "head" else answer, {})
        handler.send_response(status)
        for key, value in extra.items():
            handler.send_header(key, value)
        handler.send_header("content-length", "1000" if answer == "head" else "0")
        handler.end_headers()

    def target(self, name, host="localhost", **fields):
        """Its entry in the file of targets."""
        return {"name": name, "url": f"https://{host}:{self.port}/hooks/{name}?k=1",
                "secretFile": str(self.secret_file), "caFile": str(self.authority.cert),
                "allowedCIDRs": ["127.0.0.0/8", "::1/128"], **fields}

    def of(self, job):
        """What came about this job."""
        with self._lock:
            return [one for one in self.received if one.job == job]

    def verify(self, received):
        """The reference library of Standard Webhooks accepts it."""
        return Webhook(self.secret).verify(received.body, received.headers)

    def wait(self, job, count=1, limit=60):
        wait_for(f"{count} messages about {job}", lambda: len(self.of(job)) >= count, limit)
        return self.of(job)


@contextlib.contextmanager
def serving(folder, names):
    """Receivers by name, each with a folder of its own. A name may be (name, the certificate's name)."""
    pairs = [name if isinstance(name, tuple) else (name, "localhost") for name in names]
    with contextlib.ExitStack() as running:
        yield {name: running.enter_context(Receiver(pathlib.Path(folder) / name, host)) for name, host in pairs}


def targets_flags(folder, targets, source="https://test.example.com"):
    path = pathlib.Path(folder) / "targets.json"
    path.write_text(json.dumps({"source": source, "targets": targets}))
    return [f"--notifications={path}"]
