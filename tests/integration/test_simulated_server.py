"""The simulated API server of tests/simulation answers as the real one does.

tests/simulation/server/script.json is a script of operations, legal and refused. It runs over the
simulated server in a program of its own, and here over a real one; every answer is compared, without
what differs from run to run (uids, versions and times are numbered in the order in which they first
appear) and without what the real one fills into pods and nodes that no part of Holdfast reads. Each pair of phases is
tried too, as the table of edges has them.
"""

import itertools
import json
import os
import pathlib
import queue
import re
import subprocess
import threading

import pytest
import yaml
from crd_sources import policy_rules
from edges import is_edge
from holdfast import ROOT
from localcluster import wait_for
from resource_api import PHASES, WAY_TO, status

SCRIPT = ROOT / "tests/simulation/server/script.json"
POD_SPEC = {"nodeName", "restartPolicy", "terminationGracePeriodSeconds", "schedulingGates", "containers"}
CONTAINER = {"name", "image", "command"}
POD_STATUS = {"phase", "conditions", "containerStatuses"}


def simulator():
    """HOLDFAST_SIMULATOR, or else the freshest build of the program that runs the script."""
    if "HOLDFAST_SIMULATOR" in os.environ:
        return pathlib.Path(os.environ["HOLDFAST_SIMULATOR"])
    built = list(ROOT.glob("build/*/tests/simulation/simulation-run-script"))
    if not built:
        pytest.fail("simulation-run-script is not built: make build")
    return max(built, key=lambda path: path.stat().st_mtime)


def simulated(script, path):
    path.write_text(json.dumps(script))
    done = subprocess.run([simulator(), path], check=False, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- each pair of phases ----------------------------------------------------------------------------

# In each phase, so that nothing but the phase matters.
STAGES = {"stage": "main", "stages": [{"name": "main", "phase": "Failed"}, {"name": "next", "phase": "Skipped"}]}


def phase_steps():
    """From each phase to each phase, for a job without stages and for one with them."""
    for has_stages, start in itertools.product((False, True), WAY_TO):
        name = f"from-{start or 'nothing'}{'-with-stages' if has_stages else ''}".lower()
        spec = {"stages": [{"name": "next", "workerPool": {"name": "p"}}]} if has_stages else {}
        absent = dict.fromkeys(["failures", "disruptions", "observedGeneration", "waiting", "completionTime"])
        path = "${jobs}/" + name

        def to(phase, query, code):
            body = {"status": absent | status(phase) | (STAGES if has_stages else {})}
            return {"step": f"{name}: to {phase}", "method": "PATCH", "type": "merge", "path": f"{path}/status{query}",
                    "status": code, "body": body}

        yield {"step": f"{name}: create", "method": "POST", "path": "${jobs}", "status": 201, "like": "job",
               "with": {"metadata": {"name": name}, "spec": spec}}
        yield from (to(phase, "", 200) for phase in WAY_TO[start])
        for end in PHASES:
            yield to(end, "?dryRun=All", 200 if is_edge(start or "Pending", end, has_stages) else 422)
        yield {"step": f"{name}: delete", "method": "DELETE", "path": path, "status": 200}


@pytest.fixture(scope="module")
def script():
    script = json.loads(SCRIPT.read_text())
    names = [step["step"] for step in script["steps"]]
    place = names.index("a job with containers in an order")
    script["steps"][place:place] = phase_steps()
    return script


# -- the script on the real server ------------------------------------------------------------------


def merged(target, change):
    """RFC 7396."""
    if not isinstance(change, dict):
        return change
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def pointed(body, pointer):
    for part in pointer.strip("/").split("/"):
        try:
            body = body[int(part) if isinstance(body, list) else part]
        except (KeyError, IndexError, TypeError):
            return None
    return body


class Watch:
    """A watch that is read by a thread of its own."""

    def __init__(self, cluster, path, query):
        self._events = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(cluster, path, dict(query)), daemon=True)
        self._thread.start()

    def _read(self, cluster, path, query):
        try:
            version = query.pop("resourceVersion", "")
            for event in cluster.watch(path, version, timeout=300, **query):
                self._events.put(event)
        except Exception as error:  # told to whoever waits for an event
            self._events.put({"type": "BROKEN", "object": {"message": repr(error)}})

    def take(self, until):
        taken = []
        while True:
            try:
                event = self._events.get(timeout=60)
            except queue.Empty:
                return {"events": taken, "missing": until}
            metadata = event["object"].get("metadata", {})
            if event["type"] == "BOOKMARK" and "annotations" not in metadata:
                continue  # it comes when the server likes
            taken.append(event)
            if f"{event['type']} {metadata.get('name', '')}" == until or event["type"] == "BROKEN":
                return {"events": taken}


class RealRun:
    def __init__(self, cluster, script):
        self.cluster = cluster
        self.script = script
        self.captured = dict(script["names"])
        self.watches = {}

    def answers(self):
        for step in self.script["steps"]:
            answer = self.run(self.filled(step))
            if not step.get("real_only"):
                yield {**answer, "step": step["step"]}

    def filled(self, step):
        text = json.dumps(step)
        for name, value in self.captured.items():
            text = text.replace("${" + name + "}", value)
        return json.loads(text)

    def run(self, step):
        if "watch" in step:
            self.watches[step["watch"]] = Watch(self.cluster, step["path"], step["query"])
            return {"status": 200}
        if "events" in step:
            return self.watches[step["events"]].take(step["until"])
        if "wait" in step:
            wait_for(step["step"], lambda: self.met(step), 60)
            return {"met": True}
        return self.request(step)

    def met(self, step):
        code, body = self.cluster.api("GET", step["wait"])
        if step.get("there"):
            return code == 200
        if "absent" in step:
            return code == 200 and pointed(body, step["absent"]) is None
        if "until" not in step:
            return code == 404
        found = pointed(body, step["until"])
        return found == step["value"] if "value" in step else found is not None

    def request(self, step):
        body = step.get("raw", step.get("body"))
        if "like" in step:
            body = merged(self.script["objects"][step["like"]], step.get("with", {}))
        code, answer = self.call(step, body)
        for name, pointer in step.get("capture", {}).items():
            self.captured[name] = pointed(answer, pointer) or ""
        return {"status": code, "body": answer}


    def call(self, step, body):
        client = self.cluster.client()
        if "accept" not in step:
            return client.request(step["method"], step["path"], body, step.get("type", "application/json"))
        connection = client._connection(30)
        connection.request(step["method"], step["path"], headers={"Accept": step["accept"]})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


# -- what is compared -------------------------------------------------------------------------------


def named(name):
    """Without what the server made up."""
    return re.sub(r"^made-[a-z0-9]{5}$", "made-", name) if name else name


class Normal:
    """Answers without what differs from run to run. One for each run."""

    def __init__(self):
        self.numbers = {}

    def number(self, kind, value):
        """The same value has the same number in one run."""
        numbers = self.numbers.setdefault(kind, {})
        return f"{kind} {numbers.setdefault(value, len(numbers) + 1)}"

    def answer(self, answer):
        normal = {key: value for key, value in answer.items() if key not in ("body", "events")}
        if "body" in answer:
            normal["body"] = self.body(answer["body"])
        if "events" in answer:
            normal["events"] = [self.event(event) for event in answer["events"]]
        return normal

    def event(self, event):
        return {"type": event["type"], "object": self.body(event["object"])}

    def body(self, body):
        if not isinstance(body, dict):
            return None
        if body.get("type") == "ERROR":
            return self.event(body)
        if body.get("kind") == "Status":
            return self.status(body)
        if "items" in body:
            return self.list(body)
        return self.object(body)

    def status(self, status):
        details = status.get("details", {})
        # A success says what it was about in `uid`.
        uid = self.number("uid", details["uid"]) if "uid" in details else None
        kind = details.get("kind")
        causes = {(cause.get("reason", ""), cause.get("field", "")) for cause in details.get("causes", [])}
        # A policy names the resource where a schema names the kind, and its field in the message.
        by_guard = re.search(r"'holdfast-guard-.* denied request: ([^ ]+): ", status.get("message", ""))
        if by_guard:
            kind, causes = "DurableJob", {("", by_guard[1])}
        return {
            "status": status.get("status"),
            "reason": status.get("reason"),
            "code": status.get("code"),
            "about": [details.get("group"), kind, named(details.get("name")), uid],
            "causes": sorted(causes),
        }

    def list(self, body):
        metadata = body["metadata"]
        return {
            "kind": body["kind"],
            "apiVersion": body["apiVersion"],
            "continues": bool(metadata.get("continue")),
            "remaining": metadata.get("remainingItemCount"),
            "items": [
                self.object({"kind": body["kind"].removesuffix("List"), **item}, "kind" in item)
                for item in body["items"] or []
            ],
        }

    def object(self, body, says_kind=True):
        body = json.loads(json.dumps(body))
        kind = body.get("kind") if says_kind else body.pop("kind")
        if kind in ("Node", "Namespace"):
            # Controllers of the real server write them when they like, and such a version must not have a number.
            body["metadata"].pop("resourceVersion", None)
        self.metadata(body)
        for field in [field for field in body if field.startswith("deprecated")]:
            del body[field]  # of Events: what nobody has set
        if kind == "Pod":
            self.pod(body)
        if kind == "Node":
            return {key: body.get(key) for key in ("kind", "apiVersion")} | {"name": body["metadata"]["name"]}
        if kind == "Namespace":
            body.get("status", {}).pop("conditions", None)
        return body

    def metadata(self, body):
        metadata = body.get("metadata", {})
        metadata.pop("managedFields", None)
        for owner in metadata.get("ownerReferences", []):
            owner["uid"] = self.number("uid", owner["uid"])
        for field in ("creationTimestamp", "deletionTimestamp"):
            if metadata.get(field):
                metadata[field] = "set"
            else:
                metadata.pop(field, None)
        if metadata.get("generateName"):
            metadata["name"] = named(metadata["name"])
        if "uid" in metadata:
            metadata["uid"] = self.number("uid", metadata["uid"])
        if "resourceVersion" in metadata and "uid" in metadata:
            metadata["resourceVersion"] = self.number("version", metadata["resourceVersion"])
        else:
            metadata.pop("resourceVersion", None)

    @staticmethod
    def pod(body):
        if "spec" in body:
            body["spec"] = {key: body["spec"][key] for key in POD_SPEC if key in body["spec"]}
            body["spec"]["containers"] = [
                {key: container[key] for key in CONTAINER if key in container}
                for container in body["spec"].get("containers") or []
            ]
        if "status" in body:
            status = {key: body["status"][key] for key in POD_STATUS if key in body["status"]}
            status["conditions"] = sorted(condition["type"] for condition in status.get("conditions", []))
            status["containerStatuses"] = [
                [one["name"], sorted(one["state"])] for one in status.get("containerStatuses", [])
            ]
            body["status"] = status


@pytest.fixture(scope="module")
def answers(pinned_kubernetes, cluster, script):
    """What the real server says to the script."""
    return list(RealRun(cluster, script).answers())


def test_the_real_server_answers_as_the_script_says(script, answers):
    steps = [step for step in script["steps"] if not step.get("real_only")]
    assert [f"{step['step']}: {answer}" for step, answer in zip(steps, answers, strict=True)
            if "status" in step and answer["status"] != step["status"]] == []


def with_their_causes(ours, theirs):
    """The simulated server names all rules that a write breaks. The real one names those in the CRD; if there are none,
    the first one that its policies find, without a reason."""
    mine, real = (((answer.get("body") or {}).get("causes")) or [] for answer in (ours, theirs))
    named_by_us = {(reason, field) for reason, field in mine} | {("", field) for _, field in mine}
    if real and set(real) <= named_by_us:
        return {**ours, "body": {**ours["body"], "causes": real}}
    return ours


def test_every_answer_is_the_real_ones(script, answers, tmp_path):
    real, model = Normal(), Normal()
    expected = [real.answer(answer) for answer in answers]
    actual = [model.answer(answer) for answer in simulated(script, tmp_path / "script.json")]
    actual = [with_their_causes(ours, theirs) for ours, theirs in zip(actual, expected, strict=True)]
    assert [answer["step"] for answer in actual] == [answer["step"] for answer in expected]
    different = [
        f"{theirs['step']}\n  real      {json.dumps(theirs, sort_keys=True)}\n"
        f"  simulated {json.dumps(ours, sort_keys=True)}"
        for theirs, ours in zip(expected, actual)
        if json.dumps(theirs, sort_keys=True) != json.dumps(ours, sort_keys=True)
    ]
    assert not different, f"{len(different)} of {len(expected)}:\n" + "\n".join(different)


# -- the rules in CEL -------------------------------------------------------------------------------

# The script does not break these rules; the start of each message. The simulated server has only the one on payloads,
# for which the script would need 64 KiB of text. Nobody in the simulation breaks the others.
NOT_IN_THE_SCRIPT = {
    "each stage needs a name of its own",
    "parallelism above 1 needs completions: set completions of that stage",
    "indexes, backoffLimitPerIndex, maxFailedIndexes and successPolicy need completionMode Indexed in the same stage",
    "in successPolicy of a stage",
    "in podFailurePolicy of a stage",
    "the heartbeat of a stage",
    "main is the job's own template",
    "status.stages has an entry for each stage of the job",
    "an entry that names its stage names its run too",
    "the payload has more than 65536 bytes",
}


def rules(schema):
    """Each rule in CEL below a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from rules(item)
    elif isinstance(schema, dict):
        yield from [rule for rule in schema.get("x-kubernetes-validations", []) if "rule" in rule]
        for value in schema.values():
            yield from rules(value)


def words_of(rule):
    """A part of what the API server says when the rule is broken."""
    if "messageExpression" not in rule:
        if "rule" in rule:
            return rule["message"]
        # A policy's message names the field, and mostly how it is wrong.
        return re.sub("^[^ ]*: (Forbidden: |Required value: )?", "", rule["message"])
    texts = re.findall(r"'((?:[^'\\]|\\.)+)'", rule["messageExpression"].partition("{")[0])
    return max(texts, key=len).replace("\\'", "'")


def test_the_script_breaks_each_rule_that_the_simulated_server_has(answers):
    refusals = [answer["body"]["details"] for answer in answers if answer.get("status") == 422]
    said = [cause["message"] for details in refusals for cause in details.get("causes", [])]
    all_rules = [rule for path in ROOT.glob("crds/*.yaml") for rule in rules(yaml.safe_load(path.read_text()))]
    all_rules += policy_rules()["DurableJob"]
    unbroken = {words_of(rule) for rule in all_rules if not any(words_of(rule) in message for message in said)}
    assert {next(filter(text.startswith, NOT_IN_THE_SCRIPT), text) for text in unbroken} == NOT_IN_THE_SCRIPT
