"""rescue of the chart: no right and no flag when it is off, and what it needs when it is on."""

import pytest
import yaml

from chart import CHART, RELEASE
from test_batch_jobs import arguments, rules, verbs


def with_status(objects):
    return {(kind, namespace) for kind, namespace, rule in rules(objects) if "pods/status" in rule["resources"]}


def test_off_it_costs_no_right_no_flag_and_no_alert(helm):
    objects = helm.objects({"prometheusRule": {"enabled": True}})
    assert verbs(objects, "", "pods/status") == []
    assert "rescue" not in yaml.safe_dump(objects).lower()


def test_on_it_may_patch_the_status_of_pods_and_delete_them(helm):
    objects = helm.objects({"rescue": {"mode": "on"}, "prometheusRule": {"enabled": True}})
    assert verbs(objects, "", "pods/status") == ["patch"]
    assert with_status(objects) == {("ClusterRole", None)}
    flags = [flag for flag in arguments(objects, "Deployment") if flag.startswith("--rescue")]
    assert flags == ["--rescue=on", "--rescue-max-per-minute=60",
                     "--rescue-owner=Workflow,EphemeralRunner,RayCluster"]
    assert {"HoldfastRescueFails", "HoldfastRescueHeld"} <= {
        rule["alert"] for item in objects if item["kind"] == "PrometheusRule"
        for group in item["spec"]["groups"] for rule in group["rules"]}


@pytest.mark.parametrize("values", [{"rescue": {"mode": "on", "namespaces": ["ci", "media"]}},
                                    {"rescue": {"mode": "on"}, "watchNamespaces": ["ci", "media"],
                                     "workerNamespaces": []}])
def test_it_has_its_rights_in_its_namespaces_alone(helm, values):
    objects = helm.objects(values)
    assert with_status(objects) == {("Role", "ci"), ("Role", "media")}
    bound = {(item["kind"], item["metadata"]["namespace"]) for item in objects
             if item["kind"].endswith("RoleBinding") and item["roleRef"]["name"].endswith("-rescue")}
    assert bound == {("RoleBinding", "ci"), ("RoleBinding", "media")}


def test_other_kinds_can_be_left_out(helm):
    objects = helm.objects({"rescue": {"mode": "on", "owners": []}})
    assert "--rescue-owner=none" in arguments(objects, "Deployment")


def test_kinds_whose_pods_are_never_freed_are_refused(helm):
    done = helm("template", RELEASE, CHART, values={"rescue": {"owners": ["StatefulSet"]}}, check=False)
    assert done.returncode != 0 and "rescue" in done.stderr


def test_to_observe_it_may_read_alone_but_for_its_own_lease_and_config_map(helm):
    objects = helm.objects({"rescue": {"mode": "observe"}})
    assert {item["kind"] for item in objects} & {"ValidatingAdmissionPolicy", "Job"} == set()
    writes = {(kind, namespace, resource, verb) for kind, namespace, rule in rules(objects)
              for resource in rule["resources"] for verb in rule["verbs"] if verb not in ("get", "list", "watch")}
    assert writes == {("Role", "holdfast-system", resource, verb)
                      for resource in ("leases", "configmaps") for verb in ("create", "update")}
    reads = {resource for _, _, rule in rules(objects) for resource in rule["resources"]}
    assert reads == {"pods", "nodes", "leases", "configmaps"}
    assert "--rescue=observe" in arguments(objects, "Deployment")


def test_to_observe_two_namespaces_it_reads_no_other_pods(helm):
    objects = helm.objects({"rescue": {"mode": "observe", "namespaces": ["ci", "media"]}})
    assert {namespace for _, namespace, rule in rules(objects) if "pods" in rule["resources"]} == {"ci", "media"}


def test_to_observe_some_namespaces_nothing_need_be_said_of_workers(helm):
    objects = helm.objects({"rescue": {"mode": "observe"}, "watchNamespaces": ["ci"]})
    assert {namespace for _, namespace, rule in rules(objects) if "pods" in rule["resources"]} == {"ci"}
