"""The CRD and the guard's policies together refuse what a CRD with all rules in it refuses, and nothing else.

Such a CRD stands in another group of the same API server. The same random writes go to both, and both answer alike.
GUARD_WRITES says how many, GUARD_SEED which, and GUARD_BEFORE names another file than api/crd/durablejob.yaml with all
the rules: that of an earlier commit."""

import json
import os
import pathlib
import re

import pytest
import yaml
from crd_sources import policy_rules, read_whole
from guard import for_crd
from random_writes import WAITING, RandomWrites
from resource_api import CRD_PATH, ROOT

from localcluster import wait_for

WRITES = int(os.environ.get("GUARD_WRITES", "1500"))
SEED = int(os.environ.get("GUARD_SEED", "1"))
BEFORE = pathlib.Path(os.environ.get("GUARD_BEFORE", ROOT / "api/crd/durablejob.yaml"))
STEPS = 8  # of one job, at most
MANY = 50_000  # so many writes reach each rule
WHOLE = "whole.holdfast.dev"


def put_rules(source, schema, depth):
    """Those of the object itself, and down to this depth of its fields."""
    if "x-kubernetes-validations" in source:
        schema["x-kubernetes-validations"] = [for_crd(rule) for rule in source["x-kubernetes-validations"]]
    for name in schema.get("properties", {}) if depth else ():
        if name in source.get("properties", {}):
            put_rules(source["properties"][name], schema["properties"][name], depth - 1)


def whole_crd():
    """The definition with all rules in it, in a group of its own."""
    source, _ = read_whole(BEFORE)
    crd = yaml.safe_load(CRD_PATH.read_text())
    put_rules(*(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for each in (source, crd)), depth=2)
    crd = json.loads(json.dumps(crd).replace("durablejobs.holdfast.dev", f"durablejobs.{WHOLE}"))
    crd["spec"]["group"] = WHOLE
    return crd


@pytest.fixture(scope="module")
def both(api):
    api.cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(whole_crd()))
    wait_for("the API server to serve the other group",
             lambda: api.cluster.api("GET", f"/apis/{WHOLE}/v1alpha1/durablejobs")[0] == 200, 60)
    yield [Side(api.cluster, "holdfast.dev"), Side(api.cluster, WHOLE)]
    api.cluster.kubectl("delete", "crd", f"durablejobs.{WHOLE}")


class Side:
    """A job in one of the two groups."""

    def __init__(self, cluster, group):
        self._cluster, self._group = cluster, group
        self._path = f"/apis/{group}/v1alpha1/namespaces/default/durablejobs"
        self.job = None

    def create(self, body):
        return self._send("POST", self._path, body)

    def put(self, part, content):
        body = {**self.job, part: content}
        path = f"{self._path}/{body['metadata']['name']}"
        return self._send("PUT", path if part == "spec" else f"{path}/status", body)

    def patch(self, changes):
        return self._send("PATCH", f"{self._path}/{self.job['metadata']['name']}", changes, "merge")

    def delete(self):
        if self.job:
            self._cluster.api("DELETE", f"{self._path}/{self.job['metadata']['name']}")
        self.job = None

    def _send(self, method, path, body, *kind):
        """None: it was taken. Else the refusal."""
        code, answer = self._cluster.api(method, path, {**body, "apiVersion": f"{self._group}/v1alpha1"}, *kind)
        if code in (200, 201):
            self.job = answer
            return None
        assert code == 422, answer
        return answer["message"]


def without_field(message):
    """Of a policy's rule: it begins with the field, and mostly says how that is wrong."""
    return re.sub("^[^ ]*: (Forbidden: |Required value: )?", "", message)


def said_by_policy(refusal):
    """What a policy says of a rule, without its own name."""
    return refusal.partition("denied request: ")[2]


def begin_of(rule):
    """How the message of a policy's rule begins, with the field, to where it is computed."""
    if "messageExpression" in rule:
        return "".join(re.findall(r"'([^']*)'", rule["messageExpression"])[:2])
    return rule["message"]


RULES = {begin_of(rule) for rule in policy_rules()["DurableJob"]}


def write_both(both, seen, what, *content):
    mine, whole = (getattr(side, what)(*content) for side in both)
    assert bool(mine) == bool(whole), f"{what} {json.dumps(content)}\nof {json.dumps(both[0].job)}\n{mine}\n{whole}"
    said = said_by_policy(mine or "")
    if said:
        assert without_field(said) in whole, "the policy's message is the rule's"
        seen.update(rule for rule in RULES if said.startswith(rule))
    return mine is None


def test_the_same_writes_are_refused_wherever_the_rules_stand(both):
    random = RandomWrites(SEED)
    sent, seen = {True: 0, False: 0}, set()
    number = 0
    while sum(sent.values()) < WRITES:
        number += 1
        sent[write_both(both, seen, "create", random.job(f"same-{number}"))] += 1
        if not both[0].job:
            continue
        for _ in range(random.pick(*range(1, STEPS + 1))):
            if random.chance(12):
                taken = write_both(both, seen, "patch", {"metadata": {"annotations": {"step": str(sum(sent.values()))}}})
            elif random.chance(6):
                field, value = random.one_value()
                taken = write_both(both, seen, "patch", {"spec": {field: value}})
            elif random.chance(4):
                taken = write_both(both, seen, "put", "spec", random.other_spec(both[0].job["spec"]))
            else:
                status = both[0].job.get("status", {"phase": "Pending", "waiting": WAITING})
                stages = [stage["name"] for stage in both[0].job["spec"].get("stages", [])]
                taken = write_both(both, seen, "put", "status", random.other_status(status, stages))
            sent[taken] += 1
        for side in both:
            side.delete()
    print(f"{sent[True]} taken and {sent[False]} refused by both; no write broke {sorted(RULES - seen)}")
    assert min(sent.values()) > WRITES / 5, sent
    assert len(seen) > len(RULES) / 3
    if WRITES >= MANY:
        assert RULES <= seen, sorted(RULES - seen)
