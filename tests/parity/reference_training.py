"""The training loop around a reference model: PyTorch's optimisers, schedules and clipping."""

import math

import torch
from torch.optim import lr_scheduler

from reference_model import IGNORED, decoder_logits, summed_cross_entropy


def decayed_groups(config, parameters):
    """Parameters with and without weight decay; a matrix has at least two axes longer than one."""

    def is_matrix(tensor):
        return sum(size > 1 for size in tensor.shape) >= 2

    decayed = [p for p in parameters if config.decay_parameters == "all" or is_matrix(p)]
    others = [p for p in parameters if not any(p is one for one in decayed)]
    return [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


class DecoupledSgd(torch.optim.SGD):
    """PyTorch's SGD, whose own weight decay enters the momentum, with AdamW's instead."""

    def step(self, closure=None):
        decays = [group["weight_decay"] for group in self.param_groups]
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.mul_(1 - group["lr"] * group["weight_decay"])
            group["weight_decay"] = 0.0
        super().step(closure)
        for group, decay in zip(self.param_groups, decays):
            group["weight_decay"] = decay


def make_optimizer(config, parameters):
    groups = decayed_groups(config, parameters)
    if config.optimizer == "sgd":
        return DecoupledSgd(groups, lr=config.learning_rate, momentum=config.momentum)
    betas = (config.beta1, config.beta2)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, eps=config.epsilon)


def make_schedule(config, optimizer):
    """A scheduler whose rate before its n-th step is that of training step n."""
    rate, floor = config.learning_rate, config.learning_rate_floor
    warmup, rest = config.warmup_steps, config.steps - max(1, config.warmup_steps)
    if config.schedule == "noam":

        def noam(count):
            step = count + 1
            return config.d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)

        return lr_scheduler.LambdaLR(optimizer, noam)
    after = {
        "constant": lambda: lr_scheduler.ConstantLR(optimizer, factor=1.0),
        "cosine": lambda: lr_scheduler.CosineAnnealingLR(optimizer, T_max=rest, eta_min=floor),
        "linear": lambda: lr_scheduler.LinearLR(optimizer, 1.0, floor / rate, total_iters=rest),
    }[config.schedule]()
    if warmup <= 1:
        return after
    # The first update already has rate / warmup, and the step number `warmup` the full rate.
    before = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, total_iters=warmup - 1)
    return lr_scheduler.SequentialLR(optimizer, [before, after], milestones=[warmup - 1])


def global_norm(gradients):
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients))


class ReferenceRun:
    """One model being trained by PyTorch from given weights {path: array}."""

    def __init__(self, config, tensors, logits=decoder_logits, dtype=torch.float64):
        self.config = config
        self.logits = logits
        self.tensors = {
            path: torch.tensor(value, dtype=dtype, requires_grad=True)
            for path, value in tensors.items()
        }
        self.optimizer = make_optimizer(config, list(self.tensors.values()))
        self.schedule = make_schedule(config, self.optimizer)

    def backward(self, batches):
        """The loss of a step and, in the tensors, its gradients: the mean over all targets that
        count, whichever batch they are in."""
        self.optimizer.zero_grad()
        counted = sum(int((batch["targets"] != IGNORED).sum()) for batch in batches)
        loss = 0.0
        for batch in batches:
            logits = self.logits(self.config, self.tensors, batch)
            batch_loss = summed_cross_entropy(logits, batch["targets"]) / counted
            loss += batch_loss.item()
            # A model's auxiliary loss is trained on but not shown; it counts as its batch does.
            share = float((batch["targets"] != IGNORED).sum()) / counted
            (batch_loss + share * getattr(self.logits, "auxiliary_loss", 0.0)).backward()
        for tensor in self.tensors.values():
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
        return loss

    def gradients(self):
        return {path: tensor.grad.numpy().copy() for path, tensor in self.tensors.items()}

    def step(self, batches):
        """(loss, gradient norm before clipping, learning rate) of a step; then updates."""
        loss = self.backward(batches)
        norm = global_norm(tensor.grad for tensor in self.tensors.values())
        if self.config.clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.tensors.values(), self.config.clip_norm)
        rate = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        self.schedule.step()
        return loss, norm, rate

    def train(self, steps):
        """The curve [step, (loss, norm, rate)] over `steps`, a list of lists of batches."""
        return [self.step(batches) for batches in steps]
