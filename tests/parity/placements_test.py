"""Compares the engine with PyTorch in double precision: every placement of the norms.

    python placements_test.py --engine path/to/normlab-train-csv [--torch .../torch]

For each case both start from the same weights, which a safetensors file carries, and see the same
batches. Compared are the gradient of step 1, tensor by tensor, and loss and gradient norm of 20
steps. A wrong formula put in the reference's place has to be noticed: see MISTAKES.
"""

import subprocess
import sys
import tempfile

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import numpy as np
import torch

import reference_model as model
from comparison import compare, of_placement

CASES = {placement: of_placement(placement) for placement in model.STACKS}
# Four blocks, so that the first one of `mix` is post and the others are not.
CASES["mix"] = of_placement("mix", layers=4)
for name in model.STACKS:
    # Everything that combines with every placement, at once.
    CASES[f"{name}, all options"] = of_placement(
        name,
        layers=4,
        norm="rmsnorm" if CASES[name].norm == "layernorm" else "layernorm",
        norm_epsilon=0.03,
        final_norm=not CASES[name].final_norm,
        qk_norm="rms-head" if CASES[name].qk_norm != "rms-head" else "rms-full",
        residual_scale=0.7,
        tie_embeddings=True,
        positions="rotary",
        activation="swiglu",
        mix_fraction=0.5,
    )


# --- Mistakes that are easily made: formulas close to the right one, with the same parameters.


def post_without_norm_on_the_identity(b, x):
    u = x + b.branch(b.norm("attention_norm", b.attention(x)))
    return u + b.branch(b.norm("mlp_norm", b.feed_forward(u)))


def pre_with_one_input_for_both(b, x):
    branch = b.branch(b.attention(b.norm("attention_norm", x)))
    return x + branch + b.branch(b.feed_forward(b.norm("mlp_norm", x)))


def post_single_with_normed_middle(b, x):
    u = b.norm("norm", x + b.branch(b.attention(x)))
    return b.norm("norm", u + b.branch(b.feed_forward(u)))


def sandwich_with_norm_of_the_sum(b, x):
    branch = b.attention(b.norm("attention_norm", x))
    u = b.norm("attention_output_norm", x + b.branch(branch))
    branch = b.feed_forward(b.norm("mlp_norm", u))
    return b.norm("mlp_output_norm", u + b.branch(branch))


def olmo2_with_norm_before(b, x):
    return model.pre(b, x)


def normformer_with_norm_before_the_activation(b, x):
    heads = b.head_outputs(b.norm("attention_norm", x))
    scaled = b.weights["head_scale"][:, None, None] * heads
    u = x + b.branch(b.norm("attention_output_norm", b.attention_output(scaled)))
    hidden = b.linear("mlp_in", b.norm("mlp_norm", u))
    hidden = model.ACTIVATIONS[b.config.activation](b.norm("mlp_hidden_norm", hidden))
    return u + b.branch(b.linear("mlp_out", hidden))


def deepnorm_with_alpha_on_the_branch(b, x):
    alpha = (2 * b.config.layers) ** 0.25
    u = b.norm("attention_norm", x + alpha * b.branch(b.attention(x)))
    return b.norm("mlp_norm", u + alpha * b.branch(b.feed_forward(u)))


def admin_with_omega_on_the_branch(b, x):
    u = b.norm("attention_norm", x + b.weights["attention_omega"] * b.branch(b.attention(x)))
    return b.norm("mlp_norm", u + b.weights["mlp_omega"] * b.branch(b.feed_forward(u)))


def rezero_with_fixed_attention(b, x):
    u = x + b.branch(b.attention(x))
    return u + b.weights["rezero_scale"] * b.branch(b.feed_forward(u))


def layerscale_before_the_branch(b, x):
    u = x + b.branch(b.attention(b.weights["attention_lambda"] * b.norm("attention_norm", x)))
    return u + b.branch(b.feed_forward(b.weights["mlp_lambda"] * b.norm("mlp_norm", u)))


def hybrid_with_unnormed_identity(b, x):
    y = x + b.branch(b.attention(x))
    return y + b.branch(b.feed_forward(b.norm("mlp_norm", y)))


def residual_dual_without_the_input(config, weights, blocks, x):
    return model.residual_dual(config, weights, blocks, x) - x


MISTAKES = {
    "pre": model.blocks_in_turn(pre_with_one_input_for_both),
    "post": model.blocks_in_turn(post_without_norm_on_the_identity),
    "post-single": model.blocks_in_turn(post_single_with_normed_middle),
    "sandwich": model.blocks_in_turn(sandwich_with_norm_of_the_sum),
    "olmo2": model.blocks_in_turn(olmo2_with_norm_before),
    "normformer": model.blocks_in_turn(normformer_with_norm_before_the_activation),
    "deepnorm": model.blocks_in_turn(deepnorm_with_alpha_on_the_branch),
    "admin": model.blocks_in_turn(admin_with_omega_on_the_branch),
    "rezero": model.blocks_in_turn(rezero_with_fixed_attention),
    "layerscale": model.blocks_in_turn(layerscale_before_the_branch),
    "b2t": model.STACKS["post"],
    "residual-dual": residual_dual_without_the_input,
    "mix": model.STACKS["pre"],
    "hybrid": model.blocks_in_turn(hybrid_with_unnormed_identity),
    "hybrid-star": model.STACKS["pre"],
    "lns": model.STACKS["pre"],
    "none": model.blocks_in_turn(lambda b, x: x + b.feed_forward(b.attention(x))),
}


def check_mistake(name, mistake, compared):
    """The engine's curve is not that of a formula that is almost right."""

    def logits(config, tensors, batch):
        return model.decoder_logits(config, tensors, batch, stack=mistake)

    loss, norm = compared.errors_of(compared.config, logits, steps=3)
    checks.check(
        max(loss, norm) > 1e-2,
        f"{name}: the mistaken formula differs, loss by {loss:.0e}, norm by {norm:.0e}",
    )


def check_all_are_here():
    """The engine says which placements it knows when it is asked for one that it does not."""
    command = [ARGUMENTS.engine, "--placement=?"]
    refusal = subprocess.run(command, capture_output=True, text=True).stderr
    known = set(refusal.strip().partition("known are ")[2].split(", "))
    checks.check(
        known == model.STACKS.keys() == MISTAKES.keys(),
        f"all {len(known)} placements of the engine have a reference and a mistake",
    )


def main():
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    check_all_are_here()
    with tempfile.TemporaryDirectory() as folder:
        for name, config in CASES.items():
            if ARGUMENTS.only not in name:
                continue
            compared = compare(name, config, folder, ARGUMENTS.engine)
            if name in MISTAKES:
                check_mistake(name, MISTAKES[name], compared)
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
