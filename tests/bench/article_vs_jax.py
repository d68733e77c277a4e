"""How long the article's three runs take: normlab against the JAX script, on this machine.

    bash deploy/bench.sh [--rounds N]

Rounds alternate. JAX runs its three configurations in order, as a user's script would: all cores to
itself, compilation included. normlab is asked by its command line, against a server that is already
there: from the start of `normlab article` to the end of that process, table and files included, so
that submit, trainers' start-up, storage and streams all count. The ratio of the two medians is what
is claimed; the single times only say how quiet the machine was.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command, environment=None):
    """(wall seconds, CPU seconds of what the command waited for)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=environment)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_server(programs, data):
    server = subprocess.Popen([programs / "normlabd", "--data-dir", data, "--http", "127.0.0.1:0",
                               "--grpc", "127.0.0.1:0", "--log-level", "error"])
    while not (data / "endpoint.json").exists():
        if server.poll() is not None:
            sys.exit("normlabd did not start")
        time.sleep(0.01)
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    script = pathlib.Path(__file__).parent.parent / "parity" / "article_jax.py"

    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="normlab-bench-") as folder:
        data = pathlib.Path(folder) / "data"
        server = start_server(arguments.bin, data)
        try:
            for number in range(1, arguments.rounds + 1):
                ours.append(timed([arguments.bin / "normlab", "--data-dir", data, "article",
                                   "--out", folder])[0])
                wall, cpu = timed([sys.executable, script, "--output", os.devnull])
                theirs.append(wall)
                print(f"round {number} of {arguments.rounds}: normlab {ours[-1]:.1f} s, "
                      f"JAX {wall:.1f} s (CPU {cpu:.1f} s)", flush=True)
        finally:
            server.terminate()
            server.wait()
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"article, submit to files: median {statistics.median(ours):.1f} s; "
          f"JAX script: median {statistics.median(theirs):.1f} s; "
          f"JAX takes {ratio:.2f} times as long (goal: at least 2.5)")
    return 0 if ratio >= 2.5 else 1


if __name__ == "__main__":
    sys.exit(main())
