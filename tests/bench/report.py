#!/usr/bin/python3
"""Makes the tables and plots of docs/internals/performance.md from build/bench/results.

    tests/bench/report.py [--results build/bench/results]

It writes only between `<!-- bench:MODE -->` and `<!-- /bench:MODE -->`. A mode without results keeps what the document
has. Modes h and w have a place for each of their parts (`bench:h-large`, `bench:w-start`). The table on top needs
results of a, b and c.
"""

import argparse
import functools
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/bench")]

import svg  # noqa: E402

DOCUMENT = ROOT / "docs/internals/performance.md"
PLOTS = ROOT / "docs/internals/performance"
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
    measured = (("jobs_per_second", "jobs/s", 1), ("cpu_ms_per_job", "controller's CPU per job (ms)", 2),
                ("server_cpu_ms_per_job", "CPU of API server and etcd per job (ms)", 1),
                ("writes_per_job", "controller's API writes per job, with Events", 2),
                ("memory_peak_mib", "controller's peak memory (MiB)", 0))
    lines = [(label, *(spread(values(column, key), digits) for column in (durable, batch, slow)),
              ratio(durable, batch, key), ratio(durable, slow, key)) for key, label, digits in measured]
    realistic = [figures.get(f"{side}_realistic", []) for side in ("durable", "batch")]
    more = [rows((f"{realistic[0][0]['jobs']:,} jobs at once, realistic template", OURS, "batch/v1 unthrottled",
                  "Holdfast / unthrottled"),
                 *((label, *(spread(values(column, key), digits) for column in realistic), ratio(*realistic, key))
                   for key, label, digits in measured))] if all(realistic) else []
    groups = {"unthrottled": {OURS: triple(values(durable, "jobs_per_second")),
                              THEIRS: triple(values(batch, "jobs_per_second"))}}
    if slow:
        groups["batch/v1 with defaults"] = {OURS: triple(values(durable, "jobs_per_second")),
                                            THEIRS: triple(values(slow, "jobs_per_second"))}
    return "\n\n".join([
        rows((f"{durable[0]['jobs']:,} jobs at once", OURS, "batch/v1 unthrottled", with_defaults(slow),
              "Holdfast / unthrottled", "Holdfast / defaults"), *lines),
        *more,
        plot("at-once", svg.bars("Jobs that end at once", "jobs/s", groups), "jobs per second")])


def mode_b(figures):
    head = ("", "median (ms)", "95 %", "99 %", "max")
    keys = ("median_ms", "p95_ms", "p99_ms", "max_ms")
    names = {"create_to_pod": "from the job's creation to its pod's",
             "end_to_outcome": "from the pod's end to its recorded outcome"}
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
        rows(("after a start, at rest", "memory (MiB)", "peak memory (MiB)", "CPU (% of a core)",
              "CPU per further job (ms)"), *lines),
        plot("memory", svg.lines("Memory at rest", "MiB", "finished jobs", series), "memory by finished jobs")])


def mode_d(figures):
    return rows((f"with {figures['finished']:,} finished jobs", "seconds"),
                ("from the start of a process to its first recorded decision", spread(figures["restart"], 2)),
                ("from a clean stop until the other replica has all shards", spread(figures["take_over_clean"], 2)),
                ("from a kill until the other replica has all shards", spread(figures["take_over_killed"], 2)))


def mode_e(figures):
    reached = values(figures["durable"], "jobs_per_second")
    writes = statistics.median(values(figures["durable"], "writes_per_job"))
    whole, small = statistics.median(figures["whole_lives"]), statistics.median(figures["small_writes"])
    median = statistics.median(reached)
    return rows(("pods end as soon as they exist", ""),
                ("small objects that the API server creates per second", spread(figures["small_writes"], 0)),
                ("jobs per second whose writes the API server takes", spread(figures["whole_lives"])),
                ("jobs per second that Holdfast ends", spread(reached)),
                ("Holdfast's share of that limit", f"{100 * median / whole:.0f} %"),
                ("Holdfast's writes per job", f"{writes:.2f}"),
                ("Holdfast's writes per second, as a share of the small objects",
                 f"{100 * median * writes / small:.0f} %"))


def mode_f(figures):
    groups = {f"{count} replica{'s' * (count != '1')}": {OURS: triple(values(rounds, "jobs_per_second"))}
              for count, rounds in figures.items()}
    return "\n\n".join([
        rows(("replicas", "jobs/s", "CPU per job, all replicas (ms)", "memory of the largest (MiB)"),
             *((count, spread(values(rounds, "jobs_per_second")), spread(values(rounds, "cpu_ms_per_job"), 2),
                spread(values(rounds, "memory_peak_mib"), 0)) for count, rounds in figures.items())),
        plot("replicas", svg.bars("Replicas", "jobs/s", groups), "jobs per second by replicas")])


def mode_g(figures):
    this, beside = figures["this"], figures.get("beside")
    lines = [(kind, one["cpu_ms"], this["realistic"].get(kind, {}).get("cpu_ms", ""), f"{one['allocated_kb']:,}",
              f"{this['realistic'].get(kind, {}).get('allocated_kb', 0):,}" if kind in this["realistic"] else "")
             for kind, one in this["tiny"].items()]
    tables = [rows(("one write", "CPU (ms), tiny template", "realistic", "allocated (KB), tiny", "realistic"), *lines)]
    if beside:
        share = lambda kind, shape, key: f"{this[shape][kind][key] / beside[shape][kind][key]:.2f}"
        tables.append(rows(
            (f"this CRD to that of {figures['revision']}", "CPU, tiny template", "realistic", "allocated, tiny",
             "realistic"),
            *((kind, *(share(kind, shape, key) for key in ("cpu_ms", "allocated_kb")
                       for shape in ("tiny", "realistic"))) for kind in beside["tiny"])))
    return "\n\n".join(tables)


def _many(counts):
    return rows(("finished jobs", "start (s)", "return after a cut (s)", "memory (MiB)", "peak of the start (MiB)",
                 "peak of start and returns (MiB)"),
                *((f"{int(count):,}", one["start"], spread(one["returns"], 2), one["memory_mib"],
                   one["peak_of_start_mib"], one["peak_of_returns_mib"]) for count, one in counts.items()))


def _large(cases):
    """Of several replicas each figure is the worst one's; memory is each one's."""
    heads = ["{finished:,} finished, {running:,} running, replicas: {replicas}".format(**one) for one in cases]

    def shown(key):
        each = lambda value: ", ".join(f"{one:.0f}" for one in sorted(value, reverse=True))
        show = each if key.endswith("_mib") else lambda value: max(value, default="")
        return [show(one[key]) if isinstance(one[key], list) else one[key] for one in cases]

    measured = (("from the start of a process until all is listed (s)", "listed"), ("CPU until then (s)", "listed_cpu"),
                ("until each running job was looked at (s)", "start"), ("CPU until then (s)", "start_cpu"),
                ("peak memory of the start (MiB)", "peak_mib"), ("memory at rest (MiB)", "settled_mib"),
                ("memory after a walk over the finished jobs (MiB)", "walked_mib"),
                ("the walk (s)", "walks"), ("of it the server's lists (s)", "walks_lists"),
                ("CPU after the start, with the walk (% of a core)", "later_percent"),
                ("lists of the start, all replicas (MiB)", "start_sent_mib"),
                ("all lists, all replicas (MiB)", "sent_mib"),
                ("writes other than of its own Leases", "writes"), ("times that a replica stopped acting", "lapses"),
                ("the server's CPU in the start (s)", "server_start_cpu"),
                ("the server's CPU later (% of a core)", "server_later_percent"))
    return rows(("", *heads), *((label, *shown(key)) for label, key in measured))


def mode_h(figures):
    """A place for each part that was measured."""
    parts = {"h": (figures["many"], _many), "h-large": (figures["large"], _large)}
    return {place: table(part) for place, (part, table) in parts.items() if part}


def mode_i(figures):
    measured = (("runs_per_second", "runs/s", 1), ("cpu_ms_per_run", "controller's CPU per run (ms)", 2),
                ("server_cpu_ms_per_run", "CPU of API server and etcd per run (ms)", 1),
                ("writes_per_run", "controller's API writes per run, with Events", 2),
                ("memory_peak_mib", "controller's peak memory (MiB)", 0))
    tables = []
    for case, sides in figures.items():
        ours, theirs = sides["durable"], sides.get("batch", [])
        head = (case, OURS, *(("batch/v1 unthrottled", "Holdfast / unthrottled") if theirs else ()))
        tables.append(rows(head, *(
            (label, spread(values(ours, key), digits),
             *((spread(values(theirs, key), digits), ratio(ours, theirs, key)) if theirs else ()))
            for key, label, digits in measured)))
    return "\n\n".join(tables)


def mode_l(figures):
    lane, durable, batch = (figures[key] for key in ("lane", "durable", "batch"))
    measured = (("jobs_per_second", "jobs/s", 1), ("cpu_ms_per_job", "controller's CPU per job (ms)", 2),
                ("server_cpu_ms_per_job", "CPU of API server and etcd per job (ms)", 1),
                ("writes_per_job", "controller's API writes per job, with Events", 2))
    return rows((f"{lane[0]['jobs']:,} jobs at once", "batch/v1 Jobs that Holdfast runs", "DurableJobs",
                 "batch/v1 unthrottled", "Holdfast's / batch/v1"),
                *((label, *(spread(values(column, key), digits) for column in (lane, durable, batch)),
                   ratio(lane, batch, key)) for key, label, digits in measured))


def mode_q(figures):
    queued, without = figures["queued"], figures["without"]
    measured = (("jobs_per_second", "jobs/s", 1), ("cpu_ms_per_job", "controller's CPU per job (ms)", 2),
                ("server_cpu_ms_per_job", "CPU of API server and etcd per job (ms)", 1),
                ("writes_per_job", "controller's API writes per job, with Events", 2),
                ("memory_peak_mib", "controller's peak memory (MiB)", 0))
    by_round = lambda key: [ours / theirs for ours, theirs in zip(values(queued, key), values(without, key))]
    keys = ("median_ms", "p95_ms", "p99_ms", "max_ms")
    return "\n\n".join([
        rows((f"{queued[0]['jobs']:,} jobs, {figures['outstanding']} at once", "with a queue", "without",
              "with / without, by round"),
             *((label, spread(values(queued, key), digits), spread(values(without, key), digits),
                spread(by_round(key), 2)) for key, label, digits in measured)),
        rows((f"one job at a time, {figures['next_start']['samples']} samples", "median (ms)", "95 %", "99 %", "max"),
             ("from a job's recorded end to the next job's pod", *(figures["next_start"][key] for key in keys)))])


def mode_j(figures):
    lines = [(label, one["memory_mib"], one.get("kib_per_job", ""), one["cpu_percent"], one["other_writes"],
              one["lease_writes"]) for label, one in (
        ("without jobs, after a start", figures["without"]), ("as the jobs came", figures["came"]),
        ("with the jobs, after a start", figures["restarted"]))]
    return rows((f"{figures['jobs']:,} jobs wait in {figures['queues']} queues", "memory (MiB)",
                 "per waiting job (KiB)", "CPU (% of a core)", f"API writes in {figures['seconds']} s",
                 "renewals of Leases"), *lines)


QUANTILES = {"median": "median_ms", "95 %": "p95_ms", "99 %": "p99_ms", "max": "max_ms"}


def _warm_starts(figures):
    started = {"warm worker": ("job of a pool, to its command's first line", figures["start_warm"]),
               "pod": ("job with a pod, until the pod is bound to a node", figures["start_durable"]),
               "batch/v1": ("batch/v1 Job, until the pod is bound to a node", figures["start_batch"])}
    groups = {label: {name: triple(values(rounds, QUANTILES[label])) for name, (_, rounds) in started.items()}
              for label in ("median", "99 %")}
    return "\n\n".join([
        rows((f"created to started (ms), {figures['rate']} jobs/s", *QUANTILES),
             *((label, *(spread(values(rounds, key)) for key in QUANTILES.values()))
               for label, rounds in started.values())),
        plot("warm-start", svg.bars("From creation to start", "ms", groups), "milliseconds from creation to start")])


def _warm_burst(figures, pool):
    warm, pods, batch = (figures[key] for key in ("burst", "durable", "batch"))
    # (label, key of a pool's jobs, key of the others, digits)
    measured = (("jobs/s", "per_second", "jobs_per_second", 1),
                ("CPU of API server and etcd per job (ms)", "server_cpu_ms", "server_cpu_ms_per_job", 1),
                ("controller's CPU per job (ms)", "operator_cpu_ms", "cpu_ms_per_job", 2),
                ("CPU of agents and commands per job (ms)", "agents_cpu_ms", None, 1),
                ("API writes per job, of controller and agents", "writes_each", "writes_per_job", 2))

    def line(label, key, theirs, digits):
        others = [spread(values(one, theirs), digits) for one in (pods, batch)] if theirs else ["", ""]
        against = statistics.median(values(warm, key)) / statistics.median(values(batch, theirs)) if theirs else None
        return (label, spread(values(warm, key), digits), *others, f"{against:.2f}" if theirs else "")

    return rows((f"jobs at once, {pool}", f"warm ({warm[0]['count']:,} jobs)", f"pods ({pods[0]['jobs']:,} jobs)",
                 f"batch/v1 unthrottled ({batch[0]['jobs']:,} jobs)", "warm / batch/v1"),
                *(line(*one) for one in measured))


def _warm_runs(figures, pool):
    runs = [figures["no_op_runs"], figures["runs"]]
    measured = (("runs/s", "per_second", 1), ("API writes per run, of operator and agents", "writes_each", 3),
                ("status writes of the job", "status_writes", 0), ("API server's CPU per run (ms)", "api_server_cpu_ms", 2),
                ("etcd's CPU per run (ms)", "etcd_cpu_ms", 2), ("operator's CPU per run (ms)", "operator_cpu_ms", 2),
                ("CPU of agents and commands per run (ms)", "agents_cpu_ms", 2))
    return rows((f"one Indexed job of {runs[0]['count']:,} runs, {pool}", "`--no-op`", "a process for each run"),
                *((label, *(f"{one[key]:,.{digits}f}" for one in runs)) for label, key, digits in measured))


def _warm_rest(rest):
    parts = ("api_server", "etcd", "operator", "agents")
    sides = {"no workers": rest["without"], f"{rest['workers']} workers with {rest['slots']} slots": rest["with"]}
    return rows(("at rest, % of a core", "API server", "etcd", "operator", "all agents", "operator's memory (MiB)"),
                *((label, *(f"{100 * one[part]:.1f}" for part in parts), one["memory_mib"])
                  for label, one in sides.items()))


def mode_w(figures):
    """A place for each part, of those that were measured."""
    pool = "{} workers with {} slots".format(*figures["pool"])
    parts = {"w-start": ("start_warm", lambda: _warm_starts(figures)),
             "w-burst": ("burst", lambda: _warm_burst(figures, pool)),
             "w-runs": ("no_op_runs", lambda: _warm_runs(figures, pool)),
             "w-rest": ("rest", lambda: _warm_rest(figures["rest"]))}
    return {place: text() for place, (key, text) in parts.items() if key in figures}


SIDES_OF_CLAIMS = {
    "claims": "claims", "claims-later": "claims, refilled later", "workers": "jobs, a worker each",
    "slots": "jobs, {slots} slots a worker"}


def mode_s(figures):
    sides = {name: rounds for name, rounds in figures["sides"].items() if rounds}
    heads = [SIDES_OF_CLAIMS[name].format(**rounds[0]) for name, rounds in sides.items()]
    part = lambda rounds, *keys: [functools.reduce(lambda found, key: found[key], keys, one) for one in rounds]
    shares = lambda rounds: [100 * (one["rest"]["api_server"] + one["rest"]["etcd"]) for one in rounds]

    def line(label, digits, *keys):
        return (label, *(spread(part(rounds, *keys), digits) for rounds in sides.values()))

    starts = [line(f"{what}, {label}", 0, key, quantile) for key, what in (
        ("to_start", "created to started"), ("to_place", "created to its place on record"))
        for label, quantile in (("median", "median_ms"), ("99 %", "p99_ms"))]
    costs = [line(f"{label}, until {until}", digits, key, name)
             for name, label, digits in (
                 ("writes_each", "API writes each", 2), ("refill_writes_each", "of them for the pool", 2),
                 ("server_cpu_ms", "CPU of API server and etcd each (ms)", 1),
                 ("operator_cpu_ms", "controller's CPU each (ms)", 2),
                 ("agents_cpu_ms", "CPU of agents and commands each (ms)", 1))
             for key, until in (("started", "started"), ("quiet", "quiet"))]
    costs += [line(f"{label}, until quiet, beyond rest", digits, "beyond_rest", name)
              for name, label, digits in (("writes_each", "API writes each", 2),
                                          ("server_cpu_ms", "CPU of API server and etcd each (ms)", 1))]
    count = next(iter(sides.values()))[0]["count"]
    return "\n\n".join([
        rows((f"{count:,} at once, {count:,} ready places; ms", *heads), *starts,
             line("first created to last created (s)", 1, "seconds_to_create"),
             line("first created to last started (s)", 1, "seconds_to_start_all")),
        rows((f"what {count:,} at once cost", *heads), *costs,
             ("API server and etcd before, all at rest (% of a core)",
              *(spread(shares(rounds), 1) for rounds in sides.values())),
             line("API writes a second before, all at rest", 1, "rest", "writes_per_second"),
             line("seconds until quiet", 0, "seconds"),
             ("claims that got a sandbox of the pool", *(spread(values(rounds, "from_the_pool"), 0)
                                                         for rounds in sides.values())),
             line("controller's memory afterwards (MiB)", 0, "memory_mib")),
        f"agent-sandbox {figures['version']}. Each side is measured for {figures['window']} s at least."])


SECTIONS = {"a": mode_a, "b": mode_b, "c": mode_c, "d": mode_d, "e": mode_e, "f": mode_f, "g": mode_g,
            "h": mode_h, "i": mode_i, "l": mode_l, "q": mode_q, "j": mode_j, "w": mode_w, "s": mode_s}


def origin(result, place):
    about = result["machine"]
    shape = "Realistic template. " if result.get("template") == "realistic" else ""
    server, nodes = f"Kubernetes {about['kubernetes']}", f"{result['nodes']} simulated nodes"
    if place == "h-large":
        shape, server = "", "`tests/support/many_objects.py` as the API server"
        nodes = f"{result['figures']['large'][0]['nodes']:,} nodes that renew their Leases"
    return (f"{shape}Measured {about['date']}: Holdfast {about['holdfast']}, {server}, "
            f"{about['cores']} cores ({about['cpu']}), {about['memory']}; {nodes}. "
            f"Load of the machine before: {about['load']}.")


def fill_in(document, place, text):
    marked = re.compile(rf"(<!-- bench:{place} -->\n).*?(<!-- /bench:{place} -->)", re.DOTALL)
    if not marked.search(document):
        sys.exit(f"report: there is no place for {place}")
    return marked.sub(lambda found: f"{found[1]}{text}\n{found[2]}", document)


def summary(a, b, c):
    """The table on top of the document."""
    durable, batch, slow = (a[key] for key in ("durable", "batch", "batch_defaults"))

    def line(label, key, digits, unit, columns=(durable, batch, slow)):
        return (label, *(f"{statistics.median(values(column, key)):.{digits}f}{unit}" if column else ""
                         for column in columns))

    count = max(set(c["durable"]) & set(c["batch"]), key=int)
    reaction = {key: f"{b[key]['median_ms']:.0f} ms, {b[key]['p99_ms']:.0f} ms" for key in ("create_to_pod", "end_to_outcome")}
    table = rows(
        ("", OURS, "batch/v1 unthrottled", with_defaults(slow).removeprefix("batch/v1 ")),
        line(f"{durable[0]['jobs']:,} jobs at once", "jobs_per_second", 1, " jobs/s"),
        line("the same, realistic template", "jobs_per_second", 1, " jobs/s",
             (a["durable_realistic"], a["batch_realistic"], [])),
        line("controller's CPU per job", "cpu_ms_per_job", 1, " ms"),
        line("controller's API writes per job, with Events", "writes_per_job", 1, ""),
        line("CPU of API server and etcd per job", "server_cpu_ms_per_job", 0, " ms"),
        ("controller's memory after a start",
         f"{c['durable'][count]['memory_mib']:.0f} MiB", f"{c['batch'][count]['memory_mib']:.0f} MiB", ""),
        ("from the job's creation to its pod's", reaction["create_to_pod"], "not measured", ""),
        ("from the pod's end to its recorded outcome", reaction["end_to_outcome"], "not measured", ""))
    return (f"{table}\n\nThe memory is with {int(count):,} finished jobs. The last two rows are median and 99 %, with "
            f"{b['finished']:,} finished\nand {b['running']:,} running jobs.")


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
            texts = section(result["figures"])
            for place, text in (texts if isinstance(texts, dict) else {mode: texts}).items():
                document = fill_in(document, place, f"{text}\n\n{origin(result, place)}")
            print(f"mode {mode}: written")
    if all(mode in all_figures for mode in "abc"):
        document = fill_in(document, "summary", summary(*(all_figures[mode] for mode in "abc")))
        print("the table on top: written")
    DOCUMENT.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()
