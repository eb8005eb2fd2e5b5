"""The template changes while the phase is Suspended, and at no other time: also after an upgrade of the definition."""

import copy
import json

import pytest
import yaml
from holdfast import GUARD_PATH
from localcluster import wait_for
from resource_api import CRD_PATH, JOBS, PHASES, accepted, job, refused, status

IMAGE = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"}]
LABEL = [{"op": "add", "path": "/spec/template/metadata", "value": {"labels": {"a": "b"}}}]
REFUSED = ("spec.template: Forbidden: the template is immutable unless the job is suspended",
           "change the template once status.phase is Suspended")


@pytest.mark.parametrize("change", [IMAGE, LABEL], ids=["spec", "metadata"])
@pytest.mark.parametrize("phase", [None, *(phase for phase in PHASES if phase != "Suspended")])
def test_the_template_never_changes_in_another_phase(api, phase, change):
    name = api.job_in(phase)["metadata"]["name"]
    refused(api.patch(name, change), *REFUSED)


def test_asking_for_suspension_alone_opens_nothing(api):
    """Until the operator has recorded it, the attempt's pod may be about to be made."""
    name = api.job_in("Running", suspend=True)["metadata"]["name"]
    refused(api.patch(name, IMAGE), *REFUSED)
    name = api.create(job(suspend=True))["metadata"]["name"]
    refused(api.patch(name, IMAGE), *REFUSED)


@pytest.mark.parametrize("change", [IMAGE, LABEL], ids=["spec", "metadata"])
def test_the_template_changes_while_the_job_is_suspended(api, change):
    current = api.job_in("Suspended", suspend=True)
    answer = accepted(api.patch(current["metadata"]["name"], change))
    assert answer["spec"]["template"] != current["spec"]["template"]
    assert answer["metadata"]["generation"] == current["metadata"]["generation"] + 1


def test_the_template_may_change_in_the_write_that_resumes_the_job(api):
    name = api.job_in("Suspended", suspend=True)["metadata"]["name"]
    answer = accepted(api.patch(name, [*IMAGE, {"op": "replace", "path": "/spec/suspend", "value": False}]))
    accepted(api.put_status(answer, status("Pending")))
    refused(api.patch(name, LABEL), *REFUSED)


def test_a_changed_template_is_checked_like_a_new_one(api):
    name = api.job_in("Suspended", suspend=True, heartbeat={})["metadata"]["name"]
    refused(api.patch(name, [{"op": "remove", "path": "/spec/template/spec/containers/0/command"}]),
            "set spec.template.spec.containers[0].command")
    refused(api.patch(name, [{"op": "add", "path": "/spec/template/spec/containers/0/lifecycle",
                              "value": {"postStart": {"exec": {"command": ["true"]}}}}]), "postStart")
    refused(api.patch(name, [{"op": "add", "path": "/spec/template/spec/shareProcessNamespace", "value": True}]),
            "shared process namespace")
    refused(api.patch(name, {"spec": {"heartbeat": None}}), "the heartbeat is immutable")


# -- metadata ------------------------------------------------------------------------------------------

REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
# A value of each field of ObjectMeta. batch/v1 checks none that means nothing in a template.
META = {
    "annotations": {"note": "b"},
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "deletionGracePeriodSeconds": 5,
    "deletionTimestamp": "2026-01-02T03:04:05Z",
    "finalizers": ["example.com/a", "example.com/a"],
    "generateName": "encode-",
    "generation": 3,
    "labels": {"app": "a"},
    "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                       "time": "2026-01-02T03:04:05Z", "subresource": "status", "fieldsV1": {"f:spec": {".": {}}}}],
    "name": "encode",
    "namespace": "elsewhere",
    "ownerReferences": [REFERENCE, REFERENCE | {"uid": "u", "controller": True, "blockOwnerDeletion": True}],
    "resourceVersion": "7",
    "selfLink": "/api/v1/pods/encode",
    "uid": "u",
}


def test_every_field_of_the_metadata_is_tried(api):
    schemas = api.cluster.api("GET", "/openapi/v3/api/v1")[1]["components"]["schemas"]
    assert set(META) == set(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"])


@pytest.mark.parametrize("field", META)
def test_a_template_takes_each_field_of_metadata_that_batch_v1_takes(api, field):
    """As batch/v1 does, with unknown fields refused."""
    body = job()
    body["spec"]["template"]["metadata"] = {field: META[field]}
    batch = {"metadata": {"name": body["metadata"]["name"]}, "spec": {"suspend": True, "template": copy.deepcopy(
        body["spec"]["template"])}}
    batch["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    code, answer = api.cluster.api("POST", "/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict", batch)
    assert code == 201, answer
    assert api.create(body)["spec"]["template"]["metadata"] == {field: META[field]}


# -- the rule costs nothing at a write of the status, and is not passed by one -------------------------


def other_template(current):
    body = copy.deepcopy(current)
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    return body


def test_a_status_write_that_carries_another_template_leaves_the_template_alone(api):
    current = api.job_in("Running")
    body = other_template(current)
    body["status"] = status("Running", disruptions=4)
    path = f"{JOBS}/{current['metadata']['name']}"
    answer = accepted(api.cluster.api("PUT", f"{path}/status", body))
    assert answer["spec"] == current["spec"]
    assert answer["status"]["disruptions"] == 4


def reads_the_template(rule):
    return "spec.template" in rule or "self.template" in rule


def test_no_rule_reads_the_template_at_a_write_of_the_status():
    """That would cost the API server more than all other rules together, see docs/internals/performance.md."""
    version = yaml.safe_load(CRD_PATH.read_text())["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    assert not [rule for rule in root["properties"]["spec"].get("x-kubernetes-validations", [])
                if "template" in rule["rule"]]
    reading = [rule["rule"] for rule in root["x-kubernetes-validations"] if "template.spec" in rule["rule"]]
    assert len(reading) == 2  # the template itself, and the stages'
    for rule in reading:
        assert "self.status != oldSelf.status" in rule[:rule.index("template.spec")]
    [on_status] = [policy for policy in yaml.safe_load_all(GUARD_PATH.read_text())
                   if policy["kind"] == "ValidatingAdmissionPolicy" and policy["metadata"]["name"].endswith("-status")]
    assert not [rule for rule in on_status["spec"]["validations"] if reads_the_template(rule["expression"])]


def test_the_template_is_one_field_to_server_side_apply(api):
    """Else managedFields has an entry for each field of it, which every write would decode and encode."""
    body = job(api.create(job())["metadata"]["name"])
    for _ in range(2):
        result = api.apply(body, "--server-side", "--force-conflicts")
        assert result.returncode == 0, result.stderr
    owners = [entry["fieldsV1"]["f:spec"]["f:template"]
              for entry in api.get(body["metadata"]["name"])["metadata"]["managedFields"]
              if "f:template" in entry["fieldsV1"].get("f:spec", {})]
    assert owners and all(owned == {} for owned in owners)


@pytest.mark.parametrize("with_status", ["as it is", "changed", "none"])
def test_a_replace_of_the_job_with_whatever_status_never_changes_the_template(api, with_status):
    current = api.job_in("Running")
    body = other_template(current)
    if with_status == "changed":
        body["status"] = status("Running", disruptions=4)
    if with_status == "none":
        del body["status"]
    refused(api.cluster.api("PUT", f"{JOBS}/{current['metadata']['name']}", body), *REFUSED)


def test_a_merge_patch_with_a_status_never_changes_the_template(api):
    current = api.job_in("Running")
    body = {"spec": other_template(current)["spec"], "status": {"phase": "Suspended", "disruptions": 4}}
    refused(api.patch(current["metadata"]["name"], body), *REFUSED)


def test_a_forced_server_side_apply_never_changes_the_template(api):
    name = api.job_in("Running")["metadata"]["name"]
    body = other_template(job(name))
    body["status"] = {"phase": "Suspended"}
    result = api.apply(body, "--server-side", "--force-conflicts")
    assert result.returncode != 0, result.stdout
    assert REFUSED[0] in result.stderr


# -- a definition that learns a field -------------------------------------------------------------------

OLD = "durablejobs.before.holdfast.dev"
OLD_JOBS = "/apis/before.holdfast.dev/v1alpha1/namespaces/default/durablejobs"


def definition(without=None):
    """The definition under a group of its own; `without`: a field of containers that it does not know."""
    crd = yaml.safe_load(CRD_PATH.read_text())
    crd["metadata"]["name"] = OLD
    crd["spec"]["group"] = "before.holdfast.dev"
    crd["spec"]["names"] |= {"shortNames": [], "categories": []}
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    pod = schema["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]
    if without:
        del pod["containers"]["items"]["properties"][without]
    return json.dumps(crd)


@pytest.fixture()
def old_definition(api):
    def install(text):
        result = api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        assert result.returncode == 0, result.stderr

    install(definition(without="tty"))
    wait_for("the older definition to be served", lambda: api.cluster.api("GET", OLD_JOBS)[0] == 200, 60)
    yield install
    api.kubectl("delete", "crd", OLD)


def test_a_manifest_with_a_field_that_was_pruned_can_be_applied_again_while_suspended(api, old_definition):
    manifest = job("upgraded", suspend=True)
    manifest["apiVersion"] = "before.holdfast.dev/v1alpha1"
    manifest["spec"]["template"]["spec"]["containers"][0]["tty"] = True
    code, current = api.cluster.api("POST", OLD_JOBS, manifest)
    assert code == 201, current
    assert "tty" not in current["spec"]["template"]["spec"]["containers"][0]
    path = f"{OLD_JOBS}/upgraded"
    current["status"] = status("Running")
    current = accepted(api.cluster.api("PUT", f"{path}/status", current))

    old_definition(definition())

    def learnt():
        current_now = api.cluster.api("GET", path)[1]
        current_now["spec"]["template"]["spec"]["containers"][0]["tty"] = True
        return api.cluster.api("PUT", f"{path}?dryRun=All", current_now)[0] == 422

    wait_for("the API server to know the field", learnt, 60)
    code, current = api.cluster.api("GET", path)
    current["status"] = status("Suspended")
    manifest["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    refused(api.cluster.api("PUT", path, manifest), *REFUSED)
    current = accepted(api.cluster.api("PUT", f"{path}/status", current))
    manifest["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    answer = accepted(api.cluster.api("PUT", path, manifest))
    assert answer["spec"]["template"]["spec"]["containers"][0]["tty"] is True
