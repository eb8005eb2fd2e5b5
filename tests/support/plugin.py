"""kubectl-holdfast as a process, for tests.

    kubectl = Plugin(cluster)
    result = kubectl("submit", "-f", "-", input=job)
    assert result.code == 0, result.err
"""

import dataclasses
import json
import os
import subprocess
import tempfile

from holdfast import built

LIMIT = 120


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def line(self):
        """The only line of standard error, without the program's name and the verb."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0].split(": ", 1)[1]


def plugin_binary():
    return built("plugin/kubectl-holdfast", "HOLDFAST_PLUGIN")


class Plugin:
    """Runs it as one user, by default as admin."""

    def __init__(self, cluster=None, user=None, groups=(), kubeconfig=None, namespace=None):
        self.kubeconfig = kubeconfig or (cluster.kubeconfig_for(user, groups) if user else cluster.kubeconfig)
        self.namespace = namespace

    def within(self, namespace):
        return Plugin(kubeconfig=self.kubeconfig, namespace=namespace)

    def start(self, *args, input="", env=None):
        """The process, which has its standard input in a file."""
        text = input if isinstance(input, str) else json.dumps(input)
        where = ["-n", self.namespace] if self.namespace else []
        environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "KUBECONFIG": str(self.kubeconfig)}
        with tempfile.TemporaryFile("w+") as file:
            file.write(text)
            file.seek(0)
            return subprocess.Popen([plugin_binary(), *args, *where], stdin=file, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment | (env or {}))

    def __call__(self, *args, input="", env=None):
        process = self.start(*args, input=input, env=env)
        out, err = process.communicate(timeout=LIMIT)
        return Result(process.returncode, out, err)
