"""A trainer with flat buffers, as Megatron's ParamAndGradBuffer and DistributedOptimizer have them, small:
parameters and their f32 gradients stand one after the other in padded buffers, of which each data-parallel
rank has an equal part."""

import math

import torch
import torch.distributed as dist
from torch import nn

from stepc.torch import Bucket

ALIGNMENT = 16


def padded(count, multiple):
    return -(-count // multiple) * multiple


class FlatBuffer:
    """Parameters of one data-parallel group, in the order in which gradients become ready: the reverse.

    `whole`: their values by name, on every rank. `group` shards the buffer (or none); `sharded`: parameters
    are kept as this rank's ranges alone, and gathered for the forward pass (ZeRO-3)."""

    def __init__(self, whole, group, sharded=False):
        self.group, self.ranks, self.sharded = group, dist.get_world_size(group), sharded
        self.shapes = {name: tuple(value.shape) for name, value in whole.items()}
        self.offsets, end = {}, 0
        for name in reversed(whole):
            self.offsets[name] = padded(end, ALIGNMENT)
            end = self.offsets[name] + math.prod(self.shapes[name])
        self.size = padded(end, self.ranks * ALIGNMENT)
        self.part = self.size // self.ranks
        self.begin = dist.get_rank(group) * self.part
        self.params = torch.full((self.size,), float("nan"), dtype=torch.bfloat16)  # padding is never read
        self.grads = torch.zeros(self.size, dtype=torch.float32)
        for name, value in whole.items():
            self.view(self.params, name).copy_(value)
        self.parameters = {name: nn.Parameter(self.own(self.params, name) if sharded else self.view(self.params, name))
                           for name in whole}  # fmt: skip
        self.leave_gradients()

    def view(self, buffer, name):
        offset = self.offsets[name]
        return buffer[offset : offset + math.prod(self.shapes[name])].view(self.shapes[name])

    def own(self, buffer, name):
        """This rank's elements of a parameter, where it has any."""
        offset = self.offsets[name]
        begin = max(offset, self.begin)
        end = min(offset + math.prod(self.shapes[name]), self.begin + self.part)
        return buffer[begin : max(begin, end)]

    def bucket(self):
        return Bucket(self.size, self.offsets, ALIGNMENT)

    def accumulate(self, gradients):
        """What the backward pass of this rank adds."""
        self.grads.fill_(float("nan"))
        for name, value in gradients.items():
            self.view(self.grads, name).copy_(value)

    def leave_gradients(self):
        """Contributions as they are: the step adds them up."""
        for name, p in self.parameters.items():
            p.main_grad = self.view(self.grads, name)

    def reduce_scatter(self):
        """Each rank has the average of its part; NaN elsewhere, which nobody may read."""
        buffer = torch.nan_to_num(self.grads)
        mine = torch.empty(self.part)
        dist.reduce_scatter_single(mine, buffer, group=self.group)
        self.grads.fill_(float("nan"))
        self.grads[self.begin : self.begin + self.part] = mine / self.ranks
        for name, p in self.parameters.items():
            p.main_grad = self.own(self.grads, name)

    def all_reduce(self):
        self.grads = torch.nan_to_num(self.grads)
        dist.all_reduce(self.grads, group=self.group)
        self.grads /= self.ranks
        self.leave_gradients()

    def gather(self):
        """The whole buffer out of its parts, as before a forward pass, or after the step of a trainer
        that does so.
        """
        mine = self.params[self.begin : self.begin + self.part].clone()
        dist.all_gather_single(self.params, mine, group=self.group)

    def values(self):
        return {name: self.view(self.params, name).clone() for name in self.shapes}
