#!/usr/bin/env python3
"""A stand-in for a training: it fits a line to points, step by step, and keeps its state after each step.

The next attempt goes on after the last step that was kept. Each attempt writes into a folder of its own, so an attempt
that was replaced and is still alive cannot spoil the state of its successor. It needs no library.
"""

import json
import os
import pathlib
import subprocess
import time

AGENT = os.environ.get("AGENT_PROGRAM", "/holdfast/agent")
DATA = pathlib.Path(os.environ.get("DATA", "/data")) / os.environ["HOLDFAST_JOB_UID"]
ATTEMPT = os.environ["HOLDFAST_ATTEMPT"]
STEPS = int(os.environ.get("STEPS", "600"))
SECONDS_PER_STEP = float(os.environ.get("SECONDS_PER_STEP", "1"))
POINTS = [(x, 3 * x + 7) for x in range(10)]


def train(state):
    """One step of gradient descent."""
    time.sleep(SECONDS_PER_STEP)
    errors = [(state["slope"] * x + state["offset"] - y, x) for x, y in POINTS]
    return {"step": state["step"] + 1,
            "slope": state["slope"] - 0.02 * sum(error * x for error, x in errors) / len(POINTS),
            "offset": state["offset"] - 0.02 * sum(error for error, _ in errors) / len(POINTS)}


def load():
    """The state to go on from. The checkpoint is the name of its file."""
    checkpoint = os.environ.get("HOLDFAST_CHECKPOINT")
    if not checkpoint:
        return {"step": 0, "slope": 0.0, "offset": 0.0}
    return json.loads((DATA / checkpoint).read_text())


def keep(state):
    """First the file, then the checkpoint that names it. With --wait, the checkpoint is safe when the agent returns."""
    file = f"{ATTEMPT}/step-{state['step']}.json"
    (DATA / file).write_text(json.dumps(state))
    subprocess.run([AGENT, "checkpoint", "--wait", file], check=True)
    subprocess.run([AGENT, "progress", f"step {state['step']} of {STEPS}"], check=False)


def main():
    (DATA / ATTEMPT).mkdir(parents=True, exist_ok=True)
    state = load()
    print(f"attempt {ATTEMPT} begins after step {state['step']}", flush=True)
    while state["step"] < STEPS:
        state = train(state)
        keep(state)
    print(f"done: y = {state['slope']:.3f} x + {state['offset']:.3f}", flush=True)


if __name__ == "__main__":
    main()
