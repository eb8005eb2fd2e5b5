"""The chart without a cluster: what helm says of it, what it refuses, what it packs."""

import json
import subprocess
import tarfile

import pytest
import yaml
from chart import CHART, ROOT, VALUES, pick

# Values that make no sense, and a word of the message.
REFUSED = {
    "a typo": ({"replica": 3}, "replica"),
    "a typo inside": ({"operator": {"worker": 3}}, "worker"),
    "replicas as text": ({"replicas": "2"}, "/replicas"),
    "replicas below zero": ({"replicas": -1}, "/replicas"),
    "no repository": ({"image": {"repository": ""}}, "/image/repository"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "/image/digest"),
    "an unknown pull policy": ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
    "a pull secret without a name": ({"imagePullSecrets": [{}]}, "/imagePullSecrets"),
    "one namespace, not a list": ({"watchNamespaces": "media"}, "/watchNamespaces"),
    "a namespace that cannot be": ({"workerNamespaces": ["Media"]}, "/workerNamespaces"),
    "a namespace twice": ({"workerNamespaces": ["media", "media"]}, "/workerNamespaces"),
    "a service account that cannot be": ({"workerServiceAccounts": ["a..b"]}, "/workerServiceAccounts"),
    "workers that nobody watches": (
        {"watchNamespaces": ["media"], "workerNamespaces": ["proofs"]}, "proofs is not among watchNamespaces"),
    "no workers": ({"operator": {"workers": 0}}, "/operator/workers"),
    "too many shards": ({"operator": {"shards": 1025}}, "/operator/shards"),
    "a lease in milliseconds": ({"operator": {"leaseDuration": "1500ms"}}, "/operator/leaseDuration"),
    "a duration without a unit": ({"operator": {"renewDeadline": "10"}}, "/operator/renewDeadline"),
    "a lease as long as its renewal takes": ({"operator": {"leaseDuration": "10s"}}, "operator.leaseDuration (10s)"),
    "a renewal without a second try": (
        {"operator": {"renewDeadline": "2400ms"}}, "1.2 times operator.retryPeriod (2s)"),
    "a rate below zero": ({"operator": {"qps": -1}}, "/operator/qps"),
    "an unknown log level": ({"operator": {"logLevel": "verbose"}}, "/operator/logLevel"),
    "an unknown resource field": ({"resources": {"limit": {}}}, "limit"),
    "a label that is ours": ({"podLabels": {"app.kubernetes.io/name": "x"}}, "app.kubernetes.io/name"),
    "a label that is a number": ({"podLabels": {"build": 7}}, "/podLabels/build"),
    "a selector that is a number": ({"nodeSelector": {"disks": 2}}, "/nodeSelector/disks"),
    "a switch as text": ({"networkPolicy": {"enabled": "yes"}}, "/networkPolicy/enabled"),
    "a bound below the least": ({"prometheusRule": {"lostAfterSeconds": 10}}, "/prometheusRule/lostAfterSeconds"),
    "a target without TLS": (
        {"notifications": {"targets": [{"name": "x", "url": "http://x", "secretRef": {"name": "x"}}]}},
        "/notifications/targets/0/url"),
    "a target without a secret": (
        {"notifications": {"targets": [{"name": "x", "url": "https://x"}]}}, "/notifications/targets/0"),
    "a target twice": (
        {"notifications": {"targets": 2 * [{"name": "x", "url": "https://x", "secretRef": {"name": "x"}}]}},
        "two targets have the name x"),
    "an unknown event": (
        {"notifications": {"targets": [
            {"name": "x", "url": "https://x", "secretRef": {"name": "x"}, "events": ["Started"]}]}},
        "/notifications/targets/0/events/0"),
    "a folder of documents with a slash at its end": (
        {"prometheusRule": {"docsUrl": "https://example.com/docs/"}}, "/prometheusRule/docsUrl"),
    "a flag that the chart sets": ({"extraArgs": ["--watch-namespace=x"]}, "/extraArgs/0"),
    "a flag that the uninstall hook sets": ({"extraArgs": ["--deployment=x"]}, "/extraArgs/0"),
    "a flag that is none": ({"extraArgs": ["release-pods"]}, "/extraArgs/0"),
    "a variable without a name": ({"extraEnv": [{"value": "x"}]}, "/extraEnv/0"),
    "a volume of the chart's own": ({"extraVolumes": [{"name": "notifications"}]}, "/extraVolumes/0"),
    "a mount without a path": ({"extraVolumeMounts": [{"name": "ca"}]}, "/extraVolumeMounts/0"),
    "a constraint without a key": (
        {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        "/topologySpreadConstraints/0"),
    "a monitor with a typo": ({"podMonitor": {"enable": True}}, "enable"),
    "a name that no Service can have": ({"nameOverride": "1st"}, "/nameOverride"),
    "a name that is too long": ({"nameOverride": "x" * 53}, "/nameOverride"),
}


def test_helm_lint_has_nothing_to_say(helm):
    for values in VALUES.values():
        assert "0 chart(s) failed" in helm("lint", "--strict", CHART, values=values).stdout


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_make_no_sense_are_refused_with_their_name(helm, name):
    values, word = REFUSED[name]
    done = helm("template", "holdfast", CHART, values=values, check=False)
    assert done.returncode != 0
    assert word in done.stderr


def texts(value, key=None):
    """(key, text or number) of all names and labels in it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            labels = key in ("labels", "matchLabels", "annotations")
            yield from [(name, inner)] if labels or name in ("name", "namespace") else texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)


def test_a_name_that_looks_like_a_number_stays_a_name(helm):
    values = {"nameOverride": "x1", "serviceAccount": {"name": "12"}, "watchNamespaces": ["123"],
              "workerNamespaces": ["123"], "prometheusRule": {"enabled": True}, "serviceMonitor": {"enabled": True}}
    rendered = helm("template", "1e3", CHART, "--namespace", "123", values=values).stdout
    found = [pair for item in yaml.safe_load_all(rendered) if item for pair in texts(item)]
    assert ("namespace", "123") in found and ("app.kubernetes.io/instance", "1e3") in found
    assert [pair for pair in found if not isinstance(pair[1], str)] == []
    refused = helm("template", "1e3", CHART, check=False)
    assert refused.returncode != 0 and "nameOverride" in refused.stderr


def test_every_value_that_is_documented_is_in_the_schema(helm):
    """Its own defaults are given back to it; a value that the schema does not know would be refused."""
    helm("template", "holdfast", CHART, values=yaml.safe_load((CHART / "values.yaml").read_text()))


def test_helm_reads_the_chart_without_a_remark(helm):
    assert helm("template", "holdfast", CHART).stderr == ""


def pod_spec(helm, values=None):
    return pick(helm.objects(values), "Deployment")["spec"]["template"]["spec"]


def test_what_a_platform_adds_stands_beside_what_the_chart_has(helm):
    plain, spec = pod_spec(helm, VALUES["told"]), pod_spec(helm, VALUES["told"] | VALUES["extended"])
    [before], [after] = plain["containers"], spec["containers"]
    assert after["args"] == before["args"] + ["--id=eu-1"]
    assert after["env"] == VALUES["extended"]["extraEnv"] and "env" not in before
    assert after["volumeMounts"] == before["volumeMounts"] + VALUES["extended"]["extraVolumeMounts"]
    assert sorted(volume["name"] for volume in spec["volumes"]) == ["ca", "notifications"]
    alone = pod_spec(helm, VALUES["extended"])
    assert alone["volumes"] == VALUES["extended"]["extraVolumes"]
    assert "volumes" not in pod_spec(helm) and "volumeMounts" not in pod_spec(helm)["containers"][0]


def hook_spec(helm, values=None):
    return pick(helm.objects(values), "Job", name="holdfast-release-pods")["spec"]["template"]["spec"]


def test_the_uninstall_hook_has_what_a_platform_adds_to_the_operator(helm):
    """Such as --kubeconfig, its volume and its proxy: without them it would work on another cluster."""
    extended = VALUES["extended"] | {"extraArgs": ["--kubeconfig=/etc/ssl/corporate/config"]}
    plain, spec = hook_spec(helm), hook_spec(helm, extended)
    [before], [after] = plain["containers"], spec["containers"]
    assert after["args"] == before["args"] + extended["extraArgs"]
    assert after["env"] == extended["extraEnv"]
    assert after["volumeMounts"] == extended["extraVolumeMounts"]
    assert spec["volumes"] == extended["extraVolumes"]
    assert not {"env", "volumeMounts"} & set(before) and "volumes" not in plain


def test_a_security_context_replaces_single_fields_of_the_restricted_one(helm):
    values = {"podSecurityContext": {"runAsUser": 1234}, "securityContext": {
        "readOnlyRootFilesystem": False, "capabilities": {"add": ["NET_BIND_SERVICE"]}}}
    for kind in ("Deployment", "Job"):
        spec = pick(helm.objects(values), kind)["spec"]["template"]["spec"]
        assert spec["securityContext"] == {
            "runAsNonRoot": True, "runAsUser": 1234, "seccompProfile": {"type": "RuntimeDefault"}}
        assert spec["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}


def test_spread_and_affinity_are_given_one_by_one_or_together(helm):
    extended = VALUES["extended"]
    spread = {"topologySpreadConstraints": extended["topologySpreadConstraints"]}
    selector = pod_spec(helm)["topologySpreadConstraints"][0]["labelSelector"]
    [alone] = pod_spec(helm, spread)["topologySpreadConstraints"]
    assert alone == spread["topologySpreadConstraints"][0] | {"labelSelector": selector}
    assert "affinity" not in pod_spec(helm, spread)
    both = pod_spec(helm, extended)
    assert both["topologySpreadConstraints"] == [alone] and both["affinity"] == extended["affinity"]
    assert "topologySpreadConstraints" not in pod_spec(helm, {"affinity": extended["affinity"]})
    own = {"labelSelector": {"matchLabels": {"team": "batch"}}}
    given = {"topologySpreadConstraints": [spread["topologySpreadConstraints"][0] | own]}
    assert pod_spec(helm, given)["topologySpreadConstraints"] == given["topologySpreadConstraints"]


def test_a_pod_monitor_selects_what_the_service_monitor_selects(helm):
    objects = helm.objects({"podMonitor": {"enabled": True, "labels": {"release": "p"}, "interval": "15s"},
                            "serviceMonitor": {"enabled": True}})
    monitor = pick(objects, "PodMonitor")
    assert monitor["spec"]["selector"] == pick(objects, "ServiceMonitor")["spec"]["selector"]
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "interval": "15s"}]
    assert monitor["metadata"]["labels"]["release"] == "p"


def test_a_list_that_is_taken_away_is_an_empty_one(helm):
    """What `--set watchNamespaces=null` gives."""
    values = {"watchNamespaces": None, "workerNamespaces": None}
    assert helm.objects(values) == helm.objects({"watchNamespaces": [], "workerNamespaces": []})


def test_the_package_is_complete_and_has_no_links(helm, package):
    with tarfile.open(package) as archive:
        entries = {member.name.removeprefix("holdfast/"): member for member in archive.getmembers()}
        assert all(member.isfile() for member in entries.values())
        for path in CHART.rglob("*"):
            name = str(path.relative_to(CHART))
            if path.is_file() and name != "Chart.yaml":  # helm writes it anew
                assert archive.extractfile(entries[name]).read() == path.read_bytes(), name
    assert helm("template", "holdfast", package, "--include-crds").stdout == \
        helm("template", "holdfast", CHART, "--include-crds").stdout


def test_the_tree_has_one_definition_and_one_fence():
    for link, target in [("crds/holdfast.dev_durablejobs.yaml", "crds/holdfast.dev_durablejobs.yaml"),
                         ("crds/holdfast.dev_jobqueues.yaml", "crds/holdfast.dev_jobqueues.yaml"),
                         ("crds/holdfast.dev_workerpools.yaml", "crds/holdfast.dev_workerpools.yaml"),
                         ("hack/fence.yaml", "files/fence.yaml")]:
        assert (ROOT / link).read_bytes() == (CHART / target).read_bytes()


def test_what_is_made_from_the_chart_is_up_to_date():
    done = subprocess.run([ROOT / "hack/render-chart", "--check"], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr


def test_listed_namespaces_and_no_others_get_rights_on_jobs(helm):
    objects = helm.objects({"watchNamespaces": ["media", "proofs"], "workerNamespaces": ["media"]})
    everywhere = pick(objects, "ClusterRole", name="holdfast")
    assert {rule["resources"][0] for rule in everywhere["rules"]} == {
        "namespaces", "nodes", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}
    [namespaces] = [rule for rule in everywhere["rules"] if rule["resources"] == ["namespaces"]]
    assert (namespaces["resourceNames"], namespaces["verbs"]) == (["media", "proofs"], ["get"])
    writers = [item["metadata"]["namespace"] for item in objects if item["kind"] == "Role" and any(
        "leases" in rule["resources"] and "update" in rule["verbs"] for rule in item["rules"])]
    assert sorted(writers) == ["holdfast-system", "media"]


def test_the_service_accounts_that_are_listed_and_no_others_may_renew_leases(helm):
    def renewers(values):
        objects = helm.objects({"workerNamespaces": ["media", "proofs"], **values})
        return {item["metadata"]["namespace"]: [(who["kind"], who.get("namespace"), who["name"])
                                                for who in item["subjects"]]
                for item in objects if item["kind"] == "RoleBinding" and item["roleRef"]["name"] == "holdfast-worker"}

    assert renewers({"workerServiceAccounts": ["render", "train.v2"]}) == {
        name: [("ServiceAccount", name, "render"), ("ServiceAccount", name, "train.v2")]
        for name in ("media", "proofs")}
    # What YAML would take for something else.
    odd = ["123", "true", "null", "1e3"]
    assert renewers({"workerServiceAccounts": odd})["media"] == [("ServiceAccount", "media", name) for name in odd]
    assert renewers({}) == {name: [("Group", None, f"system:serviceaccounts:{name}")] for name in ("media", "proofs")}


@pytest.mark.parametrize("lease,limit", [("15s", 280), ("180s", 280), ("5m", 400), ("60m", 3700)])
def test_the_uninstall_hook_waits_longer_than_a_dead_replicas_lease_lasts(helm, lease, limit):
    hook = pick(helm.objects({"operator": {"leaseDuration": lease}}), "Job", name="holdfast-release-pods")
    assert hook["spec"]["activeDeadlineSeconds"] == limit


def test_who_has_no_heartbeats_has_no_fence(helm):
    """So that a second release does not meet the first one's."""
    names = {item["metadata"]["name"] for item in helm.objects({"workerNamespaces": []})}
    assert "holdfast" in names and not names & {"holdfast-fence", "holdfast-fence-workers", "holdfast-worker"}


def author_policies(helm, values):
    return [item for item in helm.objects(values) if item["kind"].startswith("ValidatingAdmissionPolicy")
            and item["metadata"]["name"].endswith("-author")]


def test_the_author_policy_is_there_unless_it_is_switched_off(helm):
    assert [item["kind"] for item in author_policies(helm, {})] == [
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert not author_policies(helm, {"authorPolicy": {"enabled": False}})


def test_two_releases_have_two_author_policies_each_for_its_own_namespaces(helm):
    assert "matchResources" not in author_policies(helm, {})[1]["spec"]
    values = {"nameOverride": "second", "watchNamespaces": ["media", "123"], "workerNamespaces": []}
    policy, binding = author_policies(helm, values)
    assert policy["metadata"]["name"] == binding["spec"]["policyName"] == "second-author"
    [where] = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert where == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["media", "123"]}


def test_the_operator_finds_what_the_chart_says_of_targets(helm):
    values = {"notifications": {"source": "https://c", "targets": [
        {"name": "chat", "url": "https://h/in", "secretRef": {"name": "s", "key": "k"}, "caRef": {"name": "c"},
         "namespaces": ["media"], "events": ["Failed"], "allowedCIDRs": ["10.0.0.0/8"]}]}}
    objects = helm.objects(values)
    [config] = [one for one in objects if one["kind"] == "ConfigMap" and "targets.json" in one["data"]]
    folder = "/etc/holdfast/notifications"
    assert json.loads(config["data"]["targets.json"]) == {"source": "https://c", "targets": [
        {"name": "chat", "url": "https://h/in", "secretFile": f"{folder}/chat/secret", "caFile": f"{folder}/chat/ca.crt",
         "namespaces": ["media"], "events": ["Failed"], "allowedCIDRs": ["10.0.0.0/8"]}]}
    pod = pick(objects, "Deployment")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    assert f"--notifications={folder}/targets.json" in container["args"]
    assert container["volumeMounts"] == [{"name": "notifications", "mountPath": folder, "readOnly": True}]
    [volume] = pod["spec"]["volumes"]
    paths = [item["path"] for source in volume["projected"]["sources"][1:]
             for item in next(iter(source.values()))["items"]]
    assert paths == ["chat/secret", "chat/ca.crt"]
    assert all(next(iter(source.values()))["optional"] for source in volume["projected"]["sources"][1:])
    # No other secret than the mounted one: the operator has no right to read Secrets.
    for role in objects:
        for rule in role.get("rules") or []:
            assert "secrets" not in rule.get("resources", [])


def test_without_targets_nothing_is_mounted(helm):
    pod = pick(helm.objects(), "Deployment")["spec"]["template"]
    assert "volumes" not in pod["spec"]
    assert not any(arg.startswith("--notifications") for arg in pod["spec"]["containers"][0]["args"])


def test_no_page_tells_people_to_keep_an_old_charts_defaults():
    """With --reuse-values a newer chart lacks its own new defaults, and breaks. The page about upgrades warns of it."""
    flag = "`--reuse-values`"
    lines = {page.name: [line for line in page.read_text().splitlines() if "--reuse-values" in line]
             for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), CHART / "templates/NOTES.txt"]}
    [row, warning] = lines.pop("upgrade.md")
    assert row.startswith(f"| {flag} |") and warning.startswith(f"- Do not upgrade to a newer chart with {flag}")
    assert {name: found for name, found in lines.items() if found} == {}
