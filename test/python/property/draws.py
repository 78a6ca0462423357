"""The random numbers of runtime/random/Philox.h in NumPy, and rounding by chance.

Philox4x32-10 is written from the paper (Salmon and others, SC 2011).
"""

import numpy as np

FACTORS, GROWTH = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
MASK = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Four words for each counter, an array of shape (n, 4)."""
    words = np.array(counter, np.uint64).T.copy()
    keys = [int(word) for word in key]
    for _ in range(10):
        a, b = np.uint64(FACTORS[0]) * words[0], np.uint64(FACTORS[1]) * words[2]
        words = np.stack([
            (b >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]), b & MASK,
            (a >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]), a & MASK,
        ])  # fmt: skip
        keys = [(word + more) % 2**32 for word, more in zip(keys, GROWTH, strict=True)]
    return words.T


def key_of(name, seed):
    """FNV-1a of the name: its upper half changes the seed, the lower half is the second word."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return seed ^ (state >> 32), state % 2**32


def drawn(positions, step, last, key):
    """Four words for each position. `last` is the last word of the counter."""
    same = np.ones_like(positions)
    counters = [positions & MASK, positions >> np.uint64(32), same * np.uint64(step), same * np.uint64(last)]
    return philox(np.stack(counters, axis=1), key)


def normal(name, count, seed=0, call=0):
    """The numbers of a parameter's elements."""
    total = np.full(count, 6 - (6 << 24), np.int64)
    elements, key = np.arange(count, dtype=np.uint64), key_of(name, seed)
    for part in range(3):
        total += (drawn(elements, 1, 4 * call + part, key) >> np.uint64(8)).astype(np.int64).sum(axis=1)
    return total.astype(np.float32) * np.float32(2.0**-24)


def words(name, count, step, seed=0, call=0):
    """So many words of 32 bits that a draw has for a parameter, in the order of its elements."""
    positions = np.arange(-(-count // 4), dtype=np.uint64)
    return drawn(positions, step, 4 * call, key_of(name, seed)).reshape(-1)[:count].astype(np.uint32)


def halves(name, count, step, seed=0, call=0):
    """So many numbers of 16 bits: two elements share a word, of which the first has the lower half."""
    pairs = words(name, -(-count // 2), step, seed, call)
    return np.stack([pairs & np.uint32(0xFFFF), pairs >> np.uint32(16)], axis=1).reshape(-1)[:count]


def uniform(drawn):
    """The numbers of words."""
    return (drawn >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def stochastic(x, drawn):
    """f32 rounded to bf16, as f32: up in magnitude if the dropped bits and 16 random ones carry."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    carried = (bits.astype(np.uint64) + drawn.reshape(x.shape)).astype(np.uint32)
    rounded = (carried & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded)
