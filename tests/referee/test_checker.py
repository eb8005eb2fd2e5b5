"""The checker over made-up ledgers: each verdict is found where it is, and nowhere else."""

import pytest
from referee.checker import GONE, Claim, Struck, judge
from referee.ledger import Unit, attempts_of, read

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


def verdict(ledger, *strikes, outcome="Succeeded", counted=1, why=""):
    return judge(attempts_of(ledger), strikes, [Claim(UNIT, outcome, counted, why)], OVER)["it"]


def assert_clean(found, but=()):
    for name in ("failed", "stuck", "lost", "double", "overlaps", "waste"):
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


def test_one_that_ended_as_a_failure_is_said():
    found = verdict(lines("a", 100, 10), Struck("process-crashed", 110, 110, keys=("a",)), outcome="Failed",
                    counted=0, why="BackoffLimitExceeded")
    assert found.failed == [(UNIT, "BackoffLimitExceeded")]
    assert_clean(found, but=("failed",))


def test_two_successes_of_one_index_are_double():
    ledger = lines("a", 100, 10, last="end") + lines("b", 200, 10, last="end")
    assert verdict(ledger, counted=2).double == [UNIT]
    assert verdict(ledger, counted=1).double == []


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


def test_what_runs_on_for_a_moment_after_it_stood_still_overlaps():
    ledger = lines("a", 100, 60, still=((110, 150),), last="term") + lines("b", 145, 40, node="n2", last="end")
    [(_, seconds, _)] = verdict(ledger, Struck("node-paused", 110, 150, ("n1",))).overlaps
    assert seconds == pytest.approx(10, abs=0.6)


def test_recovery_counts_from_the_last_beat():
    ledger = lines("a", 100, 10) + lines("b", 152, 20, node="n2", last="end")
    found = verdict(ledger, Struck("node-killed", 110.2, 200, ("n1",)), Struck("etcd-paused", 120, 130))
    [recovery] = found.recoveries
    assert (recovery.kind, recovery.beside, recovery.row) == ("node-killed", ("etcd-paused",), 1)
    assert recovery.seconds == pytest.approx(42)
    assert_clean(found)


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
        judge(attempts_of(lines("a", 100, 10)), [], [], OVER)


def test_a_line_that_a_power_cut_has_cut_off_is_left_out(tmp_path):
    (tmp_path / "a.ndjson").write_text(
        '{"at":1,"event":"start","system":"it","job":"j","index":0,"key":"a","pod":"p","node":"n"}\n{"at":2,"ev')
    [attempt] = read(tmp_path)
    assert (attempt.start, attempt.beats) == (1, [])
