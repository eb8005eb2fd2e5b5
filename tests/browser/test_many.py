"""100,000 finished jobs beside 2,000 that run, and an API server that goes away and comes back: on a server that only lists and watches."""

import time

import pytest
from many_objects import ManyObjects
from page import serve


@pytest.fixture()
def many():
    with ManyObjects(100_000, running=2_000) as server:
        yield server


def test_a_hundred_thousand_jobs(many, tmp_path, open_page):
    began = time.monotonic()
    with serve(many.kubeconfig(tmp_path), "-A") as (address, process):
        page = open_page(address + "")
        page.page.get_by_role("link", name="Jobs", exact=True).click()
        page.page.get_by_role("row").nth(5).wait_for()
        first = time.monotonic() - began
        # Rows are there before all jobs have been read.
        page.page.get_by_text("102000 of 102000 jobs").wait_for(timeout=120_000)
        whole = time.monotonic() - began
        page.page.get_by_text("The others are being read").wait_for(state="hidden")
        asked = time.monotonic()
        page.page.get_by_role("searchbox").fill("job-777")
        page.page.get_by_text("111 of 102000 jobs").wait_for()
        answered = time.monotonic() - asked
        # To the end of the list: the browser asks for that window alone.
        page.page.get_by_role("searchbox").fill("")
        page.page.get_by_text("102000 of 102000 jobs").wait_for()
        page.page.locator(".scroll").evaluate("box => box.scrollTo(0, box.scrollHeight)")
        page.page.locator("[aria-rowindex='102001'] a").wait_for()
        assert page.page.get_by_role("row").count() < 100
        heap = page.page.evaluate("performance.memory.usedJSHeapSize") / 2 ** 20
        assert heap < 150
        memory = next(int(line.split()[1]) / 1024 for line in open(f"/proc/{process.pid}/status") if "VmHWM" in line)
        assert memory < 150
        print(f"first rows {first:.1f} s, all {whole:.1f} s, a filter {1000 * answered:.0f} ms, "
              f"browser's heap {heap:.0f} MiB, plugin's peak {memory:.0f} MiB")
        assert page.complaints == []


def test_an_api_server_that_is_away_is_said_until_it_is_back(many, tmp_path, open_page):
    with serve(many.kubeconfig(tmp_path), "-A") as (address, _):
        page = open_page(address)
        page.page.get_by_role("link", name="Jobs", exact=True).click()
        page.page.get_by_text("102000 of 102000 jobs").wait_for(timeout=120_000)
        many.is_cut.set()
        page.page.wait_for_selector(".trouble:has-text('As of')")
        # What was known stays.
        assert page.page.get_by_role("row").count() > 5
        many.is_cut.clear()
        page.page.wait_for_selector(".trouble", state="detached", timeout=120_000)
        many.is_cut.set()
        for name in ("Needs you", "Queues", "Pools", "Operator"):
            page.page.get_by_role("link", name=name, exact=True).click()
            page.page.wait_for_selector(".trouble")


def test_a_server_that_swallows_what_it_is_asked_does_not_look_current(tmp_path, open_page):
    with ManyObjects(500) as server, serve(server.kubeconfig(tmp_path), "-A") as (address, _):
        page = open_page(address)
        page.page.get_by_role("link", name="Jobs", exact=True).click()
        page.page.get_by_text("500 of 500 jobs").wait_for()
        server.is_silent.set()
        said = page.page.locator(".trouble", has_text="the API server does not answer")
        said.wait_for(timeout=30_000)
        assert said.inner_text().startswith("As of ")
        server.is_silent.clear()
        page.page.wait_for_selector(".trouble", state="detached", timeout=30_000)
