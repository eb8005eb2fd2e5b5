"""A proxy in front of the API server that knows requests apart: it can hold, lose, delay and repeat
single ones, lose their answers, and cut watches. It ends the TLS of both sides; to the API server it
is the client whose certificate it was given.

    with FaultProxy(cluster, "holdfast-operator") as proxy:
        kubeconfig = proxy.kubeconfig()
        proxy.add(Fault("lose-answer", job="job-7", method="POST", resource="pods", nth=1))
        ...
        proxy.fired()       # the faults that have happened

A request belongs to a job by its path (a pod's name begins with its job's) or, for a new pod, by its
label. Each request that arrives counts, whatever becomes of it.
"""

import collections
import json
import pathlib
import select
import socket
import ssl
import struct
import threading
import time

from localcluster.pki import Authority, write_kubeconfig

# What may happen to one request. With the first three the proxy tells its owner, who kills the
# operator; nothing passes from then on until resume().
KILLS = ("kill-before", "kill-applied", "kill-answered")
FAULTS = ("lose-request", "lose-answer", "hold-request", "hold-answer", "delay-request",
          "delay-answer", "duplicate-at-once", "duplicate-late", "cut-watches")
DELAY_SECONDS = 1.0
# Longer than any of the operator's writes waits for its answer.
HOLD_SECONDS = 4.0
LATE_COPY_SECONDS = 3.0
CHUNK = 65536

Request = collections.namedtuple("Request", "method path head body")


class Fault:
    """`kind` happens to the nth request of this kind that is about the job."""

    def __init__(self, kind, job, method, resource, nth):
        self.kind, self.key, self.nth = kind, (job, method, resource), nth
        self.fired_at = None

    def __str__(self):
        job, method, resource = self.key
        return f"{job} {method} {resource} {self.nth} {self.kind}"


def key_of(request):
    """(job, method, resource) of a request about one job; None: it is about none or many."""
    path = request.path.partition("?")[0].strip("/").split("/")
    if "namespaces" not in path:
        return None
    rest = path[path.index("namespaces") + 2:]
    if not rest or rest[0] not in ("pods", "durablejobs"):
        return None
    resource = rest[0] + ("." + rest[2] if len(rest) > 2 else "")
    if len(rest) > 1:
        job = rest[1].rsplit("-", 2)[0] if rest[0] == "pods" else rest[1]
        return job, request.method, resource
    if request.method != "POST":
        return None
    labels = json.loads(request.body).get("metadata", {}).get("labels", {})
    return labels.get("holdfast.dev/job-name"), request.method, resource


class FaultProxy:
    """Serves from __enter__ to __exit__ on a free loopback port, a thread for each connection.
    on_kill(fault) is called on such a thread."""

    def __init__(self, cluster, user, on_kill=None):
        self._authority = Authority(pathlib.Path(cluster.folder) / "pki")
        self._folder = pathlib.Path(cluster.folder)
        self._target = ("127.0.0.1", cluster.ports["kube-apiserver"])
        self._user = user
        self._on_kill = on_kill
        self._lock = threading.Lock()
        self._faults = {}
        self._counts = collections.Counter()
        self._connections = {}  # the client's socket -> whether it carries a watch
        self._dead = False
        self._stopped = False
        self._cut = 0
        self.requests = 0
        self.errors = []

    def __enter__(self):
        self._inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._inside.load_cert_chain(*self._authority.server("fault-proxy", ["IP:127.0.0.1"]))
        self._outside = ssl.create_default_context(cafile=str(self._authority.cert))
        self._outside.load_cert_chain(*self._authority.client(self._user))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._stopped = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._reset_all()

    def kubeconfig(self):
        path = self._folder / "kubeconfig-through-fault-proxy"
        return write_kubeconfig(path, f"https://127.0.0.1:{self._listener.getsockname()[1]}",
                                self._authority, self._user)

    # -- commands -----------------------------------------------------------------------------

    def add(self, fault):
        with self._lock:
            self._faults.setdefault(fault.key, []).append(fault)

    def fired(self):
        with self._lock:
            return [fault for faults in self._faults.values() for fault in faults if fault.fired_at]

    def cut_watches(self):
        """Resets the connections that carry watches. How many there were."""
        with self._lock:
            watches = [one for one, carries in self._connections.items() if carries]
        for one in watches:
            _reset(one)
        self._cut += len(watches)
        return len(watches)

    def resume(self):
        """There will be a new operator; what the dead one has sent and nobody has read is dropped."""
        self._reset_all()
        self._dead = False

    # -- connections --------------------------------------------------------------------------

    def _accept(self):
        while not self._stopped:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        upstream = client = None
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(120)
            client = self._inside.wrap_socket(plain, server_side=True)
            with self._lock:
                self._connections[client] = False
            upstream = self._connect()
            with client.makefile("rb") as reader:
                while not self._stopped and (request := _read_request(reader)):
                    if not self._handle(client, upstream, request):
                        return
        except (OSError, ValueError):
            pass  # one side is gone; the other is told below
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(repr(error))
        finally:
            with self._lock:
                self._connections.pop(client, None)
            for one in (client or plain, upstream):
                if one is not None:
                    _reset(one)
                    one.close()

    def _connect(self):
        plain = socket.create_connection(self._target, timeout=60)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._outside.wrap_socket(plain, server_hostname="127.0.0.1")

    def _reset_all(self):
        with self._lock:
            every = list(self._connections)
        for one in every:
            _reset(one)

    # -- requests -----------------------------------------------------------------------------

    def _handle(self, client, upstream, request):
        """False: the connection is done for."""
        if "watch=1" in request.path or "watch=true" in request.path:
            with self._lock:
                if self._dead:
                    return False
                self._connections[client] = True
            # One that is refused is answered and over, and the client must not ask on: nobody reads it here.
            _send(upstream, request._replace(head=[*request.head, b"Connection: close\r\n"]))
            _relay(client, upstream)
            return False
        fault = self._next(request)
        if fault is False:
            return False
        kind = fault.kind if fault else None
        if kind in KILLS:
            self._kill(client, upstream, request, fault)
            return False
        if kind == "lose-request":
            return False
        if kind == "hold-request":
            time.sleep(HOLD_SECONDS)
            return False
        if kind == "delay-request":
            time.sleep(DELAY_SECONDS)
        if kind == "cut-watches":
            self.cut_watches()
        _send(upstream, request)
        answer = _read_answer(upstream)
        if kind == "lose-answer":
            return False
        if kind == "hold-answer":
            time.sleep(HOLD_SECONDS)
            return False
        if kind == "delay-answer":
            time.sleep(DELAY_SECONDS)
        if kind == "duplicate-at-once":
            self._repeat(request)
        client.sendall(answer)
        if kind == "duplicate-late":
            timer = threading.Timer(LATE_COPY_SECONDS, self._repeat, (request,))
            timer.daemon = True
            timer.start()
        return True

    def _next(self, request):
        """The fault that befalls it, None, or False: nobody is there any more who asks."""
        key = key_of(request)
        with self._lock:
            if self._dead:
                return False
            self.requests += 1
            if key is None:
                return None
            self._counts[key] += 1
            for fault in self._faults.get(key, ()):
                if fault.nth == self._counts[key] and not fault.fired_at:
                    fault.fired_at = time.monotonic()
                    self._dead = fault.kind in KILLS
                    return fault
        return None

    def _kill(self, client, upstream, request, fault):
        """Whatever becomes of the request: nothing passes any more before there is a new operator."""
        try:
            if fault.kind != "kill-before":
                _send(upstream, request)
                answer = _read_answer(upstream)
                if fault.kind == "kill-answered":
                    client.sendall(answer)
        finally:
            self._on_kill(fault)

    def _repeat(self, request):
        try:
            with self._connect() as upstream:
                _send(upstream, request)
                _read_answer(upstream)
        except OSError as error:
            self.errors.append(f"a second copy could not be sent: {error!r}")


def _reset(one):
    """Ended at once and without a goodbye; the thread that serves it wakes, and closes it."""
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.shutdown(one, socket.SHUT_RDWR)
    except OSError:
        pass


def _read_head(reader):
    head = []
    while line := reader.readline(CHUNK):
        if line in (b"\r\n", b"\n"):
            return head
        head.append(line)
    return None


def _field(head, name):
    for line in head[1:]:
        found, _, value = line.partition(b":")
        if found.strip().lower() == name:
            return value.strip()
    return None


def _read_body(reader, head):
    """As it came, its framing included."""
    if (_field(head, b"transfer-encoding") or b"").lower() == b"chunked":
        parts = []
        while True:
            size = reader.readline(CHUNK)
            data = reader.read(int(size, 16) + 2)
            parts += [size, data]
            if int(size, 16) == 0:
                return b"".join(parts)
    return reader.read(int(_field(head, b"content-length") or 0))


def _read_request(reader):
    head = _read_head(reader)
    if not head:
        return None
    method, path, _ = head[0].decode().split(" ", 2)
    return Request(method, path, head, _read_body(reader, head))


def _send(upstream, request):
    upstream.sendall(b"".join(request.head) + b"\r\n" + request.body)


def _read_answer(upstream):
    # Nothing is read ahead that could belong to a next answer: there is one request at a time.
    with upstream.makefile("rb") as reader:
        head = _read_head(reader)
        if not head:
            raise OSError("the API server closed the connection")
        return b"".join(head) + b"\r\n" + _read_body(reader, head)


def _relay(client, upstream):
    """What the API server says goes to the client until one of the two is done."""
    while True:
        if not upstream.pending():
            ready, _, _ = select.select([client, upstream], [], [], 5)
            if client in ready and not client.pending() and not client.recv(1):
                return
            if upstream not in ready:
                continue
        data = upstream.recv(CHUNK)
        if not data:
            return
        client.sendall(data)
