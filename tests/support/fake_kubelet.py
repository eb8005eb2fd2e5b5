"""A kubelet that only has logs, at the address that a Node object names: the API server asks it for the log of
a pod that the node has.

    with FakeKubelet(cluster, "node-of-logs") as kubelet:
        kubelet.logs["pod-1"] = "text"
"""

import http.server
import ssl
import subprocess
import threading
import urllib.parse


class FakeKubelet:
    def __init__(self, cluster, node, folder):
        self.cluster, self.node = cluster, node
        self.logs = {}  # by pod
        self.asked = []  # (pod, query)
        certificate, key = folder / "kubelet.crt", folder / "kubelet.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=kubelet", "-keyout", str(key), "-out", str(certificate)],
                       check=True, capture_output=True)
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                pod = url.path.split("/")[3]  # /containerLogs/NAMESPACE/POD/CONTAINER
                kubelet.asked.append((pod, dict(urllib.parse.parse_qsl(url.query))))
                text = kubelet.logs.get(pod)
                body = (text or "").encode()
                self.send_response(404 if text is None else 200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        # No controller makes it where there is no controller manager.
        self.cluster.api("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        node = {"metadata": {"name": self.node}, "spec": {}}
        status, answer = self.cluster.api("POST", "/api/v1/nodes", node)
        assert status == 201, answer
        self.answer_for(self.node)
        return self

    def answer_for(self, node):
        """The API server asks it for the logs of this node's pods."""
        status, answer = self.cluster.api(
            "PATCH", f"/api/v1/nodes/{node}/status",
            {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                        "daemonEndpoints": {"kubeletEndpoint": {"Port": self.server.server_address[1]}}}},
            content_type="merge")
        assert status == 200, answer

    def __exit__(self, *_):
        self.server.shutdown()
        self.cluster.api("DELETE", f"/api/v1/nodes/{self.node}")

    def pod(self, name, namespace="default", **metadata):
        """A pod of this node, which runs."""
        pod = {"metadata": {"name": name, **metadata},
               "spec": {"nodeName": self.node, "containers": [{"name": "main", "image": "busybox"},
                                                              {"name": "side", "image": "busybox"}]}}
        status, answer = self.cluster.api("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        assert status == 201, answer
        return answer
