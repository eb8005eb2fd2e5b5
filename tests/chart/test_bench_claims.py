"""How mode s of the benchmark counts, and what it makes of agent-sandbox's manifests."""

import os
import pathlib
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

import bench  # noqa: E402
import sandbox_claims  # noqa: E402
import sandboxes  # noqa: E402
from localcluster import ClusterError  # noqa: E402

WARM, CLAIMS = frozenset({"bench-a", "bench-b"}), {"claim-0", "claim-1"}
PEER, OTHER = "system:serviceaccount:s:peer", "admin"
# The second at which the burst of these tests begins, as the audit log has it.
BEGAN = 1764547200.0


def event(verb, resource, name="", at=0.0, took=0.01, user=PEER):
    resource, _, subresource = resource.partition("/")
    about = {"resource": resource, "name": name, **({"subresource": subresource} if subresource else {})}
    stamp = lambda seconds: f"2025-12-01T00:00:{seconds:09.6f}Z"
    return {"verb": verb, "objectRef": about, "user": {"username": user},
            "requestReceivedTimestamp": stamp(at), "stageTimestamp": stamp(at + took)}


@pytest.mark.parametrize("write, refill", [
    (event("patch", "sandboxclaims/status", "claim-0"), False),
    (event("update", "sandboxclaims", "claim-0"), False),
    (event("patch", "sandboxes", "bench-a"), False),
    (event("patch", "pods", "bench-b"), False),
    (event("create", "events", "claim-0.186"), False),
    (event("create", "sandboxes", "claim-1"), False),
    (event("create", "sandboxes"), True),
    (event("create", "pods", "bench-c"), True),
    (event("patch", "sandboxes/status", "bench-c"), True),
    (event("patch", "sandboxwarmpools/status", "bench"), True),
], ids=lambda one: "" if isinstance(one, bool) else f"{one['verb']} {one['objectRef']['resource']}")
def test_only_what_is_for_a_new_sandbox_or_for_the_pool_is_refilling(write, refill):
    assert sandbox_claims.is_refill(write, WARM, CLAIMS) is refill


def claim(name, *conditions, ips=()):
    said = [{"type": kind, "status": status} for kind, status in conditions]
    status = {"conditions": said, "sandbox": {"podIPs": ips}}
    return {"metadata": {"name": name}, **({"status": status} if conditions else {})}


def test_a_claim_is_ready_with_the_status_write_that_said_so():
    statuses = sandbox_claims.Statuses()
    for item in (claim("claim-0"), claim("claim-0", ("Ready", "False")), claim("claim-0", ("Ready", "False")),
                 claim("claim-1", ("Ready", "True")), claim("claim-0", ("Ready", "True")),
                 claim("claim-0", ("Ready", "True"), ips=("10.0.0.1",)), claim("claim-2", ("Ready", "False"))):
        statuses.show(item)
    assert statuses.before == {"claim-0": 1, "claim-1": 0}
    events = [event("patch", "sandboxclaims/status", "claim-0", at=3.0),
              event("patch", "sandboxclaims/status", "claim-0", at=1.0),
              event("patch", "sandboxclaims", "claim-0", at=1.5),
              event("patch", "sandboxclaims/status", "claim-0", at=2.0),
              event("patch", "sandboxclaims/status", "claim-1", at=1.0),
              event("patch", "sandboxclaims/status", "claim-2", at=1.0)]
    assert sandbox_claims.ready_moments(events, statuses.before) == {
        "claim-0": pytest.approx(BEGAN + 2.01), "claim-1": pytest.approx(BEGAN + 1.01)}


def test_a_place_is_on_record_with_the_first_such_write():
    events = [event("update", "sandboxclaims", "claim-0", at=2.0), event("update", "sandboxclaims", "claim-0", at=1.0),
              event("update", "sandboxclaims/status", "claim-0", at=0.5),
              event("update", "sandboxclaims", "claim-1", at=0.1, user=OTHER)]
    found = sandbox_claims.placed_moments(events, "update", "sandboxclaims", "", PEER)
    assert found == {"claim-0": pytest.approx(BEGAN + 1.01)}


def test_no_moment_is_left_out_of_the_quantiles():
    with pytest.raises(RuntimeError, match="not known of 1 of 2, of claim-1"):
        sandbox_claims.since_created({"claim-0": 2.0}, {"claim-0": 1.0, "claim-1": 1.0})


def test_figures_are_of_the_users_whose_writes_count_until_the_last_start_and_until_the_end():
    events = [event("create", "sandboxclaims", "claim-0", at=0.0, user=OTHER),
              event("update", "sandboxclaims", "claim-0", at=0.5), event("update", "sandboxclaims", "claim-1", at=0.75),
              event("create", "sandboxes", at=1.0), event("create", "pods", "bench-c", at=5.0)]
    created = {"claim-0": BEGAN, "claim-1": BEGAN + 0.5}
    used = lambda seconds: {"api_server": seconds, "etcd": seconds / 2, "operator": 0.5, "agents": 0.0}
    placed = {"claim-0": BEGAN + 0.5, "claim-1": BEGAN + 0.75}
    started = {"claim-0": BEGAN + 1, "claim-1": BEGAN + 2}
    found = sandbox_claims.figures(
        events, created, placed, started, {PEER}, {"started": used(0.5), "quiet": used(1.0)},
        lambda one: sandbox_claims.is_refill(one, WARM, CLAIMS))
    assert found["count"] == 2
    assert (found["to_start"]["median_ms"], found["to_start"]["max_ms"]) == (1500.0, 1500.0)
    assert found["to_place"]["max_ms"] == 500.0
    assert (found["seconds_to_create"], found["seconds_to_start_all"]) == (0.5, 2.0)
    started, quiet = found["started"], found["quiet"]
    assert (started["writes_each"], started["refill_writes_each"]) == (1.5, 0.5)
    assert (quiet["writes_each"], quiet["refill_writes_each"]) == (2.0, 1.0)
    assert (started["server_cpu_ms"], quiet["server_cpu_ms"]) == (375.0, 750.0)
    assert started["operator_cpu_ms"] == 250.0
    assert quiet["writes"] == {"update sandboxclaims": 2, "create sandboxes": 1, "create pods": 1}


def test_what_as_long_a_rest_costs_is_taken_off():
    rest = {"api_server": 0.02, "etcd": 0.01, "writes_per_second": 30.0}
    quiet = {"writes_each": 9.0, "server_cpu_ms": 20.0}
    found = sandbox_claims.beyond_rest({"rest": rest, "quiet": quiet, "count": 300, "seconds": 60.0})
    assert found == {"writes_each": 3.0, "server_cpu_ms": 14.0}


def test_a_command_has_started_when_its_file_was_made(tmp_path):
    (tmp_path / "job-7").touch()
    os.utime(tmp_path / "job-7", (1.0, 2.5))
    assert sandbox_claims._started(tmp_path) == {"job-7": 2.5}


# ---- its manifests

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sandboxes.agents.x-k8s.io}
spec:
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}
  versions:
  - {name: v1beta1, served: true, storage: true}
  - {name: v1alpha1, served: true, storage: false, deprecated: true}
"""
ROLE = """
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agent-sandbox-controller}
rules: []
"""


def manifests(folder):
    (folder / "crds").mkdir()
    (folder / "crds/sandboxes.yaml").write_text(CRD)
    (folder / "rbac.generated.yaml").write_text(ROLE)
    (folder / "controller.yaml").write_text("kind: Deployment\n")
    return folder


def test_one_version_is_served_and_nobody_converts(tmp_path):
    items = sandboxes.objects_of(manifests(tmp_path))
    assert [item["kind"] for item in items] == ["Namespace", "CustomResourceDefinition", "ClusterRole",
                                                "ClusterRoleBinding"]
    spec = items[1]["spec"]
    assert spec["conversion"] == {"strategy": "None"}
    assert {version["name"]: version["served"] for version in spec["versions"]} == {"v1beta1": True, "v1alpha1": False}
    assert items[3]["subjects"] == [
        {"kind": "ServiceAccount", "name": sandboxes.NAME, "namespace": sandboxes.NAMESPACE}]


def test_a_folder_without_its_manifests_is_refused(tmp_path):
    with pytest.raises(ClusterError, match="has no crds"):
        sandboxes.objects_of(tmp_path)


@pytest.mark.parametrize("said, version", [
    ("agent-sandbox-controller, version v0.5.6 (revision: 211b757)\n  go version: go1.26.8", "v0.5.6"),
    ("", "of an unknown version")])
def test_the_version_is_the_program_s_own(said, version):
    assert sandboxes.version_of(said) == version


@pytest.mark.parametrize("conditions, ready", [
    ([], False), ([{"type": "Ready", "status": "False"}], False),
    ([{"type": "Finished", "status": "True"}, {"type": "Ready", "status": "True"}], True)])
def test_what_is_ready_says_so(conditions, ready):
    assert sandboxes.is_ready({"status": {"conditions": conditions}}) is ready


# ---- the options

@pytest.mark.parametrize("given, lacking", [
    (("", ""), "mode s needs agent-sandbox: --sandbox-controller and --sandbox-manifests"),
    ((str(ROOT), "/nothing/here"), "mode s needs agent-sandbox: --sandbox-manifests"), ((str(ROOT), str(ROOT)), "")])
def test_what_is_not_there_is_named(given, lacking):
    options = types.SimpleNamespace(sandbox_controller=given[0], sandbox_manifests=given[1])
    assert sandbox_claims.missing(options) == lacking


def test_a_mode_that_needs_another_s_program_is_measured_only_where_it_is_named(monkeypatch, capsys):
    assert bench.BY_NAME == {"s"}
    monkeypatch.setattr(sys, "argv", ["bench.py", "s"])
    with pytest.raises(SystemExit):
        bench.arguments()
    assert "mode s needs agent-sandbox" in capsys.readouterr().err
