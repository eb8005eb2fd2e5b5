"""The referee's report: which recoveries were within the bound that their system promises."""

from referee import report


def entry(*recoveries, **more):
    return {"version": "v1", "settings": "none", "units": 3, "bounds": {"node-killed": 81}, "succeeded": 3, "failed": [],
            "stuck": [], "lost": [], "double": [], "overlaps": [], "waste": [], "recoveries": list(recoveries), **more}


def recovery(seconds, kind="node-killed", beside=(), row=1):
    return ["job-1/0", kind, seconds, 10.0, list(beside), row]


def test_beyond_the_bound_is_late():
    assert report.late(entry(recovery(81), recovery(82))) == [recovery(82)]


def test_where_nothing_is_promised_nothing_is_late():
    assert report.late(entry(recovery(900, kind="process-hung"), recovery(900, kind=""))) == []


def test_what_strikes_in_between_takes_its_time():
    assert report.late(entry(recovery(141, beside=["etcd-paused"]), recovery(142, beside=["etcd-paused"]))) == [
        recovery(142, beside=["etcd-paused"])]


def test_the_next_attempt_may_get_a_node_that_is_out():
    assert report.late(entry(recovery(162, beside=["node-killed"]))) == []


def test_losses_in_a_row_back_off():
    assert report.late(entry(recovery(81 + 20, row=3))) == []
    assert report.late(entry(recovery(81 + 21, row=3)))
    assert report.late(entry(recovery(81 + 361, row=30)))


def test_the_table_adds_the_runs_up():
    records = [{"systems": {"it": entry(recovery(10), overlaps=[["job-1/0", 4.2, "node-cut-off"]])}},
               {"systems": {"it": entry(recovery(90), stuck=[["job-1/1", "?"]])}}]
    assert report.table(records).splitlines()[-1] == "| it | 6 | 1 | 0 | 0 | 0 | 4 s | 50 s, 90 s (2) | 1 | 0 |"
