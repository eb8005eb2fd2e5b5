"""A person's shell: kubectl and its plugin in the PATH, a kubeconfig, and a record of what was typed and answered.

    shell = Shell(folder, kubeconfig, tools, "media")
    page = shell("kubectl holdfast explain film-17", title="explain")
    shell.record                    # [{"title": "explain", "command": ..., "output": ...}]
"""

import os
import shutil
import subprocess

from plugin import plugin_binary

LIMIT = 180


class Shell:
    """Commands run one after the other, in the source tree, with this namespace."""

    def __init__(self, folder, kubeconfig, tools, namespace):
        self._path = folder / "bin"
        self._path.mkdir()
        for name in ("kubectl", "helm"):
            (self._path / name).symlink_to(os.path.realpath(shutil.which(tools[name])))
        (self._path / "kubectl-holdfast").symlink_to(os.path.realpath(plugin_binary()))
        self._kubeconfig = folder / "kubeconfig"
        shutil.copy(kubeconfig, self._kubeconfig)
        self._environment = os.environ | {"PATH": f"{self._path}:{os.environ['PATH']}", "LANG": "C.UTF-8",
                                          "KUBECONFIG": str(self._kubeconfig)}
        self.record = []
        self(f"kubectl config set-context --current --namespace={namespace}")

    def __call__(self, command, title=None, code=0):
        """What it writes, errors too. It must end with this code. With a title it is recorded."""
        done = subprocess.run(["bash", "-ec", command], env=self._environment, text=True, timeout=LIMIT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == code, f"$ {command}\n{done.stdout}exit code {done.returncode}, not {code}"
        if title:
            self.note(title, command, done.stdout)
        return done.stdout

    def note(self, title, command, output):
        self.record.append({"title": title, "command": command, "output": output})
