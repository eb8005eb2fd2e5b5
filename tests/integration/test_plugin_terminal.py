"""kubectl holdfast at a real terminal, with a shell that has job control: whatever ends or stops it, the shell has its
screen and its cursor back."""

import json
import os
import signal

import pytest
from fake_api import JOBS, FakeApi, durable_job
from localcluster import wait_for
from plugin import plugin_binary
from pseudo_terminal import CTRL_BACKSLASH, CTRL_C, CTRL_Z, Typist


@pytest.fixture()
def api():
    with FakeApi() as api:
        api.objects[f"{JOBS}/film-17"] = durable_job("film-17")
        yield api


@pytest.fixture()
def typist(api, tmp_path):
    path = tmp_path / "config"
    path.write_text(json.dumps(api.kubeconfig()))
    with Typist({"KUBECONFIG": str(path), "PLUGIN": str(plugin_binary())}) as typist:
        yield typist


def live(typist, command="top"):
    typist.type(f'"$PLUGIN" {command}\n')
    typist.until("film-17.*?Running")
    assert typist.is_full_screen and not typist.has_cursor
    return typist.children()[0]


def expect_shell(typist):
    typist.until_prompt()
    assert not typist.is_full_screen
    assert typist.has_cursor


@pytest.mark.parametrize("command", ["top", "explain film-17 --watch"])
def test_a_page_that_is_stopped_gives_the_screen_back_and_draws_again_when_it_goes_on(typist, command):
    live(typist, command)
    for _ in range(2):
        typist.type(CTRL_Z)
        typist.until("Stopped")
        expect_shell(typist)
        typist.type("fg\n")
        typist.until("film-17.*?Running")
        assert typist.is_full_screen and not typist.has_cursor
    typist.type(CTRL_C)
    expect_shell(typist)
    assert typist.run("echo $?") == str(128 + signal.SIGINT)


def test_in_the_background_it_draws_nothing_and_waits_for_the_terminal(typist):
    live(typist)
    typist.type(CTRL_Z)
    expect_shell(typist)
    assert typist.run("bg").endswith("&")
    wait_for("it to stop", lambda: "Stopped" in typist.run("jobs"), 20)
    assert not typist.is_full_screen and typist.has_cursor
    typist.type("fg\n")
    typist.until("film-17.*?Running")
    typist.type(CTRL_C)
    expect_shell(typist)


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "SEGV", "BUS", "FPE", "ILL", "ABRT"])
def test_whatever_signal_ends_it_the_shell_has_its_screen_and_learns_of_the_signal(typist, name):
    number = signal.Signals[f"SIG{name}"]
    typist.run("ulimit -c 0")
    os.kill(live(typist), number)
    expect_shell(typist)
    assert typist.run("echo $?") == str(128 + number)


def test_a_signal_that_its_parent_ignores_stays_ignored(typist):
    typist.run("trap '' HUP TSTP")
    process = live(typist)
    os.kill(process, signal.SIGHUP)
    os.kill(process, signal.SIGTSTP)
    typist.until("film-17.*?Running")
    typist.until("film-17.*?Running")
    assert typist.is_full_screen
    typist.type(CTRL_BACKSLASH)
    expect_shell(typist)


def test_an_end_by_itself_gives_the_screen_back(typist, api):
    live(typist, "explain film-17 --watch")
    del api.objects[f"{JOBS}/film-17"]
    typist.until("there is no DurableJob|is gone|has deleted")
    expect_shell(typist)
