"""What Argo CD, Flux and kstatus, by their own code (hack/tools/gitops), make of objects: (health, message) of each."""

import json
import subprocess

from holdfast import ROOT
from localcluster.tools import ensure_gitops

CONFIG_MAP = ROOT / "gitops/argocd/argocd-cm.yaml"
KUSTOMIZATION = ROOT / "gitops/flux/kustomization.yaml"


def _read(*arguments, objects):
    done = subprocess.run([ensure_gitops(), *arguments], input="".join(map(json.dumps, objects)), text=True,
                          check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def argo_cd(*objects):
    """With our scripts."""
    return _read("argocd", CONFIG_MAP, objects=objects)


def flux(*objects):
    """With our expressions."""
    return _read("flux", KUSTOMIZATION, objects=objects)


def kstatus(*objects):
    return _read("kstatus", objects=objects)
