"""Waits that have a limit, say what they waited for, and show the log of the process concerned."""

import os
import sys
import time
from pathlib import Path


class ClusterError(Exception):
    """The cluster cannot do what was asked; the message says why and ends with the log."""


def say(line):
    """Progress goes to stderr: stdout belongs to what a command prints for others to read."""
    print(line, file=sys.stderr, flush=True)


def log_tail(path, lines=25):
    """The last lines of a log, indented; a note where there is none."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 16384))
            text = log.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError as error:
        return f"    (no log: {error})"
    return "\n".join("    " + line[:400] for line in text) or "    (the log is empty)"


# Each poll of an API server costs 3 ms of CPU time. What takes long is asked for less often: every
# POLL_SECONDS at first, then after a twentieth of the time waited, up to MOST_POLL_SECONDS.
POLL_SECONDS = 0.05
MOST_POLL_SECONDS = 0.25


def wait_for(what, condition, limit, log=None, alive=None, poll=None):
    """Polls condition() until it is true and returns its value.

    `poll`: seconds between two polls, where their number or the moment counts.
    `alive()` ends the wait early when it is false: a dead process never becomes ready.
    """
    started = time.monotonic()
    last_error = None
    while True:
        try:
            value = condition()
            if value:
                return value
            last_error = None
        except (OSError, ValueError, KeyError) as error:
            last_error = error
        waited = time.monotonic() - started
        dead = alive is not None and not alive()
        if dead or waited > limit:
            message = (f"the process ended while waiting for {what}" if dead else
                       f"waited {waited:.0f} s for {what}")
            if last_error is not None:
                message += f" (last error: {last_error!r})"
            if log is not None:
                message += f"\n  the end of {log}:\n{log_tail(Path(log))}"
            raise ClusterError(message)
        time.sleep(poll if poll is not None else min(max(POLL_SECONDS, waited / 20), MOST_POLL_SECONDS))
