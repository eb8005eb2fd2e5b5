"""Two replicas, of which one is killed every 30 s, by turns: every orphan is found within twice its bound."""

from replicas import Replicas
from restarts import BOUND, KINDS, seconds_until_found


def test_each_kind_of_orphan_is_found_within_twice_its_bound_if_one_of_two_replicas_is_killed_every_30_s(cluster):
    with Replicas(cluster, 2) as replicas:
        replicas.wait_shared()
        when = seconds_until_found(cluster, list(replicas))
    assert set(when) == KINDS, when
    assert max(when.values()) <= BOUND + 5, when
