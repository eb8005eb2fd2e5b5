"""Finds or builds the pinned tools of the local cluster: etcd, Kubernetes' own binaries, kwok; and helm, Kueue and
what says how other tools read our objects.

Each folder under hack/tools is a Go module that pins one project; its go.sum is the check. A tool
is built into a cache outside the tree that is keyed by the content of go.mod and go.sum, so that
a changed pin is a new folder and an unchanged one costs nothing. A tool appears in the cache by a
rename, complete or not at all, and a lock keeps two processes from building at once.

A tool that is in the folder KUBEBUILDER_ASSETS, or where setup-envtest puts its downloads, is used from
there and never built.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

TOOLS_DIR = Path(__file__).resolve().parents[3] / "hack/tools"
# What the CRD's schema is generated from.
PINNED_K8S_VERSION = "1.34.4"


def plain_version(text):
    """1.34.4 of v1.34.4, which is how images and tags are called."""
    return text.strip().removeprefix("v")


# `make test HOLDFAST_K8S=1.36.3`: the same on another version.
DEFAULT_K8S_VERSION = plain_version(os.environ.get("HOLDFAST_K8S", "")) or PINNED_K8S_VERSION

# Cold, on two cores, the slowest takes three minutes; slow machines get ten times that.
BUILD_LIMIT_SECONDS = 1800
LOCK_LIMIT_SECONDS = 3600
PROGRESS_SECONDS = 15

# In the order in which a waiting person can use them: the API server is what most work needs.
KUBERNETES_TOOLS = ["kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler"]
# No cluster runs it: what works on the chart asks for it.
HELM_PLAN = [("helm", "helm", "helm.sh/helm/v3/cmd/helm")]
# An S3 server in memory, for the examples' test; a program of our own around a library.
S3_PLAN = [("s3", "s3", "holdfast.dev/hack/tools/s3")]
# What Argo CD, Flux, kstatus and Helm 4 make of an object; a program of our own around their code.
GITOPS_PLAN = [("gitops", "gitops", "holdfast.dev/hack/tools/gitops")]
KUEUE_PLAN = [("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue")]
# Job systems that the referee judges beside ours.
JOBSET_PLAN = [("jobset", "jobset", "sigs.k8s.io/jobset")]
ARGO = "github.com/argoproj/argo-workflows/v3"
ARGO_PLAN = [(name, "argo", f"{ARGO}/cmd/{name}") for name in ("workflow-controller", "argoexec")]
# Folders of a module's source that its tests need besides the program: (Go module, folder) by our module.
KEPT = {"kueue": [("sigs.k8s.io/kueue", "charts/kueue")], "jobset": [("sigs.k8s.io/jobset", "charts/jobset")],
        "argo": [(ARGO, "manifests")]}
# Symbolic links of a project's repository that its Go module lacks, for these have none: (Go module, link, target).
_SIGNALS = "workflow/executor/osspecific/signal_"
LINKS = {"argo": [(ARGO, _SIGNALS + "linux.go", _SIGNALS + "darwin.go")]}


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


def envtest_folders(minor):
    """The folders that setup-envtest has filled for this minor version of Kubernetes, newest first."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    versions = {}
    for folder in Path(data).glob(f"kubebuilder-envtest/k8s/1.{minor}.*-linux-*"):
        patch = re.match(r"1\.\d+\.(\d+)-linux-(amd64|arm64)$", folder.name)
        if patch and patch[2] == {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine):
            versions[int(patch[1])] = folder
    return [folder for _, folder in sorted(versions.items(), reverse=True)]


def find_tools(plan):
    """Paths by tool name, of those of the plan that need not be built."""
    found = {}
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    kubernetes = [module for _, module, _ in plan if module.startswith("kubernetes-")]
    envtest = envtest_folders(k8s_minor(kubernetes[0].removeprefix("kubernetes-"))) if kubernetes else []
    for tool, module, _ in plan:
        candidates = [Path(assets) / tool] if assets else []
        candidates.append(module_dir(module) / tool)
        candidates += [folder / tool for folder in envtest]
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


def ensure_s3(say=None):
    """Builds s3 (hack/tools/s3/main.go) if it is missing and returns its path."""
    return _ensure(S3_PLAN, say)["s3"]


def ensure_gitops(say=None):
    """Builds gitops (hack/tools/gitops/main.go) if it is missing and returns its path."""
    return _ensure(GITOPS_PLAN, say)["gitops"]


def ensure_kueue(say=None):
    """Builds Kueue if it is missing and returns the paths of its program and of its Helm chart."""
    program = _ensure(KUEUE_PLAN, say)["kueue"]
    return program, module_dir("kueue") / "kept/kueue"


def ensure_jobset(say=None):
    """Builds JobSet if it is missing and returns the paths of its program and of its Helm chart."""
    program = _ensure(JOBSET_PLAN, say)["jobset"]
    return program, module_dir("jobset") / "kept/jobset"


def ensure_argo(say=None):
    """Builds Argo Workflows if it is missing and returns the folder of its two programs and that of its manifests."""
    program = _ensure(ARGO_PLAN, say)["argoexec"]
    return program.parent, module_dir("argo") / "kept/manifests"


def pinned_version(module, source):
    """v1.2.3 of a Go module that one of ours pins."""
    return re.search(rf"^\s*{re.escape(source)} (v\S+)", (TOOLS_DIR / module / "go.mod").read_text(), re.MULTILINE)[1]


def _ensure(plan, say):
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    found = find_tools(plan)
    missing = [entry for entry in plan if entry[0] not in found]
    if not missing:
        return found
    check_go(missing)
    with _build_lock(say):
        modules = {}
        for tool, module, package in missing:
            if not (module_dir(module) / tool).exists():
                modules.setdefault(module, {})[tool] = package
        for number, (module, packages) in enumerate(modules.items(), 1):
            say(f"tools: building {', '.join(packages)} ({module}), {number} of {len(modules)} builds; minutes the "
                "first time")
            started = time.monotonic()
            _build(module, packages, say)
            say(f"tools: {module} took {time.monotonic() - started:.0f} s")
        for tool, module, _ in missing:
            found[tool] = module_dir(module) / tool
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


def _build(module, packages, say):
    """One `go build` for all tools of a module: they share most of their packages."""
    folder = module_dir(module)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / f".build.{os.getpid()}"
    scratch.mkdir()
    # Nobody debugs these, and the compiler needs a quarter less time with less debug data and fewer collections.
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"]
    command = ["go", "build", "-v", *flags, "-ldflags", "-s -w" + _version_flags(module),
               "-o", f"{scratch}/", *packages.values()]
    env = dict(os.environ, CGO_ENABLED="0", GOWORK="off", GOFLAGS="", GOGC="300")
    command[2:2] = _links(module, scratch, env)
    process = subprocess.Popen(command, cwd=TOOLS_DIR / module, env=env, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        with _limit(process):
            output = _follow(process, module, packages, env, say)
        if process.returncode != 0:
            raise ToolError(f"building {', '.join(packages)} failed (in hack/tools/{module}: "
                            f"{' '.join(command)}):\n{output[-4000:]}")
        _keep(module, folder, env)
        for tool, package in packages.items():
            os.rename(scratch / _program(package), folder / tool)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


def _source(module, source, env):
    """Where Go has this module that one of ours pins; it gets it if it has it not yet."""
    found = subprocess.run(["go", "mod", "download", "-json", source], cwd=TOOLS_DIR / module, env=env,
                           capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise ToolError(f"Go cannot get {source} (in hack/tools/{module}: go mod download {source}):\n"
                        f"{found.stdout}{found.stderr}")
    return Path(json.loads(found.stdout)["Dir"])


def _links(module, scratch, env):
    """Flags for `go build` that put the files back that LINKS says: a copy of the source, by a go.mod of its own."""
    if module not in LINKS:
        return []
    pins = (TOOLS_DIR / module / "go.mod").read_text()
    for source, link, target in LINKS[module]:
        copy = scratch / "source"
        shutil.copytree(_source(module, source, env), copy, copy_function=shutil.copyfile, dirs_exist_ok=True)
        for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        shutil.copyfile(copy / target, copy / link)
        pins += f"\nreplace {source} => {copy}\n"
    (scratch / "go.mod").write_text(pins)
    shutil.copyfile(TOOLS_DIR / module / "go.sum", scratch / "go.sum")
    return [f"-modfile={scratch / 'go.mod'}"]


def _keep(module, folder, env):
    """Copies what KEPT says, so that it is there for as long as the program is."""
    for source, path in KEPT.get(module, ()):
        kept = folder / "kept" / Path(path).name
        shutil.rmtree(kept, ignore_errors=True)
        # Go's module cache is read-only; the copy must not be, or nobody could remove it.
        shutil.copytree(_source(module, source, env) / path, kept, copy_function=shutil.copyfile)
        for copy in [kept, *kept.rglob("*")]:
            copy.chmod(0o755 if copy.is_dir() else 0o644)


def _program(package):
    """What `go build` calls it: the last part of the path that is no version (etcd's server is called v3)."""
    parts = package.split("/")
    return parts[-2] if re.fullmatch(r"v\d+", parts[-1]) else parts[-1]


def _follow(process, module, packages, env, say):
    """Says now and then how far the build is, from the names that `go build -v` prints. Returns all that it
    printed."""
    listed = subprocess.run(["go", "list", "-mod=readonly", "-deps", *packages.values()],
                            cwd=TOOLS_DIR / module, env=env, capture_output=True, text=True)
    total = max(1, len(listed.stdout.split()))
    output, done = [], 0
    started = told = time.monotonic()
    for line in process.stdout:
        output.append(line)
        done += bool(re.fullmatch(r"[\w./~-]+\n", line))
        now = time.monotonic()
        if now - told >= PROGRESS_SECONDS:
            told = now
            left = (now - started) * max(0, total - done) / done if done else 0
            say(f"tools: {module}: {done} of at most {total} packages compiled, at most {left / 60:.0f} min more "
                "and the linking")
    process.wait()
    return "".join(output)


@contextlib.contextmanager
def _limit(process):
    """Ends a build that hangs, say on a network that does not answer."""
    timer = threading.Timer(BUILD_LIMIT_SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if process.returncode == -signal.SIGKILL:
        raise ToolError(f"a build took longer than {BUILD_LIMIT_SECONDS} s or was killed; what was compiled is "
                        "kept, so run it again")


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
