"""Three replicas share the jobs; one is killed, stopped, paused or cut off, and the others go on. In
none of this do two replicas write on one job within one tenure of its shard."""

import signal
import time

import pytest

from chaos import check_run, lapses, names_of
from holdfast import QUICK_LEASES, job, runs
from localcluster import wait_for
from proxy import Proxy
from record import STORE_AS_JSON, Recorder
from replicas import USER, Replicas, fair, held_by, holders, job_writes, ownership, trespasses

pytestmark = pytest.mark.long

LEASE, RETRY = 15, 2
# Reaction, and what a busy machine adds.
SLACK = 8
JOBS = 500
END_LIMIT = 300
CLUSTER = {"nodes": 5, "apiserver_flags": [STORE_AS_JSON]}


def uids_of(jobs):
    return {(jobs.namespace, item["metadata"]["name"]): item["metadata"]["uid"] for item in jobs.list()}


def wait_taken_over(cluster, name, limit):
    """Until this replica holds nothing and somebody holds each shard. Returns how long it took."""
    began = time.monotonic()

    def over():
        now = holders(cluster)
        return name not in now.values() and "" not in now.values()

    wait_for(f"the shards of {name} to be taken over", over, limit, poll=0.05)
    return time.monotonic() - began


def flow(count, prefix):
    return [job(f"{prefix}-{n}", annotations=runs(n % 4, "1,0" if n % 10 == 0 else "0"),
                retryBackoff={"initialSeconds": 1, "maxSeconds": 1}) for n in range(count)]


def test_three_replicas_share_500_jobs_and_outlive_a_kill_a_stop_and_a_pause(cluster, jobs):
    offset = cluster.audit_offset()
    made = flow(JOBS, "job")
    deaths = []  # each explains that an attempt was recorded and its pod never created
    with Recorder(cluster, jobs.namespace) as record, Replicas(cluster, 3) as replicas:
        replicas.wait_shared()
        for body in made[:200]:
            jobs.apply(body)

        # SIGKILL: a member lease and a retry period.
        deaths.append((replicas[0].name, time.monotonic()))
        replicas[0].kill()
        took = wait_taken_over(cluster, replicas[0].name, LEASE + RETRY + SLACK)
        print(f"SIGKILL: taken over after {took:.1f} s")
        assert took <= LEASE + RETRY + SLACK
        for body in made[200:350]:
            jobs.apply(body)
        replicas[0].start()
        replicas.wait_shared()

        # SIGTERM: at once.
        replicas[1].signal(signal.SIGTERM)
        took = wait_taken_over(cluster, replicas[1].name, LEASE)
        print(f"SIGTERM: taken over after {took:.2f} s")
        assert took < LEASE - 5, "it waited for the Lease to grow old"
        assert replicas[1].process.wait(timeout=30) == 0
        replicas[1].start()
        replicas.wait_shared()

        # SIGSTOP for a minute.
        for body in made[350:]:
            jobs.apply(body)
        replicas[2].signal(signal.SIGSTOP)
        deaths.append((replicas[2].name, time.monotonic()))
        paused = time.time()
        wait_taken_over(cluster, replicas[2].name, LEASE + RETRY + SLACK)
        wait_for("a minute of pause", lambda: time.time() - paused > 60, 120)
        woken = time.time()
        replicas[2].signal(signal.SIGCONT)
        replicas.wait_shared()
        record.wait_ended(names_of(made), END_LIMIT)
        uids = uids_of(jobs)
        acted = [write for write in job_writes(cluster, offset, uids)
                 if write.user == replicas[2].name and paused + 3 < write.at < woken]
        assert acted == []
        assert "this replica stops acting" in replicas[2].log()
        assert "this replica acts again" in replicas[2].log()
        check_run(record, names_of(made), deaths + lapses(replicas))
        assert trespasses(cluster, offset, uids) == []


def test_a_replica_that_is_cut_off_stops_acting_before_the_others_start(cluster, jobs):
    offset = cluster.audit_offset()
    with Proxy("127.0.0.1", cluster.ports["kube-apiserver"]) as proxy:
        behind = {0: lambda kubeconfig: proxy.kubeconfig(kubeconfig, cluster.folder)}
        with Replicas(cluster, 3, kubeconfigs=behind) as replicas:
            replicas.wait_shared()
            made = [job(f"steady-{n}", annotations=runs(60)) for n in range(30)]
            for body in made:
                jobs.apply(body)
            for name in names_of(made):
                jobs.wait_running(name)
            cut = time.monotonic()
            proxy.hold()
            proxy.refuse(True)
            wait_for("the replica to stop acting", lambda: ownership(replicas[0])["state"] == "lapsed",
                     LEASE + SLACK, poll=0.05)
            stopped = time.monotonic()
            assert not any(shard["held"] for shard in ownership(replicas[0])["shards"])
            assert replicas[0].name in holders(cluster).values(), "the others came first"
            took = wait_taken_over(cluster, replicas[0].name, LEASE + RETRY + SLACK)
            print(f"cut off: stopped after {stopped - cut:.1f} s, taken over {took:.1f} s later")
            proxy.refuse(False)
            proxy.cut()
            replicas.wait_shared()
            for name in names_of(made):
                status = jobs.wait_phase(name, "Succeeded", limit=120)
                assert (status["attempt"], status["disruptions"]) == (1, 0), name
            assert trespasses(cluster, offset, uids_of(jobs)) == []


def test_replicas_come_and_go_twenty_times_during_1000_jobs_and_the_shards_are_even_in_the_end(cluster, jobs):
    offset = cluster.audit_offset()
    made = flow(1000, "job")
    deaths = []
    with Recorder(cluster, jobs.namespace) as record, \
            Replicas(cluster, 4, leases=QUICK_LEASES) as replicas:
        for number in range(20):
            for body in made[number * 50:(number + 1) * 50]:
                jobs.apply(body)
            leaver = replicas[number % 4]
            if number % 2:
                deaths.append((leaver.name, time.monotonic()))
                leaver.kill()
            else:
                leaver.signal(signal.SIGTERM)
                leaver.process.wait(timeout=30)
            rest = [one for one in replicas if one is not leaver]
            wait_for("the others to share everything", lambda rest=rest: fair(
                held_by(cluster), {one.name for one in rest}), 60)
            leaver.start()
        record.wait_ended(names_of(made), END_LIMIT)
        replicas.wait_shared()
        lapsed = lapses(replicas)
        print(f"{len(lapsed)} lapses")
        check_run(record, names_of(made), deaths + lapsed)
        assert trespasses(cluster, offset, uids_of(jobs)) == []
        assert [lease for lease in members(cluster) if not lease.startswith(USER)] == []


def members(cluster):
    path = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases"
    return [lease["spec"]["holderIdentity"] for lease in cluster.api("GET", path)[1]["items"]
            if lease["metadata"]["name"].startswith("holdfast-member-")]


@pytest.fixture()
def replicas(cluster):
    with Replicas(cluster, 2) as replicas:
        replicas.wait_shared()
        yield replicas


def test_a_member_that_finds_another_number_of_shards_refuses_to_run_and_says_the_way_out(cluster, replicas):
    wrong = Replicas(cluster, 3, "--shards=16")[2]
    wrong.spawn()
    try:
        assert wrong.process.wait(timeout=60) == 1
    finally:
        wrong.kill()
    log = wrong.log()
    assert "has 32 shards" in log and "start with --shards 32" in log
    assert "kubectl delete leases -n holdfast-system -l holdfast.dev/lease" in log
    assert fair(held_by(cluster), {one.name for one in replicas})


def test_debug_ownership_says_who_owns_what_and_why(cluster, replicas):
    answer = ownership(replicas[0])
    assert answer["state"] == "acting"
    assert answer["member"].startswith(replicas[0].name + "-")
    assert answer["renewalAgeSeconds"] < answer["renewDeadlineSeconds"] == 10
    wait_for("it to know the living", lambda: {
        member["name"].rpartition("-")[0] for member in ownership(replicas[0])["members"] if member["alive"]} == {
            one.name for one in replicas}, 60)
    wait_for("the reasons to be those of rest", lambda: {
        shard["why"].partition(" ")[0] for shard in ownership(replicas[0])["shards"]} == {
            "held,", "planned"}, 60)
    # It knows of a shard that it holds when it has the answer.
    wait_for("it to know of all that it holds", lambda: sum(
        shard["held"] for shard in ownership(replicas[0])["shards"]) == 16, 60)
    for name, value in (("shards_held", 16), ("members_alive", 2), ("member_acting", 1)):
        wait_for(f"holdfast_{name} to be {value}",
                 lambda name=name, value=value: replicas[0].metric(f"holdfast_{name}") == value, 60)
    # What a replica that has just left held is nobody's for a moment.
    wait_for("no shard to be without a holder", lambda: replicas[0].metric("holdfast_shards_orphaned") == 0, 60)


def test_a_member_lease_that_somebody_deletes_costs_a_new_tenure_and_nothing_else(cluster, replicas, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("steady", annotations=runs(600)))
    pod = jobs.wait_running("steady")
    before = ownership(replicas[0])["member"]
    path = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/holdfast-member-" + before
    assert cluster.api("DELETE", path)[0] == 200
    wait_for("it to join under a new name", lambda: ownership(replicas[0])["member"] != before, 60)
    replicas.wait_shared()
    jobs.end_pod(pod)
    status = jobs.wait_phase("steady", "Succeeded", limit=60)
    assert (status["attempt"], status["disruptions"]) == (1, 0)
    # An update must not have brought the deleted Lease back.
    assert cluster.api("GET", path)[0] == 404
    assert cluster.audit_offset() > offset
