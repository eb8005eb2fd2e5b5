"""Somebody edits the replicas' Leases: every shard is somebody's again, or the log says what to do."""

from holdfast import QUICK_LEASES, Operator
from localcluster import wait_for
from replicas import LEASES, Replicas, held_by, ownership


def patch(cluster, name, body):
    status, answer = cluster.api("PATCH", f"{LEASES}/{name}", body, content_type="merge")
    assert status == 200, answer


def wait_held(operator, count=32):
    wait_for(f"{operator.name} to hold {count} shards", lambda: operator.metric("holdfast_shards_held") == count, 60)


def test_edited_leases_are_taken_or_the_log_says_what_to_do(cluster):
    with Operator(cluster) as operator:
        wait_held(operator)
        # As far as the API server lets anybody count, and holders that cannot be.
        patch(cluster, "holdfast-shard-5", {"spec": {"leaseTransitions": 2147483647, "holderIdentity": ""}})
        patch(cluster, "holdfast-shard-7", {"spec": {"holderIdentity": "foo/../bar baz%2F"}})
        patch(cluster, "holdfast-shard-9", {"spec": {"holderIdentity": "x" * 100000}})
        wait_for("the edits to be seen", lambda: operator.metric("holdfast_shard_moves_total", how="taken") == 3, 60)
        wait_held(operator)

        patch(cluster, "holdfast-shard-3", {"metadata": {"labels": None}})
        wait_for("the log to name the Lease", lambda: "lease=holdfast-shard-3" in operator.log(), 60)
        assert "delete it" in operator.log()
        wait_for("the shard to be told of as nobody's", lambda: operator.metric("holdfast_shards_orphaned") == 1, 60)
        cluster.api("DELETE", f"{LEASES}/holdfast-shard-3")
        wait_held(operator)
        assert operator.log().count("lease=holdfast-shard-3") == 1


def test_without_the_number_of_shards_the_running_go_on_and_newcomers_say_what_is_missing(cluster):
    with Operator(cluster) as first:
        wait_held(first)
        patch(cluster, "holdfast-shard-0", {"metadata": {"annotations": None}})
        second = Operator(cluster)
        try:
            second.spawn()
            wait_for("it to say what is missing", lambda: "holdfast.dev/shards=NUMBER" in second.log(), 60)
            assert second.process.poll() is None
            assert first.process.poll() is None
            assert first.metric("holdfast_shards_held") == 32
            patch(cluster, "holdfast-shard-0", {"metadata": {"annotations": {"holdfast.dev/shards": "32"}}})
            wait_for("the newcomer to get its part", lambda: second.metric("holdfast_shards_held") == 16, 60)
        finally:
            second.__exit__()


def test_a_dead_replica_whose_lease_lost_its_label_is_replaced(cluster):
    with Replicas(cluster, 2, leases=QUICK_LEASES) as replicas:
        replicas.wait_shared()
        member = ownership(replicas[0])["member"]
        replicas[0].kill()
        patch(cluster, f"holdfast-member-{member}", {"metadata": {"labels": None}})
        wait_for("the other to hold all", lambda: held_by(cluster) == {replicas[1].name: 32}, 60)
