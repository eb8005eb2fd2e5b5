"""Two replicas, of which one is killed every 30 s: every orphan is found within twice its bound."""

import pytest

from replicas import Replicas
from restarts import AGENT_IMAGE, check_found_in_time, seconds_until_found

pytestmark = pytest.mark.long


@pytest.mark.parametrize("victims", [pytest.param([0, 1], id="by turns"), pytest.param([1], id="always the same")])
def test_each_kind_of_orphan_is_found_in_time_if_one_of_two_replicas_is_killed_every_30_s(cluster, victims):
    with Replicas(cluster, 2, AGENT_IMAGE) as replicas:
        replicas.wait_shared()
        check_found_in_time(*seconds_until_found(cluster, [replicas[number] for number in victims]))
