"""A person at a terminal: a shell with job control in a real pseudo terminal, and what its screen shows.

    with Typist() as typist:
        typist.type("kubectl-holdfast top\\n")
        typist.until("NAME")
        assert typist.is_full_screen
        typist.type(CTRL_Z)
        typist.until_prompt()
"""

import os
import pathlib
import pty
import re
import select
import signal
import time

CTRL_C, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x1a", "\x1c"
PROMPT = "ready> "
LIMIT = 30


class Typist:
    def __init__(self, environment):
        self.all = ""
        self.read = 0  # up to where the test has looked
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TERM": "xterm", "LANG": "C.UTF-8", "PS1": PROMPT}
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], env | environment)

    def __enter__(self):
        self.until_prompt()
        return self

    def __exit__(self, *_):
        # A shell that is stopped waits for no child, so the number of one that ends now stays its own.
        os.kill(self.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            for child in [*self.children(), self.pid]:
                os.kill(child, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def children(self):
        """Of the shell."""
        return [int(child) for child in pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, pattern, limit=LIMIT):
        """The next text that matches. What was written before it is looked at no more."""
        end = time.monotonic() + limit
        while not (found := re.compile(pattern, re.DOTALL).search(self.all, self.read)):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.all[self.read:]!r} after {self.all[:self.read]!r}"
            if select.select([self.terminal], [], [], left)[0]:
                self.all += os.read(self.terminal, 65536).decode(errors="replace")
        self.read = found.end()
        return found

    def until_prompt(self):
        self.until(re.escape(PROMPT))

    def run(self, line):
        """What a short command of the shell writes."""
        self.type(line + "\n")
        begun = self.read
        self.until(re.escape(line) + ".*?\n")
        begun = self.read
        self.until_prompt()
        return self.all[begun:self.read - len(PROMPT)].replace("\r", "").strip()

    def _last(self, on, off):
        return self.all.rfind(on, 0, self.read) > self.all.rfind(off, 0, self.read)

    @property
    def is_full_screen(self):
        return self._last("\x1b[?1049h", "\x1b[?1049l")

    @property
    def has_cursor(self):
        return not self._last("\x1b[?25l", "\x1b[?25h")
