"""Random writes of DurableJobs, right and wrong ones: what the guard decides on.

    writes = RandomWrites(seed)
    body = writes.job("a")
    body["spec"] = writes.other_spec(body["spec"])
    status = writes.other_status(status, ["upload"])

Most values are right by themselves, so that the rules decide, and not the schema."""

import copy
import random

PHASES = ["Pending", "Running", "Backoff", "Suspended", "Cancelling", "Succeeded", "Failed", "Cancelled"]
ENDED = PHASES[5:]
TIMES = ["2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z"]
FRACTIONS = [*TIMES, "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.000Z"]
WAITING = {"reason": "PodRunning", "message": "the pod runs", "nextAction": "record its end"}
LONG = "a" * 61


class RandomWrites:
    def __init__(self, seed):
        self._random = random.Random(seed)

    def chance(self, one_in):
        return self._random.randrange(one_in) == 0

    def pick(self, *values):
        return copy.deepcopy(self._random.choice(values))

    # ---- The spec.

    def template(self):
        containers = [{"name": self.pick("main", "other"), "image": "busybox:1.36"}]
        if not self.chance(3):
            containers[0]["command"] = ["true"]
        if self.chance(8):
            containers[0]["lifecycle"] = {"postStart": {"exec": {"command": ["true"]}}}
        if self.chance(4):
            containers.append({"name": "second", "image": "busybox:1.36"})
        spec = {"containers": containers}
        if self.chance(6):
            spec["initContainers"] = [{"name": "first", "image": "busybox:1.36"}]
        if self.chance(8):
            spec["shareProcessNamespace"] = self.pick(True, False)
        if self.chance(5):
            spec["volumes"] = self.pick([{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
                                        [{"name": "b", "emptyDir": {}}, {"name": "a", "emptyDir": {}}])
        result = {"spec": spec}
        if self.chance(3):
            result["metadata"] = self.pick({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, {"annotations": {"a": "1"}}, {})
        return result

    def stage(self):
        stage = {"name": self.pick("encode", "upload", "encode", "report")}
        for field in ("completions", "parallelism", "completionMode", "indexes", "backoffLimitPerIndex", "maxFailedIndexes",
                      "podFailurePolicy", "successPolicy", "heartbeat", "payload", "scheduleDeadlineSeconds",
                      "podReplacementPolicy"):
            if self.chance(7):
                stage[field] = self.value(field)
        if self.chance(8):
            stage |= {"completionMode": "Indexed", "completions": 3, "indexes": self.value("indexes")}
        place = self.pick("template", "template", "template", "workerPool", "both", "none")
        if place in ("template", "both"):
            stage["template"] = self.template()
        if place in ("workerPool", "both"):
            stage["workerPool"] = {"name": "pool"}
        return stage

    def value(self, field):
        """Of a field of spec."""
        exit_code = {"operator": "In", "values": [3]}
        return {
            "template": self.template,
            "stages": lambda: [self.stage() for _ in range(self.pick(1, 2, 3))],
            "heartbeat": lambda: self.pick({}, {"leaseDurationSeconds": 30}, {"progressDeadlineSeconds": 20},
                                           {"leaseDurationSeconds": 20, "progressDeadlineSeconds": 60},
                                           {"leaseDurationSeconds": 60, "progressDeadlineSeconds": 20}),
            "queue": lambda: self.pick({"name": "one"}, {"name": "two"}, {"name": "one", "key": "a"}),
            "completions": lambda: self.pick(1, 2, 3, 100000),
            "parallelism": lambda: self.pick(0, 1, 2),
            "completionMode": lambda: self.pick("Indexed", "NonIndexed"),
            "indexes": lambda: self.pick("0", "0-1", "1,0", "2", "0,0", "0-1,1"),
            "backoffLimitPerIndex": lambda: self.pick(0, 2),
            "maxFailedIndexes": lambda: self.pick(0, 1, 3),
            "podFailurePolicy": lambda: {"rules": [self.pick(
                {"action": "FailIndex", "onExitCodes": exit_code},
                {"action": "Ignore", "onExitCodes": exit_code},
                {"action": "FailJob", "onExitCodes": {**exit_code, "containerName": "main"}},
                {"action": "FailJob", "onExitCodes": {**exit_code, "containerName": "first"}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})]},
            "successPolicy": lambda: {"rules": [self.pick(
                {"succeededCount": 1}, {"succeededCount": 3}, {"succeededIndexes": "0-1"}, {"succeededIndexes": "1,0"},
                {"succeededIndexes": "5", "succeededCount": 1})]},
            "workerPool": lambda: self.pick({"name": "pool"}, {"name": "other"}, {"name": "pool", "key": "a"}),
            "payload": lambda: self.pick("x", "y", "ä" * 40000, "x" * 65536),
            "message": lambda: self.pick("go on", "stop soon"),
            "description": lambda: self.pick("a job", "ä" * 200),
            "scheduleDeadlineSeconds": lambda: self.pick(5, 60),
            "podReplacementPolicy": lambda: self.pick("TerminatingOrFailed", "Failed"),
            "suspend": lambda: self.pick(True, False),
            "cancel": lambda: self.pick(True, False, False),
            "retryBackoff": lambda: self.pick({"initialSeconds": 1}, {"initialSeconds": 20, "maxSeconds": 10}),
        }[field]()

    FIELDS = ("template", "stages", "heartbeat", "queue", "completions", "parallelism", "completionMode", "indexes",
              "backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy", "successPolicy", "workerPool", "payload",
              "message", "description", "scheduleDeadlineSeconds", "podReplacementPolicy", "suspend", "cancel", "retryBackoff")

    def job(self, name):
        if self.chance(12):
            name = self.pick(f"{name}.b", f"{name}{LONG}"[:64], f"{name}{LONG}"[:63], f"{name}{LONG}"[:60])
        spec = {"template": self.template()}
        if self.chance(4):
            spec = {"workerPool": {"name": "pool"}}
        spec = self.other_spec(spec, self.pick(0, 0, 1, 2, 4))
        if self.chance(4):
            names = self.pick(["upload"], ["upload", "encode"], ["encode", "upload", "report"])
            spec["stages"] = [{"name": name, "workerPool": {"name": "pool"}} for name in names]
            if self.chance(8):
                spec["stages"][0] |= {"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": [
                    {"succeededIndexes": self.pick("0-1", "1,0", "5")}]}}
        return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
                "metadata": {"name": name, "namespace": "default"}, "spec": spec}

    def one_value(self):
        """Of one field of a spec. None: it has none."""
        field = self._random.choice(self.FIELDS)
        return field, None if self.chance(3) else self.value(field)

    def other_spec(self, spec, changes=1):
        spec = copy.deepcopy(spec)
        for _ in range(changes):
            field, value = self.one_value()
            if value is None:
                spec.pop(field, None)
            else:
                spec[field] = value
        return spec

    # ---- The status.

    def in_phase(self, status, phase):
        """As a right write would have it, mostly."""
        status = {**copy.deepcopy(status), "phase": phase}
        if phase in ENDED:
            status["completionTime"] = status.get("completionTime", TIMES[1])
            status.setdefault("startTime", TIMES[0])
            for field in ("waiting", "runs"):
                status.pop(field, None)
            if self.chance(2):
                status["settled"] = True
            for stage in status.get("stages", []):
                stage["phase"] = stage["phase"] if stage["phase"] in ("Succeeded", "Failed") else "Skipped"
        else:
            status.pop("completionTime", None)
            status.pop("settled", None)
            status["waiting"] = dict(WAITING)
        if phase in ("Running", "Backoff", "Succeeded"):
            status["attempt"] = max(status.get("attempt", 0), 1)
            status.setdefault("startTime", TIMES[0])
        if phase == "Running":
            status["runs"] = [{"index": 0, "attempt": status["attempt"], "podName": "p", "startTime": TIMES[0]}]
        return status

    def in_stage(self, status, stages):
        """As a right write would have it: the job begins, or leaves a stage for the next one."""
        if "stages" not in status:
            status["stage"] = "main"
            status["stages"] = [{"name": "main", "phase": "Running"}, *({"name": name, "phase": "Pending"} for name in stages)]
            return
        names = [stage["name"] for stage in status["stages"]]
        place = names.index(status["stage"]) if status.get("stage") in names else len(names)
        if place + 1 < len(names) and self.chance(2):
            status["stages"][place]["phase"] = self.pick("Succeeded", "Failed")
            status["stages"][place + 1]["phase"] = "Running"
            status["stage"] = names[place + 1]

    def other_status(self, status, stages=()):
        """`stages`: the names of the job's."""
        status = copy.deepcopy(status)
        if stages and not self.chance(4):
            self.in_stage(status, stages)
        if self.chance(2):
            status = self.in_phase(status, self.pick(*PHASES))
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            self._change_status(status)
        return status

    def _place(self):
        """Where a run's attempt is: in a pod, at a worker, or, which is wrong, both."""
        pod = {"podName": self.pick("p", "q"), **({"podUID": self.pick("a", "b")} if self.chance(2) else {})}
        worker = {"workerName": "w", "workerUID": self.pick("a", "b")}
        place = self.pick(pod, pod, pod, worker, worker, {**pod, **worker})
        return {**place, **({"alone": True} if self.chance(8) else {})}

    def _change_status(self, status):
        field = self.pick("attempt", "failures", "disruptions", "succeeded", "failed", "active", "notifications",
                          "suspendedSeconds", "startTime", "completionTime", "completions", "waiting", "runs", "stage",
                          "stages", "outbox", "conditions", "history", "completedIndexes", "failedIndexes",
                          "observedGeneration", "phase", "settled", "shard")
        kinds = self.pick(["Complete"], ["Failed"], ["FailureTarget"], ["ResultReady"], ["Reconciling"],
                          ["Complete", "Reconciling"])
        conditions = [{"type": kind, "status": self.pick("True", "True", "False"), "reason": self.pick("R", "R", "Other"),
                       "message": self.pick("", "m"), "lastTransitionTime": self.pick(TIMES[0], *FRACTIONS),
                       **({"observedGeneration": self.pick(1, 2)} if self.chance(2) else {})} for kind in kinds]
        if status.get("conditions") and self.chance(2):
            # One thing of it changes, or nothing but how its time is written.
            conditions = copy.deepcopy(status["conditions"])
            conditions[0] |= self.pick({"reason": "Other"}, {"observedGeneration": 3}, {"message": "other"},
                                       {"lastTransitionTime": self.pick(*FRACTIONS)}, {})
        entry = {"attempt": self.pick(1, 2, 3), "outcome": self.pick("Failed", "Lost", "Deferred")}
        if field not in ("phase", "attempt", "observedGeneration") and self.chance(4):
            status.pop(field, None)
            return
        status[field] = {
            "phase": lambda: self.pick(*PHASES),
            "settled": lambda: self.pick(True, False),
            "shard": lambda: self.pick("3-of-16", "7-of-16", "7-of-32"),
            "startTime": lambda: self.pick(*TIMES),
            "completionTime": lambda: self.pick(*TIMES),
            "completions": lambda: self.pick("0/1", "1/1", "0/3"),
            "waiting": lambda: dict(WAITING),
            "runs": lambda: [{"index": 0, "attempt": self.pick(1, 2), "startTime": TIMES[0], **self._place()}],
            "stage": lambda: self.pick("main", "encode", "upload"),
            "stages": lambda: [{"name": name, "phase": self.pick("Pending", "Running", "Succeeded", "Failed", "Skipped")}
                               for name in self.pick(["main"], ["main", "encode"], ["main", "upload", "encode"])],
            "outbox": lambda: [{"number": self.pick(1, 2), "event": "Succeeded", "time": TIMES[0], "reason": "R",
                                "message": "m", "targets": ["chat"]}],
            "conditions": lambda: conditions,
            "history": lambda: [*status.get("history", []), entry] if self.chance(2) else [entry],
            "completedIndexes": lambda: self.pick("0", "0-1"),
            "failedIndexes": lambda: self.pick("2", "2-3"),
        }.get(field, lambda: self.pick(0, 1, 2, 20000 if field == "attempt" else 3))()
