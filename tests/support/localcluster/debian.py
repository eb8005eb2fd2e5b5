"""Programs from Debian's packages that are unpacked and not installed: installed, their servers would start."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from .tools import ToolError, cache_root

LIMIT_SECONDS = 300
PROMETHEUS = ["prometheus", "promtool"]


def ensure_prometheus():
    """The paths of prometheus and promtool, by name."""
    folder = cache_root() / "tools/prometheus-debian"
    if not all(os.access(folder / name, os.X_OK) for name in PROMETHEUS):
        _unpack("prometheus", [f"usr/bin/{name}" for name in PROMETHEUS], folder)
    return {name: folder / name for name in PROMETHEUS}


def _unpack(package, files, folder):
    """Each file appears in the folder by a rename, complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        os.chmod(scratch, 0o755)  # apt's own user reads it
        _run(["apt-get", "download", "-q", package], scratch, "is the network there, and is the list of packages "
             "new? `sudo apt-get update` makes it new")
        [archive] = pathlib.Path(scratch).glob("*.deb")
        _run(["dpkg-deb", "-x", archive.name, "."], scratch, f"remove {folder} and try again")
        for file in files:
            os.rename(pathlib.Path(scratch) / file, folder / pathlib.Path(file).name)


def _run(command, folder, advice):
    if not shutil.which(command[0]):
        raise ToolError(f"{command[0]} is not there: this needs Debian (bookworm)")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}; {advice}")
