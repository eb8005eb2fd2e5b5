"""A real Prometheus that scrapes what it is told, and its tool for rules."""

import json
import pathlib
import re
import subprocess
import urllib.parse
import urllib.request

from holdfast import die_with_parent
from localcluster import wait_for
from localcluster.debian import ensure_prometheus

SCRAPE_SECONDS = 1


class Prometheus:
    """One process, ended with the test's. `targets`: (address, labels) of each; the label `__metrics_path__`
    is the path to scrape."""

    def __init__(self, folder, targets):
        self._folder = pathlib.Path(folder)
        self._config = {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"},
            "scrape_configs": [{"job_name": "holdfast", "static_configs": [
                {"targets": [address], "labels": labels} for address, labels in targets]}]}
        self._process = None
        self._url = None

    def __enter__(self):
        config = self._folder / "prometheus.yml"
        config.write_text(json.dumps(self._config))  # JSON is YAML
        log = self._folder / "prometheus.log"
        with open(log, "wb") as sink:
            self._process = subprocess.Popen(
                [ensure_prometheus()["prometheus"], f"--config.file={config}",
                 f"--storage.tsdb.path={self._folder / 'data'}", "--web.listen-address=127.0.0.1:0"],
                stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_for("Prometheus to listen", lambda: self._find_address(log), 60)
        wait_for("Prometheus to be ready", self._is_ready, 60)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def _find_address(self, log):
        if self._process.poll() is not None:
            raise RuntimeError(f"Prometheus ended:\n{log.read_text()[-4000:]}")
        found = re.search(r"address=(127\.0\.0\.1:[1-9]\d*)", log.read_text())
        self._url = f"http://{found[1]}" if found else None
        return found

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def query(self, expr):
        """The series of the answer: [{"metric": ..., "value": [time, text]}]."""
        body = urllib.parse.urlencode({"query": expr}).encode()
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query", data=body, timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"Prometheus refuses {expr}: {error.read().decode()}") from None

    def names(self):
        """Every metric that it has scraped."""
        with urllib.request.urlopen(f"{self._url}/api/v1/label/__name__/values", timeout=30) as answer:
            return set(json.load(answer)["data"])


def check_rules(rules, folder):
    """What promtool says of the groups of a PrometheusRule; fails if it finds an error."""
    path = pathlib.Path(folder) / "rules.yml"
    path.write_text(json.dumps({"groups": rules["spec"]["groups"]}))
    done = subprocess.run([ensure_prometheus()["promtool"], "check", "rules", "--lint=all", "--lint-fatal", path],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
