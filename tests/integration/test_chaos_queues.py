"""Replicas that admit jobs of a queue are killed: no permit too many is given, and none is lost."""

import signal

import pytest

from chaos import Feeder, Killer, check_run, lapses, names_of, seeded, summary
from holdfast import QUICK_LEASES, QUICKEST_LEASES, job, place, runs
from lives import flush_audit
from localcluster import wait_for
from losses import CAME, REACTION, seconds_of, write_time
from queues import QueueRecorder, Queues, overdrawn, owner, permits, queue
from record import STORE_AS_JSON
from replicas import USER, Replicas, shard_of, trespasses

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
QUEUE = "encode"
CONCURRENCY, PER_KEY = 7, 2
# More than the queue's permits are enough for, so that both limits bind.
KEYS = ["a", "b", "c", "d", "e"]
# T with QUICK_LEASES: lease duration and retry period.
TAKE_OVER = 8 + 0.5
LIMIT = 60


def queued(name, seconds, exit_code=None, key=None, priority=0, **spec):
    reference = {"name": QUEUE, "priority": priority} | ({"key": key} if key else {})
    return job(name, annotations=runs(seconds, exit_code), queue=reference, **spec)


def short_jobs(count, rng):
    """Their pods run for 0 s to 1 s; one in ten needs a permit twice."""
    return [queued(f"job-{number}", rng.choice((0, 0, 1)), "1,0" if number % 10 == 0 else "0", key=rng.choice(KEYS),
                   priority=rng.choice((0, 0, 5)), retryBackoff={"initialSeconds": 1, "factor": 1, "maxSeconds": 1})
            for number in range(count)]


def judge(cluster, namespace, record, names, deaths, offset):
    print(summary(record, deaths))
    most = permits(record)
    print(f"most permits: {most.most}, by key {dict(most.most_of_key)}")
    assert overdrawn(record) == []
    # Otherwise nothing was tested.
    assert most.most == CONCURRENCY
    assert set(most.most_of_key.values()) == {PER_KEY}
    check_run(record, names, deaths)
    flush_audit(cluster, cluster.audit_offset())
    assert trespasses(cluster, offset, {(namespace, name): namespace for name in names}) == []


def wait_empty(queues):
    """Nobody waits, and no permit is out: none was lost."""
    queues.wait(QUEUE, lambda s: (s.get("running"), s.get("waiting")) == (0, 0) and not s.get("admitting"), LIMIT)


def pass_through(cluster, jobs, made, rng, replicas, in_flight, strikes):
    """These jobs go through one queue, while `strikes(killer, feeder)` kills replicas."""
    queues = Queues(cluster, jobs.namespace)
    offset = cluster.audit_offset()
    queues.apply(queue(QUEUE, concurrency=CONCURRENCY, concurrencyPerKey=PER_KEY))
    with QueueRecorder(cluster, jobs.namespace) as record, replicas:
        killer = Killer(record, rng, replicas.all)
        with Feeder(jobs, record, made, in_flight=in_flight) as feeder:
            strikes(killer, feeder)
            assert feeder.error is None, feeder.error
            record.wait_ended(names_of(made), 600)
        wait_empty(queues)
        judge(cluster, jobs.namespace, record, names_of(made), killer.kills + lapses(replicas), offset)


def test_a_queue_whose_owner_is_killed_three_times_gives_no_permit_too_many(cluster, jobs):
    rng = seeded("queue, short")
    replicas = Replicas(cluster, 2, leases=QUICKEST_LEASES)

    def strikes(killer, _):
        for _ in range(3):
            killer.operators = [owner(replicas, jobs.namespace)]
            killer.strike(most_versions=150, limit=10)

    pass_through(cluster, jobs, short_jobs(150, rng), rng, replicas, 60, strikes)


@pytest.mark.long
def test_a_queue_of_2000_jobs_gives_no_permit_too_many_while_three_replicas_are_killed_at_random(cluster, jobs):
    rng = seeded("queue, long")

    def strikes(killer, feeder):
        while not feeder.done:
            killer.strike(most_versions=1500, limit=60)

    replicas = Replicas(cluster, 3, leases=QUICK_LEASES)
    pass_through(cluster, jobs, short_jobs(2000, rng), rng, replicas, 200, strikes)


def free_permit_and_kill(jobs, queues, replica, pod, freed_by):
    """The replica sees nothing of it: it stands still, and then it is dead."""
    replica.signal(signal.SIGSTOP)
    if freed_by == "the end of a pod":
        jobs.end_pod(pod)
    else:
        queues.patch(QUEUE, concurrency=3)
    replica.kill()


def writes(cluster, offset, namespace=None):
    """The accepted writes of the operator's own resources by replicas: (when it came, resource, name, user, body)."""
    found = []
    for event in cluster.audit_events(offset)[0]:
        about, body = event.get("objectRef", {}), event.get("requestObject") or {}
        if (event["user"]["username"].startswith(USER) and event["verb"] in ("create", "update", "patch")
                and about.get("namespace") == namespace and event.get("responseStatus", {}).get("code", 0) < 300):
            found.append((seconds_of(event[CAME]), about["resource"], about.get("name", ""), event["user"]["username"],
                          body))
    return sorted(found, key=lambda write: write[0])


def starts(cluster, offset, namespace, since):
    """[(when, job)]: the records of attempts, oldest first."""
    return [(at, name) for at, resource, name, _, body in writes(cluster, offset, namespace)
            if at > since and resource == "durablejobs" and body.get("status", {}).get("phase") == "Running"
            and body["status"].get("attempt") == 1 and not place(body["status"]).get("podUID")]


def story(cluster, offset, jobs, died, victim):
    """What the replicas wrote around the kill, in seconds from it; for the log."""
    shard = f"holdfast-shard-{shard_of(jobs.namespace)}"
    leases = writes(cluster, offset, "holdfast-system")
    renewals = [at for at, _, name, user, _ in leases if user == victim and name.startswith("holdfast-member-")
                and at <= died]
    lines = [f"last renewal {max(renewals) - died:.2f}"]
    lines += [f"{shard} {at - died:.2f}" for at, _, name, _, _ in leases if name == shard and at > died]
    for at, resource, name, _, body in writes(cluster, offset, jobs.namespace):
        status = body.get("status", {})
        if at < died:
            continue
        told = {key: status[key] for key in ("phase", "attempt", "running", "waiting", "admitting", "holderIdentity")
                if key in status}
        lines.append(f"{resource} {name} {at - died:.2f} {told}")
    return "\n  ".join(lines)


# What frees a permit at the moment of the kill, and the jobs' podReplacementPolicy. With Failed the owner has to know
# their pods too. A higher limit changes neither jobs nor pods: their caches hear of nothing.
@pytest.mark.parametrize("freed_by, policy", [
    ("the end of a pod", "TerminatingOrFailed"),
    ("a higher limit", "TerminatingOrFailed"),
    ("a higher limit", "Failed"),
])
def test_the_next_job_of_a_full_queue_starts_in_time_after_its_owner_was_killed(cluster, jobs, freed_by, policy):
    queues = Queues(cluster, jobs.namespace)
    offset = cluster.audit_offset()
    queues.apply(queue(QUEUE, concurrency=2))
    with QueueRecorder(cluster, jobs.namespace) as record, Replicas(cluster, 2, leases=QUICK_LEASES) as replicas:
        replicas.wait_shared()
        names = [f"job-{number}" for number in range(5)]
        for name in names:
            jobs.apply(queued(name, 3600, podReplacementPolicy=policy))
        queues.wait(QUEUE, lambda s: (s.get("running"), s.get("waiting")) == (2, 3) and not s.get("admitting"), LIMIT)
        running = [name for name in names if jobs.status(name)["phase"] == "Running"]
        pods = [jobs.wait_running(name) for name in running]
        for name in running:  # the operator says so seconds later, and is to have nothing more to say
            jobs.wait(name, lambda s: (s.get("waiting") or {}).get("reason") == "PodRunning", LIMIT)
        victim = owner(replicas, jobs.namespace)
        assert overdrawn(record) == []

        free_permit_and_kill(jobs, queues, victim, pods[0], freed_by)
        freed = ((pods[0]["metadata"]["name"], "pods", "status") if freed_by == "the end of a pod" else
                 (QUEUE, "jobqueues", ""))
        died = write_time(cluster, offset, "patch", freed[0], resource=freed[1], subresource=freed[2], user="admin",
                          moment=CAME)

        wait_for("the next job to start", lambda: starts(cluster, offset, jobs.namespace, died), LIMIT)
        # Nor does another start when the owner has told what it counts.
        queues.wait(QUEUE, lambda s: s.get("waiting") == 2 and not s.get("admitting"), LIMIT)
        flush_audit(cluster, cluster.audit_offset())
        print(f"{freed_by}, {policy}:\n  {story(cluster, offset, jobs, died, victim.name)}")
        started = starts(cluster, offset, jobs.namespace, died)
        assert [name for _, name in started if name in running] == []
        assert len({name for _, name in started}) == 1
        if freed_by == "a higher limit":
            before = [write[1:3] for write in writes(cluster, offset, jobs.namespace)
                      if died < write[0] < started[0][0]]
            assert {resource for resource, _ in before} == {"jobqueues"}, f"it was not quiet: {before}"
        assert permits(record).most == (2 if freed_by == "the end of a pod" else 3)
        assert overdrawn(record) == []
        assert started[0][0] - died <= TAKE_OVER + REACTION
