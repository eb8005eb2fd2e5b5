"""How kubectl holdfast reaches the API server: kubeconfigs in their forms, exec plugins and proxies."""

import base64
import json
import select
import socket
import threading

import pytest
from plugin import Plugin
from resource_api import job


class ConnectProxy:
    """An HTTP proxy that only knows CONNECT, and writes down to where."""

    def __init__(self):
        self.asked = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client):
        try:
            self._carry(client)
        except OSError:  # one of the two ends is away
            client.close()

    def _carry(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        target = head.split()[1].decode()
        self.asked.append(target)
        host, port = target.rsplit(":", 1)
        with client, socket.create_connection((host, int(port))) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)


@pytest.fixture()
def config(bare_cluster):
    """The admin's kubeconfig, to be changed."""
    return json.loads(bare_cluster.kubeconfig.read_text())


def submitted(path, config, **more):
    path.write_text(json.dumps(config))
    return Plugin(kubeconfig=path)("submit", "-f", "-", "--dry-run", input=job(), **more)


def test_a_proxy_of_the_kubeconfig_is_used(bare_cluster, config, tmp_path):
    with ConnectProxy() as proxy:
        config["clusters"][0]["cluster"]["proxy-url"] = proxy.url
        result = submitted(tmp_path / "config", config)
        assert result.code == 0, result.err
        assert set(proxy.asked) == {bare_cluster.url.removeprefix("https://")}


def test_a_proxy_of_the_environment_is_used(bare_cluster, config, tmp_path):
    """Not for a loopback address, as in Go: so the server has a name."""
    with ConnectProxy() as proxy:
        cluster = config["clusters"][0]["cluster"]
        cluster["server"] = bare_cluster.url.replace("127.0.0.1", "kubernetes.default.svc")
        away = submitted(tmp_path / "config", config, env={"HTTPS_PROXY": proxy.url})
        assert away.code == 2
        assert proxy.asked and proxy.asked[0].startswith("kubernetes.default.svc:")


def test_an_exec_plugin_gives_the_credentials(config, tmp_path):
    user = config["users"][0]["user"]
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {
        "clientCertificateData": base64.b64decode(user["client-certificate-data"]).decode(),
        "clientKeyData": base64.b64decode(user["client-key-data"]).decode()}}
    (tmp_path / "credential").write_text(json.dumps(credential))
    config["users"][0]["user"] = {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "interactiveMode": "Never",
        "args": [str(tmp_path / "credential")]}}
    result = submitted(tmp_path / "config", config)
    assert result.code == 0, result.err
    config["users"][0]["user"]["exec"]["command"] = "no-such-plugin"
    missing = submitted(tmp_path / "config", config)
    assert missing.code == 2 and "no-such-plugin" in missing.line


def test_a_server_with_another_authority_is_not_trusted(config, tmp_path):
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    result = submitted(tmp_path / "config", config)
    assert result.code == 2 and "certificate" in result.line
