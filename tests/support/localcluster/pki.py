"""The cluster's certificate authority and the kubeconfigs that it issues; made by openssl.

Elliptic curve keys, because a test that starts a cluster waits for each of them.
"""

import base64
import json
import os
import re
import subprocess

CONFIG = """[req]
distinguished_name = dn
prompt = no
[dn]
"""
DAYS = "3650"


class Authority:
    """A CA in a folder; certificates are made once and found again by name."""

    def __init__(self, folder):
        self.folder = folder
        self.cert = folder / "ca.crt"
        self.key = folder / "ca.key"

    def create(self):
        """The CA itself and the key pair that signs service account tokens."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "openssl.cnf").write_text(CONFIG)
        self._request("ca", "/CN=holdfast-local-ca",
                      ["basicConstraints=critical,CA:TRUE",
                       "keyUsage=critical,digitalSignature,keyCertSign"], signed=False)
        _openssl(["ecparam", "-name", "prime256v1", "-genkey", "-noout",
                  "-out", str(self.service_account_key)])
        _openssl(["ec", "-in", str(self.service_account_key), "-pubout",
                  "-out", str(self.service_account_public_key)])

    @property
    def service_account_key(self):
        """Signs service account tokens."""
        return self.folder / "service-account.key"

    @property
    def service_account_public_key(self):
        """Checks service account tokens."""
        return self.folder / "service-account.pub"

    def server(self, name, alternative_names):
        """(certificate, key) of a server."""
        return self._issue(name, "/CN=" + name, "serverAuth",
                           ["subjectAltName=" + ",".join(alternative_names)])

    def client(self, user, groups=()):
        """(certificate, key) by which the API server knows its client as this user and groups."""
        for part in (user, *groups):
            if not part or "/" in part or "\n" in part:
                raise ValueError(f"not usable in a certificate's subject: {part!r}")
        name = "client-" + re.sub(r"[^A-Za-z0-9.-]", "_", "+".join((user, *groups)))
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._issue(name, subject, "clientAuth", [])

    def _issue(self, name, subject, usage, extensions):
        cert, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        if not cert.exists():
            self._request(name, subject, ["basicConstraints=critical,CA:FALSE",
                                          "keyUsage=critical,digitalSignature",
                                          "extendedKeyUsage=" + usage] + extensions, signed=True)
        return cert, key

    def _request(self, name, subject, extensions, signed):
        # Two threads may ask for the same certificate: each makes its own, the rename decides.
        scratch = self.folder / f".{name}.{os.urandom(4).hex()}"
        arguments = ["req", "-x509", "-config", str(self.folder / "openssl.cnf"), "-nodes",
                     "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha256",
                     "-days", DAYS, "-subj", subject,
                     "-keyout", f"{scratch}.key", "-out", f"{scratch}.crt"]
        if signed:
            arguments += ["-CA", str(self.cert), "-CAkey", str(self.key)]
        for extension in extensions:
            arguments += ["-addext", extension]
        _openssl(arguments)
        os.rename(f"{scratch}.key", self.folder / f"{name}.key")
        os.rename(f"{scratch}.crt", self.folder / f"{name}.crt")


def write_kubeconfig(path, server, authority, user, groups=(), namespace="default"):
    """A kubeconfig with everything embedded, so that the file alone is enough. JSON is YAML."""
    cert, key = authority.client(user, groups)
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "holdfast",
        "clusters": [{"name": "holdfast", "cluster": {
            "server": server, "certificate-authority-data": _base64(authority.cert)}}],
        "users": [{"name": user, "user": {
            "client-certificate-data": _base64(cert), "client-key-data": _base64(key)}}],
        "contexts": [{"name": "holdfast", "context": {
            "cluster": "holdfast", "user": user, "namespace": namespace}}],
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    return path


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()


def _openssl(arguments):
    result = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise OSError(f"openssl {' '.join(arguments[:2])} failed: {result.stderr[-2000:]}")
