"""What all tests share: their tier, and the processor time that each of them takes."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import processor
import tiers

STARTED = pytest.StashKey[float]()


def pytest_addoption(parser):
    parser.addoption("--list-tiers", action="store_true", help="print each test's first tier, and run none")


def pytest_configure(config):
    config.addinivalue_line("markers", "tier(name): the first tier that runs the test (test/support/tiers.py)")
    config.addinivalue_line("markers", "plans: it is about plans, so most of its programs are interpreted (property/compiler.py)")


def pytest_sessionstart(session):
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and os.environ.get("STEPC_TIER") == "all":
        session.config.pluginmanager.register(FailuresAtOnce(terminal))


class FailuresAtOnce:
    """Shows a failure when it happens: the tier `all` takes an hour or more."""

    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.section(f"{report.nodeid} failed", sep="_")
            self.terminal.write_line(report.longreprtext)


def tier_of(item):
    """The first tier that runs a test: what its nearest mark says. Without a mark, `quick` if it needs no compiler."""
    # If several parameters of a test have marks, the latest tier counts.
    of_parameters = [mark.args[0] for mark in getattr(getattr(item, "callspec", None), "marks", []) if mark.name == "tier"]
    if of_parameters:
        return max(of_parameters, key=tiers.TIERS.index)
    mark = item.get_closest_marker("tier")
    if mark:
        return mark.args[0]
    # Tests get the compiler from a fixture, or their module runs it.
    needs_compiler = {"real", "quick"} & set(item.fixturenames) or hasattr(item.module, "STEPC")
    return "land" if needs_compiler or "property" in item.path.parts else "quick"


def pytest_collection_modifyitems(config, items):
    kept, later = [], []
    for item in items:
        (kept if tiers.includes(tier_of(item)) else later).append(item)
    config.hook.pytest_deselected(items=later)
    items[:] = kept


def pytest_collection_finish(session):
    if session.config.option.list_tiers:
        for item in session.items:
            print(f"{tier_of(item):6} {item.nodeid}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[STARTED] = processor.seconds(os.getpid())
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", round(processor.seconds(os.getpid()) - item.stash[STARTED], 2)))

