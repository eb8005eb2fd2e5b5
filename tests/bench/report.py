#!/usr/bin/python3
"""Makes the tables and plots of docs/performance.md from build/bench/results.

    tests/bench/report.py [--results build/bench/results]

Between `<!-- bench:MODE -->` and `<!-- /bench:MODE -->` the document is generated; what stands around it is
not touched, and a mode without results keeps what it has. The README's table is made where a, b and c have results.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/bench")]

import svg  # noqa: E402

DOCUMENT, README = ROOT / "docs/performance.md", ROOT / "README.md"
PLOTS = ROOT / "docs/performance"
OURS, THEIRS = "Holdfast", "batch/v1"


def values(rounds, key):
    return [one[key] for one in rounds if key in one]


def triple(numbers):
    """(median, least, most)."""
    return statistics.median(numbers), min(numbers), max(numbers)


def spread(numbers, digits=1):
    """The median, and what it lies between."""
    if not numbers:
        return ""
    median, least, most = triple(numbers)
    text = f"{median:,.{digits}f}"
    return text if len(numbers) == 1 else f"{text} ({least:,.{digits}f} to {most:,.{digits}f})"


def ratio(ours, theirs, key):
    """How many times as much, of the medians."""
    if not ours or not theirs:
        return ""
    return f"{statistics.median(values(ours, key)) / statistics.median(values(theirs, key)):.2f}"


def rows(head, *lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def plot(name, text, alt):
    """Writes it; what shows it in the document."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    (PLOTS / f"{name}.svg").write_text(text, encoding="utf-8")
    return f"![{alt}](performance/{name}.svg)"


# ---- A section for each mode.

def with_defaults(slow):
    return f"batch/v1 with defaults ({slow[0]['jobs']:,} jobs)" if slow else "batch/v1 with defaults"


def mode_a(figures):
    durable, batch, slow = (figures[key] for key in ("durable", "batch", "batch_defaults"))
    lines = [(label, *(spread(values(column, key), digits) for column in (durable, batch, slow)),
              ratio(durable, batch, key), ratio(durable, slow, key))
             for key, label, digits in (("jobs_per_second", "jobs/s", 1),
                                        ("cpu_ms_per_job", "controller's CPU for each (ms)", 2),
                                        ("server_cpu_ms_per_job", "API server's and etcd's CPU for each (ms)", 1),
                                        ("writes_per_job", "controller's API writes for each, Events included", 2),
                                        ("memory_peak_mib", "controller's memory at its peak (MiB)", 0))]
    groups = {"unthrottled": {OURS: triple(values(durable, "jobs_per_second")),
                              THEIRS: triple(values(batch, "jobs_per_second"))}}
    if slow:
        groups["batch/v1 with defaults"] = {OURS: triple(values(durable, "jobs_per_second")),
                                            THEIRS: triple(values(slow, "jobs_per_second"))}
    return "\n\n".join([
        rows((f"{durable[0]['jobs']:,} jobs at once", OURS, "batch/v1 unthrottled", with_defaults(slow),
              "Holdfast to unthrottled", "to defaults"), *lines),
        plot("at-once", svg.bars("Jobs that end at once", "jobs/s", groups), "jobs per second")])


def mode_b(figures):
    head = ("", "median (ms)", "95 %", "99 %", "most")
    keys = ("median_ms", "p95_ms", "p99_ms", "max_ms")
    names = {"create_to_pod": "job created: its pod is there after",
             "end_to_outcome": "pod ended: its outcome is on record after"}
    groups = {label: {name: (figures[key][quantile],) * 3 for name, quantile in
                      (("median", "median_ms"), ("99 %", "p99_ms"))}
              for key, label in (("create_to_pod", "create to pod"), ("end_to_outcome", "end to outcome"))}
    return "\n\n".join([
        f"With {figures['finished']:,} finished and {figures['running']:,} running jobs, "
        f"{figures['create_to_pod']['samples']} samples:",
        rows(head, *((label, *(figures[key][quantile] for quantile in keys)) for key, label in names.items())),
        plot("reaction", svg.bars("Reaction", "ms", groups), "reaction in milliseconds")])


def mode_c(figures):
    lines = [(f"{OURS}, {int(count):,} finished jobs", one["memory_mib"], one["memory_peak_mib"], one["cpu_percent"],
              one.get("cpu_ms_per_job", ""))
             for count, one in figures["durable"].items()]
    lines += [(f"controller-manager, {int(count):,} finished batch/v1 Jobs", one["memory_mib"],
               one["memory_peak_mib"], one["cpu_percent"], "") for count, one in figures["batch"].items()]
    series = {OURS: {int(count): one["memory_mib"] for count, one in figures["durable"].items()},
              "controller-manager": {int(count): one["memory_mib"] for count, one in figures["batch"].items()}}
    return "\n\n".join([
        rows(("started anew, at rest", "memory (MiB)", "at its peak", "CPU (% of a core)",
              "CPU for each job more (ms)"), *lines),
        plot("memory", svg.lines("Memory at rest", "MiB", "finished jobs", series), "memory by finished jobs")])


def mode_d(figures):
    return rows((f"with {figures['finished']:,} finished jobs", "seconds"),
                ("a process starts: its first decision is on record after", spread(figures["restart"], 2)),
                ("a replica stops: the other holds all shards after", spread(figures["take_over_clean"], 2)),
                ("a replica is killed: the other holds all shards after", spread(figures["take_over_killed"], 2)))


def mode_e(figures):
    reached = values(figures["durable"], "jobs_per_second")
    writes = statistics.median(values(figures["durable"], "writes_per_job"))
    whole, small = statistics.median(figures["whole_lives"]), statistics.median(figures["small_writes"])
    median = statistics.median(reached)
    return rows(("pods end as soon as they are made", ""),
                ("small objects that this API server creates, a second", spread(figures["small_writes"], 0)),
                ("jobs whose writes it takes, all from the creation to the end, a second",
                 spread(figures["whole_lives"])),
                ("jobs that Holdfast ends, a second", spread(reached)),
                ("the share of those writes that it reaches", f"{100 * median / whole:.0f} %"),
                ("its own writes for each job", f"{writes:.2f}"),
                ("its own writes a second, as a share of the small objects", f"{100 * median * writes / small:.0f} %"))


def mode_f(figures):
    groups = {f"{count} replica{'s' * (count != '1')}": {OURS: triple(values(rounds, "jobs_per_second"))}
              for count, rounds in figures.items()}
    return "\n\n".join([
        rows(("replicas", "jobs/s", "CPU for each job, all replicas (ms)", "memory of the largest (MiB)"),
             *((count, spread(values(rounds, "jobs_per_second")), spread(values(rounds, "cpu_ms_per_job"), 2),
                spread(values(rounds, "memory_peak_mib"), 0)) for count, rounds in figures.items())),
        plot("replicas", svg.bars("Replicas", "jobs/s", groups), "jobs per second by replicas")])


SECTIONS = {"a": mode_a, "b": mode_b, "c": mode_c, "d": mode_d, "e": mode_e, "f": mode_f}


def origin(result):
    about = result["machine"]
    return (f"Measured {about['date']}: Holdfast {about['holdfast']}, Kubernetes {about['kubernetes']}, "
            f"{about['cores']} cores ({about['cpu']}), {about['memory']}; {result['nodes']} simulated nodes. "
            f"Load of the machine before: {about['load']}.")


def fill_in(document, place, text):
    marked = re.compile(rf"(<!-- bench:{place} -->\n).*?(<!-- /bench:{place} -->)", re.DOTALL)
    if not marked.search(document):
        sys.exit(f"report: there is no place for {place}")
    return marked.sub(lambda found: f"{found[1]}{text}\n{found[2]}", document)


def summary(a, b, c):
    """The README's table."""
    durable, batch, slow = (a[key] for key in ("durable", "batch", "batch_defaults"))

    def line(label, key, digits, unit):
        return (label, *(f"{statistics.median(values(column, key)):.{digits}f}{unit}" if column else ""
                         for column in (durable, batch, slow)))

    count = max(set(c["durable"]) & set(c["batch"]), key=int)
    reaction = {key: f"{b[key]['median_ms']:.0f} ms, {b[key]['p99_ms']:.0f} ms" for key in ("create_to_pod", "end_to_outcome")}
    return rows(
        ("", OURS, "batch/v1 unthrottled", with_defaults(slow).removeprefix("batch/v1 ")),
        line(f"{durable[0]['jobs']:,} jobs at once", "jobs_per_second", 1, " jobs/s"),
        line("the controller's CPU for each", "cpu_ms_per_job", 1, " ms"),
        line("API writes for each, Events included", "writes_per_job", 1, ""),
        line("the API server's and etcd's CPU for each", "server_cpu_ms_per_job", 0, " ms"),
        (f"the controller's memory, started anew with {int(count):,} finished jobs",
         f"{c['durable'][count]['memory_mib']:.0f} MiB", f"{c['batch'][count]['memory_mib']:.0f} MiB", ""),
        (f"a job applied: its pod is there after (median, 99 %), beside {b['finished']:,} finished and "
         f"{b['running']:,} running jobs", reaction["create_to_pod"], "not measured", ""),
        ("a pod ended: its outcome is on record after", reaction["end_to_outcome"], "not measured", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--results", default=str(ROOT / "build/bench/results"))
    options = parser.parse_args()
    document, all_figures = DOCUMENT.read_text(encoding="utf-8"), {}
    for mode, section in SECTIONS.items():
        path = pathlib.Path(options.results) / f"{mode}.json"
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            all_figures[mode] = result["figures"]
            document = fill_in(document, mode, f"{section(result['figures'])}\n\n{origin(result)}")
            print(f"mode {mode}: written")
    DOCUMENT.write_text(document, encoding="utf-8")
    if all(mode in all_figures for mode in "abc"):
        table = summary(*(all_figures[mode] for mode in "abc"))
        README.write_text(fill_in(README.read_text(encoding="utf-8"), "summary", table), encoding="utf-8")
        print("README: written")


if __name__ == "__main__":
    main()
