"""A small HTTPS JSON client for tests: raw calls on the API server, kept-alive per thread."""

import http.client
import json
import select
import ssl
import threading
import time
import urllib.parse

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiClient:
    """Calls as one user. Threads share it: each has a connection of its own.

    Without a CA the server's certificate is not checked, without a client one it is anonymous: for
    the health endpoints of the scheduler and the controller manager, which sign their own.
    """

    def __init__(self, host, port, ca_cert, client_cert, client_key):
        self._host = host
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(ca_cert) if ca_cert else None)
        if not ca_cert:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        if client_cert:
            self._tls.load_cert_chain(str(client_cert), str(client_key))
        self._local = threading.local()

    def request(self, method, path, body=None, content_type="application/json", timeout=30):
        """(status, parsed body). Raises OSError or HTTPException when there is no answer.

        Nothing is sent twice: a connection that the server has closed meanwhile is seen before it
        is used again.
        """
        data = None
        if body is not None:
            data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        headers = {"Accept": "application/json", "User-Agent": "holdfast-test"}
        if data is not None:
            headers["Content-Type"] = PATCH_TYPES.get(content_type, content_type)
        connection = self._connection(timeout)
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.will_close:
            self.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode("utf-8", "replace")

    def watch(self, path, resource_version="", timeout=60, **params):
        """Yields watch events as dicts until the server ends the watch or `timeout` has passed.

        Close the generator (or leave its for loop and drop it) to end the watch earlier.
        """
        params.update(watch="true", timeoutSeconds=max(1, int(timeout)))
        if resource_version:
            params["resourceVersion"] = resource_version
        connection = self._new_connection(timeout + 10)
        end = time.monotonic() + timeout
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(params)}",
                               headers={"Accept": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise OSError(f"watch {path}: {response.status} {response.read(2000)!r}")
            while time.monotonic() < end:
                line = response.readline()
                if not line:
                    return
                yield json.loads(line)
        finally:
            connection.close()

    def close(self):
        """This thread's connection only."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _new_connection(self, timeout):
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)

    def _connection(self, timeout):
        connection = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            # Between requests the server has nothing to say but that it closes.
            if select.select([connection.sock], [], [], 0)[0]:
                connection.close()
        if connection is None:
            connection = self._new_connection(timeout)
            self._local.connection = connection
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection


class ProxyClient(ApiClient):
    """The same through `kubectl proxy` on this machine, which knows every way to log in."""

    def __init__(self, port):
        super().__init__("127.0.0.1", port, None, None, None)

    @property
    def address(self):
        """host:port, which needs no credentials."""
        return f"{self._host}:{self._port}"

    def _new_connection(self, timeout):
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
