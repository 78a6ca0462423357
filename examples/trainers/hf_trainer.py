"""Hugging Face's Trainer, alone or with accelerate's FSDP2: a stepc optimizer in ``create_optimizer``."""

from pathlib import Path

import transformers

import stepc.torch

ADAMW = Path(__file__).with_name("adamw.optim")


class Trainer(transformers.Trainer):
    def create_optimizer(self, model=None):
        if self.optimizer is None:
            args, model = self.args, self.model if model is None else model
            decayed = set(self.get_decay_parameter_names(model))  # as Trainer's own: no biases, no norms
            groups = {True: {"params": [], "weight_decay": args.weight_decay}, False: {"params": [], "weight_decay": 0.0}}
            for name, parameter in model.named_parameters():
                groups[name in decayed]["params"].append((name, parameter))
            options = {"lr": args.learning_rate, "betas": (args.adam_beta1, args.adam_beta2), "eps": args.adam_epsilon}
            self.optimizer = stepc.torch.Optimizer([one for one in groups.values() if one["params"]], ADAMW, **options)
        return self.optimizer
