"""What the resource tests share: requests to the API server, jobs and statuses that are right."""

import copy
import itertools
import json
import pathlib

import yaml

from localcluster import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRD_PATH = ROOT / "crds/holdfast.dev_durablejobs.yaml"
JOBS = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"

PHASES = ["Pending", "Running", "Backoff", "Suspended", "Cancelling", "Succeeded", "Failed", "Cancelled"]
TERMINAL = {"Succeeded", "Failed", "Cancelled"}
# A legal way from a new job, which is Pending by default, to each phase.
WAY_TO = {
    None: [],
    "Pending": ["Pending"],
    "Running": ["Running"],
    "Backoff": ["Running", "Backoff"],
    "Suspended": ["Suspended"],
    "Cancelling": ["Pending", "Cancelling"],
    "Succeeded": ["Running", "Succeeded"],
    "Failed": ["Running", "Failed"],
    "Cancelled": ["Suspended", "Cancelled"],
}

_numbers = itertools.count(1)


def unique_name(prefix="job"):
    return f"{prefix}-{next(_numbers)}"


def job(name=None, **spec):
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "DurableJob",
        "metadata": {"name": name or unique_name(), "namespace": "default"},
        "spec": {"template": template, **copy.deepcopy(spec)},
    }


def status(phase, **fields):
    """A status that is right in this phase; a field of value None is left out."""
    result = {
        "phase": phase,
        "attempt": 1,
        "failures": 1,
        "disruptions": 1,
        "completions": "0/1",
        "startTime": "2026-01-02T03:04:05Z",
        "observedGeneration": 1,
    }
    if phase in TERMINAL:
        result["completionTime"] = "2026-01-02T04:04:05Z"
    else:
        result["waiting"] = {"reason": "PodRunning", "message": "the pod runs", "nextAction": "record its end"}
    result.update(fields)
    return {key: value for key, value in result.items() if value is not None}


def accepted(answer):
    """The object, after a write that the API server takes."""
    code, body = answer
    assert code == 200, body
    return body


def refused(answer, *fragments, code=422):
    """The API server refuses the write, and its message has each of these fragments."""
    assert answer[0] == code, answer
    for fragment in fragments:
        assert fragment in answer[1]["message"], answer[1]["message"]


class Api:
    """What the tests ask of the API server, as cluster admin."""

    def __init__(self, cluster):
        self.cluster = cluster

    def create(self, body):
        code, answer = self.cluster.api("POST", f"{JOBS}?fieldValidation=Strict", body)
        assert code == 201, answer
        return answer

    def get(self, name):
        code, answer = self.cluster.api("GET", f"{JOBS}/{name}")
        assert code == 200, answer
        return answer

    def exists(self, name):
        return self.cluster.api("GET", f"{JOBS}/{name}")[0] == 200

    def put_status(self, current, new_status):
        """(code, answer). A write as the operator's: identity, version and status, nothing else."""
        metadata = {key: current["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        body = {key: current[key] for key in ("apiVersion", "kind")}
        body["metadata"] = metadata
        if new_status is not None:
            body["status"] = new_status
        path = f"{JOBS}/{metadata['name']}/status?fieldValidation=Strict"
        return self.cluster.api("PUT", path, body)

    def patch(self, name, changes, subresource=""):
        """(code, answer). A list is a JSON patch, an object a merge patch."""
        kind = "json" if isinstance(changes, list) else "merge"
        path = f"{JOBS}/{name}{subresource}?fieldValidation=Strict"
        return self.cluster.api("PATCH", path, changes, kind)

    def job_in(self, phase, **spec):
        """A new job that has come to this phase (None: nobody has written its status) by legal edges."""
        current = self.create(job(**spec))
        for step in WAY_TO[phase]:
            code, answer = self.put_status(current, status(step))
            assert code == 200, answer
            current = answer
        return current

    def kubectl(self, *arguments, stdin=None):
        """The finished process of one kubectl command, however it ended."""
        return self.cluster.kubectl(*map(str, arguments), input=stdin, check=False)

    def apply(self, body, *arguments):
        """`kubectl apply` of one object."""
        return self.kubectl("apply", "-f", "-", *arguments, stdin=json.dumps(body))


def crd():
    return yaml.safe_load(CRD_PATH.read_text())


def schema_of(part):
    """Schema of `spec` or `status`."""
    return crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]


def fields_of(schema, path=""):
    """(path, schema) of every field of ours below a schema: nothing below spec.template."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        if name != "template":
            yield from fields_of(field, f"{path}.{name}")
            yield from fields_of(field.get("items", {}), f"{path}.{name}[]")


def explained(api, path):
    """What `kubectl explain` shows. The API server publishes the descriptions some time after it serves a kind."""
    def text():
        result = api.kubectl("explain", path)
        return result.stdout if result.returncode == 0 and "<empty>" not in result.stdout else None

    return wait_for(f"the API server to publish the descriptions of {path}", text, 60)
