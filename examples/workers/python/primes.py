#!/usr/bin/env python3
"""Writes the prime numbers of a range into PostgreSQL, page by page: the command of a WorkerPool.
../README.md says what it reads and writes. It needs psycopg 3."""

import json
import math
import os
import subprocess
import sys
import time

import psycopg

AGENT = os.environ.get("AGENT_PROGRAM", "/holdfast/agent")
JOB = os.environ["HOLDFAST_JOB_UID"]
ATTEMPT = int(os.environ["HOLDFAST_ATTEMPT"])
BAD_PAYLOAD = 65  # ../job.yaml fails the job on this exit code, because no later attempt can help
PAUSE_SECONDS = 0.5


def read_payload(text):
    """The first and the last number, and how many numbers are one page. ValueError: it is not usable."""
    payload = json.loads(text)
    if not isinstance(payload, dict):
        raise ValueError("it is not an object")
    first, last, size = (payload.get(name) for name in ("from", "to", "pageSize"))
    if not all(type(value) is int for value in (first, last, size)):
        raise ValueError("from, to and pageSize must be integers")
    if not (1 <= first <= last <= 10**9 and 1 <= size <= 100_000):
        raise ValueError("it needs 1 <= from <= to <= 1000000000 and 1 <= pageSize <= 100000")
    return first, last, size


def tell_agent(*words):
    """A report that fails costs at most repeated work. The agent program prints why it failed."""
    subprocess.run([AGENT, *words], check=False)


def read_message():
    """The job's message; empty if it is no JSON object."""
    try:
        with open(os.environ["HOLDFAST_MESSAGE_FILE"], encoding="utf-8") as file:
            message = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return message if isinstance(message, dict) else {}


def may_go_on(done):
    """Waits while the message says pause. False: the message says stop."""
    while True:
        message = read_message()
        if message.get("stop") is True:
            return False
        if message.get("pause") is not True:
            return True
        # A pause is no hang, so it reports progress too.
        tell_agent("progress", f"paused at {done}")
        time.sleep(PAUSE_SECONDS)


def is_prime(number):
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


def write_page(database, numbers):
    """One transaction. It starts with the fence, so a replaced attempt cannot write. A page may be written
    twice: a page whose checkpoint was lost comes again."""
    with database.transaction():
        database.execute("SELECT holdfast_fence(%s::uuid, %s)", (JOB, ATTEMPT))
        database.execute(
            "INSERT INTO primes (job, number, attempt) SELECT %s::uuid, unnest(%s::bigint[]), %s "
            "ON CONFLICT DO NOTHING", (JOB, numbers, ATTEMPT))


def work(database, first, last, size):
    """Returns the result."""
    done = int(os.environ.get("HOLDFAST_CHECKPOINT") or first - 1)
    while done < last:
        end = min(done + size, last)
        write_page(database, [number for number in range(done + 1, end + 1) if is_prime(number)])
        done = end
        tell_agent("checkpoint", str(done))
        tell_agent("progress", f"{done} of {last}")
        if done < last and not may_go_on(done):
            break
    [count] = database.execute("SELECT count(*) FROM primes WHERE job = %s::uuid", (JOB,)).fetchone()
    return {"primes": count, "upTo": done}


def main():
    try:
        first, last, size = read_payload(sys.stdin.read())
    except ValueError as error:
        print(f"bad payload: {error}", file=sys.stderr)
        sys.exit(BAD_PAYLOAD)
    try:
        # PGHOST and the other variables of libpq say where the database is.
        with psycopg.connect(autocommit=True) as database:
            result = work(database, first, last, size)
    except psycopg.Error as error:
        sys.exit(f"database: {error}")
    with open(os.environ["HOLDFAST_RESULT_FILE"], "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
