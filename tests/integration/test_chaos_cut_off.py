"""Connections that fall silent without being closed, as behind a firewall that forgot them."""

import pytest

from chaos import check_run, names_of
from holdfast import OPERATOR_USER, Operator, job, runs
from localcluster import wait_for
from losses import wait_renewals
from proxy import Proxy
from record import STORE_AS_JSON, Recorder

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
JOBS = 10
# A held request is given up after its 30 s; a watch that does not show our own write after 5 s; and
# the jobs' and the pods' watch may be found one after the other.
END_LIMIT = 120


@pytest.fixture()
def proxy(cluster):
    with Proxy("127.0.0.1", cluster.ports["kube-apiserver"]) as proxy:
        yield proxy


@pytest.fixture()
def distant(cluster, proxy):
    """An operator behind the proxy."""
    kubeconfig = proxy.kubeconfig(cluster.kubeconfig_for(OPERATOR_USER), cluster.folder)
    with Operator(cluster, kubeconfig=kubeconfig) as operator:
        yield operator


def retried(count):
    return [job(f"again-{n}", annotations=runs(1, "1,0"), backoffLimit=2,
                retryBackoff={"initialSeconds": 20, "maxSeconds": 20, "jitterPercent": 0})
            for n in range(count)]


def test_watches_that_fell_silent_are_found_by_our_own_writes_and_replaced(cluster, proxy, distant, jobs):
    """The held connections stay held: only new ones can bring the jobs to their ends."""
    made = retried(JOBS)
    with Recorder(cluster, jobs.namespace) as record:
        for body in made:
            jobs.apply(body)
        wait_for("all jobs to wait for their second attempt", lambda: all(
            record.status(name).get("phase") == "Backoff" for name in names_of(made)), 60)
        assert proxy.hold() >= 2
        record.wait_ended(names_of(made), END_LIMIT)
        check_run(record, names_of(made))
        for name in names_of(made):
            status = record.status(name)
            assert (status["phase"], status["attempt"]) == ("Succeeded", 2)
            assert status["disruptions"] == 0


def test_a_silent_connection_does_no_harm_and_all_goes_on_when_it_breaks(cluster, proxy, distant, jobs):
    """Nothing of ours is due, so nothing shows that the watches are silent: no verdict may come of
    it, and what happened meanwhile counts once the connections are reset."""
    made = [job(f"steady-{n}", lostAfterSeconds=15) for n in range(JOBS)]
    with Recorder(cluster, jobs.namespace) as record:
        for body in made:
            jobs.apply(body)
        running = [jobs.wait_running(name) for name in names_of(made)]
        assert proxy.hold() >= 2
        for pod in running:
            jobs.end_pod(pod)
        late = [job(f"late-{n}", annotations=runs(0)) for n in range(JOBS)]
        for body in late:
            jobs.apply(body)
        wait_renewals(cluster, [f"node-{number}" for number in range(3)])  # nobody shows them to the operator
        proxy.cut()
        record.wait_ended(names_of(made + late), END_LIMIT)
        check_run(record, names_of(made + late))
        for name in names_of(made + late):
            status = record.status(name)
            assert (status["phase"], status["attempt"]) == ("Succeeded", 1)
