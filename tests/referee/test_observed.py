"""Which times of the observer and of the rescue belong to one silence of a node."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from referee.observed import Silence, not_written_down, silences, without_a_strike  # noqa: E402


def test_the_first_of_each_in_a_silence_count():
    due = [("a", 100), ("a", 101), ("b", 500)]
    freed = [("a", 101.4), ("a", 119), ("a", 300)]
    assert silences(due, freed) == [Silence("a", 100, 101.4), Silence("a", None, 300), Silence("b", 500, None)]


def test_a_silence_that_met_one_of_them_has_no_distance():
    [alone] = silences([("a", 7)], [])
    assert alone.apart is None
    [both] = silences([("a", 7)], [("a", 9.5)])
    assert both.apart == 2.5


def test_a_pod_may_be_freed_only_while_its_node_has_been_struck_for_the_window():
    strikes = [(["a"], 100, 200)]
    assert without_a_strike([("a", 161), ("a", 155), ("a", 201)], strikes, 60) == []
    assert without_a_strike([("a", 140), ("a", 230), ("b", 161)], strikes, 60) == [("a", 140), ("a", 230), ("b", 161)]


def test_a_silence_that_met_a_program_without_the_label_must_be_written_down():
    missed = Silence("a", None, 300)
    attempts = [("a", 100, 235)]
    assert not_written_down([missed, Silence("b", None, 300), Silence("a", 299, 300)], attempts, 60) == [missed]
    assert not_written_down([missed], [("a", 235, 235), ("a", 100, 150)], 60) == [], "it began or ended before"
