"""Finds or builds the pinned tools of the local cluster: etcd, Kubernetes' own binaries, kwok; and helm.

Each folder under hack/tools is a Go module that pins one project; its go.sum is the check. A tool
is built into a cache outside the tree that is keyed by the content of go.mod and go.sum, so that
a changed pin is a new folder and an unchanged one costs nothing. A tool appears in the cache by a
rename, complete or not at all, and a lock keeps two processes from building at once.

A tool that lies in the folder KUBEBUILDER_ASSETS is used from there and never built.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

TOOLS_DIR = Path(__file__).resolve().parent.parent / "tools"
# What the CRD's schema is generated from.
PINNED_K8S_VERSION = "1.34.4"
# `make test K8S=1.36.3`: the same on another version.
DEFAULT_K8S_VERSION = os.environ.get("HOLDFAST_K8S") or PINNED_K8S_VERSION

# Cold, on two cores, the slowest takes three minutes; slow machines get ten times that.
BUILD_LIMIT_SECONDS = 1800
LOCK_LIMIT_SECONDS = 3600

# In the order in which a waiting person can use them: the API server is what most work needs.
KUBERNETES_TOOLS = ["kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler"]
# No cluster runs it: what works on the chart asks for it.
HELM_PLAN = [("helm", "helm", "helm.sh/helm/v3/cmd/helm")]
# What Helm, Flux and kpt make of an object; a program of our own around their library.
KSTATUS_PLAN = [("kstatus", "kstatus", "holdfast.dev/hack/tools/kstatus")]


class ToolError(Exception):
    """A tool is neither there nor can be built; the message says what to do."""


def cache_root():
    """The folder that everything outside the tree goes to; removing it costs only time."""
    if os.environ.get("HOLDFAST_CACHE"):
        return Path(os.environ["HOLDFAST_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "holdfast"


def k8s_versions():
    """The Kubernetes versions that have a pinned module."""
    prefix = "kubernetes-"
    return sorted(p.name[len(prefix):] for p in TOOLS_DIR.glob(prefix + "*") if p.is_dir())


def k8s_minor(k8s_version=DEFAULT_K8S_VERSION):
    """34 of 1.34.4."""
    return int(k8s_version.split(".")[1])


def tool_plan(k8s_version=DEFAULT_K8S_VERSION):
    """(tool, module, Go package) of everything a cluster of this version runs, in build order."""
    if k8s_version not in k8s_versions():
        raise ToolError(f"Kubernetes {k8s_version} is not pinned; there is "
                        f"{', '.join(k8s_versions())} (hack/tools/pin-kubernetes adds a version)")
    kubernetes = f"kubernetes-{k8s_version}"
    plan = [("etcd", "etcd", "go.etcd.io/etcd/server/v3")]
    plan += [(t, kubernetes, f"k8s.io/kubernetes/cmd/{t}") for t in KUBERNETES_TOOLS]
    plan += [("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok")]
    return plan


def module_dir(module):
    """The cache folder of one module's tools, keyed by the hash of its pins (and of its own code)."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        path = TOOLS_DIR / module / name
        if name != "main.go" or path.exists():
            digest.update(path.read_bytes())
    return cache_root() / "tools" / f"{module}-{digest.hexdigest()[:16]}"


def find_tools(plan):
    """Paths by tool name, of those of the plan that need not be built."""
    found = {}
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for tool, module, _ in plan:
        candidates = [Path(assets) / tool] if assets else []
        candidates.append(module_dir(module) / tool)
        for path in candidates:
            if os.access(path, os.X_OK) and path.is_file():
                found[tool] = path
                break
    return found


def ensure_tools(k8s_version=DEFAULT_K8S_VERSION, say=None):
    """Builds what a cluster lacks and returns all paths by tool name."""
    return _ensure(tool_plan(k8s_version), say)


def ensure_clients(say=None, installed=()):
    """kubectl and helm, by name: all that is needed where the cluster is somebody else's. Those that are
    `installed` are not built."""
    plan = [entry for entry in tool_plan(PINNED_K8S_VERSION) if entry[0] == "kubectl"] + HELM_PLAN
    return dict(installed) | _ensure([entry for entry in plan if entry[0] not in installed], say)


def ensure_helm(say=None):
    """Builds helm if it is missing and returns its path."""
    return _ensure(HELM_PLAN, say)["helm"]


def ensure_kstatus(say=None):
    """Builds kstatus (hack/tools/kstatus/main.go) if it is missing and returns its path."""
    return _ensure(KSTATUS_PLAN, say)["kstatus"]


def _ensure(plan, say):
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    found = find_tools(plan)
    missing = [entry for entry in plan if entry[0] not in found]
    if not missing:
        return found
    check_go(missing)
    with _build_lock(say):
        for number, (tool, module, package) in enumerate(missing, 1):
            target = module_dir(module) / tool
            if not target.exists():
                say(f"tools: building {tool} ({module}), {number} of {len(missing)}; "
                    "minutes the first time")
                started = time.monotonic()
                _build(tool, module, package, target)
                say(f"tools: {tool} took {time.monotonic() - started:.0f} s")
            found[tool] = target
    return found


def check_go(missing):
    """Refuses a machine whose Go cannot build the pinned modules, before minutes are spent."""
    go = shutil.which("go")
    names = ", ".join(entry[0] for entry in missing)
    if not go:
        raise ToolError(f"Go is needed to build {names}, and `go` is not in PATH. Install Go 1.24 "
                        "or newer from https://go.dev/dl/ and put its bin folder into PATH, or "
                        "name a folder with ready-made binaries in KUBEBUILDER_ASSETS.")
    said = subprocess.run([go, "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True,
                          timeout=60)
    version, toolchain = (said.stdout.split("\n") + ["", ""])[:2]
    match = re.match(r"go1\.(\d+)", version)
    fetches = toolchain not in ("", "local")
    if not match or (int(match.group(1)) < 24 and not fetches):
        raise ToolError(f"Go 1.24 or newer is needed to build {names}; {go} says "
                        f"'{version or said.stderr.strip()}'. Install a newer one "
                        "from https://go.dev/dl/, or set GOTOOLCHAIN=auto (Go 1.21 and newer).")


def _version_flags(module):
    """Without these the server calls itself v0.0.0, and helm takes a cluster that it does not see for a
    Kubernetes 1.20, which the chart refuses."""
    if module == "helm":
        return _helm_flags()
    if not module.startswith("kubernetes-"):
        return ""
    version = module.removeprefix("kubernetes-")
    major, minor, _ = version.split(".", 2)
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor,
              "gitTreeState": "clean"}
    return "".join(f" -X k8s.io/component-base/version.{k}={v}" for k, v in values.items())


def _helm_flags():
    """What helm's own Makefile says: its version, and the Kubernetes whose client it is made with."""
    pins = (TOOLS_DIR / "helm/go.mod").read_text()
    version = re.search(r"helm\.sh/helm/v3 (v\S+)", pins)[1]
    minor = re.search(r"k8s\.io/client-go v0\.(\d+)", pins)[1]
    values = {"internal/version.version": version, "internal/version.gitTreeState": "clean"}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        values |= {f"{package}.k8sVersionMajor": "1", f"{package}.k8sVersionMinor": minor}
    return "".join(f" -X helm.sh/helm/v3/{k}={v}" for k, v in values.items())


def _build(tool, module, package, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.parent / f".{tool}.{os.getpid()}"
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
               "-ldflags", "-s -w" + _version_flags(module), "-o", str(scratch), package]
    env = dict(os.environ, CGO_ENABLED="0", GOWORK="off", GOFLAGS="")
    process = subprocess.Popen(command, cwd=TOOLS_DIR / module, env=env, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate(timeout=BUILD_LIMIT_SECONDS)
        if process.returncode != 0:
            raise ToolError(f"building {tool} failed (in hack/tools/{module}: "
                            f"{' '.join(command)}):\n{output[-4000:]}")
        os.rename(scratch, target)
    except subprocess.TimeoutExpired:
        raise ToolError(f"building {tool} took longer than {BUILD_LIMIT_SECONDS} s; what was compiled is "
                        "kept, so run it again") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        scratch.unlink(missing_ok=True)


class _build_lock:
    """One builder at a time on this machine: the others wait, then find the work done."""

    def __init__(self, say):
        self._say = say
        self._file = None

    def __enter__(self):
        folder = cache_root() / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / ".lock", "a+", encoding="ascii")
        limit = time.monotonic() + LOCK_LIMIT_SECONDS
        told = False
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    self._say("tools: another process is building them, waiting for it")
                    told = True
                if time.monotonic() > limit:
                    raise ToolError(f"waited {LOCK_LIMIT_SECONDS} s for the lock "
                                    f"{self._file.name} of another build") from None
                time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self._file.close()
