"""The operator as a process: what it watches, what it refuses, how it stops, and what it says when
it cannot work."""

import signal
import subprocess

import pytest
import yaml

from holdfast import RBAC_PATH, Jobs, Operator, install, job, operator_binary, runs
from lives import settle
from localcluster import Cluster, wait_for
from losses import new_namespace

STOP_LIMIT = 30


@pytest.fixture(scope="module")
def bare(request):
    """A control plane without the CRD and without rights for the operator, until a test installs
    them."""
    with Cluster(nodes=0, kwok=False, scheduler=False, quiet=True) as cluster:
        yield cluster


# -- flags -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag,words",
    [
        ("--workers=0", "1 to 1000"),
        ("--workers=many", "--workers"),
        ("--qps=-1", "--qps"),
        ("--log-level=loud", "trace, debug, info, warn or error"),
        ("--log-format=xml", "text or json"),
        ("--metrics-address=8080", ":PORT"),
        ("--metrics-address=127.0.0.1:99999", ":PORT"),
        ("--namespace=Has_Capitals", "namespace"),
        ("--watch-namespace=*", "leave this out"),
        ("--watch-namespace=a,,b", "leave this out"),
        ("--id=no.dots", "--id"),
        ("--no-such-flag", "--help"),
        ("stray", "--help"),
    ],
)
def test_nonsense_is_refused_with_a_message_and_exit_code_2(flag, words):
    result = subprocess.run([operator_binary(), flag], capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 2
    assert words in result.stderr and result.stdout == ""


def test_nonsense_in_the_environment_names_the_variable():
    result = subprocess.run(
        [operator_binary()], env={"HOLDFAST_WORKERS": "0"}, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert "HOLDFAST_WORKERS" in result.stderr


def test_help_and_version_are_printed_and_end_with_0():
    for flag, words in (("--help", "--watch-namespace"), ("--version", "holdfast-operator")):
        result = subprocess.run([operator_binary(), flag], capture_output=True, text=True, timeout=30, check=False)
        assert result.returncode == 0 and words in result.stdout and result.stderr == ""


def test_a_kubeconfig_that_is_not_there_ends_the_process_with_1_and_its_name(tmp_path):
    missing = tmp_path / "nowhere"
    result = subprocess.run(
        [operator_binary(), f"--kubeconfig={missing}", "--metrics-address=0"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert str(missing) in result.stdout + result.stderr


# -- what it watches ---------------------------------------------------------------------------


def test_watch_namespace_limits_what_is_worked_on(cluster):
    first, second, other = (Jobs(cluster, new_namespace(cluster, name)) for name in ("first", "second", "other"))
    other.apply(job("unseen", annotations=runs(0)))
    flags = ["--watch-namespace=first", "--watch-namespace=second"]
    with Operator(cluster, *flags) as operator:
        other.apply(job("unseen-too", annotations=runs(0)))
        for jobs in (first, second):
            jobs.apply(job("seen", annotations=runs(0)))
            assert settle(jobs, "seen")["phase"] == "Succeeded"
        assert operator.metric("holdfast_jobs", phase="Succeeded") == 2
        assert {item["status"]["waiting"]["reason"] for item in other.list()} == {"OperatorAwaited"}
        assert other.pods() == []


def test_watch_namespace_by_environment_and_commas(cluster):
    jobs = Jobs(cluster, new_namespace(cluster, "by-env"))
    with Operator(cluster, env={"HOLDFAST_WATCH_NAMESPACE": "default,by-env"}):
        jobs.apply(job("seen", annotations=runs(0)))
        assert settle(jobs, "seen")["phase"] == "Succeeded"


# -- the stop ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_in_time_with_0_and_work_goes_on_after_the_next_start(cluster, number):
    jobs = Jobs(cluster, new_namespace(cluster, f"stop-{number.name.lower()}"))
    names = [f"job-{i}" for i in range(30)]
    with Operator(cluster) as operator:
        for name in names:
            jobs.apply(job(name, annotations=runs(1)))
        jobs.wait(names[0], lambda s: s.get("attempt") == 1, 60)
        operator.signal(number)
        assert operator.process.wait(timeout=STOP_LIMIT) == 0
        assert "stopped" in operator.log()
        operator.start()
        for name in names:
            assert settle(jobs, name)["phase"] == "Succeeded"
    for name in names:
        status = jobs.status(name)
        # A clean stop leaves no intent without its pod: nothing is lost.
        assert (status["attempt"], status["disruptions"]) == (1, 0), name


def test_it_stops_in_time_when_the_api_server_does_not_answer(cluster):
    with Operator(cluster) as operator:
        cluster.pause("kube-apiserver")
        try:
            code, took = operator.stop(limit=STOP_LIMIT + 5)
        finally:
            cluster.resume("kube-apiserver")
    assert code == 0 and took < STOP_LIMIT


# -- what it says when it cannot work ------------------------------------------------------------


def test_it_says_what_is_missing_and_works_once_that_is_there(bare):
    """Without rights, then without the CRD: both operators start at the same time."""
    mute = Operator(bare, kubeconfig=bare.kubeconfig_for("nobody")).spawn()
    admin = Operator(bare, kubeconfig=bare.kubeconfig).spawn()
    try:
        wait_for(
            "the missing CRD to be named",
            lambda: "install the CRD" in admin.log() and "durablejobs" in admin.log(),
            60,
        )
        wait_for(
            "the missing rights to be named",
            lambda: "forbidden" in mute.log()
            and "grant the operator get, list and watch" in mute.log(),
            60,
        )
        wait_for("the address", lambda: admin.find_address() and mute.find_address(), 60)
        for operator in (admin, mute):

            def names_what_is_missing(operator=operator):
                code, text = operator.get("/readyz")
                return code == 503 and "durablejobs" in text

            wait_for("/readyz to say what is missing", names_what_is_missing, 60)
            wait_for("/healthz to be well", lambda operator=operator: operator.get("/healthz")[0] == 200, 60)
            assert operator.process.poll() is None
        install(bare)
        wait_for("the operator to be ready", lambda: admin.get("/readyz")[0] == 200, 120)
        assert mute.get("/readyz")[0] == 503
        assert mute.stop(STOP_LIMIT)[0] == 0
        assert admin.stop(STOP_LIMIT)[0] == 0
    finally:
        mute.kill()
        admin.kill()


def grant_all_but(cluster, user, resource, verb):
    """The operator's rights for this user, without one of them."""
    objects = [it for it in yaml.safe_load_all(RBAC_PATH.read_text()) if it["kind"] != "Namespace"]
    for item in objects:
        item["metadata"]["name"] = f"{user}-{item['metadata']['name']}"
        if "roleRef" in item:
            item["roleRef"]["name"] = f"{user}-{item['roleRef']['name']}"
            item["subjects"][0]["name"] = user
        for rule in item.get("rules", []):
            if resource in rule["resources"] and verb in rule["verbs"]:
                rule["verbs"].remove(verb)
        if "rules" in item:
            item["rules"] = [rule for rule in item["rules"] if rule["verbs"]]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
    return cluster.kubeconfig_for(user)


@pytest.mark.parametrize("resource,verb", [("durablejobs/status", "update"), ("pods", "create"), ("pods", "patch")])
def test_a_right_that_is_missing_for_a_write_is_named_in_the_log_and_waited_for(cluster, namespace, resource, verb):
    user = f"lacks-{verb}-{resource.replace('/', '-')}"
    jobs = Jobs(cluster, namespace)
    kubeconfig = grant_all_but(cluster, user, resource, verb)
    with Operator(cluster, f"--watch-namespace={namespace}", kubeconfig=kubeconfig) as operator:
        jobs.apply(job("held", annotations=runs(0)))
        words = f'cannot {verb} resource \\"{resource}\\"'
        wait_for("the missing right to be named", lambda: words in operator.log(), 60)
        assert operator.process.poll() is None
        # Rights come, and the work goes on by itself.
        cluster.kubectl(
            "create", "clusterrolebinding", user, f"--user={user}",
            "--clusterrole=holdfast-operator",
        )  # fmt: skip
        assert settle(jobs, "held", limit=120)["phase"] == "Succeeded"
