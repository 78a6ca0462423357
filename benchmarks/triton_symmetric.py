"""A symmetric product in Triton, as others have it: tiles above the diagonal are left out, and those below are
stored twice. Only for `orthogonalize.py`, where Triton is installed."""

import triton
import triton.language as tl


@triton.jit
def _kernel(a, addend, out, rows, k, a_block, a_row, a_column, out_block, alpha, beta,
            HAS_ADDEND: tl.constexpr, TILE: tl.constexpr, SLAB: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    number, block = tl.program_id(0), tl.program_id(1)
    across = tl.cdiv(rows, TILE)
    # Neighbors in time share rows and columns in the second level's cache.
    first = number // (GROUP * across) * GROUP
    height = tl.minimum(across - first, GROUP)
    i, j = first + number % (GROUP * across) % height, number % (GROUP * across) // height
    if j > i:
        return
    left, right, steps = i * TILE + tl.arange(0, TILE), j * TILE + tl.arange(0, TILE), tl.arange(0, SLAB)
    base = a + block.to(tl.int64) * a_block
    lhs = base + left[:, None] * a_row + steps[None, :] * a_column
    rhs = base + right[None, :] * a_row + steps[:, None] * a_column
    in_left, in_right = left[:, None] < rows, right[None, :] < rows
    total = tl.zeros((TILE, TILE), tl.float32)
    for step in range(0, k, SLAB):
        inside = steps < k - step
        one = tl.load(lhs, mask=in_left & inside[None, :], other=0.0)
        other = tl.load(rhs, mask=in_right & inside[:, None], other=0.0)
        total = tl.dot(one, other, total)
        lhs += SLAB * a_column
        rhs += SLAB * a_column
    at = block.to(tl.int64) * out_block + left[:, None] * rows + right[None, :]
    inside = in_left & in_right
    total *= alpha
    if HAS_ADDEND:
        total += beta * tl.load(addend + at, mask=inside, other=0.0).to(tl.float32)
    made = total.to(out.dtype.element_ty)
    tl.store(out + at, made, mask=inside)
    if j < i:
        mirrored = block.to(tl.int64) * out_block + right[:, None] * rows + left[None, :]
        tl.store(out + mirrored, tl.trans(made), mask=(right[:, None] < rows) & (left[None, :] < rows))


CONFIGS = ((128, 64, 8, 3), (128, 64, 8, 4), (128, 64, 4, 4))  # tile, slab of k, warps, stages


def product(a, addend, out, alpha, beta, config):
    """out = alpha · a · aᵀ + beta · addend for stacks of matrices; `a` may have any strides."""
    tile, slab, warps, stages = config
    count, rows, k = a.shape
    across = triton.cdiv(rows, tile)
    _kernel[(across * across, count)](
        a, out if addend is None else addend, out, rows, k, *a.stride(), rows * rows, alpha, beta,
        addend is not None, tile, slab, 8, num_warps=warps, num_stages=stages,
    )  # fmt: skip
