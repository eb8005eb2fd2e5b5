#!/usr/bin/env python3
"""Takes messages from the queue of queue.sql until it is empty, and runs a command for each:

    consume.py COMMAND [ARGUMENT...]

The command reads the message from its standard input, and prints the result. A command that fails ends this attempt.
Each message gets one result, although it may be worked on more than once. It needs psycopg 3.
"""

import os
import subprocess
import sys
import time

import psycopg

RUN = {"job": os.environ["HOLDFAST_JOB_UID"], "run": int(os.environ.get("JOB_COMPLETION_INDEX", "0")),
       "attempt": int(os.environ["HOLDFAST_ATTEMPT"])}
# Longer than the work on one message takes. Then the message goes to any consumer.
VISIBLE_AFTER = os.environ.get("VISIBLE_AFTER", "10 minutes")

# What an earlier attempt of this run has taken and not finished, this attempt takes at once. Nobody waits for a dead one.
TAKE = """
UPDATE messages
SET delivery = delivery + 1, job = %(job)s, run = %(run)s, attempt = %(attempt)s,
    visible_at = now() + %(visible_after)s::interval
WHERE id = (
    SELECT id FROM messages
    WHERE visible_at <= now() OR (job = %(job)s AND run = %(run)s AND attempt < %(attempt)s)
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, body, delivery
"""
# Deletes nothing if the message was delivered again meanwhile.
FINISH = "DELETE FROM messages WHERE id = %s AND delivery = %s"


def finish(database, message, delivery, result):
    """The result and the end of the message are one transaction. False: a newer delivery has the message."""
    with database.transaction():
        if database.execute(FINISH, (message, delivery)).rowcount == 0:
            return False
        database.execute("INSERT INTO processed VALUES (%s, %s, %s)", (message, delivery, result))
        return True


def main():
    # PGHOST and the other variables of libpq say where the database is.
    with psycopg.connect(autocommit=True) as database:
        while True:
            taken = database.execute(TAKE, RUN | {"visible_after": VISIBLE_AFTER}).fetchone()
            if taken is None:
                # Others may still fail with what they have taken.
                if not database.execute("SELECT EXISTS (SELECT FROM messages)").fetchone()[0]:
                    return
                time.sleep(1)
                continue
            message, body, delivery = taken
            done = subprocess.run(sys.argv[1:], input=body, stdout=subprocess.PIPE, text=True, check=True)
            if not finish(database, message, delivery, done.stdout):
                sys.exit(f"fenced: message {message} was delivered again, so delivery {delivery} does not count")


if __name__ == "__main__":
    main()
