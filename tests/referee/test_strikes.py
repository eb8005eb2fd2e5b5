"""The nemesis' plan: the same for the same seed, all undone at the end."""

import dataclasses

import pytest
from referee.strikes import GONE, KINDS, NODE, node_for, schedule

SEEDS = range(1, 50)


def test_a_seed_is_a_plan():
    assert schedule(7, 10) == schedule(7, 10)
    assert schedule(7, 10) != schedule(8, 10)


@pytest.mark.parametrize("minutes", [5, 10, 60])
def test_all_is_undone_when_the_run_ends(minutes):
    for seed in SEEDS:
        assert all(0 < strike.at and strike.end <= 60 * minutes + 0.1 for strike in schedule(seed, minutes)), seed


def test_each_run_has_a_cut_off_for_the_canary_and_a_node_that_stays_away():
    for seed in SEEDS:
        kinds = [strike.kind for strike in schedule(seed, 5)]
        assert "node-cut-off" in kinds and GONE in kinds, seed


def test_ten_minutes_have_almost_all_kinds():
    for seed in SEEDS:
        assert len(set(KINDS) - {strike.kind for strike in schedule(seed, 10)}) <= 2, seed


def test_one_node_at_a_time_beside_the_one_that_is_gone():
    for seed in SEEDS:
        struck = [strike for strike in schedule(seed, 60) if strike.kind in NODE]
        assert all(one.end < other.at for one, other in zip(struck, struck[1:])), seed


VENDORS = {"holdfast": "ours", "holdfast-pool": "ours", "batch": "Kubernetes", "canary": "canary"}


def strike_of(kind, choice=0.0):
    found = next(strike for seed in SEEDS for strike in schedule(seed, 10) if strike.kind == kind)
    return dataclasses.replace(found, choice=choice)


def test_a_node_is_struck_where_most_vendors_are_at_work():
    at_work = [("holdfast", "a"), ("holdfast-pool", "a"), ("holdfast", "b"), ("batch", "b"), ("canary", "c")]
    assert node_for(strike_of("node-killed"), ["a", "b", "c"], at_work, VENDORS) == "b"
    assert node_for(strike_of("node-killed", 0.9), ["a", "c"], at_work, VENDORS) == "c", "a vote each"


def test_a_node_is_cut_off_where_the_canary_is_at_work():
    at_work = [("holdfast", "b"), ("batch", "b"), ("canary", "c")]
    assert node_for(strike_of("node-cut-off"), ["a", "b", "c"], at_work, VENDORS) == "c"
    assert node_for(strike_of("node-cut-off"), ["a", "b"], at_work, VENDORS) == "b", "it is not there"


def test_nodes_can_be_struck_alone_and_are_then_struck_as_in_a_full_run():
    full, alone = schedule(3, 10), schedule(3, 10, nodes_only=True)
    assert alone == [strike for strike in full if strike.kind in NODE or strike.kind == GONE]
    assert {strike.kind for strike in alone} == {GONE, *NODE}
