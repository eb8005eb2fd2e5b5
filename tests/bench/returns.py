"""The first part of mode h, very many finished jobs: what the first read takes, and how soon a replica that was cut
off acts again. very_many.py has the second part."""

import time

from holdfast import Operator, job
from localcluster import wait_for
from measure import memory_mib
from proxy import Proxy
from standing import finished

# Longer than the renew deadline: the replica has stopped acting, and nobody else has taken its shards.
CUT_SECONDS = 12
SETTLE_SECONDS = 20


def mode_h(plane, options, say):
    """{finished jobs: figures}"""
    result = {}
    for count in options.many:
        finished(plane, count, say)
        say(f"  {count} finished jobs: a start, and {options.returns} returns ...")
        result[str(count)] = _measure(plane, options.returns)
    return result


def _measure(plane, returns):
    with Proxy("127.0.0.1", plane.cluster.ports["kube-apiserver"]) as proxy:
        operator = Operator(plane.cluster, kubeconfig=proxy.kubeconfig(plane.kubeconfig, plane.folder))
        began = time.monotonic()
        with operator:
            start = round(time.monotonic() - began, 2)
            time.sleep(SETTLE_SECONDS)
            before = memory_mib(operator.process.pid)
            times = [_return(plane, operator, proxy) for _ in range(returns)]
            after = memory_mib(operator.process.pid)
    return {"start": start, "returns": times, "memory_mib": before["now"], "peak_of_start_mib": before["peak"],
            "peak_of_returns_mib": after["peak"]}


def _return(plane, operator, proxy):
    """Seconds from the end of a cut until a job that was applied meanwhile has its first attempt."""
    jobs = plane.jobs(plane.namespace("returns"))
    proxy.refuse(True)
    proxy.hold()
    began = time.monotonic()
    jobs.apply(job("first"))
    wait_for("the end of the cut", lambda: time.monotonic() >= began + CUT_SECONDS, CUT_SECONDS + 5)
    assert operator.metric("holdfast_member_acting") == 0, "a replica that was cut off still acts"
    proxy.refuse(False)
    proxy.cut()
    back = time.monotonic()
    wait_for("the first attempt", lambda: jobs.status("first").get("attempt") == 1, 120, poll=0.02)
    took = round(time.monotonic() - back, 2)
    time.sleep(SETTLE_SECONDS)
    return took
