"""etcd through its JSON gateway: plain HTTP on loopback, no etcdctl. Mixed into Cluster."""

import json
import urllib.request


class EtcdMixin:
    """Expects `ports` of Cluster."""

    def etcd(self, path, body, timeout=10):
        """One call of the v3 JSON gateway, e.g. etcd("/v3/kv/compaction", {...})."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['etcd']}{path}",
                                         data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        # No proxy: the address is loopback whatever the environment says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as response:
            return json.load(response)

    def etcd_revision(self):
        """The store's current revision: what the API server calls resourceVersion."""
        return int(self.etcd("/v3/maintenance/status", {})["header"]["revision"])

    def compact_etcd(self, revision=None):
        """Drops history up to `revision` (default: all): lists and watches from before get 410.

        A watch is served from the API server's own cache while that reaches back far enough;
        restart the API server (kill_apiserver, start_apiserver) to have it forget as well.
        """
        revision = revision or self.etcd_revision()
        self.etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True}, timeout=60)
        return revision
