"""Finds or installs the pinned Python packages that Debian does not have (hack/tools/python/*.txt).

They go into a folder of the cache, keyed by the pins. It appears by a rename, complete or not at all.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from .tools import TOOLS_DIR, ToolError, cache_root

INSTALL_LIMIT_SECONDS = 600


def python_packages(which="requirements"):
    """The folder with the packages of this list, for sys.path or PYTHONPATH."""
    requirements = TOOLS_DIR / f"python/{which}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    folder = cache_root() / "tools" / f"python-{digest}"
    if folder.exists():
        return folder
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    command = ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--require-hashes", "--target", str(scratch), "--requirement", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_SECONDS)
        if done.returncode != 0:
            raise ToolError(f"installing {requirements.name} failed ({' '.join(command)}):\n{done.stderr[-2000:]}")
        try:
            os.rename(scratch, folder)
        except OSError:
            if not folder.exists():  # another process was faster
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Path(folder)
