"""The compiler's warnings as Python's: whole, once per world, and at the trainer's line."""

import inspect
import warnings

import pytest
import torch
from models import SPEC, Model, make, set_gradients
from ranks import run_ranks
from torch.distributed.checkpoint import state_dict as dcp
from torch.distributed.fsdp import fully_shard

import stepc
from stepc.torch import Optimizer, export_manifest

WARNING = """<specification>:1:1: warning: except pattern "haed" matches no parameter
  warn {}
  ^
hint: one"""


def told(function):
    """Messages and places of what a function warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [(str(one.message), one.filename, one.lineno) for one in found
            if issubclass(one.category, stepc.CompileWarning)]  # fmt: skip


def test_warnings_point_at_the_trainers_line(fake):
    model = Model()
    made = []
    assert told(lambda: made.append(make(model, "warn {}"))) == []
    optimizer = made[0]
    set_gradients(model, 0)
    line = inspect.currentframe().f_lineno + 1
    assert told(lambda: optimizer.step()) == [(WARNING, __file__, line)]
    assert told(lambda: optimizer.step()) == []
    # From the cache, through a function of torch's, and as an error where a trainer wants that.
    again = make(model, "warn {}")
    line = inspect.currentframe().f_lineno + 1
    assert told(lambda: dcp.get_optimizer_state_dict(model, again)) == [(WARNING, __file__, line)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", stepc.CompileWarning)
        with pytest.raises(stepc.CompileWarning, match='pattern "haed" matches no parameter'):
            make(model, "warn {}").step()
    assert told(lambda: make(model, SPEC).prepare()) == []


def test_the_functions_of_the_package_warn(fake, tmp_path):
    manifest = export_manifest(Model().named_parameters())
    path = tmp_path / "own.optim"
    path.write_text("warn {}")
    expected = WARNING.replace("<specification>", str(path))
    line = inspect.currentframe().f_lineno + 1
    assert told(lambda: stepc.compile(path, manifest)) == [(expected, __file__, line)]
    assert told(lambda: stepc.compile(path, manifest, output=tmp_path)) != []
    assert [text for text, *_ in told(lambda: stepc.check(path, manifest))] == [expected]
    # Kept beside the library without the path, which another caller may not have.
    other = tmp_path / "own" / "own.optim"
    other.parent.mkdir()
    other.write_text("warn {}")
    assert told(lambda: stepc.compile(other, manifest))[0][0].startswith(f"{other}:1:1: warning")


def _worlds(rank):
    model = Model()
    del model.s  # FSDP2 takes no scalars
    fully_shard(model)
    optimizer = Optimizer(model.named_parameters(), "warn {}", Plain={"lr": 1.0}, timeout=20.0)
    return told(lambda: optimizer.prepare()), told(lambda: optimizer.prepare())


def test_one_rank_of_a_world_warns(fake):
    (first, again), other = run_ranks(_worlds, 2)
    assert [text for text, *_ in first] == [WARNING] and first[0][1] == __file__
    assert again == [] and other == ([], [])


SPELLING = """
optimizer Sgd(lr) { param = param - lr * grad }
route {
  Sgd(lr = 0.1) for matrix except "haed*"
  Sgd(lr = 0.2) for rest
}
"""


def test_a_misspelt_exception_is_told(real):
    model = Model()
    set_gradients(model, 0)
    optimizer = Optimizer(model.named_parameters(), SPELLING)
    with pytest.warns(stepc.CompileWarning) as found:
        optimizer.step()
    (text,) = [str(one.message) for one in found]
    assert text.startswith("<specification>:4:3: warning: except pattern \"haed*\"")
    assert '\n    Sgd(lr = 0.1) for matrix except "haed*"\n    ^' in text
    assert not torch.equal(model.w, Model().w)
