"""Finds or builds the pinned mdBook, which makes the site of docs/ (hack/tools/mdbook).

It goes into a folder of the cache, keyed by the pins and by its own code, as the tools in Go do.
"""

import hashlib
import os
import shutil
import subprocess
import sys

from .tools import BUILD_LIMIT_SECONDS, TOOLS_DIR, ToolError, _build_lock, cache_root

SOURCE = TOOLS_DIR / "mdbook"
NEEDED = ("Rust 1.88 or newer is needed to build mdBook, and Debian bookworm has an older one. Install it from "
          "https://rustup.rs/")


def mdbook_dir():
    digest = hashlib.sha256()
    for name in ("Cargo.toml", "Cargo.lock", "main.rs"):
        digest.update((SOURCE / name).read_bytes())
    return cache_root() / "tools" / f"mdbook-{digest.hexdigest()[:16]}"


def ensure_mdbook(say=None):
    """Builds mdbook (hack/tools/mdbook/main.rs) if it is missing and returns its path."""
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    program = mdbook_dir() / "mdbook"
    if os.access(program, os.X_OK):
        return program
    if not shutil.which("cargo"):
        raise ToolError(f"{NEEDED}: `cargo` is not in PATH")
    with _build_lock(say):
        if not program.exists():
            say("tools: building mdbook; minutes the first time")
            _build(program)
    return program


def _build(program):
    """It appears by a rename, complete or not at all."""
    scratch = program.parent / f".build.{os.getpid()}"
    scratch.mkdir(parents=True)
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(scratch)]
    try:
        done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_LIMIT_SECONDS,
                              check=False)
        if done.returncode != 0:
            raise ToolError(f"building mdbook failed (in {SOURCE}: {' '.join(command)}):\n{done.stderr[-4000:]}\n"
                            f"{NEEDED}, if yours is older")
        os.rename(scratch / "release/mdbook", program)
    except subprocess.TimeoutExpired:
        raise ToolError(f"building mdbook took longer than {BUILD_LIMIT_SECONDS} s") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
