"""The benchmark, its report and docs/internals/performance.md know the same modes."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

import bench  # noqa: E402
import report  # noqa: E402
import warm_workers  # noqa: E402

DOCUMENT = (ROOT / "docs/internals/performance.md").read_text(encoding="utf-8")


def test_each_mode_of_the_benchmark_has_a_section():
    assert set(report.SECTIONS) == set(bench.MODES)


@pytest.mark.parametrize("mode", bench.MODES)
def test_each_mode_is_told_of_and_has_a_place(mode):
    assert re.search(rf"^{mode}  \w", bench.__doc__, re.MULTILINE), "bench.py --help does not say what it measures"
    assert f"({mode})\n" in DOCUMENT, "no heading in docs/internals/performance.md names it"
    for place in [f"w-{part}" for part in warm_workers.PARTS] if mode == "w" else [mode]:
        filled = report.fill_in(DOCUMENT, place, "| figures |")
        assert f"<!-- bench:{place} -->\n| figures |\n<!-- /bench:{place} -->" in filled


def test_the_table_on_top_has_its_place():
    assert "<!-- bench:summary -->\n| figures |\n<!-- /bench:summary -->" in report.fill_in(
        DOCUMENT, "summary", "| figures |")


def _starts(median):
    return {"median_ms": median, "p95_ms": 2 * median, "p99_ms": 3 * median, "max_ms": 4 * median, "samples": 300}


def _costs(count, per_second, **more):
    return {"count": count, "seconds": count / per_second, "per_second": per_second, "api_server_cpu_ms": 11.0,
            "etcd_cpu_ms": 1.5, "operator_cpu_ms": 0.75, "agents_cpu_ms": 2.25, "server_cpu_ms": 12.5,
            "writes_each": 2.5, **more}


def _pods(count, per_second):
    return {"jobs": count, "jobs_per_second": per_second, "cpu_ms_per_job": 3.0, "server_cpu_ms_per_job": 25.0,
            "writes_per_job": 6.0}


def _share(percent):
    return {"api_server": percent / 100, "etcd": 0.01, "operator": 0.005, "agents": 0.2, "memory_mib": 21.5}


WARM = {
    "rate": 20, "pool": [8, 4], "start_warm": [_starts(10), _starts(14), _starts(12)], "start_durable": [_starts(40)],
    "start_batch": [_starts(80)], "burst": [_costs(5000, 90)], "durable": [_pods(1000, 60)], "batch": [_pods(5000, 45)],
    "no_op_runs": _costs(20000, 400, status_writes=300), "runs": _costs(20000, 250, status_writes=310),
    "rest": {"workers": 500, "slots": 4, "seconds": 60, "without": _share(2), "with": _share(33)}}


def _cells(text):
    """The cells of each row of the tables, by the row's first one."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines}


def _check_rows(text):
    assert all(len({line.count("|") for line in table.splitlines()}) == 1
               for table in text.split("\n\n") if table.startswith("|")), "a row has another number of cells"


def test_warm_workers_stand_beside_pods_and_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PLOTS", tmp_path)
    places = report.mode_w(WARM)
    assert set(places) == {f"w-{part}" for part in warm_workers.PARTS}
    text = "\n\n".join(places.values())
    of = _cells(text)
    assert of["job of a pool, to its command's first line"] == [
        "12.0 (10.0 to 14.0)", "24.0 (20.0 to 28.0)", "36.0 (30.0 to 42.0)", "48.0 (40.0 to 56.0)"]
    assert of["jobs/s"] == ["90.0", "60.0", "45.0", "2.00"]
    assert of["CPU of API server and etcd per job (ms)"] == ["12.5", "25.0", "25.0", "0.50"]
    assert of["runs/s"] == ["400.0", "250.0"]
    assert of["500 workers with 4 slots"] == ["33.0", "1.0", "0.5", "20.0", "21.5"]
    _check_rows(text)
    assert [one.name for one in tmp_path.iterdir()] == ["warm-start.svg"]


def test_parts_of_warm_workers_that_were_not_measured_keep_their_places():
    assert set(report.mode_w({"rate": 20, "pool": [8, 8], "rest": WARM["rest"]})) == {"w-rest"}


def _claims(median, **more):
    parts = {"writes_each": 4.5, "refill_writes_each": 0.0, "server_cpu_ms": 20.0, "operator_cpu_ms": 1.25,
             "agents_cpu_ms": 3.0}
    return {"count": 300, "to_start": _starts(median), "to_place": _starts(median / 2), "seconds_to_create": 1.0,
            "seconds_to_start_all": 2.5, "seconds": 60.4, "started": parts, "quiet": {**parts, "writes_each": 9.0},
            "rest": {"api_server": 0.02, "etcd": 0.01, "writes_per_second": 30.0}, "memory_mib": 64.0,
            "beyond_rest": {"writes_each": 3.0, "server_cpu_ms": 14.0}, **more}


def test_jobs_stand_beside_claims():
    text = report.mode_s({"version": "v0.5.6", "window": 60, "sides": {
        "claims": [_claims(400, from_the_pool=300), _claims(600, from_the_pool=300)],
        "workers": [_claims(100, slots=1)], "slots": [_claims(80, slots=5)]}})
    of = _cells(text)
    assert of["300 at once, 300 ready places; ms"] == ["claims", "jobs, a worker each", "jobs, 5 slots a worker"]
    assert of["created to started, 99 %"] == ["1,500 (1,200 to 1,800)", "300", "240"]
    assert of["created to its place on record, median"] == ["250 (200 to 300)", "50", "40"]
    assert of["API writes each, until started"] == ["4.50 (4.50 to 4.50)", "4.50", "4.50"]
    assert of["API writes each, until quiet"] == ["9.00 (9.00 to 9.00)", "9.00", "9.00"]
    assert of["API writes each, until quiet, beyond rest"] == ["3.00 (3.00 to 3.00)", "3.00", "3.00"]
    assert of["claims that got a sandbox of the pool"] == ["300 (300 to 300)", "", ""]
    assert of["API server and etcd before, all at rest (% of a core)"] == ["3.0 (3.0 to 3.0)", "3.0", "3.0"]
    assert "agent-sandbox v0.5.6. Each side is measured for 60 s at least." in text
    _check_rows(text)
