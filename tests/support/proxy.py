"""A TCP proxy in front of the API server that can fall silent, as a firewall does that has forgotten
a connection: nothing is closed, nothing arrives, and neither side is told.

    with Proxy("127.0.0.1", cluster.ports["kube-apiserver"]) as proxy:
        kubeconfig = proxy.kubeconfig(cluster.kubeconfig_for("holdfast-operator"), folder)
        ...
        held = proxy.hold()          # those connections carry nothing any more; new ones do
        ...
        proxy.cut()                  # now they are reset
"""

import pathlib
import selectors
import socket
import struct
import threading

import yaml

CHUNK = 65536


class Proxy:
    """Serves on a free loopback port from __enter__ to __exit__."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._lock = threading.Lock()
        self._open = []  # [(client, server)] in the order in which they were opened
        self._held = []
        self._listener = None
        self._selector = None
        self._wake = None
        self._thread = None
        self._stopped = False
        self._refusing = False

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._wake, other = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(other, selectors.EVENT_READ, None)
        self._other = other
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped = True
        self._wake.send(b"x")
        self._thread.join(timeout=10)
        for pair in self._open + self._held:
            _close(pair)
        for one in (self._listener, self._wake, self._other):
            one.close()
        self._selector.close()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def kubeconfig(self, of, folder):
        """A copy of a kubeconfig file that leads through the proxy; returns its path."""
        config = yaml.safe_load(pathlib.Path(of).read_text())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path = pathlib.Path(folder) / "kubeconfig-through-proxy"
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def hold(self):
        """From now on the connections that are open carry nothing in either direction. Returns how
        many they are."""
        with self._lock:
            held, self._open = self._open, []
            for pair in held:
                for one in pair:
                    self._selector.unregister(one)
            self._held += held
            return len(held)

    def cut(self):
        """Resets the held connections."""
        with self._lock:
            held, self._held = self._held, []
        for pair in held:
            for one in pair:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _close(pair)

    def refuse(self, refusing):
        """Whether new connections are closed at once."""
        self._refusing = refusing

    def _run(self):
        while not self._stopped:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is not self._other:
                    self._forward(key)

    def _accept(self):
        client, _ = self._listener.accept()
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=10)
        except OSError:
            client.close()
            return
        pair = (client, server)
        with self._lock:
            for one, peer in (pair, pair[::-1]):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                one.settimeout(10)
                self._selector.register(one, selectors.EVENT_READ, (peer, pair))
            self._open.append(pair)

    def _forward(self, key):
        peer, pair = key.data
        with self._lock:
            if pair not in self._open:
                return  # held since the selector has told
            try:
                data = key.fileobj.recv(CHUNK)
                if data:
                    peer.sendall(data)
                    return
            except OSError:
                pass
            self._open.remove(pair)
            for one in pair:
                self._selector.unregister(one)
        _close(pair)


def _close(pair):
    for one in pair:
        one.close()
