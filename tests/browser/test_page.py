"""Each screen, as people use it: read, filter, walk by keyboard, act."""

import os
import pathlib
import stat
import subprocess

import pytest
from holdfast import QUICK_LEASES, indexed, job, runs
from localcluster import wait_for
from page import serve
from plugin import Plugin
from queues import Queues, queue

CLUSTER = {"nodes": 3}
OPERATOR_LEASES = QUICK_LEASES
LIMIT = 60

pytestmark = pytest.mark.usefixtures("operator")
SCREENS = ("Needs you", "Jobs", "Queues", "Pools", "Operator")
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture()
def address(cluster, namespace):
    with serve(cluster.kubeconfig, "-n", namespace) as (address, _):
        yield address


@pytest.fixture()
def page(address, open_page):
    """The page on its first screen; in the end it has complained of nothing."""
    watched = open_page(address)
    watched.page.wait_for_selector("h1")
    yield watched
    assert watched.complaints == []


def wait_phase(jobs, name, *phases):
    wait_for(f"{name} to be {phases}", lambda: jobs.get(name).get("status", {}).get("phase") in phases, LIMIT)


def screen(page, name):
    page.page.get_by_role("navigation", name="Screens").get_by_role("link", name=name, exact=True).click()
    page.page.wait_for_selector(f"h1:has-text('{name}')")


def open_job(page, name):
    screen(page, "Jobs")
    page.page.get_by_role("link", name=name).first.click()
    page.page.wait_for_selector("dl")


def fill_with_jobs(jobs, cluster, namespace):
    """One of each kind that the screens tell apart."""
    Queues(cluster, namespace).apply(queue("night", concurrency=1, hold=True))
    jobs.apply(job("fails", annotations=runs(0, 1), backoffLimit=0))
    jobs.apply(job("stays", annotations=runs(600)))
    jobs.apply(job("waits", queue={"name": "night"}))
    jobs.apply(job("nowhere", pod={"nodeSelector": {"no": "such"}}, startDeadlineSeconds=600))
    jobs.apply(indexed("many", 60, 10, annotations=runs(1)))
    wait_phase(jobs, "fails", "Failed")
    wait_phase(jobs, "stays", "Running")
    wait_phase(jobs, "many", "Running", "Succeeded")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_screen_keeps_wcag(cluster, namespace, jobs, address, open_page, scheme):
    fill_with_jobs(jobs, cluster, namespace)
    page = open_page(address, color_scheme=scheme)
    for name in SCREENS:
        screen(page, name)
        page.page.get_by_text("Reading the").wait_for(state="hidden")
        assert page.axe() == [], name
    for name in ("fails", "many", "nowhere"):
        open_job(page, name)
        assert page.axe() == [], name
    page.page.get_by_role("button", name="Cancel").click()
    page.page.wait_for_selector("dialog[open]")
    assert page.axe() == [], "dialog"
    assert page.complaints == []


def test_no_screen_scrolls_sideways_at_320_pixels(cluster, namespace, jobs, address, open_page):
    fill_with_jobs(jobs, cluster, namespace)
    page = open_page(address, width=320, height=640)
    for name in (*SCREENS, "fails", "many"):
        if name in SCREENS:
            screen(page, name)
        else:
            open_job(page, name)
        page.page.wait_for_timeout(300)
        width = page.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 320, name


def test_what_needs_a_person_stands_first_and_says_what_to_do(jobs, page):
    jobs.apply(job("fails", annotations=runs(0, 1), backoffLimit=0))
    cause = page.page.locator(".cause")
    cause.wait_for()
    text = cause.inner_text()
    assert "1 job: more attempts failed than backoffLimit forgives" in text
    assert "Read the log. If the cause was outside" in text
    cause.get_by_role("link", name="fails").click()
    page.page.wait_for_selector(".sentence")
    assert "more attempts failed than backoffLimit forgives" in page.page.locator(".sentence").inner_text()


def test_a_change_shows_without_a_reload(jobs, page):
    jobs.apply(job("train", annotations=runs(600)))
    open_job(page, "train")
    page.page.wait_for_selector("text=its pod runs")
    jobs.patch("train", suspend=True)
    page.page.wait_for_selector("dd:has-text('Suspended')")


def test_the_address_holds_the_filter_and_filters_all(jobs, page, address, open_page):
    for number in range(12):
        jobs.apply(job(f"film-{number}", annotations=runs(600), labels=None))
    jobs.apply(job("other"))
    screen(page, "Jobs")
    page.page.get_by_role("searchbox").fill("film phase:Running")
    page.page.wait_for_selector("text=12 of 13 jobs")
    assert "filter=film" in page.page.url
    assert "token" not in page.page.url
    page.page.reload()
    page.page.wait_for_selector("text=12 of 13 jobs")
    page.page.get_by_role("searchbox").fill("phse:Running")
    page.page.wait_for_selector("[role=alert]:has-text('phse:Running')")
    page.complaints.clear()  # the browser reports the refused request


def test_a_walk_by_keyboard_alone(jobs, page):
    for name in ("a", "b", "c"):
        jobs.apply(job(name, annotations=runs(600)))
    keys = page.page.keyboard
    keys.press("/")  # to the table, and into the filter
    page.page.wait_for_selector("h1:has-text('Jobs')")
    page.page.wait_for_selector("text=3 of 3 jobs")
    keys.type("ns:")
    assert page.page.get_by_role("searchbox").input_value() == "ns:"
    keys.press("Escape")
    assert page.page.evaluate("document.activeElement.id") != "filter"
    page.page.get_by_role("searchbox").fill("")
    page.page.wait_for_selector("text=3 of 3 jobs")
    keys.press("Escape")
    keys.press("j")  # into the table
    keys.press("j")
    keys.press("Enter")
    page.page.wait_for_selector("dl")
    assert page.page.locator("h1").inner_text().endswith("/b")
    keys.press("Escape")
    page.page.wait_for_selector("h1:has-text('Jobs')")
    page.complaints.clear()  # "ns:" alone is refused, which the browser reports


def test_the_cursor_stays_on_its_job_when_the_order_changes(jobs, page):
    for name in ("a", "c"):
        jobs.apply(job(name, annotations=runs(600)))
    page.page.get_by_role("link", name="Jobs", exact=True).click()
    page.page.get_by_role("button", name="Job", exact=True).click()
    page.page.wait_for_selector("text=2 of 2 jobs")
    page.page.get_by_role("grid").focus()
    page.page.keyboard.press("j")
    page.page.wait_for_selector(".row.cursor:has-text('/c')")
    jobs.apply(job("b", annotations=runs(600)))
    page.page.wait_for_selector("text=3 of 3 jobs")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("dl")
    assert page.page.locator("h1").inner_text().endswith("/c")


def test_an_action_goes_to_the_chosen_uids_alone(jobs, page):
    for name in ("a", "b", "c"):
        jobs.apply(job(name, annotations=runs(600)))
        wait_phase(jobs, name, "Running")
    screen(page, "Jobs")
    page.page.wait_for_selector("text=3 of 3 jobs")
    page.page.get_by_role("checkbox", name="/a").check()
    page.page.get_by_role("checkbox", name="/b").check()
    page.page.get_by_role("button", name="Suspend").click()
    dialog = page.page.get_by_role("dialog")
    dialog.wait_for()
    assert "2 jobs" in dialog.inner_text()
    dialog.get_by_text("The commands that do the same").click()
    dialog.locator("code", has_text="kubectl holdfast suspend a").wait_for()
    # Meanwhile somebody deletes one and makes another of its name.
    jobs.delete("a")
    wait_for("a to be gone", lambda: not any(one["metadata"]["name"] == "a" for one in jobs.list()), LIMIT)
    jobs.apply(job("a", annotations=runs(600)))
    dialog.get_by_role("button", name="Suspend 2 jobs").click()
    dialog.get_by_text("another one has its name").wait_for()
    wait_phase(jobs, "b", "Suspended")
    assert not jobs.get("a")["spec"].get("suspend")
    assert not jobs.get("c")["spec"].get("suspend")


def test_names_and_last_words_are_text(jobs, page):
    said = job("fails", command=("sh", "-c", "exit 1"), annotations=runs(0, 1), backoffLimit=0,
               description=MARKUP)
    jobs.apply(said)
    wait_phase(jobs, "fails", "Failed")
    open_job(page, "fails")
    page.page.wait_for_selector(f"dd:has-text('{MARKUP}')")
    assert page.page.locator("img").count() == 0


def test_a_right_that_is_missing_is_said(cluster, namespace, jobs, open_page):
    jobs.apply(job("train", annotations=runs(600)))
    for verb in ("get", "list", "watch"):
        cluster.kubectl("create", "role", f"see-{verb}", "-n", namespace, f"--verb={verb}",
                        "--resource=durablejobs.holdfast.dev")
        cluster.kubectl("create", "rolebinding", f"see-{verb}", "-n", namespace, f"--role=see-{verb}",
                        "--user=reader")
    with serve(cluster.kubeconfig_for("reader"), "-n", namespace) as (address, _):
        page = open_page(address)
        open_job(page, "train")
        page.page.wait_for_selector("text=You may not")
        assert page.page.get_by_role("button", name="Cancel").is_disabled()


def test_two_browsers_see_the_same(jobs, address, open_page):
    first, second = open_page(address), open_page(address)
    for page in (first, second):
        screen(page, "Jobs")
    jobs.apply(job("train", annotations=runs(600)))
    for page in (first, second):
        page.page.get_by_role("link", name="train").wait_for()


def test_the_licences_of_its_libraries_are_there(page):
    screen(page, "Operator")
    with page.page.expect_popup() as opened:
        page.page.get_by_role("link", name="Licences").click()
    text = opened.value.inner_text("body")
    for library in ("@preact/signals ", "@preact/signals-core ", "@tanstack/virtual-core ", "preact "):
        assert f"\n{library}" in f"\n{text}", library
    assert text.count("Permission is hereby granted") == 4


def test_a_page_without_the_token_shows_nothing(jobs, address, open_page):
    jobs.apply(job("secret-name"))
    for wrong in (address.split("#")[0], address[:-4] + "0000"):
        page = open_page(wrong)
        page.page.wait_for_selector("text=/token/")
        assert "secret-name" not in page.page.content()


def test_another_user_of_the_machine_gets_nothing(cluster, namespace, jobs, tmp_path):
    jobs.apply(job("secret-name"))
    # A program in place of the one that opens browsers: it says what it was given.
    opener = tmp_path / "bin/xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\nprintf "%s" "$1" >{tmp_path}/given\n', encoding="utf-8")
    opener.chmod(0o755)
    with serve(cluster.kubeconfig, "-n", namespace, opens=True,
               env={"PATH": f"{opener.parent}:/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)}) as (address, process):
        # The shell makes the file before it has its text.
        given = tmp_path / "given"
        door = wait_for("the browser to be opened", lambda: given.exists() and given.read_text(encoding="utf-8"), LIMIT)
        door = pathlib.Path(door)
        assert address in door.read_text(encoding="utf-8")
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        token = address.split("token=")[1]
        assert token not in pathlib.Path(f"/proc/{process.pid}/cmdline").read_text(encoding="utf-8")
        base = address.split("/#")[0]
        as_nobody = {"user": 65534} if os.geteuid() == 0 else {}
        for call in ("events?screen=jobs", f"yaml?ns={namespace}&name=secret-name", f"log?ns={namespace}&name=secret-name"):
            answer = subprocess.run(["curl", "-s", "-w", "%{http_code}", f"{base}/api/{call}"], capture_output=True,
                                    text=True, check=True, **as_nobody).stdout
            assert answer.endswith("401") and "secret-name" not in answer
    assert not door.exists()


def test_a_server_that_goes_away_is_said_with_the_time(cluster, namespace, jobs, open_page):
    jobs.apply(job("train", annotations=runs(600)))
    with serve(cluster.kubeconfig, "-n", namespace) as (address, process):
        page = open_page(address)
        screen(page, "Jobs")
        page.page.get_by_role("link", name="train").wait_for()
        process.terminate()
        process.wait(timeout=30)
        page.page.wait_for_selector(".trouble:has-text('As of')")
        assert "has ended" in page.page.locator(".trouble").inner_text()


def test_html_opens_from_a_file(cluster, namespace, jobs, tmp_path, open_page):
    jobs.apply(indexed("many", 60, 10, annotations=runs(1)))
    wait_phase(jobs, "many", "Succeeded")
    result = Plugin(cluster).within(namespace)("explain", "many", "-o", "html")
    assert result.code == 0, result.err
    file = tmp_path / "many.html"
    file.write_text(result.out, encoding="utf-8")
    page = open_page("about:blank")
    page.page.set_content(result.out)
    assert "60 of 60 done" in page.page.inner_text("main")
    assert page.axe() == []
