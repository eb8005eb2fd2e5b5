"""batchJobs of the chart: no right and no flag when it is off, and what it needs when it is on."""

import yaml


def rules(objects):
    return [(role["kind"], role["metadata"].get("namespace"), rule) for role in objects
            if role["kind"] in ("Role", "ClusterRole") and "aggregate" not in str(role["metadata"].get("labels"))
            for rule in role.get("rules") or []]


def verbs(objects, group, resource):
    return sorted({verb for _, _, rule in rules(objects) if group in rule["apiGroups"] and resource in rule["resources"]
                   for verb in rule["verbs"]})


def arguments(objects, kind):
    return [argument for item in objects if item["kind"] == kind
            for container in item["spec"]["template"]["spec"]["containers"] for argument in container["args"]]


def test_off_it_costs_no_right_and_no_flag(helm):
    objects = helm.objects({})
    assert verbs(objects, "batch", "jobs") == verbs(objects, "batch", "jobs/status") == []
    assert "create" not in verbs(objects, "holdfast.dev", "durablejobs")
    assert "--batch-jobs" not in yaml.safe_dump(objects)


def test_on_it_reads_jobs_and_writes_their_status_alone(helm):
    objects = helm.objects({"batchJobs": {"enabled": True}})
    assert verbs(objects, "batch", "jobs") == ["get", "list", "watch"]
    assert verbs(objects, "batch", "jobs/status") == ["update"]
    assert verbs(objects, "", "namespaces") == []
    for kind in ("Deployment", "Job"):  # the hook fails the Jobs
        assert "--batch-jobs=all" in arguments(objects, kind)


def test_with_a_selector_it_sees_namespaces(helm):
    selector = {"team": "video", "stage": "test"}
    objects = helm.objects({"batchJobs": {"enabled": True, "namespaceSelector": selector},
                            "watchNamespaces": ["media"], "workerNamespaces": []})
    assert "--batch-jobs=stage=test,team=video" in arguments(objects, "Deployment")
    kinds = {kind for kind, _, rule in rules(objects) if "namespaces" in rule["resources"] and "watch" in rule["verbs"]}
    assert kinds == {"ClusterRole"}
    assert ("Role", "media") in {(kind, ns) for kind, ns, rule in rules(objects) if "jobs/status" in rule["resources"]}
