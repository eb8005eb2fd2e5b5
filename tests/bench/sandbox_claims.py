"""Mode s: jobs of a WorkerPool beside SandboxClaims of agent-sandbox, as many at once as there are ready places.

claims:       the scenario `claims-warm` of agent-sandbox. A claim has started once it is Ready. The pool makes a new
              sandbox for each one that is taken, at once.
claims-later: the same, but the pool makes no new sandbox while this is measured.
workers:      a worker with one slot for each job: a job has a pod for itself, as a claim has.
slots:        the same number of slots, several on each worker.

A job has started once its command runs: the command makes a file. Commands run on, as sandboxes stay taken.
"""

import collections
import os
import pathlib
import tempfile
import threading
import time

import objects
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, memory_mib, moment, quantiles
from plane import LIMIT, LoadError
from sandboxes import Peer, Sandboxes, claim, is_ready
from warm_pool import Warm, jobs_path, pooled_job
from warm_workers import Meter

SLOTS = 5  # of a worker on the side "slots"
WARM_UP = 20  # claims or jobs
# A claim or job more is sent whenever one is answered; the client has no more connections.
IN_FLIGHT = 64
REST_SECONDS = 20
# No side is quiet before its controller has written nothing for so long.
QUIET_SECONDS = 5
# How much later than the moment itself the measured part may end.
POLL_SECONDS = 0.05
# An agent that reaches nobody ends after two thirds of the Lease's 30 s.
CHECK_SECONDS = 20
# Longer than a measurement; nobody has to end it if this program dies.
COMMAND_SECONDS = 900
LATER = "--sandbox-warm-pool-replenish-delay=1h"
CLAIMS = "sandboxclaims"


# ---- what the figures are of

def is_refill(event, warm, claims):
    """Whether this write of agent-sandbox is for the pool: for a sandbox, or its pod, that was not ready before. A
    sandbox that bears a claim's name was made for that claim alone. A new one gets its name from the API server."""
    resource, name = event["objectRef"]["resource"], event["objectRef"].get("name", "")
    return resource == "sandboxwarmpools" or (resource in ("sandboxes", "pods") and name not in warm | claims)


def counted(events):
    """{"verb resource/subresource": how many}"""
    found = collections.Counter()
    for event in events:
        about = event["objectRef"]
        found[f"{event['verb']} {'/'.join(filter(None, (about['resource'], about.get('subresource'))))}"] += 1
    return dict(found.most_common())


def writes_of(events, users):
    return [event for event in events if event["user"]["username"] in users]


def received_by(events, end):
    """Those that the API server had received by then."""
    return [event for event in events if moment(event["requestReceivedTimestamp"]) <= end]


def ready_moments(events, before):
    """When each claim's status became Ready, {claim: moment}: when that write of it was answered. `before`: how many
    other status writes a watch showed before, {claim: number}"""
    found = collections.defaultdict(list)
    for event in events:
        about = event["objectRef"]
        if (about["resource"], about.get("subresource")) == (CLAIMS, "status"):
            found[about["name"]].append(moment(event["stageTimestamp"]))
    return {name: sorted(found[name])[number] for name, number in before.items()}


def placed_moments(events, verb, resource, subresource, user):
    """When the first such write of each object was answered, {name: moment}."""
    found = {}
    for event in events:
        about = event["objectRef"]
        if ((event["verb"], about["resource"], about.get("subresource", "")) == (verb, resource, subresource)
                and event["user"]["username"] == user):
            when = moment(event["stageTimestamp"])
            found[about["name"]] = min(found.get(about["name"], when), when)
    return found


def since_created(moments, created):
    """Quantiles, in milliseconds, of what took place for each of them."""
    if set(moments) != set(created):
        missing = sorted(set(created) ^ set(moments))
        raise RuntimeError(f"not known of {len(missing)} of {len(created)}, of {missing[0]} for one")
    return quantiles([when - created[name] for name, when in moments.items()])


def figures(events, created, placed, started, users, cpu, is_of_pool):
    """Of one burst. `users`: those whose writes count.

    cpu  {"started" or "quiet": {part: seconds}}
    """
    count, end = len(created), max(started.values())
    mine = writes_of(events, users)
    parts = {"started": received_by(mine, end), "quiet": mine}
    result = {"count": count, "to_start": since_created(started, created), "to_place": since_created(placed, created),
              "seconds_to_create": round(max(created.values()) - min(created.values()), 2),
              "seconds_to_start_all": round(end - min(created.values()), 2)}
    for until, found in parts.items():
        used = cpu[until]
        result[until] = {
            "writes_each": round(len(found) / count, 3),
            "refill_writes_each": round(sum(map(is_of_pool, found)) / count, 3),
            "server_cpu_ms": round(1000 * (used["api_server"] + used["etcd"]) / count, 2),
            **{f"{part}_cpu_ms": round(1000 * seconds / count, 2) for part, seconds in used.items()},
            "writes": counted(found)}
    return result


def beyond_rest(result):
    """The figures until all is quiet, without what as long a rest would have cost."""
    rest, quiet, count, seconds = result["rest"], result["quiet"], result["count"], result["seconds"]
    server = 1000 * (rest["api_server"] + rest["etcd"]) * seconds / count
    return {"writes_each": round(quiet["writes_each"] - rest["writes_per_second"] * seconds / count, 3),
            "server_cpu_ms": round(quiet["server_cpu_ms"] - server, 2)}


# ---- one burst

class Statuses:
    """What a watch shows of the claims' statuses. `before`: {claim that is Ready: how many statuses it had before}"""

    def __init__(self):
        self.before = {}
        self._last, self._changes = {}, collections.Counter()

    def show(self, item):
        name, status = item["metadata"]["name"], item.get("status")
        if name in self.before or not status or status == self._last.get(name):
            return
        if is_ready(item):
            self.before[name] = self._changes[name]
        self._last[name] = status
        self._changes[name] += 1


class _Watch(threading.Thread):
    """Shows them what happens to the claims of a namespace, which has none yet."""

    def __init__(self, cluster, path, statuses):
        super().__init__(daemon=True)
        self.cluster, self.path, self.statuses = cluster, path, statuses
        self.version = cluster.api("GET", path)[1]["metadata"]["resourceVersion"]
        self.error = None

    def run(self):
        # The API server ends the watch of whoever does not keep up with a burst.
        while not self.error:
            try:
                for event in self.cluster.watch(self.path, self.version, timeout=LIMIT):
                    if event["type"] == "ERROR":
                        raise OSError(f"the watch of {self.path} has lost events: {event['object']}")
                    self.version = event["object"]["metadata"]["resourceVersion"]
                    self.statuses.show(event["object"])
            except OSError as error:  # also at the end, with the cluster
                self.error = error

    def lives(self):
        """True, or an error."""
        if self.error:
            raise self.error
        return True


class _Sender(threading.Thread):
    """Takes the steps that are left, one after the other."""

    def __init__(self, steps):
        super().__init__(daemon=True)
        self.steps, self.error = steps, None

    def run(self):
        try:
            for _ in self.steps:
                pass
        except LoadError as error:
            self.error = error

    def failed(self):
        """False, or the error."""
        if self.error:
            raise self.error
        return False


def _burst(plane, side, chain, count, started, window, is_over=lambda: True):
    """Sends the chain so many times at once: CPU until all have started, and until all is quiet.

    side       a _Side
    started    whether all have, which is asked all the time
    window     seconds that are measured at least
    is_over    whether nothing more is to come
    """
    result = {"rest": _rest(plane, side)}
    # The connections are open before: what they cost is not the burst's.
    steps = plane.send_by_step([{"method": "GET", "path": "/version"}, chain], count, IN_FLIGHT)
    next(steps)
    offset, meter, began = plane.cluster.audit_offset(), side.meter(), time.monotonic()
    sender = _Sender(steps)
    sender.start()
    wait_for("all to start", lambda: not sender.failed() and started(), LIMIT, poll=POLL_SECONDS)
    cpu = {"started": meter.read()[0]}
    sender.join()
    time.sleep(max(0.0, began + window - time.monotonic()))
    wait_for("all to be quiet", lambda: is_over() and _is_quiet(side, offset), LIMIT, poll=1)
    cpu["quiet"], seconds = meter.read()
    return result | {"seconds": round(seconds, 1)}, cpu, side.audit(offset)


def _rest(plane, side):
    """What all use a second before the burst, and the writes that count."""
    offset = plane.cluster.audit_offset()
    time.sleep(QUIET_SECONDS)
    wait_for("the pool to be quiet", lambda: _is_quiet(side, offset), LIMIT, poll=1)
    offset, meter = plane.cluster.audit_offset(), side.meter()
    time.sleep(REST_SECONDS)
    writes = len(writes_of(side.audit(offset).events, side.users))
    return meter.shares() | {"writes_per_second": round(writes / REST_SECONDS, 2)}


def _is_quiet(side, offset):
    last = max((moment(event["stageTimestamp"]) for event in writes_of(side.audit(offset).events, {side.user})),
               default=0.0)
    return time.time() - last > QUIET_SECONDS


class _Side:
    """A pool, as _burst() wants it. `users`: the controller, and others whose writes count."""

    def __init__(self, pool, meter, *users):
        self.user, self.users, self.meter, self.audit = users[0], set(users), meter, pool.audit


def _claims(plane, peer, count, window, *flags):
    with Sandboxes(peer, count, *flags) as pool:
        side, statuses = _Side(pool, lambda: Meter(plane, pool), pool.user), Statuses()
        watch = _Watch(plane.cluster, pool.path(CLAIMS), statuses)
        watch.start()
        result, cpu, audit = _burst(
            plane, side, objects.post(pool.path(CLAIMS), claim("claim-$N")), count,
            lambda: watch.lives() and len(statuses.before) >= count, window, is_over=lambda: pool.is_full() or LATER in flags)
        taken = {item["status"]["sandbox"]["name"] for item in plane.cluster.api("GET", pool.path(CLAIMS))[1]["items"]}
        created = {name: when for when, name in audit.moments("create", CLAIMS)}
        return result | figures(
            audit.events, created, placed_moments(audit.events, "update", CLAIMS, "", pool.user),
            ready_moments(audit.events, statuses.before), side.users, cpu,
            lambda event: is_refill(event, pool.warm, set(created))
        ) | {"from_the_pool": len(taken & pool.warm), "memory_mib": memory_mib(pool.process.pid)["now"]}


def _all_run(folder, agents, count):
    """Asks whether all commands have made their files; raises once a worker is lost."""
    began = time.monotonic()

    def all_run():
        if time.monotonic() - began > CHECK_SECONDS:
            agents.check()
        return len(os.listdir(folder)) >= count

    return all_run


def _started(folder):
    """When each command has made its file, {job: moment}."""
    return {entry.name: entry.stat().st_mtime for entry in os.scandir(folder)}


def _jobs(plane, count, slots, window):
    with tempfile.TemporaryDirectory() as folder:
        files = pathlib.Path(folder)
        command = ["/bin/sh", "-c", f': >"{files}/$HOLDFAST_JOB_NAME"; exec sleep {COMMAND_SECONDS}']
        with Warm(plane, -(-count // slots), slots, command) as pool:
            side = _Side(pool, lambda: Meter(plane, pool.operator, pool.agents), OPERATOR_USER, pool.worker_user)
            result, cpu, audit = _burst(
                plane, side, objects.post(jobs_path(pool.namespace), pooled_job("job-$N")), count,
                _all_run(files, pool.agents, count), window)
            pool.agents.check()
            memory = memory_mib(pool.operator.process.pid)["now"]
            created = {name: when for when, name in audit.moments("create", JOBS)}
            result |= figures(
                audit.events, created, placed_moments(audit.events, "update", JOBS, "status", OPERATOR_USER),
                _started(files), side.users, cpu, lambda event: False
            ) | {"workers": pool.workers, "slots": slots, "memory_mib": memory}
            _end_jobs(plane, pool)
            return result


def _end_jobs(plane, pool):
    """Their commands end too, while their agents are there."""
    path = jobs_path(pool.namespace)
    plane.cluster.api("DELETE", path)
    wait_for("the jobs to be gone", lambda: not plane.cluster.api("GET", f"{path}?limit=1")[1]["items"], LIMIT, poll=1)
    wait_for("the workers to be idle", lambda: pool.idle() >= pool.workers, LIMIT, poll=1)


# ---- the mode

SIDES = {
    "claims": lambda plane, peer, count, window: _claims(plane, peer, count, window),
    "workers": lambda plane, peer, count, window: _jobs(plane, count, 1, window),
    "claims-later": lambda plane, peer, count, window: _claims(plane, peer, count, window, LATER),
    "slots": lambda plane, peer, count, window: _jobs(plane, count, SLOTS, window),
}


def missing(options):
    """What the options lack for this mode; empty: nothing."""
    given = {"--sandbox-controller": options.sandbox_controller, "--sandbox-manifests": options.sandbox_manifests}
    lacking = [name for name, path in given.items() if not path or not pathlib.Path(path).exists()]
    return f"mode s needs agent-sandbox: {' and '.join(lacking)}" if lacking else ""


def mode_s(plane, options, say):
    """Rounds of each side."""
    peer = Peer(plane, options.sandbox_controller, options.sandbox_manifests)
    sides = {name: SIDES[name] for name in SIDES if name in options.sides}
    say(f"  agent-sandbox {peer.version}; warming up ...")  # whoever comes first on a new control plane is slower
    for name in sides:
        sides[name](plane, peer, min(WARM_UP, options.claims), 0)
    result = {"version": peer.version, "window": options.claim_window, "sides": {name: [] for name in sides}}
    for number in range(options.rounds_of_claims):
        # What is left behind becomes more from measurement to measurement: no side is always the later one.
        for name in list(sides)[::1 if number % 2 == 0 else -1]:
            say(f"  round {number + 1}: {options.claims} at once, {name} ...")
            found = sides[name](plane, peer, options.claims, options.claim_window)
            result["sides"][name].append(found | {"beyond_rest": beyond_rest(found)})
    return result
