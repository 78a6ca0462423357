"""What tests that run the compiler share."""

import compiler
import pytest


@pytest.fixture(autouse=True)
def _interpret_most(request, monkeypatch):
    monkeypatch.setattr(compiler, "about_plans", request.node.get_closest_marker("plans") is not None)
