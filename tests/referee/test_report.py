"""The referee's report: which recoveries were within the bound that their system promises, and which runs count."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from referee import evidence, report  # noqa: E402


def entry(*recoveries, **more):
    return {"version": "v1", "settings": "none", "units": 3, "struck": 2, "bounds": {"node-killed": 81, "node-paused": 81, "process-crashed": 21},
            "bounds_after_the_end": {"node-killed": 91}, "bounds_of_most": {"node-killed": 95}, "succeeded": 3, "phantoms": 1,
            "failed": [], "stuck": [], "lost": [], "double": [], "repeated": [], "overlaps": [], "waste": [],
            "thrown_away": 0, "starts": [], "done": [], "waits": [], "jobs": 1, "by_pod": False, "replaced": [], "decisions": [], "recoveries": list(recoveries), **more}


def recovery(seconds, kind="node-killed", beside=(), row=1, ended=False, most=False, full=()):
    return ["job-1/0", kind, seconds, 10.0, list(beside), row, ended, most, list(full)]


def assert_limit(limit, **what):
    assert report.late(entry(recovery(limit, **what))) == []
    assert report.late(entry(recovery(limit + 1, **what))) == [recovery(limit + 1, **what)]


def record(**more):
    same = {key: "same" for key in ("commit", "minutes", "seconds", "kubernetes", "machine", "date")} | {"indexes": 1}
    return same | {"seed": 1, "void": "", "refused": {}, "strikes": [], "systems": {"it": entry()}} | more


def test_a_dead_node_stands_apart_where_the_control_plane_was_struck_meanwhile():
    def of(seconds, kind="node-gone", *beside):
        return recovery(seconds, kind, [[*one, False] for one in beside])

    entries = [entry(of(40), of(50, "node-killed", ("node-paused", 3, 9), ("etcd-paused", -30, -2)),
                     of(60, "node-gone", ("etcd-paused", -5, 9)), of(70, "node-killed", ("controllers-killed", 69, 69)),
                     of(80, "node-killed", ("controllers-killed", 81, 81)), of(90, "process-crashed"))]
    text = report.dead_nodes_table([record(systems={"it": entries[0]})])
    assert "| it | 50 s, 80 s (3) | 65 s, 70 s (2) |" in text


def test_beyond_the_bound_is_late():
    assert_limit(81)


def test_what_had_ended_has_a_bound_of_its_own():
    assert_limit(91, ended=True)


def test_an_outage_during_a_take_over_holds_it_up():
    beside = [["controllers-killed", 3, 3, False], ["etcd-paused", 30, 60, False]]
    assert_limit(60 + report.RENEWS + report.TAKE_OVER + 81, beside=beside)


def test_where_most_fell_silent_another_bound_holds():
    assert_limit(95, most=True)


def test_a_kill_of_the_controllers_right_before_counts_until_they_are_back():
    back = -6 + report.CONTROLLER_BACK
    assert_limit(81 + back + report.TAKE_OVER, beside=[["controllers-killed", -9, -6, False]])
    assert_limit(81, beside=[["controllers-killed", -60, -50, False]])
    found = recovery(81 + back, beside=[["controllers-killed", -9, -6, False]])
    assert report.allowed(entry(by_pod=True), found) == 81 + back, "its count begins with the next one's start"


def test_what_hangs_on_a_node_that_falls_silent_has_the_nodes_bound():
    hung = entry(by_pod=True, bounds={"process-hung": 47, "node-killed": 33})
    def found(seconds, met):
        return recovery(seconds, kind="process-hung", beside=[["node-killed", 24, 90, met]])
    hung["decisions"] = [found(57, True), found(58, True), found(48, False)]
    assert report.late(hung) == [found(58, True), found(48, False)]


def test_where_no_worker_was_free_the_next_attempt_waits_for_one():
    assert_limit(90 + report.SEEN, full=[[20, 90]])
    assert_limit(80 + report.SEEN, full=[[20, 80]])  # the slot was there, and its worker had just begun
    assert_limit(81, full=[[20, 50]])
    assert_limit(81, full=[[99, 120]])
    assert_limit(95 + report.SEEN, full=[[60, 80], [82, 95]])


def test_a_replacement_that_is_a_recovery_too_is_judged_once():
    assert len(report.judged_by_bound(entry(recovery(20), replaced=[recovery(20), recovery(30)]))) == 2


def test_where_nothing_is_promised_nothing_is_late():
    assert report.late(entry(recovery(900, kind="process-hung"), recovery(900, kind=""))) == []


def test_the_count_begins_anew_when_an_outage_is_over():
    assert_limit(81 + 30 + report.RENEWS, beside=[["etcd-paused", 5, 30, False]])
    assert_limit(81, beside=[["etcd-paused", -40, -10, False]])
    assert_limit(81, beside=[["api-server-paused", 28, 30, False]])


def test_what_strikes_when_the_time_is_over_excuses_nothing():
    assert_limit(81, beside=[["etcd-paused", 81, 110, False]])
    assert_limit(100 + report.RENEWS + 81, beside=[["etcd-paused", 80, 100, False], ["api-server-paused", 300, 330, False]])


def test_the_count_begins_anew_when_the_next_controllers_have_taken_over():
    assert_limit(81 + 3 + report.CONTROLLER_BACK + report.TAKE_OVER, beside=[["controllers-killed", 3, 3, False]])
    assert_limit(2 * 81 + report.TAKE_OVER, beside=[["controllers-killed", 79, 79, False]])


def test_the_next_attempt_may_get_a_node_that_falls_silent():
    assert_limit(81 + 20 + 11, beside=[["node-paused", 20, 90, False]])
    assert_limit(81 + 11 + 30 + report.RENEWS, beside=[["node-paused", 20, 90, False], ["etcd-paused", 25, 30, False]])
    assert_limit(81, beside=[["node-paused", -20, 90, False]])
    assert_limit(81, beside=[["node-gone", -300, 900, False]])
    assert_limit(61 + 20, kind="process-crashed", beside=[["node-killed", -20, 90, False]])


def test_a_replacement_can_be_late_too():
    assert report.late(entry(replaced=[recovery(82)])) == [recovery(82)]


def test_where_each_attempt_has_a_pod_its_creation_counts():
    found = entry(recovery(900), by_pod=True, replaced=[recovery(900)], decisions=[recovery(81), recovery(82)])
    assert report.late(found) == [recovery(82)]
    again = [["node-paused", 20, 90, False]]
    assert report.allowed(found, recovery(1, beside=again)) == 81, "a pod on a silent node is one that was created"


def test_losses_in_a_row_back_off():
    assert_limit(81 + 21, row=3)
    assert_limit(81 + 361, row=30)
    assert_limit(21 + 20, kind="process-crashed", row=2)


def test_the_tables_add_the_runs_up():
    records = [record(systems={"it": entry(recovery(10), done=[99], overlaps=[["job-1/0", 4.2, "node-cut-off"], ["job-1/0", 0.4, ""]])}),
               record(seed=2, systems={"it": entry(recovery(90), stuck=[["job-1/1", "?"]], thrown_away=90,
                                                   waits=[["job-1/0", 3, "why"], ["job-1/0", 9, ""]])})]
    assert report.table(records).splitlines()[-1] == (
        "| it | 6 | 0 | 4 | 1 | 0 | 0 | 0 | 0 | 4 s (1), and 1 below 1 s | 99 s, 99 s (1) | 50 s, 90 s (2) | 1 |")
    assert report.price_table(records).splitlines()[-1] == "| it | none | 0 | 2 | 2 min | 50 % of 2 |"
    records[0]["systems"]["it"]["replaced"] = [recovery(12)]
    records[1]["systems"]["it"]["replaced"] = [recovery(92), recovery(95, beside=[["node-paused", 20, 90, False]])]
    for one in (one for record in records for one in record["systems"]["it"]["replaced"]):
        one[1] = "node-cut-off"
    for one in records:
        one["systems"]["it"]["bounds"] = {"node-cut-off": 81, "node-paused": 81}
    assert report.bounds_table(records).splitlines()[-1] == (
        "| it | node-cut-off | 81 s | 52 s, 92 s (2) | none | 95 s, 95 s (1) | 112 s | 2 | 1 |")
    assert report.bounds_in_words(records) == (
        "Of 3 recoveries of Holdfast, 2 took longer than the bound alone. The rules above allow 1 of them. 1 took longer "
        "than they allow.")
    # Where the bound ends with the next pod's creation, the time until it works is shown beside it.
    records = [record(systems={"it": entry(recovery(47), recovery(99, beside=[["etcd-paused", 9, 30, False]]),
                                           by_pod=True, decisions=[recovery(40)])})]
    assert report.bounds_table(records).splitlines()[-1] == (
        "| it | node-killed | 81 s | 40 s, 40 s (1) | 47 s, 47 s (1) | none | 81 s | 0 | 0 |")
    assert report.bounds_in_words(records).endswith("None took longer than they allow.")


def test_runs_that_were_not_taken_are_said():
    def not_taken(*jobs):
        found = record(indexes=2, systems={name: entry(jobs=count) for name, count in zip("ab", jobs)})
        return [row.split(" | ")[2] for row in report.table([found, found]).splitlines()[2:]]

    assert not_taken(8, 5) == ["0", "12"]
    assert not_taken(7, 8) == ["4", "0"]


def test_runs_of_two_experiments_are_not_added_up():
    assert report.counted([record(), record(seed=2), record(seed=3, void="a strike failed")]) == [record(), record(seed=2)]
    for other in (record(), record(seed=2, commit="another"), record(seed=2, systems={})):
        with pytest.raises(report.Mixed):
            report.counted([record(), other])


def test_a_run_that_finds_no_canary_is_void():
    found = record(failed_strikes=[], systems={
        "canary": entry(overlaps=[["job-1/0", 30.0, "node-cut-off"]]), "canary-slow": entry(recovery(99))})
    assert report.void(found) == ""
    assert "strike failed" in report.void(found | {"failed_strikes": ["node-killed"]})
    assert "overlap" in report.void(found | {"systems": found["systems"] | {"canary": entry()}})
    assert "late" in report.void(found | {"systems": found["systems"] | {"canary-slow": entry(recovery(50))}})
    in_time = {"canary-slow": entry(recovery(99), recovery(50))}
    assert "in time" in report.void(found | {"systems": found["systems"] | in_time})
    excused = {"canary-slow": entry(recovery(99), recovery(50, beside=[["etcd-paused", 5, 30, False]]))}
    assert report.void(found | {"systems": found["systems"] | excused}) == ""
    assert "did not run" in report.void(found | {"systems": {"canary": found["systems"]["canary"]}})


def test_what_went_wrong_in_a_void_run_is_on_record():
    systems = {"holdfast": entry(recovery(99), lost=["job-1/0"]), "batch": entry(stuck=[["job-1/0", "?"]]),
               "holdfast-pool": entry(stuck=[["job-1/0", "?"]])}
    row = report.runs_table([record(void="a strike failed", systems=systems)]).splitlines()[-1]
    assert row.endswith("| 1, 1, 0, 0, 1 | void: a strike failed |")


def test_evidence_is_judged_from_its_file(tmp_path):
    unit = {"system": "batch", "job": "job-1", "index": 0}
    attempt = {"unit": unit, "key": "a", "pod": "a", "node": "n", "token": "", "start": 10.0, "beats": [500, 500],
               "end": 11.1, "term": None, "told": None}
    job = {"metadata": {"name": "job-1"}, "spec": {"completions": 1}, "status": {
        "completedIndexes": "0", "conditions": [{"type": "Complete", "status": "True"}]}}
    part = {"version": "v1", "settings": "none", "submitted": {"job-1": 8.0},
            "objects": {"job-1": evidence.kept(job)}, "waits": [[9.0, "job-1", 0, "", ""]]}
    found = record(begin=5.0, over=100.0, failed_strikes=[], attempts=[attempt], systems={"batch": part}, indexes=1,
                   pods=[["a", "batch", "job-1", 0, 9.0]])
    evidence.write(tmp_path / "one", found)
    first = (tmp_path / "one").read_bytes()
    evidence.write(tmp_path / "one", evidence.read(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == first
    judged = report.record_of(evidence.read(tmp_path / "one"))["systems"]["batch"]
    assert (judged["units"], judged["succeeded"], judged["starts"], judged["stuck"]) == (1, 1, [2.0], [])
