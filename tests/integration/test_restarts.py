"""An operator that is killed every 30 s: no window ends in one of its lives, and every orphan is found within
twice its bound all the same."""

import pytest

from holdfast import Operator
from restarts import AGENT_IMAGE, check_found_in_time, seconds_until_found

pytestmark = pytest.mark.long


def test_each_kind_of_orphan_is_found_in_time_by_an_operator_that_is_killed_every_30_s(cluster):
    operator = Operator(cluster, AGENT_IMAGE)
    operator.start()
    try:
        check_found_in_time(*seconds_until_found(cluster, [operator]))
    finally:
        operator.__exit__()
