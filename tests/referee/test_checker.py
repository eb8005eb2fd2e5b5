"""The checker over made-up ledgers: each verdict is found where it is, and nowhere else."""

import dataclasses

import pytest
from referee.checker import GONE, UNENDED, Claim, Pod, Run, Struck, Wait, Worker, judge
from referee.ledger import Unit, attempts_of, packed, read, unpacked

UNIT = Unit("it", "job-1", 0)
OVER = 1000.0


def lines(key, begin, seconds, node="n1", last=None, unit=UNIT, still=()):
    """An attempt from `begin`; last: "end", "term" or None, it just falls silent. still: (from, to) without beats."""
    def line(event, at):
        return {"at": at, "event": event, "system": unit.system, "job": unit.job, "index": unit.index, "key": key,
                "pod": key, "node": node, "token": ""}

    found = [line("start", begin)]
    beats = [begin + 0.5 * (i + 1) for i in range(int(2 * seconds))]
    found += [line("beat", at) for at in beats if not any(low < at < high for low, high in still)]
    return found + ([line(last, begin + seconds + 0.01)] if last else [])


def verdict(ledger, *strikes, outcome="Succeeded", counted=1, why="", submitted=90.0, waits=(), pods=(), **more):
    claims = [Claim(UNIT, outcome, counted, why, **more)]
    return judge(Run(attempts_of(ledger), strikes, claims, OVER, {("it", "job-1"): submitted}, waits,
                     [Pod(UNIT, uid, at) for uid, at in pods]))["it"]


def assert_clean(found, but=()):
    for name in ("failed", "stuck", "lost", "double", "repeated", "overlaps", "waste"):
        if name not in but:
            assert not getattr(found, name), name


def test_a_run_in_which_nothing_happens():
    found = verdict(lines("a", 100, 10, last="end"))
    assert (found.units, found.succeeded, found.recoveries) == (1, 1, [])
    assert_clean(found)


def test_a_success_without_an_end_is_lost():
    found = verdict(lines("a", 100, 10), Struck("node-killed", 110, 200, ("n1",)))
    assert found.lost == [UNIT]
    assert_clean(found, but=("lost",))


def test_a_job_that_is_gone_without_an_outcome_is_lost():
    found = verdict(lines("a", 100, 10, last="end"), outcome=None, why=GONE, counted=0)
    assert found.lost == [UNIT]


def test_a_job_that_has_not_ended_is_stuck():
    found = verdict(lines("a", 100, 10), Struck("node-killed", 110, 200, ("n1",)), outcome=None, why="PodRunning")
    assert found.stuck == [(UNIT, "PodRunning")]


def test_a_job_whose_runs_have_ended_and_which_has_not_is_stuck():
    assert verdict(lines("a", 100, 10, last="end"), ended=False).stuck == [(UNIT, UNENDED)]


def test_a_success_of_a_pod_that_never_came_to_its_end_is_lost():
    ledger = lines("a", 100, 10, last="end") + lines("b", 150, 5, node="n2")
    assert verdict(ledger, by="a").lost == []
    assert verdict(ledger, by="b").lost == [UNIT]


def test_one_that_ended_as_a_failure_is_said():
    found = verdict(lines("a", 100, 10), Struck("process-crashed", 110, 110, keys=("a",)), outcome="Failed",
                    counted=0, why="BackoffLimitExceeded")
    assert found.failed == [(UNIT, "BackoffLimitExceeded")]
    assert_clean(found, but=("failed",))


def test_two_successes_of_one_index_are_double():
    ledger = lines("a", 100, 10, last="end") + lines("b", 200, 10, last="end")
    assert verdict(ledger, counted=2).double == [UNIT]
    found = verdict(ledger, counted=1)
    assert found.double == []
    assert found.repeated == [UNIT], "the work was done twice all the same"
    assert found.thrown_away == pytest.approx(10, abs=0.1)


def test_a_cut_off_attempt_beside_its_successor_overlaps():
    ledger = lines("a", 100, 80) + lines("b", 150, 60, node="n2", last="end")
    found = verdict(ledger, Struck("node-cut-off", 105, 175, ("n1",)))
    [(unit, seconds, kind)] = found.overlaps
    assert (unit, kind) == (UNIT, "node-cut-off")
    assert seconds == pytest.approx(30, abs=0.1)
    assert found.recoveries == [], "it still ran when its successor began"
    assert_clean(found, but=("overlaps",))


def test_a_process_that_stood_still_does_not_overlap():
    ledger = lines("a", 100, 60, still=((110, 150),), last="term") + lines("b", 145, 4, node="n2", last="end")
    found = verdict(ledger, Struck("node-paused", 110, 150, ("n1",)))
    assert found.overlaps == []
    [recovery] = found.recoveries
    assert recovery.seconds == pytest.approx(35, abs=0.1)


def test_to_be_asked_to_end_is_no_sign_of_life():
    ledger = lines("a", 100, 40, still=((110, 200),), last="term") + lines("b", 150, 4, node="n2", last="end")
    [recovery] = verdict(ledger, Struck("process-hung", 110, 170, keys=("a",))).recoveries
    assert recovery.seconds == pytest.approx(40)


def test_an_attempt_that_worked_on_was_replaced_all_the_same():
    ledger = lines("a", 100, 80) + lines("b", 150, 60, node="n2", last="end")
    found = verdict(ledger, Struck("node-cut-off", 105, 175, ("n1",)))
    [replaced] = found.replaced
    assert (replaced.kind, replaced.seconds, replaced.at) == ("node-cut-off", 45, 105)
    ended = lines("a", 100, 80, last="end") + lines("b", 150, 60, node="n2", last="end")
    assert len(verdict(ended, Struck("node-cut-off", 105, 175, ("n1",))).replaced) == 1, "also one that came to its end"
    alone = lines("a", 100, 80, last="end")
    assert verdict(alone, Struck("node-cut-off", 105, 175, ("n1",))).replaced == []


def test_nothing_is_at_work_only_while_no_earlier_attempt_is():
    ledger = lines("a", 100, 60) + lines("b", 120, 10, node="n2") + lines("c", 170, 10, node="n3", last="end")
    found = verdict(ledger, Struck("node-cut-off", 105, 175, ("n1",)), Struck("process-crashed", 130, 130, keys=("b",)))
    assert [round(one.seconds) for one in found.recoveries] == [10], "from the last beat of the first"


def test_a_dead_node_ends_what_hung_on_it():
    ledger = lines("a", 100, 10) + lines("b", 160, 20, node="n2", last="end")
    hung, killed = Struck("process-hung", 110, 170, keys=("a",)), Struck("node-gone", 112, 500, ("n1",))
    [recovery] = verdict(ledger, hung, killed).recoveries
    assert (recovery.kind, recovery.seconds) == ("node-gone", 48), "counted from its node's death"
    [recovery] = verdict(ledger, hung, Struck("node-gone", 165, 500, ("n1",))).recoveries
    assert recovery.kind == "process-hung", "the node died after the next attempt had begun"


def test_what_an_outage_ended_is_waste_with_a_kind():
    ledger = lines("a", 100, 10, last="term") + lines("b", 152, 20, node="n2", last="end")
    found = verdict(ledger, Struck("etcd-paused", 90, 112))
    [recovery] = found.recoveries
    assert (recovery.kind, recovery.seconds, recovery.beside) == ("etcd-paused", 42, (("etcd-paused", -20, 2, False),))
    assert len(found.waste) == 1
    assert verdict(ledger, Struck("etcd-paused", 60, 90)).recoveries[0].kind == ""


def test_a_decision_is_the_next_pods_creation_whether_or_not_that_begins():
    ledger = lines("a", 100, 10) + lines("c", 190, 20, node="n3", last="end")
    found = verdict(ledger, Struck("node-killed", 110, 300, ("n1",)), pods=[("a", 95), ("b", 152), ("c", 180)])
    [decision] = found.decisions
    assert (decision.kind, decision.seconds, decision.row) == ("node-killed", 42, 1)
    [recovery] = found.recoveries
    assert recovery.seconds == 80


def test_a_decision_about_a_silent_node_counts_from_the_strike():
    ledger = lines("a", 100, 80, last="end") + lines("b", 160, 20, node="n2", last="end")
    [decision] = verdict(ledger, Struck("node-cut-off", 110, 300, ("n1",)), pods=[("a", 95), ("b", 151)]).decisions
    assert decision.seconds == 41


def test_a_decision_says_whether_the_program_had_ended_when_its_node_fell_silent():
    strike = Struck("node-cut-off", 110, 300, ("n1",))
    for seconds, ended in ((9, True), (80, False)):
        ledger = lines("a", 100, seconds, last="end") + lines("b", 160, 20, node="n2", last="end")
        [decision] = verdict(ledger, strike, pods=[("a", 95), ("b", 151)]).decisions
        assert decision.ended == ended


def test_a_decision_about_a_node_that_came_back_counts_from_the_strike():
    ledger = lines("a", 100, 60, still=((110, 155),), last="term") + lines("b", 165, 20, node="n2", last="end")
    [decision] = verdict(ledger, Struck("node-paused", 110, 155, ("n1",)), pods=[("a", 95), ("b", 151)]).decisions
    assert decision.seconds == 41


def test_attempts_that_never_began_are_losses_in_the_row():
    ledger = lines("a", 100, 10) + lines("c", 200, 10, node="n3") + lines("d", 300, 10, node="n2", last="end")
    strikes = [Struck("node-killed", 110, 280, ("n1",)), Struck("node-paused", 210, 290, ("n3",))]
    rows = [one.row for one in verdict(ledger, *strikes, pods=[("a", 95), ("b", 152), ("c", 190), ("d", 270)]).decisions]
    assert rows == [1, 3]


def test_losses_and_failures_are_counted_apart():
    ledger = (lines("a", 100, 10) + lines("b", 160, 10) + lines("c", 200, 10) + lines("d", 240, 5, last="end"))
    crashed = [Struck("process-crashed", at, at, keys=(key,)) for key, at in (("b", 170), ("c", 210))]
    rows = [one.row for one in verdict(ledger, Struck("node-paused", 110, 130, ("n1",)), *crashed).recoveries]
    assert rows == [1, 1, 2]


def test_an_end_with_two_causes_counts_in_either_row():
    """What hangs is not noticed by each system: the node that died meanwhile may have ended it."""
    ledger = (lines("a", 100, 10) + lines("b", 160, 40, node="n2", last="term") + lines("c", 240, 10, node="n3")
              + lines("d", 300, 5, node="n4", last="end"))
    strikes = [Struck("node-killed", 110, 400, ("n1",)), Struck("process-hung", 170, 190, keys=("b",)),
               Struck("node-paused", 195, 210, ("n2",)), Struck("node-killed", 250, 400, ("n3",))]
    rows = [one.row for one in verdict(ledger, *strikes).recoveries]
    assert rows == [1, 1, 3]


def others(count, node):
    """Attempts of the same system that are at work all the time."""
    found = []
    for number in range(count):
        found += lines(f"{node}-{number}", 90, 60, node=node, unit=Unit("it", "job-2", number), last="end")
    return found


@pytest.mark.parametrize("beside, elsewhere, most", [(2, 1, True), (2, 2, False), (3, 2, True), (2, 0, False), (0, 3, False)])
def test_a_node_on_which_most_were_at_work_silences_most(beside, elsewhere, most):
    ledger = lines("a", 100, 10) + lines("b", 170, 10, node="n9", last="end") + others(beside, "n1") + others(elsewhere, "n2")
    units = {Unit("it", "job-2", number) for number in range(max(beside, elsewhere))}
    claims = [Claim(unit, "Succeeded", 1) for unit in (UNIT, *units)]
    strikes = [Struck("node-killed", 110, 200, ("n1",))]
    found = judge(Run(attempts_of(ledger), strikes, claims, OVER, {}))["it"]
    assert [one.most for one in found.recoveries if one.unit == UNIT] == [most]


def run_of(ledger, *strikes, **more):
    """A run of the one unit, and of whatever other units of "it" the ledger has."""
    attempts = attempts_of(ledger)
    claims = [Claim(unit, "Succeeded", 1) for unit in {UNIT, *(attempt.unit for attempt in attempts)}]
    return judge(Run(attempts, strikes, claims, OVER, **more))["it"]


def test_a_node_with_most_warm_workers_silences_most_however_few_have_an_attempt():
    ledger = lines("a", 100, 10) + lines("b", 170, 10, node="n9", last="end")

    def most(*workers):
        [found] = run_of(ledger, Struck("node-killed", 110, 200, ("n1",)), workers=list(workers)).recoveries
        return found.most

    silent, well = Worker("it", "n1", 50), Worker("it", "n2", 50)
    assert most(silent, silent, silent, well)
    assert not most(silent, silent, well, well)
    assert not most(silent, silent, silent), "there are too few others"
    assert not most(silent, silent, silent, Worker("it", "n2", 50, gone=105), Worker("it", "n2", 120))
    assert not most(silent, silent, well, Worker("other", "n1", 50))


def test_a_worker_is_free_when_one_is_ready_on_a_node_that_is_well():
    ledger = lines("a", 100, 10) + lines("b", 190, 10, node="n3", last="end")
    workers = [Worker("it", "n1", 50), Worker("it", "n2", 60, gone=105), Worker("it", "n3", 140), Worker("other", "n3", 90)]
    strikes = [Struck("node-killed", 110, 300, ("n1",))]
    [found] = run_of(ledger, *strikes, workers=workers, slots={"it": 2}).recoveries
    [(begin, end)] = found.full
    assert (begin, end) == (pytest.approx(0), pytest.approx(30, abs=0.1)), "until n3's is ready"
    busy = [line for number in range(2) for line in lines(f"o{number}", 130, 40, node="n3", unit=Unit("it", "job-2", number), last="end")]
    [found] = [one for one in run_of(ledger + busy, *strikes, workers=workers, slots={"it": 2}).recoveries if one.unit == UNIT]
    assert found.full[-1][1] == pytest.approx(60, abs=0.1), "both slots of the worker were taken until then"
    strikes.append(Struck("process-frozen", 125, 180, keys=("o0",)))
    [found] = [one for one in run_of(ledger + busy, *strikes, workers=workers, slots={"it": 2}).recoveries if one.unit == UNIT]
    assert found.full[-1][1] == pytest.approx(70, abs=0.1), "and it was frozen"


def test_an_agent_that_asked_its_program_to_end_did_not_for_the_kubelet():
    ledger = lines("a", 100, 10, last="term") + lines("b", 160, 10, node="n2", last="end")
    strikes = [Struck("kubelet-stopped", 90, 200, ("n1",)), Struck("etcd-paused", 105, 120)]
    found = run_of(ledger, *strikes, agents=("it",), pods=[Pod(UNIT, "a", 95), Pod(UNIT, "b", 155)])
    assert [one.kind for one in found.recoveries] == ["etcd-paused"] and len(found.waste) == 1
    assert [one.kind for one in found.decisions] == ["etcd-paused"], "it has a bound"
    assert not run_of(ledger, *strikes).waste, "of others the kubelet's stop ended it"


def test_a_pod_that_begins_when_its_node_comes_back_hides_no_cause_and_is_no_waste():
    ledger = (lines("a", 100, 50) + lines("late", 145, 1, node="n2", last="term") + lines("b", 190, 20, node="n3", last="end"))
    strikes = [Struck("node-killed", 150, 400, ("n1",)), Struck("node-paused", 90, 144, ("n2",))]
    pods = [Pod(UNIT, "late", 95), Pod(UNIT, "a", 98), Pod(UNIT, "b", 185)]
    found = run_of(ledger, *strikes, pods=pods)
    assert found.waste == [] and {one.kind for one in found.recoveries} == {"node-killed"}


def test_pods_of_one_second_are_in_the_order_in_which_they_were_made():
    ledger = lines("z", 100, 10) + lines("b", 160, 10, node="n2", last="end")
    pods = [Pod(UNIT, "z", 95, order=1), Pod(UNIT, "b", 150, order=3), Pod(UNIT, "a", 150, order=2)]
    found = run_of(ledger, Struck("node-killed", 110, 200, ("n1",)), pods=pods)
    assert len(found.decisions) == 1 and found.phantoms == 1


def test_a_failed_program_counts_from_when_its_kubelet_has_said_so():
    ledger = lines("a", 100, 10) + lines("b", 135, 10, last="end")
    crash = Struck("process-crashed", 110, 110, keys=("a",))
    pods = [Pod(UNIT, "a", 95, reported=118), Pod(UNIT, "b", 130, order=1)]
    [found] = run_of(ledger, crash, pods=pods).decisions
    assert found.seconds == 12
    [found] = run_of(ledger, crash, pods=[dataclasses.replace(pods[0], reported=None), pods[1]]).decisions
    assert found.seconds == pytest.approx(17, abs=0.1), "nobody saw the report: 3 s after the last beat"


def test_what_runs_on_for_a_moment_after_it_stood_still_overlaps():
    ledger = lines("a", 100, 60, still=((110, 150),), last="term") + lines("b", 145, 40, node="n2", last="end")
    [(_, seconds, _)] = verdict(ledger, Struck("node-paused", 110, 150, ("n1",))).overlaps
    assert seconds == pytest.approx(10, abs=0.6)


def test_recovery_counts_from_the_last_beat():
    ledger = lines("a", 100, 10) + lines("b", 152, 20, node="n2", last="end")
    found = verdict(ledger, Struck("node-killed", 110.2, 200, ("n1",)), Struck("etcd-paused", 120, 130))
    [recovery] = found.recoveries
    assert (recovery.kind, recovery.beside, recovery.row) == ("node-killed", (("etcd-paused", 10, 20, False),), 1)
    assert recovery.seconds == pytest.approx(42)
    assert found.struck == 1
    assert found.thrown_away == pytest.approx(10)
    assert_clean(found)


def test_a_node_that_fell_silent_just_before_is_beside_a_recovery():
    ledger = lines("a", 200, 10) + lines("b", 252, 20, node="n2", last="end")
    [recovery] = verdict(ledger, Struck("process-crashed", 210, 210, keys=("a",)),
                         Struck("node-killed", 120, 190, ("n3",)), Struck("node-paused", 100, 149, ("n4",))).recoveries
    assert recovery.beside == (("node-killed", -90, -20, False),)


def test_the_first_start_counts_from_the_creation():
    assert verdict(lines("a", 100, 10, last="end"), submitted=97.5).starts == [2.5]


def test_done_counts_until_the_end_that_the_system_counts():
    ledger = lines("a", 100, 10, last="end") + lines("b", 152, 20, node="n2", last="end")
    strike = Struck("node-killed", 110.2, 200, ("n1",))
    assert verdict(ledger, strike).done == [pytest.approx(20, abs=0.6)]
    assert verdict(ledger, strike, by="b").done == [pytest.approx(82, abs=0.6)]
    assert verdict(ledger, strike, outcome=None).done == []


def test_a_wait_is_one_while_nothing_is_at_work():
    ledger = lines("a", 100, 10) + lines("b", 260, 20, last="end")
    strike = Struck("process-crashed", 110, 110, keys=("a",))
    waits = [Wait(at, UNIT, "why") for at in (92, 105, 160, 240, 265)]
    assert [at for _, at, _ in verdict(ledger, strike, waits=waits).waits] == [240]
    assert [at for _, at, _ in verdict(ledger, strike, submitted=20, waits=waits).waits] == [92, 240]


@pytest.mark.parametrize(("why", "pod", "reason"), [
    ("NodeSilent: run 0: node n1 does not renew its Lease", "", "NodeSilent: run 0: node n1 does not renew its Lease"),
    ("NodeSilent: run 1: node n1 does not renew its Lease", "", ""),
    ("NodeSilent: run 1: node n1 is silent; runs 3,5-7: NodeSilent; run 12: PodStarting", "", ""),
    ("NodeSilent: run 1: n1 is silent; runs 0,5-7: PodStarting", "", "NodeSilent: run 1: n1 is silent; runs 0,5-7: PodStarting"),
    ("PodRunning: the pods of the open runs run", "", ""),
    ("PodRunning: the pods of the open runs run", "Unschedulable: no room", "Unschedulable: no room"), ("", "", "")])
def test_a_reason_is_one_of_this_run(why, pod, reason):
    ledger = lines("a", 100, 10) + lines("b", 260, 20, last="end")
    [(_, _, found)] = verdict(ledger, Struck("process-crashed", 110, 110, keys=("a",)),
                              waits=[Wait(240, UNIT, why, pod)]).waits
    assert found == reason


def test_attempts_come_back_from_a_file_as_they_were():
    attempts = attempts_of(lines("a", 100.123, 10, last="end") + lines("b", 120.5, 3))
    back = unpacked(packed(attempts))
    assert [(one.unit, one.key, one.start, one.end) for one in back] == [
        (one.unit, one.key, one.start, one.end) for one in attempts]
    assert [one.beats for one in back] == [pytest.approx(one.beats) for one in attempts]


def test_an_attempt_that_was_ended_although_it_was_well_is_waste():
    ledger = lines("a", 100, 10, last="term") + lines("b", 112, 20, last="end")
    for strikes in ((), (Struck("controllers-killed", 109, 109),), (Struck("node-killed", 109, 150, ("n2",)),)):
        found = verdict(ledger, *strikes)
        assert [attempt.key for attempt in found.waste] == ["a"], strikes
    assert verdict(ledger, Struck("node-cut-off", 50, 105, ("n1",))).waste == [], "the strike's aftermath"


def test_an_attempt_that_runs_when_the_referee_leaves_is_no_waste():
    assert verdict(lines("a", OVER - 10, 10), outcome=None, why="PodRunning").waste == []


def test_an_attempt_that_nobody_asked_for_stops_the_referee():
    with pytest.raises(ValueError, match="nobody asked for"):
        judge(Run(attempts_of(lines("a", 100, 10)), [], [], OVER))


def test_two_runs_with_one_key_stop_the_referee():
    with pytest.raises(ValueError, match="two runs have written"):
        attempts_of(lines("a", 100, 10) + lines("a", 100, 10, unit=Unit("it", "job-1", 1)))


def test_a_line_that_a_power_cut_has_cut_off_is_left_out(tmp_path):
    (tmp_path / "a.ndjson").write_text(
        '{"at":1,"event":"start","system":"it","job":"j","index":0,"key":"a","pod":"p","node":"n","token":"1"}\n{"at":2,"ev')
    [attempt] = read(tmp_path)
    assert (attempt.start, attempt.beats) == (1, [])
