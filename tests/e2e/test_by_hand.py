"""A new user's hour on real nodes, command by command: a job waits, and one command says why; it fails, the page says it,
and one command retries it; a signed message says how each ended; the dashboards have answers."""

import contextlib
import datetime
import http.client
import json
import re
import ssl
import subprocess
import sys

import pytest

from conftest import ROOT, VALUES
from dashboards import dashboards, shown_objects, unanswered
from holdfast import Jobs, job
from localcluster import wait_for
from localcluster.pki import Authority
from localcluster.python_packages import python_packages
from prometheus import Prometheus
from real_cluster import SYSTEM
from real_jobs import end_of, shell_job, sleeps
from shell import Shell

sys.path.append(str(ROOT / "tests/browser"))
from page import watched  # noqa: E402

NAMESPACE = "media"
RECORD = ROOT / "build/e2e/by-hand.json"
SERVICE = f"receiver.{SYSTEM}.svc"
# The file of this film comes from a ConfigMap, which is not there at first.
ENCODES = ("echo encoding film-17; sleep 4; test -s /in/film-17.mov || "
           "{ echo 'cannot open /in/film-17.mov: no such file' >&2; exit 1; }; echo done")
FILMS = {"volumes": [{"name": "films", "configMap": {"name": "films", "optional": True}}]}


def values(cluster):
    """The platform team's: docs/notifications.md and docs/monitor.md. Services have addresses of 10.96.0.0/16."""
    return {"notifications": {"source": "https://cluster-1.example.com", "targets": [
        {"name": "chat", "url": f"https://{SERVICE}:8443/holdfast", "allowedCIDRs": ["10.96.0.0/16"],
         "secretRef": {"name": "holdfast-chat", "key": "secret"}, "caRef": {"name": "receiver-ca", "key": "ca.crt"}}]},
        "dashboards": {"enabled": True}}


@pytest.fixture(scope="module")
def shell(cluster, tmp_path_factory):
    if not cluster.kind:
        pytest.skip("its pods must reach a port of this machine: on a kind cluster only")
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {
        "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    yield Shell(tmp_path_factory.mktemp("shell"), cluster.kubeconfig, cluster.tools, NAMESPACE)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


class Receiver:
    """examples/notify/receiver.py as a process of this machine, behind a Service of the cluster."""

    def __init__(self, port, log, authority):
        self.port, self._log, self._authority = port, log, authority

    def said(self):
        return self._log.read_text()

    def post(self, headers, body):
        """The status that it answers to this message."""
        tls = ssl.create_default_context(cafile=self._authority)
        connection = http.client.HTTPSConnection("localhost", self.port, context=tls, timeout=20)
        connection.request("POST", "/", body, headers)
        return connection.getresponse().status

    def wait(self, what, limit=90):
        """The line of the event that has this text, and the headers and body before it."""
        pattern = re.compile(rf"^(webhook-id: .*\n(?:.*\n){{4}})(\S+ {what}.*)$", re.MULTILINE)
        return wait_for(f"a message: {what}", lambda: pattern.search(self.said()), limit)


@contextlib.contextmanager
def receiver(folder, authority, secret):
    certificate, key = authority.server("receiver", [f"DNS:{SERVICE}", "DNS:localhost"])
    with open(folder / "receiver.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, ROOT / "examples/notify/receiver.py", "--port=0", "--show", f"--certificate={certificate}",
             f"--key={key}"], stdout=log, stderr=log, env={"WEBHOOK_SECRET": secret, "PYTHONPATH": str(python_packages())})
        try:
            log_path = folder / "receiver.log"
            found = wait_for("the receiver to listen", lambda: re.search(
                r"listening on port (\d+)", log_path.read_text()), 30)
            yield Receiver(int(found[1]), log_path, authority.cert)
        finally:
            process.kill()
            process.wait()


def service_to(address, port):
    """A Service whose only endpoint is outside the cluster."""
    labels = {"kubernetes.io/service-name": "receiver"}
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "receiver", "namespace": SYSTEM},
         "spec": {"ports": [{"port": 8443, "targetPort": port}]}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
         "metadata": {"name": "receiver", "namespace": SYSTEM, "labels": labels},
         "endpoints": [{"addresses": [address]}], "ports": [{"port": port}]}]}


def gateway(cluster):
    """This machine, as pods see it."""
    networks = json.loads(cluster.docker("network", "inspect", "kind").stdout)[0]["IPAM"]["Config"]
    return next(one["Gateway"] for one in networks if ":" not in one.get("Gateway", ":"))


@pytest.fixture(scope="module")
def chat(cluster, shell, tmp_path_factory):
    """The target `chat`, set up as docs/notifications.md says."""
    folder = tmp_path_factory.mktemp("receiver")
    authority = Authority(folder / "pki")
    authority.create()
    shell(f'kubectl -n {SYSTEM} create secret generic holdfast-chat '
          '--from-literal=secret="whsec_$(openssl rand -base64 32)"')
    shell(f"kubectl -n {SYSTEM} create configmap receiver-ca --from-file=ca.crt={authority.cert}")
    secret = shell(f"kubectl -n {SYSTEM} get secret holdfast-chat -o jsonpath='{{.data.secret}}' | base64 -d")
    (folder / "values.json").write_text(json.dumps(values(cluster)))
    with receiver(folder, authority, secret) as chat:
        cluster.kubectl("apply", "-f", "-", input=json.dumps(service_to(gateway(cluster), chat.port)))
        cluster.install(*VALUES, "--values", str(folder / "values.json"))
        try:
            yield chat
        finally:
            cluster.install(*VALUES)
            shell(f"kubectl -n {SYSTEM} delete secret/holdfast-chat configmap/receiver-ca service/receiver "
                  "endpointslice/receiver")


@pytest.fixture(scope="module")
def prometheus(cluster, chat, tmp_path_factory):
    """It scrapes each replica through the API server."""
    targets = [(cluster.proxy_address, {
        "namespace": SYSTEM, "service": "holdfast", "pod": name,
        "__metrics_path__": f"/api/v1/namespaces/{SYSTEM}/pods/{name}:8080/proxy/metrics"})
        for name in (pod["metadata"]["name"] for pod in cluster.operators())]
    with Prometheus(tmp_path_factory.mktemp("prometheus"), targets) as server:
        yield server


@pytest.fixture(scope="module")
def media(cluster, prometheus):
    """The user's jobs. Prometheus knows the namespace before anything ends in it."""
    jobs = Jobs(cluster, NAMESPACE)
    any_job = shell_job(cluster, "waits", sleeps(1), queue={"name": "encode"})
    cluster.kubectl("-n", NAMESPACE, "apply", "-f", "-", input=json.dumps(shown_objects(job("any")["spec"]["template"])))
    jobs.apply(any_job)
    wait_for("the namespace to be scraped", lambda: prometheus.query(
        f'holdfast_namespace_jobs{{exported_namespace="{NAMESPACE}"}} > 0'), 90)
    return jobs


@pytest.fixture(scope="module")
def failed(cluster, media):
    """film-17, which fails three times. Its second back-off takes 20 s."""
    media.apply(shell_job(cluster, "film-17", ENCODES, pod=FILMS, notify=["chat"], backoffLimit=2, container_fields={
        "volumeMounts": [{"name": "films", "mountPath": "/in"}]}))
    return media


def test_one_command_says_why_a_job_waits(shell, failed):
    failed.wait("film-17", lambda status: status.get("phase") == "Backoff" and status["attempt"] == 2, 90)
    page = shell("kubectl holdfast explain film-17", "explain")
    for said in ("RetryBackoff: it waits before its next attempt", "attempt 2 ended as Failed", "attempt 3 starts",
                 "cannot open /in/film-17.mov: no such file", "2 of 2 failures",
                 "kubectl holdfast logs film-17 -n media --attempt 2"):
        assert said in " ".join(page.split()), page
    assert len(page.splitlines()) <= 24 and max(map(len, page.splitlines())) <= 80, page


def test_it_says_the_place_in_a_queue(shell, media):
    page = " ".join(shell("kubectl holdfast explain waits", "queue").split())
    for said in ("Queued: it waits for a permit of its queue", "place 1 of 1", "The queue is held",
                 "kubectl patch jq encode -n media --type=merge"):
        assert said in page, page


def test_the_log_of_each_attempt_is_there(shell, failed):
    said = "encoding film-17\ncannot open /in/film-17.mov: no such file\n"
    assert shell("kubectl holdfast logs film-17 --attempt 1") == said
    end_of(failed, "film-17")
    assert shell("kubectl holdfast logs film-17", "logs") == said


def test_a_signed_message_comes_when_it_ends(shell, failed, chat):
    end_of(failed, "film-17")
    message = chat.wait(f"{NAMESPACE}/film-17 Failed: BackoffLimitExceeded")
    shell.note("message", "./receiver.py --show --certificate tls.crt --key tls.key", message[0] + "\n")
    event = json.loads(message[1].splitlines()[-1])
    assert event["id"] == failed.get("film-17")["metadata"]["uid"] + "/1"
    wait_for("the outbox to be empty", lambda: not failed.status("film-17").get("outbox"), 30)


def test_the_receiver_refuses_a_message_that_somebody_else_has_signed(chat, failed):
    end_of(failed, "film-17")
    message = chat.wait(f"{NAMESPACE}/film-17 Failed")[1].splitlines()
    headers = dict(line.split(": ", 1) for line in message[:-1])
    body = message[-1].replace('"film-17"', '"film-18"').encode()
    assert chat.post(headers, body) == 400
    assert chat.post(headers, message[-1].encode()) == 204


def test_the_page_says_what_needs_a_person(cluster, failed):
    end_of(failed, "film-17")
    with watched(cluster.kubeconfig, "-n", NAMESPACE) as page:
        cause = page.page.locator(".cause", has_text="more attempts failed than backoffLimit forgives")
        cause.get_by_role("link", name=f"{NAMESPACE}/film-17", exact=True).click()
        page.page.locator(".sentence", has_text="more attempts failed than backoffLimit forgives").wait_for()
        page.page.get_by_text("cannot open /in/film-17.mov: no such file").first.wait_for()
        page.page.get_by_role("link", name="Jobs", exact=True).click()
        page.page.get_by_role("link", name=f"{NAMESPACE}/waits").click()
        page.page.get_by_text("place 1 of 1").wait_for()


def test_one_command_retries_it(shell, failed, chat):
    end_of(failed, "film-17")
    shell("kubectl create configmap films --from-literal=film-17.mov=moving", "mend")
    said = shell("kubectl holdfast retry film-17 --wait", "retry")
    name = re.match(r"durablejob.holdfast.dev/(film-17-retry-1-\w{5}) created, a retry of film-17\n", said)[1]
    assert f"{name}: it is Succeeded" in said.splitlines()[-1]
    assert shell(f"kubectl holdfast logs {name}") == "encoding film-17\ndone\n"
    chat.wait(f"{NAMESPACE}/{name} Succeeded")
    assert "Succeeded" in shell("kubectl holdfast top --once", "top")


def test_the_queries_of_the_dashboards_have_answers(cluster, shell, failed, prometheus):
    end_of(failed, "film-17")
    failed.apply(shell_job(cluster, "lost", sleeps(600)))
    shell(f"kubectl delete pod {failed.wait_running('lost')['metadata']['name']} --wait=false")
    for outcome in ("Succeeded", "Failed", "Lost"):
        wait_for(f"an attempt that ended as {outcome} to be scraped", lambda: prometheus.query(
            f'increase(holdfast_namespace_attempts_total{{outcome="{outcome}"}}[10m]) > 0'), 90)
    found = dashboards(json.loads(shell(f"kubectl -n {SYSTEM} get configmap -o json"))["items"])
    assert set(found) == {"holdfast-jobs-dashboard", "holdfast-operator-dashboard"}
    # Some look at the last minute.
    wait_for("all panels to have an answer", lambda: not unanswered(found, prometheus), 120, poll=2)


def test_the_record_of_the_picture_is_complete(cluster, shell):
    """The last of this file: hack/pictures/by-hand draws it."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps({
        "date": datetime.date.today().isoformat(), "kubernetes": cluster.api("GET", "/version")[1]["gitVersion"],
        "steps": shell.record}, indent=1) + "\n")
    assert {"explain", "mend", "retry", "message"} <= {step["title"] for step in shell.record}
