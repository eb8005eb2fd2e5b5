"""docs/hang.md: each block of YAML is applied, and each program runs below a real agent, with each way to report. It
reports, it stops, it is ended as Hung, and the next attempt does the work."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from agent import DURATION, PROGRESS, agent_binary, work  # noqa: F401
from holdfast import QUICK_LEASES, Jobs, Operator
from host_node import HOSTED
from host_worker import IMAGE, SOON, nodes  # noqa: F401
from lane import LANE, BatchJobs
from localcluster import wait_for
from resource_api import ROOT
from worker_examples import GO_BUILD

CLUSTER = {"nodes": 0, "kwok": False}
PAGE = ROOT / "docs/hang.md"
LIMIT = 120
# The least that the API takes.
HEARTBEAT = {"leaseDurationSeconds": DURATION, "progressDeadlineSeconds": DURATION}
KINDS = ["DurableJob", "Job", "CronJob"]
# By the name in the table of calls: the language, and how the line begins that touches the file.
LANGUAGES = {"sh": ("a shell", "touch "), "python": ("Python", "progress.touch"), "go": ("Go", "os.WriteFile")}
FILES = ["a", "b", "c", "d", "e"]
# A step that fits into the deadline, while all of them do not.
STEP = 2.5
# The command of the programs: the first attempt hangs in the third file.
ENCODE = """#!/bin/sh
case $HOLDFAST_ATTEMPT$1 in 1*/c) touch "$0.$HOLDFAST_JOB_NAME.hangs"; exec sleep 1000;; 1*) exit;; esac
exec sleep {step}
"""


def blocks():
    """[(heading, language, text)] of the page."""
    found, heading, text = [], "", PAGE.read_text()
    for part in re.findall(r"^#+ [^\n]*$|^```[^\n]+\n.*?^```$", text, re.MULTILINE | re.DOTALL):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        else:
            language, _, body = part[3:-3].partition("\n")
            found.append((heading, language.partition(",")[0], body))
    return found


def manifest(heading, kind):
    """The page says of a CronJob that reports: it has the Job's annotation in its jobTemplate."""
    if (heading, kind) == (REPORTED, "CronJob"):
        body, job = manifest(LIMITED, kind), manifest(REPORTED, "Job")
        body["metadata"]["name"] = "hang-cron"
        body["spec"]["jobTemplate"]["metadata"]["annotations"] = job["metadata"]["annotations"]
        body["spec"]["jobTemplate"]["spec"]["template"] = job["spec"]["template"]
        return body
    [body] = [body for body in (yaml.safe_load(text) for title, language, text in blocks()
                                if (title, language) == (heading, "yaml")) if body["kind"] == kind]
    return body


def program(heading, language):
    """The one that touches the file. Or the same with the line of the table that calls the agent in place of it."""
    [text] = [text for title, name, text in blocks() if (title, name) == (TOUCHES, language)]
    if heading == TOUCHES:
        return text
    name, begin = LANGUAGES[language]
    [call] = re.findall(rf"^\| {name} \| `(.*)` \|$", PAGE.read_text().partition(f"### {CALLS}\n")[2], re.MULTILINE)
    changed, count = re.subn(rf"^([ \t]*){re.escape(begin)}.*$", lambda line: line[1] + call, text, flags=re.MULTILINE)
    assert count == 1
    return changed.replace('\t"os"\n', "")


LIMITED, REPORTED = "A time limit for each attempt", "The fields"
TOUCHES, CALLS = "Report by touching a file", "Report by calling the agent"


def test_the_page_has_each_way_for_each_kind_and_in_each_language():
    yamls = [(heading, yaml.safe_load(text)["kind"]) for heading, language, text in blocks() if language == "yaml"]
    assert yamls == [*((LIMITED, kind) for kind in KINDS), (REPORTED, "DurableJob"), (REPORTED, "Job")]
    programs = [language for heading, language, _ in blocks() if heading == TOUCHES]
    assert programs == list(LANGUAGES)
    assert all(program(CALLS, language) != program(TOUCHES, language) for language in LANGUAGES)


def test_the_example_is_the_one_of_the_page():
    assert yaml.safe_load((ROOT / "examples/hang.yaml").read_text()) == manifest(REPORTED, "DurableJob")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heading", [LIMITED, REPORTED])
def test_a_block_is_accepted_as_it_is(cluster, heading, kind):
    result = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-",
                             input=yaml.safe_dump(manifest(heading, kind)))
    assert "Warning" not in result.stderr


# -- all of them at once, because each waits for its deadline --------------------------------------


@pytest.fixture(scope="module")
def operator(cluster, work, nodes):  # noqa: F811
    with Operator(cluster, f"--agent-image={IMAGE}", *LANE, leases=QUICK_LEASES) as operator:
        yield operator


@pytest.fixture(scope="module")
def jobs(cluster, work):  # noqa: F811
    return Jobs(cluster, work)


def pod_spec_of(body):
    spec = body["spec"]["jobTemplate"]["spec"] if body["kind"] == "CronJob" else body["spec"]
    return spec["template"]["spec"]


def shortened(body):
    """The same with the shortest deadlines, for the nodes that run processes."""
    pod_spec_of(body).update(HOSTED)
    if body["kind"] == "DurableJob":
        spec = body["spec"]
        spec["retryBackoff"] = SOON
        if "heartbeat" in spec:
            spec["heartbeat"] = HEARTBEAT
        else:
            spec["attemptDeadlineSeconds"] = 1
        return body
    holder = body["spec"]["jobTemplate"] if body["kind"] == "CronJob" else body
    annotations = holder["metadata"]["annotations"]
    [name] = annotations
    annotations[name] = "1" if name == "holdfast.dev/attemptDeadlineSeconds" else json.dumps(HEARTBEAT)
    return body


def apply(cluster, namespace, body):
    """The name of the DurableJob that it becomes."""
    name = body["metadata"]["name"]
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(body))
    if body["kind"] == "CronJob":  # it is not 6 o'clock
        cluster.kubectl("create", "job", "-n", namespace, f"--from=cronjob/{name}", f"{name}-now")
        return f"{name}-now"
    return name


def name_of(heading, language):
    return f"{'touches' if heading == TOUCHES else 'calls'}-{language}"


def command(heading, language, folder):
    """The page's program as the command of a container, with the files and the encoder of this test."""
    text = program(heading, language)
    for old, new in (("/videos", f"{folder}/videos"), (r"\bencode\b(?=[ \"])", f"{folder}/encode"),
                     ("/holdfast/agent", agent_binary())):
        text = re.sub(old, new, text)
    if language == "sh":
        return ["sh", "-c", text]
    if language == "python":
        return [sys.executable, "-c", text]
    source = folder / f"{name_of(heading, language)}.go"
    source.write_text(text)
    binary = source.with_suffix("")
    built = subprocess.run([*GO_BUILD, "-o", binary, source], cwd=folder, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return [str(binary)]


@pytest.fixture(scope="module")
def applied(cluster, work, operator, tmp_path_factory):  # noqa: F811
    """The YAML of the page and its programs, applied; the folder with the traces of the programs."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "videos").mkdir()
    for name in FILES:
        (folder / "videos" / name).touch()
    (folder / "encode").write_text(ENCODE.format(step=STEP))
    (folder / "encode").chmod(0o755)
    commands = {name_of(heading, language): command(heading, language, folder)
                for heading in (TOUCHES, CALLS) for language in LANGUAGES}
    touch = ["sh", "-c", program(TOUCHES, "sh").replace("touch", ": no report")]
    commands["silent"] = [touch[0], touch[1], re.sub("/videos/.*;", "a b c d e;", touch[2]).replace(
        'encode "$file"', f"sleep {STEP}")]
    for name, words in commands.items():
        body = shortened(manifest(REPORTED, "DurableJob"))
        body["metadata"]["name"] = name
        pod_spec_of(body)["containers"][0]["command"] = words
        apply(cluster, work, body)
    for heading in (LIMITED, REPORTED):
        for kind in KINDS:
            apply(cluster, work, shortened(manifest(heading, kind)))
    return folder


def first_end(jobs, name):
    """(outcome, reason) of its first attempt."""
    return tuple(jobs.wait(name, lambda status: status.get("history"), LIMIT, f"attempt 1 of {name} to end")[
        "history"][0][key] for key in ("outcome", "reason"))


def reports(jobs, name):
    """How many its Lease counts, as the page looks."""
    leases = jobs.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases?"
                             f"labelSelector=holdfast.dev/job-name={name}")["items"]
    return max((int(lease["metadata"]["annotations"].get(PROGRESS, "0")) for lease in leases), default=0)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("heading", [TOUCHES, CALLS])
def test_a_program_reports_and_is_ended_when_it_stops(jobs, applied, heading, language):
    name = name_of(heading, language)
    wait_for(f"{name} to hang", (applied / f"encode.{name}.hangs").exists, LIMIT)
    wait_for(f"the reports of {name}", lambda: reports(jobs, name) >= 1, LIMIT)
    assert first_end(jobs, name) == ("Hung", "NoProgress")
    # The second one needs longer than the deadline in all.
    status = jobs.wait_phase(name, "Succeeded", "Failed", limit=LIMIT)
    assert (status["phase"], status["attempt"], status["failures"]) == ("Succeeded", 2, 1), json.dumps(status)
    assert STEP * len(FILES) > DURATION
    if heading == CALLS:
        assert re.search(r"encoded .*/e$", status["history"][-1]["progress"])


def test_without_reports_a_healthy_program_is_ended_too(jobs, applied):
    assert first_end(jobs, "silent") == ("Hung", "NoProgress")


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_limit_ends_an_attempt(jobs, applied, kind):
    name = {"DurableJob": "limited", "Job": "limited-job", "CronJob": "limited-cron-now"}[kind]
    assert first_end(jobs, name)[0] == "DeadlineExceeded"


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_end_a_program_that_has_stopped(jobs, applied, kind):
    name = {"DurableJob": "hang", "Job": "hang-job", "CronJob": "hang-cron-now"}[kind]
    assert first_end(jobs, name) == ("Hung", "NoProgress")
    if kind == "DurableJob":
        assert jobs.wait_phase(name, "Succeeded", "Failed", limit=LIMIT)["phase"] == "Succeeded"
