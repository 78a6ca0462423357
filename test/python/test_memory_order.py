"""Parameters whose axes are permuted in memory step as contiguous ones do."""

import inspect
import warnings

import pytest
import torch
from models import Model, make, same, set_gradients
from torch import nn

import stepc
from stepc.torch import Optimizer


def _strided(value):
    """The same values in other orders of memory."""
    kinds = {"contiguous": value.contiguous()}
    kinds["transposed"] = value.transpose(0, 1).contiguous().transpose(0, 1)
    if value.dim() == 4:
        kinds["channels last"] = value.to(memory_format=torch.channels_last)
    return kinds


@pytest.mark.filterwarnings("ignore:.*strides")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_order_changes_no_bit(real, dtype):
    spec = """
    optimizer Muon(lr) {
      master : f32
      state m : f32
      state r : f32[rows]
      m = 0.5 * m + grad
      r = r + mean(m * m, over = columns)
      param = param - lr * orthogonalize(m) / (1 + r)
    }
    optimizer Sgd(lr) {
      state m : f32
      m = 0.5 * m + grad
      param = param - lr * m
    }
    route { Muon(lr = 0.1) for ROUTE
            Sgd(lr = 0.1) for rest }
    """
    for shape, sgd in (((6, 4), False), ((6, 4), True), ((3, 2, 4, 5), True)):
        text = spec.replace("ROUTE", 'matrix except "w"' if sgd else "matrix")
        torch.manual_seed(0)
        values = [torch.randn(shape).to(dtype) for _ in range(4)]
        results = {}
        for kind, value in _strided(values[0]).items():
            w = nn.Parameter(value.clone(memory_format=torch.preserve_format))
            # One that the matrix route always has, and what the other may get.
            v = nn.Parameter(torch.ones(2, 3, dtype=dtype))
            stride = w.stride()
            optimizer = Optimizer([("w", w), ("v", v), ("b", nn.Parameter(torch.ones(2)))], text)
            for gradient in values[1:]:
                w.grad, v.grad = gradient.clone(), torch.ones_like(v)
                optimizer.param_groups[-1]["params"][-1].grad = torch.ones(2)
                optimizer.step()
            assert w.stride() == stride and (kind == "contiguous") == w.is_contiguous()
            states = [optimizer.state[w][name] for name in optimizer.state[w]]
            results[kind] = [w.detach(), *states]
        for kind, found in results.items():
            assert same(found, results["contiguous"]), (shape, kind)


def _transposed(*names):
    """A model and its optimizer; the named parameters are transposed in memory."""
    model = Model()
    for name in names:
        tensor = getattr(model, name)
        tensor.data = tensor.data.t().contiguous().t()
    set_gradients(model, 0)
    return model, make(model)


def _told(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [(one.category, str(one.message), one.filename, one.lineno) for one in found]


def test_copies_are_told_once_at_the_trainers_line(fake, way):
    model, optimizer = _transposed("w", "v")
    for name in ("w", "v"):
        getattr(model, name).grad = getattr(model, name).grad.t().contiguous().t()
    line = inspect.currentframe().f_lineno + 1
    assert _told(lambda: optimizer.step()) == [
        (UserWarning, "parameter 'w': it has the strides (1, 4) for the shape [4, 3]; parameters that "
         "are not contiguous, here 2, are copied in every step; p.data = p.data.contiguous() saves the "
         "copies", __file__, line),
        (UserWarning, "parameter 'w': its gradient has the strides (1, 4) for the shape [4, 3]; "
         "gradients that are not contiguous, here 2, are copied in every step", __file__, line),
    ]  # fmt: skip
    # Also where their memory has moved.
    model.w.data = model.w.data.t().clone().t()
    assert _told(lambda: optimizer.step()) == []


def _copies_that_raise(monkeypatch, target, times):
    """Copies into a tensor raise so many times; the ones that did."""
    copy, raised = torch.Tensor.copy_, []

    def copy_or_raise(self, *arguments, **options):
        if self is target and len(raised) < times:
            raised.append("copy")
            raise RuntimeError("no copy today")
        return copy(self, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "copy_", copy_or_raise)
    return raised


@pytest.mark.filterwarnings("ignore:.*strides")
def test_a_copy_that_fails_poisons_the_optimizer(fake, monkeypatch):
    """The library has stepped the copy and its states; the parameter is left behind."""
    model, optimizer = _transposed("w", "v")
    optimizer.step()
    before, state = model.v.detach().clone(), optimizer.state[model.v]["m"].clone()
    raised = _copies_that_raise(monkeypatch, model.v, 2)
    with pytest.raises(RuntimeError, match="no copy today"):
        optimizer.step()
    assert len(raised) == 2 and torch.equal(model.v, before)
    assert optimizer.half_stepped() == ["w", "v"]
    with pytest.raises(stepc.PoisonedError, match="an earlier step failed: no copy today"):
        optimizer.step()
    optimizer.recover()
    optimizer.prepare()
    assert not torch.equal(optimizer.state[model.v]["m"], state)


def _interrupted_after(step):
    step()
    raise KeyboardInterrupt("a signal handler")


@pytest.mark.filterwarnings("ignore:.*strides")
@pytest.mark.parametrize("where", ["copy", "library"])
def test_an_error_after_the_librarys_step_loses_no_copy(fake, way, monkeypatch, where):
    model, optimizer = _transposed("w", "v")
    twin, other = _transposed()
    optimizer.step()
    with monkeypatch.context() as patch:
        if where == "copy":
            _copies_that_raise(patch, model.w, 1)
        else:
            instance = optimizer._binding.instance
            patch.setattr(instance, "step", lambda step=instance.step: _interrupted_after(step))
        with pytest.raises((RuntimeError, KeyboardInterrupt), match="no copy today|handler"):
            optimizer.step()
    other.step()
    other.step()
    assert optimizer.half_stepped() == [] and same(model.parameters(), twin.parameters())
    optimizer.step()
    other.step()
    assert same(model.parameters(), twin.parameters())
