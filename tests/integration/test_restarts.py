"""An operator that is killed every 30 s: no window ends in one of its lives, and every orphan is found within
twice its bound all the same."""

from holdfast import Operator
from restarts import BOUND, KINDS, seconds_until_found


def test_each_kind_of_orphan_is_found_within_twice_its_bound_by_an_operator_that_is_killed_every_30_s(cluster):
    operator = Operator(cluster)
    operator.start()
    try:
        when = seconds_until_found(cluster, [operator])
    finally:
        operator.__exit__()
    assert set(when) == KINDS, when
    assert max(when.values()) <= BOUND + 5, when
