"""Flattened parameters: what has more axes is the matrix that its rows and columns make, wherever the shards
end.

`test_blocks.py` compares, with the matrices as parameters of their own on one rank, and draws flattened ones
at random.
"""

import pytest
from compiler import STEPC
from test_blocks import RULES, Case, parameter

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

CONVOLUTION = (6, 4, 3, 3)


@pytest.mark.parametrize("strategy", ["owner", "gather"])
def test_convolutions_step_as_matrices(tmp_path, strategy):
    """Sharded along every axis; of depth, grouped and stacked ones; with rows of two axes."""
    shapes = [
        (CONVOLUTION, {"flatten": 1}),
        (CONVOLUTION, {"flatten": 2}),
        (CONVOLUTION, {"flatten": 1, "blocks": {"axis": "rows", "sizes": [3, 3]}}),
        (CONVOLUTION, {"flatten": 1, "blocks": {"axis": "columns", "sizes": [9, 27]}}),
        ((2, *CONVOLUTION), {"flatten": 2, "batch_axes": 1}),
        ((5, 2, 4), {"flatten": 1}),
    ]
    placed = [(sizes, [axis]) for sizes in ((2,), (3,)) for axis in range(5)]
    placed += [((2, 2), [1, 3]), ((2, 2), [2, 1]), ((2, 2), [None, 0])]
    parameters, meshes = [], {}
    for number, (sizes, axes) in enumerate(placed):
        meshes[f"m{number}"] = sizes
        for i, (shape, more) in enumerate(shapes):
            if all(axis is None or axis < len(shape) for axis in axes):
                placements = ["R" if axis is None else f"S({axis})" for axis in axes]
                rule = list(RULES)[(number + i) % len(RULES)]
                parameters.append(
                    parameter(f"{rule}.{i}.{number}", shape, placements, mesh=f"m{number}", **more)
                )
    options = ["--strategy", f"muon*={strategy}", "--strategy", f"factored*={strategy}"]
    Case(parameters, meshes).check(tmp_path, 6, *options)


def test_the_specification_flattens_as_the_manifest(tmp_path):
    said = ["flatten 1", "flatten 2", "flatten 1 rows each 3", "flatten 1 columns 9, 27"]
    equal = [{"flatten": 1}, {"flatten": 2}, {"flatten": 1, "blocks": {"axis": "rows", "sizes": [3, 3]}},
             {"flatten": 1, "blocks": {"axis": "columns", "sizes": [9, 27]}}]  # fmt: skip
    parameters = [parameter(f"{rule}.{i}", CONVOLUTION, ["S(1)"], **more) for rule in RULES for i, more in enumerate(equal)]
    case = Case(parameters, {"m": (3,)})
    case.check_statements(tmp_path, "".join(f'blocks "*.{i}" {text}\n' for i, text in enumerate(said)))
