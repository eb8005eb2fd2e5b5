"""A pool whose operator may not write Leases there: its status says so, and it goes on once that is allowed."""

from fence import wait_allowed
from fake_pool import allow_workers
from holdfast import OPERATOR_USER, Jobs, Operator, allow_heartbeats
from host_worker import IMAGE, Lives
from pools import Pools, nodes, pooled  # noqa: F401

CLUSTER = {"nodes": 0, "kwok": False}
NAMESPACE = "elsewhere"


def test_a_pool_in_a_namespace_without_rights_says_so(cluster, nodes, tmp_path):  # noqa: F811
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    pools, jobs, lives = Pools(cluster, NAMESPACE), Jobs(cluster, NAMESPACE), Lives(tmp_path / "lives")
    with Operator(cluster, f"--agent-image={IMAGE}"):
        pools.apply("small")
        jobs.apply(pooled("waits", "small", lives, {"run": 0}))
        status = pools.wait("small", "the refusal to be told", lambda s: any(
            "leases" in one["message"] and "forbidden" in one["message"] for one in s.get("conditions", [])))
        assert status["failedStarts"] >= 1
        allow_heartbeats(cluster, NAMESPACE)
        wait_allowed(cluster, NAMESPACE, OPERATOR_USER, "create")
        allow_workers(cluster, NAMESPACE)
        pools.wait_live("small", 1)
        assert jobs.wait_phase("waits", "Succeeded")["attempt"] == 1
        pools.wait("small", "no refusal", lambda s: not any(
            "forbidden" in one["message"] for one in s.get("conditions", [])))
