"""What an operator does with very many objects: what it lists, how, and how much memory that takes."""

import pathlib
import re
import types

import pytest

from holdfast import Operator
from localcluster import wait_for
from many_objects import ManyObjects

# Of a first list or a relist, above what it takes at rest.
MOST_MEMORY = 1.3


def memory(operator):
    """At present, and at most since the last reset."""
    text = pathlib.Path(f"/proc/{operator.process.pid}/status").read_text()
    return [int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024 for name in ("VmRSS", "VmHWM")]


def reset_most_memory(operator):
    pathlib.Path(f"/proc/{operator.process.pid}/clear_refs").write_text("5")


def started(server, folder, *flags):
    cluster = types.SimpleNamespace(folder=folder)
    operator = Operator(cluster, *flags, kubeconfig=server.kubeconfig(folder)).start(limit=300)
    wait_for("the pods of its shards", lambda: "the jobs and pods of shards are listed" in operator.log(), 60)
    return operator


def test_a_start_lists_no_finished_job(tmp_path):
    with ManyObjects(20_000, running=10) as server:
        operator = started(server, tmp_path)
        try:
            new, own = [query for query in lists_of(server, "durablejobs", bare=False) if "settled!=" in query]
            assert "fieldSelector=status.settled!=true,status.shard!=0-of-32," in new
            assert "fieldSelector=status.settled!=true,status.shard!=none" in own
            assert operator.metric("holdfast_cache_objects", kind="durablejobs") == 10
            wait_for("the walk to count the others",
                     lambda: operator.metric("holdfast_jobs", phase="Succeeded") == 20_000, 60)
            assert operator.metric("holdfast_cache_objects", kind="durablejobs") == 10
        finally:
            operator.kill()


@pytest.mark.parametrize("streams", [True, False])
def test_an_operator_writes_nothing_about_jobs_at_rest(tmp_path, streams):
    with ManyObjects(1_000, running=200, pods=50, nodes=3, streams=streams) as server:
        # The server has no guard either, and nothing starts here.
        operator = started(server, tmp_path, "--require-guard=false")
        try:
            wait_for("all jobs to be counted", lambda: (
                operator.metric("holdfast_jobs", phase="Running"),
                operator.metric("holdfast_jobs", phase="Succeeded")) == (200, 1_000), 60)
            # Each job is looked at in a queue.
            wait_for("each to be looked at", lambda: operator.metric("workqueue_depth") == 0, 60)
            assert operator.metric("holdfast_cache_objects", kind="pods") == 250
            assert server.writes == []
        finally:
            operator.kill()


def lists_of(server, plural, bare):
    return [query for name, is_bare, query in server.lists if (name, is_bare) == (plural, bare)]


def test_a_list_of_a_hundred_thousand_jobs_that_is_too_large_for_one_answer_is_read_in_pages(tmp_path):
    with ManyObjects(100_000, selects=False) as server:
        operator = started(server, tmp_path)
        try:
            refused, *queries = lists_of(server, "durablejobs", bare=False)
            assert "fieldSelector" in refused
            assert queries[0].startswith("resourceVersion=0"), "in one body of more than 256 MiB"
            assert queries[1].startswith("limit=500") and len(queries) == 1 + 200
            assert "the answer is larger than 268435456 bytes" in operator.log()
            now, most = memory(operator)
            assert most <= MOST_MEMORY * now
        finally:
            operator.kill()


@pytest.mark.parametrize("bookmarks", [True, False])
def test_a_replica_that_was_cut_off_lists_no_object_again_and_holds_none_twice(tmp_path, bookmarks):
    with ManyObjects(20_000, bookmarks, selects=False) as server:
        operator = started(server, tmp_path)
        try:
            before, most = memory(operator)
            assert most <= MOST_MEMORY * before
            lists = len(server.lists)
            reset_most_memory(operator)
            offset = len(operator.log())
            server.cut_off(12)
            wait_for("the replica to act again", lambda: "acts again" in operator.log(offset), 60)
            later = server.lists[lists:]
            assert all(query.startswith("limit=1") for _, is_bare, query in later if not is_bare)
            assert memory(operator)[1] <= MOST_MEMORY * before
            if bookmarks:
                assert all(query.startswith("limit=1") for _, _, query in later), "not even metadata"
        finally:
            operator.kill()


def test_a_version_that_expires_is_listed_again_in_pages_and_holds_nothing_twice(tmp_path):
    with ManyObjects(20_000, selects=False) as server:
        operator = started(server, tmp_path)
        try:
            before, _ = memory(operator)
            lists = len(server.lists)
            reset_most_memory(operator)
            offset = len(operator.log())
            server.expire("durablejobs")

            def watches_again():
                done = len(server.lists) - lists >= 20_000 / 500
                return done and operator.metric("holdfast_watch_live", kind="durablejobs") == 1

            wait_for("all jobs to be listed and watched again", watches_again, 120)
            later = server.lists[lists:]
            assert {plural for plural, _, _ in later} == {"durablejobs"}, later
            assert all(not is_bare and query.endswith("limit=500") for _, is_bare, query in later), later
            assert "version expired; listing again" in operator.log(offset)
            now, most = memory(operator)
            print(f"at rest {before >> 20} MiB, then {now >> 20} MiB and {most >> 20} MiB at most")
            assert most <= MOST_MEMORY * before
        finally:
            operator.kill()
