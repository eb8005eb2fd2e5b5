"""The page, while a real node dies: it tells it live, without a reload. HOLDFAST_PICTURES=1 also makes the row of
pictures of docs/ui.md."""

import os
import sys

import pytest
from conftest import ROOT

from localcluster import wait_for
from real_jobs import end_of, shell_job, sleeps

sys.path.append(str(ROOT / "tests/browser"))
from page import watched  # noqa: E402

PATIENT = 60


@pytest.fixture()
def page(cluster, namespace):
    with watched(cluster.kubeconfig, "-n", namespace) as page:
        page.page.get_by_text("No job needs a person").wait_for()
        yield page


def picture(page, number):
    if os.environ.get("HOLDFAST_PICTURES"):
        page.page.screenshot(path=ROOT / f"docs/pictures/ui-live-{number}.png")


def says(page, text, seconds=30):
    """The first sentence of the page says it, by itself."""
    page.page.locator(".sentence", has_text=text).wait_for(timeout=1000 * seconds)


def test_a_node_dies_and_the_page_tells_it_live(cluster, nodes, namespace, jobs, page):
    jobs.apply(shell_job(cluster, "survivor", sleeps(40), lostAfterSeconds=PATIENT))
    pod = jobs.wait_running("survivor", limit=60)
    page.page.get_by_role("link", name="Jobs", exact=True).click()
    page.page.get_by_role("link", name=f"{namespace}/survivor").click()
    says(page, "its pod runs")
    picture(page, 1)
    with cluster.lost(pod["spec"]["nodeName"], "kill", "start"):
        says(page, "does not renew its Lease", PATIENT)
        page.page.locator(".bounds", has_text="lost (lostAfterSeconds)").wait_for()
        picture(page, 2)
        page.page.get_by_text("2 running").first.wait_for(state="attached", timeout=1000 * (PATIENT + 60))
        page.page.get_by_text("1 Lost").first.wait_for(state="attached")
        says(page, "its pod runs")
        picture(page, 3)
        assert end_of(jobs, "survivor")["phase"] == "Succeeded"
        says(page, "Succeeded")
        picture(page, 4)
    wait_for("the page to be current", lambda: not page.page.locator(".trouble").count(), 30)
