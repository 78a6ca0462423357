"""Hugging Face's Trainer, alone or with accelerate's FSDP2: a stepc optimizer in ``create_optimizer``."""

from pathlib import Path

import transformers

import stepc.torch

ADAMW = Path(__file__).with_name("adamw.optim")


class Trainer(transformers.Trainer):
    def create_optimizer(self, model=None):
        if self.optimizer is None:
            named = (self.model if model is None else model).named_parameters()
            self.optimizer = stepc.torch.Optimizer(named, ADAMW, lr=self.args.learning_rate)
        return self.optimizer
