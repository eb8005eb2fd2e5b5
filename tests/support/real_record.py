"""Every version of every job and pod of a namespace of a real cluster, as its watches tell it: what a
record.Recorder reads from etcd, where that is out of reach. The API server must stay up meanwhile."""

import http.client

from record import Recorder


class WatchRecorder(Recorder):
    """From __enter__ to __exit__, in a namespace that is empty at the start. `more`: paths of further kinds of objects,
    which change at least every few minutes, or the API server no longer has the versions in between."""

    def __init__(self, cluster, namespace, **more):
        super().__init__(cluster, namespace)
        self._paths = {"job": f"/apis/holdfast.dev/v1alpha1/namespaces/{namespace}/durablejobs",
                       "pod": f"/api/v1/namespaces/{namespace}/pods", **more}
        self._prefixes = self._paths

    def __exit__(self, *_):
        self._stopped = True  # the threads see it when their watch ends; nothing waits for that

    def _start_revision(self):
        return int(self._cluster.api("GET", self._paths["pod"])[1]["metadata"]["resourceVersion"])

    def _stream(self, kind):
        try:
            for event in self._cluster.watch(self._paths[kind], str(self._reached[kind]), timeout=20):
                if event["type"] == "ERROR":
                    raise AssertionError(f"the record's watch ended: {event['object']}")
                with self._grown:
                    self._keep_event(kind, event)
                    self._grown.notify_all()
                if self._stopped:
                    return
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error

    def _keep_event(self, kind, event):
        metadata = event["object"]["metadata"]
        self._keep_version(kind, metadata["name"], event["type"] == "DELETED", event["object"],
                           int(metadata["resourceVersion"]))

    def _is_complete(self):
        for kind, path in self._paths.items():
            stored = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
                      for item in self._cluster.api("GET", path)[1]["items"]}
            if self._newest(kind) != stored:
                return False
        return True
