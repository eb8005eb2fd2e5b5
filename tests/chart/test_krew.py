"""What `kubectl krew` gets: an archive with the program, and a manifest that fits it."""

import hashlib
import subprocess
import tarfile
import urllib.request

import yaml
from chart import ROOT
from plugin import plugin_binary


def packed(folder, *url):
    done = subprocess.run([ROOT / "hack/krew", plugin_binary(), folder, *url], text=True, capture_output=True, check=True)
    return done.stdout.strip(), yaml.safe_load((folder / "holdfast.yaml").read_text())


def test_the_manifest_names_the_archive_that_has_the_program(tmp_path):
    archive, manifest = packed(tmp_path)
    assert manifest["kind"] == "Plugin" and manifest["metadata"]["name"] == "holdfast"
    [platform] = manifest["spec"]["platforms"]
    with urllib.request.urlopen(platform["uri"]) as answer:
        content = answer.read()
    assert hashlib.sha256(content).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as tar:
        assert {one["from"] for one in platform["files"]} == set(tar.getnames()) == {"kubectl-holdfast", "LICENSE"}
        tar.extract(platform["bin"], tmp_path / "installed")
    version = subprocess.run([tmp_path / "installed" / platform["bin"], "version"], text=True, capture_output=True,
                             check=True).stdout.split()[1]
    assert manifest["spec"]["version"] == f"v{version}"


def test_the_same_program_is_packed_into_the_same_bytes(tmp_path):
    first = packed(tmp_path / "one", "https://example.com/v1")[1]["spec"]["platforms"][0]
    second = packed(tmp_path / "two", "https://example.com/v1")[1]["spec"]["platforms"][0]
    assert first == second
    assert first["uri"].startswith("https://example.com/v1/kubectl-holdfast-v")
