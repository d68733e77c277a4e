"""Steps a second of the article's pre-norm model: normlab against PyTorch and JAX, on this machine.

    python peers.py --bin build/release/bin --torch .venv/bin/python --jax .venv-test/bin/python

Every contestant gets the whole machine and uses it as it does best: one process with all cores, or
one process a core, each pinned. Measured is the steady state, in steps a second of all its processes
together: start-up and compilation are left out. Contestants take turns, and the medians are
compared.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

STEPS = 60
WARM_UP = 10


# --- What a process of a contestant does. Each prints steps a second. ------------------------------


def train_torch(compiled, threads):
    import torch
    from torch_decoder import Decoder

    torch.set_num_threads(threads)
    torch.manual_seed(7)

    model = Decoder(layers=12, width=64, heads=4, vocab=64, length=32)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    loss_of = torch.compile(model) if compiled else model

    def step():
        start = torch.randint(64, (24, 1))
        tokens = (start + torch.arange(32)) % 64
        loss = loss_of(tokens, (tokens + 1) % 64)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
        optimizer.step()
        return loss.item(), norm.item()

    return timed(step)


def train_jax():
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "parity"))
    import article_jax

    rows = article_jax.train(article_jax.Config(steps=WARM_UP + STEPS), article_jax.RUNS[0])
    return timed(lambda: next(rows))


def timed(step):
    for _ in range(WARM_UP):
        step()
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    return STEPS / (time.perf_counter() - started)


# --- The race --------------------------------------------------------------------------------------


def pinned(cores):
    return lambda: os.sched_setaffinity(0, cores)


def run_processes(command, groups, read):
    """One process for each group of cores, all at once; their steps a second added."""
    environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")
    processes = [
        subprocess.Popen(
            command(len(group)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            preexec_fn=pinned(group),
        )
        for group in groups
    ]
    rates = []
    for process in processes:
        output = process.communicate()[0]
        if process.returncode != 0:
            sys.exit(output)
        rates.append(read(output))
    return sum(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", choices=["eager", "compile", "jax"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bin")
    parser.add_argument("--torch")
    parser.add_argument("--jax")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.worker:
        rate = train_jax() if arguments.worker == "jax" else train_torch(
            arguments.worker == "compile", arguments.threads)
        print("steps/s", rate)
        return

    cores = sorted(os.sched_getaffinity(0))
    whole, each = [set(cores)], [{core} for core in cores]

    def worker(python, name):
        return lambda threads: [python, __file__, "--worker", name, "--threads", str(threads)]

    def own(threads):
        return [f"{arguments.bin}/normlab-train-csv", "--quiet", f"--threads={threads}",
                f"--steps={WARM_UP + STEPS}"]

    def printed(output):
        return float(re.search(r"steps/s ([\d.e+-]+)", output).group(1))

    def own_rate(output):
        return 1000 / float(re.search(r"([\d.]+) ms a step", output).group(1))

    contestants = [("normlab, a process a core", own, each, own_rate)]
    for name, python in (("eager", arguments.torch), ("compile", arguments.torch),
                         ("jax", arguments.jax)):
        title = {"eager": "PyTorch eager", "compile": "torch.compile", "jax": "JAX jit"}[name]
        contestants.append((f"{title}, one process", worker(python, name), whole, printed))
        contestants.append((f"{title}, a process a core", worker(python, name), each, printed))
    rates = {name: [] for name, *_ in contestants}
    for number in range(arguments.rounds):
        for name, command, groups, read in contestants:
            print(f"\rround {number + 1} of {arguments.rounds}: {name:40}", end="",
                  file=sys.stderr, flush=True)
            rates[name].append(run_processes(command, groups, read))
    print(file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    if arguments.json:
        print(json.dumps(medians))
        return
    ours = medians[contestants[0][0]]
    print("| contestant | steps/s | normlab is faster by |\n| --- | ---: | ---: |")
    for name, rate in medians.items():
        print(f"| {name} | {rate:.1f} | {ours / rate:.2f} |")


if __name__ == "__main__":
    main()
