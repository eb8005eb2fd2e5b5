"""What a job's writes cost the API server, in bytes that it allocates: a count, not a time. They may not grow by more
than 5 % unnoticed. Garbage collection is a quarter of what a write costs (docs/internals/performance.md).

A change that is worth its price writes the new figures here."""

import json
import sys

import pytest
from holdfast import ROOT
from price import allocated

sys.path.append(str(ROOT / "tests/bench"))

import objects  # noqa: E402

# KiB of one write, Kubernetes 1.34.4, with the policies.
KNOWN = {
    "tiny": {"created": 557, "start": 955, "end": 1080},
    "realistic": {"created": 1525, "start": 1459, "end": 1575},
}
MAY_GROW = 1.05
# The server counts what it allocates by whole spans of memory. So one look is wrong by up to 1 MiB, and many writes
# share that.
WARM_UP, WRITES, ROUNDS, LOOKS = 20, 120, 2, 5


def filled(request, name, found):
    """The request of this chain, as holdfast-load would send it."""
    text = json.dumps(request).replace("job-$N", name)
    metadata = (found or {}).get("metadata", {})
    for word, value in (("$UID", metadata.get("uid")), ("$VERSION", metadata.get("resourceVersion"))):
        text = text.replace(word, value or "")
    return json.loads(text)


class Chains:
    """Many jobs that send their first request, then all their second, and so on."""

    def __init__(self, cluster, shape, prefix, count):
        created, start, _, end = objects.job_writes("default", shape)
        self._steps = {"created": created, "start": start, "end": end}
        self._cluster = cluster
        self._found = {f"{prefix}-{number}": None for number in range(count)}

    def send(self, step):
        for name, found in self._found.items():
            request = filled(self._steps[step], name, found)
            code, answer = self._cluster.api(request["method"], request["path"], request["body"])
            assert code in (200, 201), answer
            self._found[name] = answer

    def send_all(self):
        for step in self._steps:
            self.send(step)
        self.delete()

    def delete(self):
        for name in self._found:
            self._cluster.api("DELETE", f"/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs/{name}")


def look(cluster):
    """What one look at the figure allocates by itself."""
    before = allocated(cluster)
    for _ in range(LOOKS):
        after = allocated(cluster)
    return (after - before) / LOOKS


def costs(cluster, shape):
    """{step: KiB of one write}, the least of the rounds: whatever else the server does comes on top."""
    Chains(cluster, shape, f"warm-{shape}", WARM_UP).send_all()
    least = {}
    for number in range(ROUNDS):
        chains = Chains(cluster, shape, f"price-{shape}-{number}", WRITES)
        for step in KNOWN[shape]:
            one_look = look(cluster)
            before = allocated(cluster)
            chains.send(step)
            one = (allocated(cluster) - before - one_look) / WRITES / 1024
            least[step] = min(one, least.get(step, one))
        chains.delete()
    return {step: round(cost) for step, cost in least.items()}


@pytest.mark.parametrize("shape", KNOWN)
def test_a_jobs_writes_do_not_cost_more_than_they_did(pinned_kubernetes, bare_cluster, shape):
    found = costs(bare_cluster, shape)
    print(found)
    assert {step: cost for step, cost in found.items() if cost > MAY_GROW * KNOWN[shape][step]} == {}, found
    # So that the next growth is seen, too.
    assert {step: cost for step, cost in found.items() if cost < KNOWN[shape][step] / MAY_GROW} == {}, found
