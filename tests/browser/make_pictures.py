"""Makes the pictures of docs/ui.md and what ui/dev serves, from the real page. `make ui-pictures` runs it.
"""

import json
import re
import urllib.request

import pytest
from holdfast import QUICK_LEASES, indexed, job, runs
from localcluster import wait_for
from page import ROOT, serve
from queues import Queues, queue

CLUSTER = {"nodes": 3}
OPERATOR_LEASES = QUICK_LEASES
PICTURES, RECORDED = ROOT / "docs/pictures", ROOT / "ui/dev"

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture()
def namespace(cluster):
    """A name that people would give."""
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": "media"}})
    wait_for("the default service account", lambda: cluster.api(
        "GET", "/api/v1/namespaces/media/serviceaccounts/default")[0] == 200, 60)
    return "media"


def record(address, query):
    """The screen of the first event of this stream, and its time."""
    port, token = re.search(r":(\d+)/#token=(\w+)", address).groups()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/events?{query}",
                                     headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                return event["screen"], event["now"]
    raise AssertionError("no event")


def test_pictures(cluster, namespace, jobs, open_page):
    Queues(cluster, namespace).apply(queue("night", concurrency=2))
    fails = {"annotations": runs(2, 1), "retryBackoff": {"initialSeconds": 2, "maxSeconds": 300, "jitterPercent": 0}}
    jobs.apply(job("film-17", **fails, backoffLimit=6, description="the trailer, in 4K"))
    jobs.apply(job("nightly", annotations=runs(1, 1), backoffLimit=0))
    jobs.apply(job("train", pod={"nodeSelector": {"gpu": "a100"}}, startDeadlineSeconds=600))
    jobs.apply(job("encode-1", annotations=runs(900), queue={"name": "night"}))
    jobs.apply(job("encode-2", annotations=runs(900), queue={"name": "night"}))
    for number in range(3, 7):
        jobs.apply(job(f"encode-{number}", queue={"name": "night", "priority": number}))
    jobs.apply(indexed("scan", 400, 20, annotations=runs(4)))
    wait_for("some attempts to fail", lambda: jobs.get("film-17")["status"].get("failures", 0) >= 3, 120)
    wait_for("some runs to end", lambda: jobs.get("scan")["status"].get("succeeded", 0) >= 150, 120)
    with serve(cluster.kubeconfig, "-n", namespace) as (address, _):
        page = open_page(address, width=1100, height=760)
        for screen, heading in (("needs", "Needs you"), ("jobs", "Jobs"), ("queues", "Queues"),
                                ("operator", "Operator")):
            page.page.evaluate(f"location.hash = '#/{screen}'")
            page.page.wait_for_selector(f"h1:has-text('{heading}')")
            page.page.wait_for_timeout(1500)
            page.page.screenshot(path=PICTURES / f"ui-{screen}.png")
        for name in ("film-17", "scan"):
            page.page.evaluate(f"location.hash = '#/job?ns=media&name={name}'")
            page.page.wait_for_selector("dl")
            page.page.wait_for_timeout(1500)
            page.page.screenshot(path=PICTURES / f"ui-job-{name}.png")
        for screen in ("needs", "jobs", "queues", "pools", "operator", "job"):
            query = f"screen={screen}" + ("&ns=media&name=film-17" if screen == "job" else "")
            recorded, now = record(address, query)
            (RECORDED / f"{screen}.json").write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
            (RECORDED / "now.json").write_text(json.dumps(now) + "\n", encoding="utf-8")
        assert page.complaints == []
