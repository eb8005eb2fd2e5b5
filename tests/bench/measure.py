"""What the benchmarks measure with: processes through /proc, and moments from the API server's
audit log, whose timestamps are microseconds of one clock."""

import collections
import datetime
import json
import os
import pathlib

TICKS = os.sysconf("SC_CLK_TCK")
JOBS = "durablejobs"
# Who the operator is to the API server: a service account, as in a cluster, and as the controller-manager's
# controllers are. Client certificates would be verified anew at each request.
OPERATOR_USER = "system:serviceaccount:holdfast-system:holdfast"


def cpu_seconds(pid, children=False):
    """User and system time that the process has used; and its children that it has waited for, if wanted."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15 if children else 13])) / TICKS


def precise_cpu_seconds(pid):
    """The same for what uses less than a tick: of one process with one thread, to the microsecond."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1e9


def proportional_kib(pid):
    """What the process takes of the memory when shared pages are divided among their users."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def memory_mib(pid):
    """{"now": resident, "peak": most ever resident} in MiB."""
    found = {}
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            key, _, rest = line.partition(":")
            if key in ("VmRSS", "VmHWM"):
                found[key] = int(rest.split()[0]) / 1024
    return {"now": round(found["VmRSS"], 1), "peak": round(found["VmHWM"], 1)}


def moment(text):
    """Seconds since the epoch of an audit timestamp."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Audit:
    """The accepted writes in the audit log since an offset."""

    def __init__(self, cluster, offset, namespace):
        writes = [event for event in cluster.audit_events(offset)[0]
                  if event["verb"] not in ("get", "list", "watch")
                  and event.get("objectRef", {}).get("namespace") == namespace]
        code = lambda event: event.get("responseStatus", {}).get("code", 0)
        self.events = [event for event in writes if 200 <= code(event) < 300]
        # The API server gave up waiting for etcd; they may have been written all the same.
        self.timed_out = [event for event in writes if code(event) == 504]

    def writes(self, user, timed_out=False):
        """{"verb resource/subresource": how many} of this user, with those that timed out if wanted."""
        counted = collections.Counter()
        for event in self.events + (self.timed_out if timed_out else []):
            if event["user"]["username"] == user:
                about = event["objectRef"]
                resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
                counted[f"{event['verb']} {resource}"] += 1
        return dict(counted.most_common())

    def moments(self, verb, resource, subresource="", user=None, stage="requestReceivedTimestamp"):
        """[(moment, object's name)] in the order in which the requests came in."""
        found = []
        for event in self.events:
            about = event["objectRef"]
            if ((event["verb"], about["resource"], about.get("subresource", "")) ==
                    (verb, resource, subresource)
                    and user in (None, event["user"]["username"])):
                found.append((moment(event[stage]), about["name"]))
        return sorted(found)


def write_result(path, result):
    """As JSON, for whoever compares."""
    output = pathlib.Path(path)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def quantiles(seconds):
    """Median, 95 %, 99 % and the most, in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    at = lambda share: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
    return {"median_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "max_ms": at(1), "samples": len(ordered)}
