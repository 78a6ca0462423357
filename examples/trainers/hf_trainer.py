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
            groups = []
            for decay, which in ((args.weight_decay, True), (0.0, False)):
                named = [one for one in model.named_parameters() if (one[0] in decayed) == which]
                groups += [{"params": named, "weight_decay": decay}] if named else []
            betas = (args.adam_beta1, args.adam_beta2)
            options = {"lr": args.learning_rate, "betas": betas, "eps": args.adam_epsilon}
            self.optimizer = stepc.torch.Optimizer(groups, ADAMW, **options)
        return self.optimizer
