"""kubectl holdfast submit on a real API server: at most one job for a key, and what is wrong in one line."""

import concurrent.futures
import json
import re

import pytest
from holdfast import CRDS
from localcluster import Cluster, wait_for
from plugin import Plugin
from resource_api import job, unique_name

KEY, HASH = "holdfast.dev/submit-key", "holdfast.dev/submit-hash"


@pytest.fixture(scope="session")
def plugin(bare_cluster):
    return Plugin(bare_cluster)


@pytest.fixture()
def jobs(bare_cluster):
    """The names of the jobs with a label of the test's own."""
    path = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"

    class Jobs:
        def names(self, label):
            return [one["metadata"]["name"]
                    for one in bare_cluster.api("GET", f"{path}?labelSelector={label}")[1]["items"]]

        def get(self, name):
            return bare_cluster.api("GET", f"{path}/{name}")[1]

        def patch(self, name, body, subresource=""):
            status, answer = bare_cluster.api("PATCH", f"{path}/{name}{subresource}", body, content_type="merge")
            assert status == 200, answer

        def delete(self, name):
            bare_cluster.api("DELETE", f"{path}/{name}")
            wait_for(f"{name} to be gone", lambda: bare_cluster.api("GET", f"{path}/{name}")[0] == 404, 30)

    return Jobs()


def name_in(result):
    return re.search(r"durablejob\.holdfast\.dev/([a-z0-9-]+)", result.out + result.err)[1]


def test_a_job_is_created_from_a_file_in_yaml(plugin, jobs, tmp_path):
    name = unique_name("yaml")
    path = tmp_path / "job.yaml"
    path.write_text(f"""
apiVersion: holdfast.dev/v1alpha1
kind: DurableJob
metadata: {{name: {name}}}
spec:
  backoffLimit: 3
  template:
    spec:
      containers:
      - {{name: main, image: "busybox:1.36", command: [sh, -c, "echo yes"], env: [{{name: FLAG, value: "yes"}}]}}
""")
    result = plugin("submit", "-f", str(path))
    assert (result.code, result.out, result.err) == (0, f"durablejob.holdfast.dev/{name} created\n", "")
    assert jobs.get(name)["spec"]["backoffLimit"] == 3


@pytest.mark.parametrize("form", ["json", "yaml", "name", "wide"])
def test_what_is_created_is_printed_in_each_form(plugin, form):
    import yaml

    name = unique_name("form")
    result = plugin("submit", "-f", "-", "-o", form, input=job(name))
    assert result.code == 0, result.err
    if form == "json":
        assert json.loads(result.out)["metadata"]["name"] == name
    elif form == "yaml":
        assert yaml.safe_load(result.out)["spec"]["template"]["spec"]["containers"][0]["name"] == "main"
    elif form == "name":
        assert result.out == f"durablejob.holdfast.dev/{name}\n"
    else:
        assert result.out.splitlines()[0].split() == ["NAMESPACE", "NAME", "PHASE", "ATTEMPT", "WAITING", "UID"]
        assert result.out.splitlines()[1].split()[:2] == ["default", name]


def test_the_same_key_and_spec_is_the_same_job(plugin, jobs):
    first = plugin("submit", "-f", "-", "--key", "invoice 7", input=job("ignored", backoffLimit=3))
    assert first.code == 0, first.err
    name = name_in(first)
    assert re.fullmatch(r"invoice-7-[0-9a-f]{10}", name)
    annotations = jobs.get(name)["metadata"]["annotations"]
    assert annotations[KEY] == "invoice 7"
    assert annotations[HASH].startswith("sha256:")
    again = plugin("submit", "-f", "-", "--key", "invoice 7", input=job("other", backoffLimit=3))
    assert again.code == 0, again.err
    assert again.out == (f"durablejob.holdfast.dev/{name} is there already, submitted with this key; it is Pending: "
                         "OperatorAwaited: the operator has not looked at the job yet\n")


def test_defaults_of_the_api_server_are_no_difference(plugin):
    plain, spelled = job(), job(disruptionLimit=50, suspend=False, retryBackoff={"initialSeconds": 10})
    assert plugin("submit", "-f", "-", "--key", "defaults", input=plain).code == 0
    again = plugin("submit", "-f", "-", "--key", "defaults", input=spelled)
    assert again.code == 0, again.err
    assert "is there already" in again.out


SPELLED = {
    "value": dict(completions=1, parallelism=1, backoffLimit=6, completionMode="NonIndexed", cancel=False),
    "batch": dict(backoffLimitPerIndex=1, completionMode="Indexed", completions=2, parallelism=1, indexes="0-1",
                  backoffLimit=2147483647),
    "policy": dict(podFailurePolicy={"rules": [{
        "action": "Defer", "deferSeconds": 60, "deferLimit": 1000,
        "onExitCodes": {"operator": "In", "values": [75]}, "onPodConditions": []}]}),
    "heartbeat": dict(heartbeat={"leaseDurationSeconds": 30, "progressDeadlineSeconds": 60}),
    "queue": dict(queue={"name": "q", "priority": 0}),
}
PLAIN = {
    "value": {},
    "batch": dict(backoffLimitPerIndex=1, completionMode="Indexed", completions=2),
    "policy": dict(podFailurePolicy={"rules": [{"action": "Defer", "onExitCodes": {"operator": "In", "values": [75]}}]}),
    "heartbeat": dict(heartbeat={"progressDeadlineSeconds": 60}),
    "queue": dict(queue={"name": "q"}),
}


def with_command(one):
    one["spec"]["template"]["spec"]["containers"][0]["command"] = ["true"]
    return one


@pytest.mark.parametrize("kind", SPELLED)
@pytest.mark.parametrize("first", ["plain", "spelled"])
def test_no_default_is_a_difference_whichever_comes_first(plugin, kind, first):
    texts = [with_command(job(**PLAIN[kind])), with_command(job(**SPELLED[kind]))]
    key = f"{first} {kind}"
    for text in texts if first == "plain" else reversed(texts):
        result = plugin("submit", "-f", "-", "--key", key, input=text)
        assert result.code == 0, result.err
    assert "is there already" in result.out


def test_a_stage_has_the_same_defaults(plugin):
    stage = {"name": "report", "when": "Always", "template": job()["spec"]["template"]}
    spelled = stage | {"completions": 1, "parallelism": 1, "backoffLimit": 6, "activeDeadlineSeconds": 600}
    for one in (stage, spelled):
        result = plugin("submit", "-f", "-", "--key", "stage", input=job(stages=[one]))
        assert result.code == 0, result.err


def test_another_spec_is_refused_with_the_difference(plugin, jobs):
    assert plugin("submit", "-f", "-", "--key", "changed", input=job(backoffLimit=3)).code == 0
    other = job(backoffLimit=5)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "alpine"
    result = plugin("submit", "-f", "-", "--key", "changed", input=other)
    assert result.code == 2
    head, *lines = result.err.splitlines()
    assert "has another spec (2 fields); submit the same spec, give another key, or delete that job" in head
    assert lines == ["  spec.backoffLimit: 3 there, 5 here",
                     '  spec.template.spec.containers[0].image: "busybox:1.36" there, "alpine" here']
    assert jobs.get(name_in(result))["spec"]["backoffLimit"] == 3


def test_a_job_that_was_steered_since_is_still_the_one_of_its_key(plugin, jobs):
    first = plugin("submit", "-f", "-", "--key", "steered", "-o", "name", input=job())
    assert plugin("suspend", name_in(first)).code == 0
    again = plugin("submit", "-f", "-", "--key", "steered", input=job())
    assert again.code == 0 and "is there already" in again.out


def test_once_the_job_is_gone_the_key_is_free(plugin, jobs):
    name = name_in(plugin("submit", "-f", "-", "--key", "again", "-o", "name", input=job()))
    uid = jobs.get(name)["metadata"]["uid"]
    jobs.delete(name)
    result = plugin("submit", "-f", "-", "--key", "again", input=job(backoffLimit=1))
    assert (result.code, name_in(result)) == (0, name)
    assert jobs.get(name)["metadata"]["uid"] != uid


def test_a_job_that_is_being_deleted_keeps_its_key_and_says_so(plugin, jobs, bare_cluster):
    held = job()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    name = name_in(plugin("submit", "-f", "-", "--key", "leaving", "-o", "name", input=held))
    bare_cluster.api("DELETE", f"/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs/{name}")
    result = plugin("submit", "-f", "-", "--key", "leaving", input=held)
    assert result.code == 2
    assert "is being deleted; submit again once it is gone" in result.line
    jobs.patch(name, {"metadata": {"finalizers": None}})


def test_fifty_submits_of_one_key_at_once_make_one_job(plugin, jobs):
    """Ten processes at a time, five rounds of each."""
    one = job()
    one["metadata"]["labels"] = {"race": "one"}
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        results = list(pool.map(lambda _: plugin("submit", "-f", "-", "--key", "race", input=one), range(50)))
    assert {result.code for result in results} == {0}, [result.err for result in results if result.code]
    assert sum(" created\n" in result.out for result in results) == 1
    assert sum("is there already" in result.out for result in results) == 49
    assert len(jobs.names("race=one")) == 1


def test_fifty_submits_of_two_specs_make_one_job_and_refuse_the_other(plugin, jobs):
    def one(limit):
        made = job(backoffLimit=limit)
        made["metadata"]["labels"] = {"race": "two"}
        return made

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        results = list(pool.map(
            lambda number: plugin("submit", "-f", "-", "--key", "race 2", input=one(number % 2)), range(50)))
    assert len(jobs.names("race=two")) == 1
    winner = jobs.get(jobs.names("race=two")[0])["spec"]["backoffLimit"]
    assert [result.code for result in results] == [0 if number % 2 == winner else 2 for number in range(50)]


def test_a_dry_run_changes_nothing(plugin, jobs):
    name = unique_name("dry")
    result = plugin("submit", "-f", "-", "--dry-run", input=job(name))
    assert (result.code, result.out) == (0, f"durablejob.holdfast.dev/{name} would be created (dry run)\n")
    assert jobs.get(name)["reason"] == "NotFound"


@pytest.mark.parametrize("text, line", [
    ("", "standard input is empty; it must hold one object"),
    ("a: [1", "standard input: it is not valid YAML at line 1, column 1; correct it there"),
    ("a: 1\n---\nb: 2\n", "standard input holds 2 objects; give one object for each call of submit"),
    ("apiVersion: batch/v1\nkind: CronJob\n",
     "this is a batch/v1 CronJob; turn it into a DurableJob: kubectl holdfast convert -f FILE"),
])
def test_bad_files_get_one_line(plugin, text, line):
    result = plugin("submit", "-f", "-", input=text)
    assert (result.code, result.out) == (2, "")
    assert result.line == line


def test_what_the_api_server_refuses_gets_its_line(plugin):
    wrong = plugin("submit", "-f", "-", input=job(parallelism=5))
    assert wrong.code == 2 and "parallelism above 1 needs completions" in wrong.line
    unknown = plugin("submit", "-f", "-", input=job(backofLimit=5))
    assert unknown.code == 2 and 'unknown field "spec.backofLimit"' in unknown.line


def test_a_name_that_is_taken_is_said(plugin):
    one = job()
    assert plugin("submit", "-f", "-", input=one).code == 0
    taken = plugin("submit", "-f", "-", input=one)
    assert taken.code == 2 and "exists already; delete it, give another name, or use --key" in taken.line


def test_a_namespace_that_is_missing_is_said(plugin):
    one = job()
    del one["metadata"]["namespace"]
    result = plugin("submit", "-f", "-", "-n", "nowhere", input=one)
    assert result.code == 2
    assert result.line == "there is no namespace nowhere; create it, or give another -n"


def test_a_user_without_rights_is_told_which(bare_cluster):
    nobody = Plugin(bare_cluster, "plugin-nobody")
    create = nobody("submit", "-f", "-", input=job())
    assert create.code == 2
    assert create.line == ("you have no right to create durablejobs in namespace default; ask for it: "
                           "kubectl auth can-i create durablejobs -n default must say yes")
    for verb in ("cancel", "suspend", "resume", "retry", "logs"):
        result = nobody(verb, "some-job")
        assert result.code == 2 and "no right to get durablejobs" in result.line, verb


def test_a_user_who_may_only_create_learns_that_the_key_needs_get(bare_cluster, plugin):
    bare_cluster.kubectl("apply", "-f", "-", input="""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: plugin-creator, namespace: default}
rules: [{apiGroups: [holdfast.dev], resources: [durablejobs], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: plugin-creator, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: plugin-creator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: plugin-creator}]
""")
    creator = Plugin(bare_cluster, "plugin-creator")
    wait_for("the right to create", lambda: creator("submit", "-f", "-", "--dry-run", input=job()).code == 0, 30)
    assert creator("submit", "-f", "-", "--key", "create only", input=job()).code == 0
    again = creator("submit", "-f", "-", "--key", "create only", input=job())
    assert again.code == 2 and "no right to get durablejobs" in again.line
    waits = creator("submit", "-f", "-", "--key", "create and wait", "--wait", input=job())
    assert waits.code == 2 and "is there, but you have no right to list durablejobs" in waits.line


def test_a_server_that_is_away_gets_one_line(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text("""
apiVersion: v1
kind: Config
current-context: away
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: away, context: {cluster: away, user: me}}]
users: [{name: me, user: {token: t}}]
""")
    plugin = Plugin(kubeconfig=path)
    result = plugin("submit", "-f", "-", input=job())
    assert result.code == 2
    assert result.line.startswith("cannot reach the API server (")
    assert result.line.endswith("check the network, the proxy and the --context")


@pytest.mark.parametrize("arguments, line", [
    (["--kubeconfig", "/nowhere/config"], "--kubeconfig names /nowhere/config, but there is no such file"),
    (["--context", "other"], "context \"other\""),
])
def test_a_wrong_kubeconfig_gets_one_line(plugin, arguments, line):
    result = plugin("cancel", "x", *arguments)
    assert result.code == 2 and line in result.line


def test_a_cluster_without_holdfast_is_said():
    with Cluster(nodes=0, kwok=False, controller_manager=False, scheduler=False, audit=False) as cluster:
        plugin = Plugin(cluster)
        for arguments in (["submit", "-f", "-"], ["cancel", "x"], ["logs", "x"]):
            result = plugin(*arguments, input=job())
            assert result.code == 2
            assert result.line.startswith("this cluster knows no DurableJob: install Holdfast"), arguments
        cluster.kubectl("apply", "-f", str(CRDS))
        wait_for("DurableJobs", lambda: cluster.kubectl("get", "dj", check=False).returncode == 0, 60)
        missing = plugin("cancel", "x")
        assert missing.line.startswith("there is no DurableJob x in namespace default")


def test_yaml_is_read_as_kubectl_reads_it(bare_cluster, plugin, tmp_path):
    """Octal modes, words that are booleans, merged mappings, quoted numbers."""
    path = tmp_path / "job.yaml"
    path.write_text("""
---
# nothing
---
apiVersion: holdfast.dev/v1alpha1
kind: DurableJob
metadata: {name: read-as-kubectl, namespace: default}
spec:
  suspend: no
  backoffLimit: 0x3
  disruptionLimit: 1_0
  template:
    spec:
      hostNetwork: off
      volumes: [{name: keys, secret: {secretName: keys, defaultMode: 0440}}]
      containers:
      - &first
        name: main
        image: busybox:1.36
        command: [sh, -c, 'echo 1', "07", 1.2.3, 500m, 10.0.0.1, 2026-01-02, "on"]
        env: [{name: A, value: "3"}]
      - <<: *first
        name: second
        command:
        - |
          two
          lines
        - >-
          folded
          text
""")
    theirs = bare_cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", str(path)).stdout
    ours = plugin("submit", "--dry-run", "-o", "json", "-f", str(path))
    assert ours.code == 0, ours.err
    assert json.loads(ours.out)["spec"] == json.loads(theirs)["spec"]
