"""Steps a second of the same models in PyTorch on this GPU, eager and compiled, fp32 without TF32.

Prints lines "name<TAB>model<TAB>steps/s", as normlab-gpu-check speed does. Each measures the steady
state: warm-up and compilation are left out. Losses and norms stay on the GPU until the end, which
is the best that a script can do.
"""

import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
from torch_decoder import Decoder

MODELS = {
    "article": dict(layers=12, width=64, heads=4, vocab=64, length=32, batch=24, steps=300),
    "d512x8": dict(layers=8, width=512, heads=8, vocab=512, length=256, batch=8, steps=100),
}


def steps_per_second(config, compiled):
    config = dict(config)
    steps, batch = config.pop("steps"), config.pop("batch")
    torch.manual_seed(7)
    model = Decoder(**config).cuda()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01,
                                  fused=True)
    loss_of = torch.compile(model) if compiled else model
    vocab, length = config["vocab"], config["length"]
    seen = []

    def step():
        start = torch.randint(vocab, (batch, 1))
        tokens = ((start + torch.arange(length)) % vocab).cuda(non_blocking=True)
        loss = loss_of(tokens, (tokens + 1) % vocab)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        seen.append((loss.detach(), torch.nn.utils.get_total_norm([p.grad for p in parameters])))
        optimizer.step()

    for _ in range(20):
        step()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - started)


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for compiled in (False, True):
        title = "torch.compile" if compiled else "PyTorch eager"
        for name, config in MODELS.items():
            try:
                rate = f"{steps_per_second(config, compiled):.1f}"
            except Exception as error:  # the other rows are worth having
                rate = "failed: " + str(error).splitlines()[0]
            print(f"{title}\t{name}\t{rate}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
