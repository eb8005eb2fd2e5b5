"""The API server keeps the borders of each field of spec and status, for each kind. The cases come from the CRDs."""

import pytest
import yaml
from crd_borders import TEMPLATE, rounds, surprises, whole, with_unknown
from resource_api import ROOT, unique_name

CRDS = {crd["spec"]["names"]["kind"]: crd["spec"] for crd in (
    yaml.safe_load(path.read_text()) for path in ROOT.glob("crds/*.yaml"))}
SPECS = {"DurableJob": {"template": TEMPLATE}, "JobQueue": {}, "WorkerPool": {"template": TEMPLATE}}
KINDS = pytest.mark.parametrize("kind", CRDS)
PARTS = pytest.mark.parametrize("part", ["spec", "status"])


def schema_of(kind, part):
    return CRDS[kind]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]


class Objects:
    """Sends parts of objects of one kind, as a new object or as the status of one that exists."""

    def __init__(self, api, kind):
        self.call = api.cluster.api
        self.path = f"/apis/holdfast.dev/v1alpha1/namespaces/default/{CRDS[kind]['names']['plural']}"
        self.object = {"apiVersion": "holdfast.dev/v1alpha1", "kind": kind,
                       "metadata": {"name": unique_name("borders"), "namespace": "default"}, "spec": SPECS[kind]}

    def send(self, part, value, validation="Warn"):
        query = f"dryRun=All&fieldValidation={validation}"
        if part == "spec":
            return self.call("POST", f"{self.path}?{query}", self.object | {part: value})
        if "uid" not in self.object["metadata"]:
            code, self.object = self.call("POST", self.path, self.object)
            assert code == 201, self.object
        path = f"{self.path}/{self.object['metadata']['name']}/status?{query}"
        return self.call("PUT", path, self.object | {part: value})


def checked(api, kind, part, schema):
    objects, found = Objects(api, kind), []
    for value, wrong in rounds(schema, part):
        code, answer = objects.send(part, value)
        assert code == 422, answer
        found += surprises(wrong, answer)
    return found


@KINDS
@PARTS
def test_each_field_is_taken_up_to_its_borders_and_refused_beyond(api, kind, part):
    assert checked(api, kind, part, schema_of(kind, part)) == []


@KINDS
@PARTS
def test_an_unknown_field_is_refused_wherever_it_stands(api, kind, part):
    value, names = with_unknown(whole(schema_of(kind, part)), (part,))
    code, answer = Objects(api, kind).send(part, value, "Strict")
    assert code == 400, answer
    assert [name for name in names if f'unknown field "{name}"' not in answer["message"]] == []


@pytest.mark.parametrize("field, border, value", [
    ("backoffLimit", "maximum", 2**31), ("lostAfterSeconds", "minimum", 14), ("payload", "maxLength", 65537),
    ("podReplacementPolicy", "enum", ["Failed", "Always"]), ("notify", "maxItems", 17)])
def test_a_border_that_the_api_server_does_not_keep_is_found(api, field, border, value):
    known = schema_of("DurableJob", "spec")["properties"]
    others = {name: known[name] for name in ("suspend", "retryBackoff", "queue")}
    schema = {"type": "object", "properties": {field: known[field] | {border: value}, **others}}
    found = checked(api, "DurableJob", "spec", schema)
    assert found and all(line.startswith(f"spec.{field}: ") for line in found), found
