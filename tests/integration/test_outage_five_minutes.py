"""The API server is down for five minutes: no attempt is lost by that, and everything goes on within
a minute of its return."""

import pytest

from outages import outlast_minutes_without_an_api_server

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("operator")]


def test_an_api_server_that_is_down_for_five_minutes_loses_no_attempt_and_all_goes_on_within_a_minute(cluster, jobs):
    outlast_minutes_without_an_api_server(cluster, jobs, 5)
