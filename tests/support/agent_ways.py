"""Ways from an agent to the API server that can be cut, lose what comes back, or lead elsewhere."""

import socket
import ssl
import threading
import time

from fault_proxy import FaultProxy
from proxy import Proxy

# How long an answer is kept back at most.
PATIENCE = 60
THROTTLED = (b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: %d\r\nContent-Type: text/plain\r\n"
             b"Content-Length: 9\r\n\r\nThrottled")
LINE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Link(Proxy):
    """The way to the API server, which can be cut, and can lose what comes back."""

    def __init__(self, cluster):
        super().__init__("127.0.0.1", cluster.ports["kube-apiserver"])
        self.mute = False

    def cut_off(self):
        """What is open falls silent, what is new is closed at once."""
        self.refuse(True)
        self.hold()

    def mend(self):
        self.refuse(False)
        self.cut()

    def _forward(self, key):
        _, pair = key.data
        if self.mute and key.fileobj is pair[1]:
            key.fileobj.recv(65536)
            return
        super()._forward(key)


class Gate(FaultProxy):
    """The way to the API server, on which the answers to renewals can be kept back, and renewals can
    be put off. It reads what passes; the agent's token goes on as it is."""

    def __init__(self, cluster):
        super().__init__(cluster, "gate")
        self._open = threading.Event()
        self._open.set()
        self._put_off = []
        self.renewals = []  # when each came, by CLOCK_MONOTONIC

    def __enter__(self):
        super().__enter__()
        self._outside = ssl.create_default_context(cafile=str(self._authority.cert))
        return self

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def close(self):
        """From now on renewals are applied, and nobody is told."""
        self._open.clear()

    def open(self):
        """What was kept back goes on its way."""
        self._open.set()

    def put_off(self, *pauses):
        """The next renewals get a 429 and Retry-After with one of these numbers of seconds each."""
        self._put_off = list(pauses)

    def _handle(self, client, upstream, request):
        if request.method == "PUT":
            self.renewals.append(time.monotonic())
            if self._put_off:
                client.sendall(THROTTLED % self._put_off.pop(0))
                return True
            client = _Patient(client, self._open)
        return super()._handle(client, upstream, request)


class _Patient:
    """A socket that sends when it may."""

    def __init__(self, one, may):
        self._one, self._may = one, may

    def sendall(self, data):
        self._may.wait(PATIENCE)
        self._one.sendall(data)


class Stranger:
    """A TLS server on a free loopback port that is not the API server. No handshake succeeds, or
    nothing comes after it."""

    def __init__(self, certificate, key):
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received = b""

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            try:
                plain.settimeout(5)
                with self._tls.wrap_socket(plain, server_side=True) as one:
                    self.received += one.recv(65536)
            except OSError:
                plain.close()


class Watches(Gate):
    """The way to the API server, on which watches can get stuck: they stay open, and nothing comes. Or they
    get these lines instead of an answer of the API server, one each."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.stuck = False
        self.lines = []
        self.opened = 0

    def _handle(self, client, upstream, request):
        if "watch=1" in request.path:
            self.opened += 1
            if self.stuck:
                threading.Event().wait(PATIENCE)
                return False
            if self.lines:
                line = self.lines.pop(0)
                client.sendall(LINE % len(line) + line)
                return True
        return super()._handle(client, upstream, request)
