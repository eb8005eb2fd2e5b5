"""The page of `kubectl holdfast ui` as a process, and what a browser complains of."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from localcluster.python_packages import python_packages
from plugin import plugin_binary

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(python_packages("browser")))
AXE = ROOT / "ui/node_modules/axe-core/axe.min.js"
CHROMIUM = os.environ.get("HOLDFAST_CHROMIUM") or shutil.which("chromium")


@contextlib.contextmanager
def serve(kubeconfig, *flags, env=None, opens=False):
    """`kubectl holdfast ui` as a process; the address that it prints."""
    process = subprocess.Popen(
        [plugin_binary(), "ui", *([] if opens else ["--no-open"]), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "KUBECONFIG": str(kubeconfig)} | (env or {}))
    try:
        address = None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/#token=[0-9a-f]{64}", line):
                address = found[0]
                break
        assert address, process.stderr.read()
        yield address, process
    finally:
        process.send_signal(signal.SIGINT)  # Ctrl-C
        process.wait(timeout=30)


@contextlib.contextmanager
def chromium():
    """Debian's, driven by Playwright."""
    from playwright.sync_api import sync_playwright  # pylint: disable=import-outside-toplevel
    assert CHROMIUM, "chromium is not in PATH: hack/setup --browser installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Watched:
    """A page of the browser, and what it complains of."""

    def __init__(self, page):
        self.page = page
        self.complaints = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url):
        if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.complaints.append(f"asked {url}")

    def axe(self):
        """The page's violations of WCAG 2.2 AA, by the rules of axe."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(
            "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})")
        return [f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']][:3]}"
                for one in found["violations"]]


@contextlib.contextmanager
def watched(kubeconfig, *flags):
    """The page, open in a browser of its own. At its end nothing may have been complained of."""
    with serve(kubeconfig, *flags) as (address, _), chromium() as browser:
        page = Watched(browser.new_page(viewport={"width": 900, "height": 700}))
        page.page.goto(address)
        yield page
        assert page.complaints == []
