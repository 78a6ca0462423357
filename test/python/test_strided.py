"""Strided shards without ranks: what sizes tell of all shards, and of one."""

import dataclasses
import itertools
from types import SimpleNamespace

import pytest
import torch
from torch.distributed.tensor.placement_types import Shard, _StridedShard

from stepc.torch import PlacementError
from stepc.torch.entries import Entry, Mesh
from stepc.torch.slices import _positions, cut, moved_in
from stepc.torch.strided import held, is_ambiguous, moved_dimensions, resolve
from stepc.torch.uneven import as_it_lies

TEXTS = ["_S(0, {})", "S(0)"]


def chunk(size, pieces, index):
    length = -(-size // pieces)
    return max(0, min(length, size - index * length))


def stored_size(size, dp, tp, place):
    """FSDP2's: tensor parallelism cuts first."""
    return chunk(chunk(size, tp, place[1]), dp, place[0])


@pytest.mark.parametrize("empty", [(0, 5), (0, 0)])
def test_empty_shards_say_nothing_of_their_other_sizes(empty):
    """Two experts on three ranks: the last holds none, whatever its second dimension is."""
    mesh = Mesh((("ep", 3), ("dp", 3), ("tp", 2)), tuple(range(18)))
    entry = Entry("w", (2, 7, 4), "f32", "f32", mesh, ("S(0)", "_S(1, 2)", "S(1)"))
    assert is_ambiguous(entry.shape, [3, 3, 2], entry.placements)
    shapes = {}
    for rank, (ep, *place) in enumerate(itertools.product(range(3), range(3), range(2))):
        shapes[rank] = (1, stored_size(7, 3, 2, place), 4) if ep < 2 else (*empty, 4)
    found = resolve(entry, shapes)
    assert found.placements == ("S(0)", "S(1)", "S(1)")
    assert [name for name, _ in found.mesh.axes] == ["ep", "tp", "dp"]


@pytest.mark.parametrize(("size", "dp", "tp"), [(27, 3, 4), (38, 4, 4), (50, 4, 4), (49, 5, 4)])
def test_what_all_ranks_sizes_tell_decides_for_each(size, dp, tp):
    texts = [one.format(tp) for one in TEXTS]
    unsure, found = [], {True: [], False: []}
    for place in itertools.product(range(dp), range(tp)):
        local = (stored_size(size, dp, tp, place), 3)
        (runs, _) = held((size, 3), [dp, tp], texts, place, local, {0})
        found[True] += [index for first, last in runs for index in range(first, last)]
        assert sum(last - first for first, last in runs) == local[0]
        try:
            held((size, 3), [dp, tp], texts, place, local)
        except ValueError as error:
            unsure.append(place)
            assert "expected a shard whose size tells which elements of dimension 0 it holds" in str(error)
            assert f"found {local[0]} of {size} under {texts}" in str(error)
            (other, _) = held((size, 3), [dp, tp], texts, place, local, ())
            assert other != runs
    assert unsure and sorted(found[True]) == list(range(size))


def test_dimensions_that_the_library_has_other_words_for():
    assert moved_dimensions(["_S(0, 2)", "S(0)"], "[S(0), S(0)]") == {0}
    assert moved_dimensions(["_S(0, 2)", "S(0)"], "[_S(0, 2), S(0)]") == frozenset()
    own = ["_S(0, 2)", "S(0)", "_S(1, 2)", "S(1)"]
    assert moved_dimensions(own, "[S(0), S(0), _S(1, 2), S(1)]") == {0}
    assert moved_in(torch.zeros(2), "[]") == frozenset()


def test_sizes_that_fit_both_ways_of_cutting():
    mesh = Mesh((("a", 3), ("b", 3), ("c", 3)), tuple(range(27)))
    entry = Entry("w", (30, 2), "f32", "f32", mesh, ("_S(0, 9)", "_S(0, 3)", "S(0)"))
    assert is_ambiguous(entry.shape, [3, 3, 3], entry.placements)
    shapes = {}
    for rank, (a, b, c) in enumerate(itertools.product(range(3), repeat=3)):
        shapes[rank] = (chunk(chunk(chunk(30, 3, c), 3, b), 3, a), 2)
    with pytest.raises(PlacementError, match="dimension 0 of size 30 in shards that fit both of them"):
        resolve(entry, shapes)
    # A rule that does the same to every element does not ask which a rank holds; whoever cuts a whole tensor
    # does.
    entry = dataclasses.replace(entry, elementwise=True, local_shape=shapes[0])
    kept = resolve(entry, shapes)
    assert (kept.mesh, kept.placements) == (mesh, entry.placements)
    placements = [_StridedShard(0, split_factor=9), _StridedShard(0, split_factor=3), Shard(0)]
    unsure = []
    for rank, place in enumerate(itertools.product(range(3), repeat=3)):
        like = shard_of(entry.shape, [3, 3, 3], placements, place, shapes[rank])
        try:
            cut(torch.zeros(30, 2), like, frozenset())
        except ValueError as error:
            unsure.append(str(error))
    assert unsure and all("whose size tells" in text for text in unsure)
    # Sizes that fit neither are an error all the same.
    with pytest.raises(PlacementError, match="fit neither"):
        as_it_lies(entry, shapes | {0: (1, 2)})


def shard_of(shape, sizes, placements, place, local):
    """What `cut` looks at in a DTensor, without a process group."""
    mesh = SimpleNamespace(shape=tuple(sizes), get_coordinate=lambda: list(place))
    return SimpleNamespace(device_mesh=mesh, shape=torch.Size(shape), placements=placements,
                           _local_tensor=torch.zeros(local))  # fmt: skip


def test_shards_that_do_not_fit_what_they_are_cut_from():
    like = shard_of((6, 2), [3], [Shard(0)], [1], (2, 2))
    assert cut(torch.arange(12.0).view(6, 2), like).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    with pytest.raises(ValueError, match=r"expected the shape \[6, 2\], found \[2, 6\]"):
        cut(torch.zeros(2, 6), like)
    with pytest.raises(ValueError, match=r"expected a shard of \[3, 2\], found \[2, 2\]"):
        cut(torch.zeros(6, 2), shard_of((6, 2), [3], [Shard(0)], [1], (3, 2)))
    # 27 rows on 3 x 4: this rank's two rows are not enough to know.
    placements, place = [_StridedShard(0, split_factor=4), Shard(0)], unsure_place(27, 3, 4)
    like = shard_of((27, 2), [3, 4], placements, place, (stored_size(27, 3, 4, place), 2))
    whole = torch.arange(54.0).view(27, 2)
    with pytest.raises(ValueError, match="whose size tells"):
        cut(whole, like)
    part = whole.chunk(4)[place[1]].chunk(3)[place[0]]
    assert torch.equal(cut(whole, like, {0}), part) and not torch.equal(cut(whole, like, ()), part)


def unsure_place(size, dp, tp):
    texts = [one.format(tp) for one in TEXTS]
    for place in itertools.product(range(dp), range(tp)):
        try:
            held((size,), [dp, tp], texts, place, (stored_size(size, dp, tp, place),))
        except ValueError:
            return place
    raise AssertionError("every rank can tell")


def test_indices_that_are_not_there():
    assert _positions([(1, 3), (5, 6)], [(0, 2), (2, 4), (5, 9)]) == [(1, 1), (2, 1), (4, 1)]
    with pytest.raises(ValueError, match="expected index 4, which this rank does not hold"):
        _positions([(3, 6)], [(0, 4), (5, 9)])
