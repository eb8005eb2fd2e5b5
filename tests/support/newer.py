"""A newer version of Holdfast, before a roll-back: its CRDs, and what its operator writes into statuses."""

import pathlib

import yaml

from holdfast import CRDS, TERMINAL
from localcluster import wait_for

NEWER = "fromNewer"
NOT_KNOWN = "NotKnownToThisVersion"


def with_newer_fields(schema):
    """The schema, in which each object that Holdfast describes itself has one more field."""
    if "items" in schema:
        with_newer_fields(schema["items"])
    if "properties" not in schema:
        return
    for name, inner in schema["properties"].items():
        if name not in ("template", "metadata"):
            with_newer_fields(inner)
    schema["properties"][NEWER] = {"type": "integer"}


def install_newer(cluster):
    """The CRDs of a newer version: more fields, and one more outcome."""
    for path in sorted(pathlib.Path(CRDS).glob("*.yaml")):
        crd = yaml.safe_load(path.read_text())
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            with_newer_fields(schema["properties"][part])
        outcome = schema["properties"]["status"]["properties"].get("history", {})
        if outcome:
            outcome["items"]["properties"]["outcome"]["enum"].append("Preempted")
        cluster.kubectl("replace", "-f", "-", input=yaml.safe_dump(crd))

    def served():
        kinds = cluster.api("GET", "/openapi/v3/apis/holdfast.dev/v1alpha1")[1]["components"]["schemas"]
        return all(NEWER in kinds[f"dev.holdfast.v1alpha1.{kind}"]["properties"]["status"]["properties"]
                   for kind in ("DurableJob", "JobQueue", "WorkerPool"))

    wait_for("the API server to serve the newer definitions", served, 60)


def mark(value, number):
    """Writes the newer field into an object and all objects in it, as a newer operator would: entries of history and
    stages that have ended never change."""
    if isinstance(value, list):
        return [mark(item, number) if isinstance(item, dict) else item for item in value]
    if "name" in value and value.get("phase") in TERMINAL:
        return value
    return {name: mark(inner, number) if isinstance(inner, (dict, list)) and name != "history" else inner
            for name, inner in value.items()} | {NEWER: number}


def write_as_newer(jobs, path, number):
    """Into the whole status, by compare-and-swap."""

    def done():
        current = jobs.api("GET", path)
        current["status"] = mark(current.get("status", {}), number)
        return jobs.cluster.api("PUT", f"{path}/status", current)[0] == 200

    wait_for(f"the newer operator to write {path}", done, 30)
    return jobs.api("GET", path)["status"]
