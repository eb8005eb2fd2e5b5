"""The page of `kubectl holdfast ui` in a real browser (Debian's chromium), on a real control plane."""

import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/integration"), str(pathlib.Path(__file__).parent)]

from page import Watched, chromium  # noqa: E402

# The fixtures of the integration tests.
_spec = importlib.util.spec_from_file_location("integration", ROOT / "tests/integration/conftest.py")
_integration = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_integration)
shared_cluster, cluster, operator = _integration.shared_cluster, _integration.cluster, _integration.operator
namespace, jobs = _integration.namespace, _integration.jobs

@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture()
def open_page(browser):
    """Opens an address in a context of its own: its own sessionStorage."""
    contexts = []

    def open_page(address, width=1280, height=800, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(20_000)
        watched = Watched(context.new_page())
        watched.page.goto(address)
        return watched

    yield open_page
    for context in contexts:
        context.close()
