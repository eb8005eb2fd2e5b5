"""kubectl holdfast at a real terminal, with a shell that has job control: whatever ends or stops it, the shell has its
screen and its cursor back."""

import json
import os
import pathlib
import signal

import pytest
from fake_api import JOBS, TOKEN, FakeApi, durable_job
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


# An exec plugin that asks at the terminal, as those for OIDC, device codes and MFA do.
ASKS = """#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" > "{folder}/info"
echo $$ >> "{folder}/runs"
{before}
printf 'Code for the login: ' >&2
read code {source} || exit 3
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "'"$code"'"}}}}'
"""


@pytest.fixture()
def asking(api, tmp_path):
    """A shell whose kubeconfig has such a plugin."""

    def start(mode, source="", before=""):
        plugin = tmp_path / "login"
        plugin.write_text(ASKS.format(folder=tmp_path, source=source, before=before))
        plugin.chmod(0o755)
        path = tmp_path / "config"
        path.write_text(json.dumps(api.kubeconfig({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": mode}})))
        return Typist({"KUBECONFIG": str(path), "PLUGIN": str(plugin_binary())})

    return start


def was_interactive(tmp_path):
    return json.loads((tmp_path / "info").read_text())["spec"]["interactive"]


@pytest.mark.parametrize("mode", ["IfAvailable", "Always"])
def test_a_person_logs_in_at_the_terminal(asking, tmp_path, mode):
    with asking(mode) as typist:
        typist.type('"$PLUGIN" top --once\n')
        typist.until("Code for the login: ")
        typist.type(f"{TOKEN}\n")
        typist.until("film-17.*?Running")
        typist.until_prompt()
    assert was_interactive(tmp_path)


def test_a_program_that_opens_the_terminal_itself_is_not_stopped(asking, tmp_path):
    with asking("Never", "< /dev/tty") as typist:
        typist.type('"$PLUGIN" top --once\n')
        typist.until("Code for the login: ")
        typist.type(f"{TOKEN}\n")
        typist.until("film-17.*?Running")
    assert not was_interactive(tmp_path)


def test_ctrl_c_ends_the_login_and_the_command(asking, tmp_path):
    with asking("IfAvailable") as typist:
        typist.type('"$PLUGIN" top --once\n')
        typist.until("Code for the login: ")
        typist.type(CTRL_C)
        typist.until_prompt()
        assert typist.run("echo $?") == "130"
        assert typist.children() == []


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_ctrl_z_stops_both_and_fg_goes_on_with_the_login(asking, tmp_path):
    with asking("IfAvailable") as typist:
        typist.type('"$PLUGIN" top --once\n')
        typist.until("Code for the login: ")
        typist.type(CTRL_Z)
        typist.until("Stopped")
        typist.until_prompt()
        # The shell waits for its own child only. The login may still be in a read(), which would take the next byte.
        login = (tmp_path / "runs").read_text().strip()
        wait_for("the login to stop", lambda: is_stopped(login), 20)
        typist.type("fg\n")
        typist.type(f"{TOKEN}\n")
        typist.until("film-17.*?Running")
        typist.until_prompt()


@pytest.mark.parametrize("mode,line", [("IfAvailable", "cannot log in"), ("Always", "standard input is no terminal")])
def test_a_command_that_reads_standard_input_itself_leaves_nothing_for_a_login(asking, tmp_path, mode, line):
    with asking(mode) as typist:
        typist.type('"$PLUGIN" submit -f - <<< "{apiVersion: holdfast.dev/v1alpha1, kind: DurableJob, '
                    'metadata: {name: x}, spec: {}}"\n')
        typist.until(line)
        typist.until_prompt()
    assert mode == "Always" or not was_interactive(tmp_path)


def test_a_login_in_the_middle_of_a_live_page_has_the_users_screen(asking, api):
    with asking("IfAvailable") as typist:
        typist.type('"$PLUGIN" top\n')
        typist.until("Code for the login: ")
        typist.type(f"{TOKEN}\n")
        typist.until("film-17.*?Running")
        assert typist.is_full_screen
        # The least time between two logins has to pass before the second.
        api.token = "another"
        api.end_watches()
        typist.until("Code for the login: ")
        assert not typist.is_full_screen and typist.has_cursor
        typist.type("another\n")
        typist.until("film-17.*?Running")
        assert typist.is_full_screen
        typist.type(CTRL_C)
        expect_shell(typist)


def test_an_end_by_itself_in_the_middle_of_a_login_leaves_no_program_at_the_terminal_and_its_echo_on(asking, api, tmp_path):
    with asking("IfAvailable", before="stty -echo") as typist:
        typist.type('"$PLUGIN" cancel film-17 --wait --timeout 20s\n')
        typist.until("Code for the login: ")
        typist.type(f"{TOKEN}\n")
        typist.until("is being cancelled")
        # The least time between two logins has to pass before the second.
        api.token = "another"
        api.end_watches()
        typist.until("Code for the login: ")
        typist.until("has not ended after 20s")
        typist.until_prompt()
        assert typist.run("echo $?") == "2"
        login = int((tmp_path / "runs").read_text().split()[-1])
        assert not os.path.exists(f"/proc/{login}")
        assert " echo " in typist.run("stty -a")
