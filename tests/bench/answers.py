"""How soon a server answers what a page asks it first, over HTTP, with 10,000 runs in its database.

    bash deploy/bench.sh
    python tests/bench/answers.py --bin build/release/bin [--rounds 21]

Pages of the list of runs, of the size that a script asks for and of the dashboard's; and the curve
of a million steps with one spike, drawn with at most 2,000 points: the spike must be among them,
and every answer the same, byte for byte. Each question is asked over one open connection, one after
the other; the time is from the request to the last byte of the answer. What the server's processor
had to do for one is told beside it, for a machine that has other work.
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import urllib.parse

import big_folder
from watch_load import load_harness

TARGET = 50       # milliseconds, median
STEPS = 1_000_000
SPIKE = 654_321
DRAWN = 2000      # points asked for
FEWEST = 450      # that must come: it is drawn in 489 ranges of 2,048 steps, a point each at least
LISTS = (("newest", "", ""), ("of a state", "state=SUCCEEDED", ""),
         ("by a metric", "final_loss<0.5", ""), ("in the order of the loss", "", "final_loss"))
SIZES = (50, 200)


class Asker:
    """One connection to a server."""

    def __init__(self, endpoint):
        self._stat = pathlib.Path(f"/proc/{endpoint['pid']}/stat")
        self._connection = http.client.HTTPConnection(endpoint["http"], timeout=60)
        self._headers = {"Authorization": f"Bearer {endpoint['token']}"}

    def ask(self, path):
        """(milliseconds, the answer's bytes)."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        took = (time.perf_counter() - began) * 1e3
        if response.status != 200:
            sys.exit(f"{path}: {response.status} {body[:200]!r}")
        return took, body

    def ask_often(self, path, rounds):
        """(milliseconds of each, the answers, the server's processor milliseconds for one)."""
        before = self._processor_ms()
        times, bodies = zip(*(self.ask(path) for _ in range(rounds)))
        return times, bodies, (self._processor_ms() - before) / rounds

    def _processor_ms(self):
        fields = self._stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def list_faults(size, body):
    """What is wrong with a page of the list."""
    answer = json.loads(body)
    runs = answer.get("runs", [])
    if len(runs) != size:
        return [f"a page of {size} has {len(runs)} runs"]
    without = [run["id"] for run in runs if not run.get("attempts")]
    return [f"{len(without)} runs of a page have no attempts"] if without else []


def curve_faults(bodies):
    """What is wrong with answers to the same question for the curve with the spike."""
    found = []
    column = json.loads(bodies[0])["columns"]["loss"]
    if not FEWEST <= len(column["steps"]) <= DRAWN:
        found.append(f"{len(column['steps'])} points are drawn and not {FEWEST} to {DRAWN}")
    drawn = dict(zip(column["steps"], column["values"]))
    if drawn.get(SPIKE) != 100 * (4 / SPIKE):
        found.append(f"the spike is not drawn: {drawn.get(SPIKE)}")
    if len(set(bodies)) != 1:
        found.append(f"{len(set(bodies))} different answers to one question")
    return found


def time_lists(asker, rounds):
    """Rows of the table, and what is wrong."""
    missed = []
    for size in SIZES:
        for name, filter_, order in LISTS:
            path = "/api/v1/runs?" + urllib.parse.urlencode(
                {"page_size": size, "filter": filter_, "order_by": order})
            times, bodies, processor_ms = asker.ask_often(path, rounds)
            missed += list_faults(size, bodies[0])
            missed += report(f"{size} runs, {name}", times, bodies, processor_ms)
    return missed


def report(name, times, bodies, processor_ms):
    median = statistics.median(times)
    print(f"| {name} | {len(bodies[0]) / 1e3:.0f} | {median:.1f} | {max(times):.1f} "
          f"| {processor_ms:.1f} |", flush=True)
    return [] if median < TARGET else [f"{name}: {median:.1f} ms of at most {TARGET}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    harness = load_harness(options.bin.resolve())
    with tempfile.TemporaryDirectory(prefix="normlab-answers-") as folder:
        data = pathlib.Path(folder) / "data"
        big_folder.make(options.bin, data)
        os.environ["NORMLAB_FAKE_ENGINE"] = f"spike_at={SPIKE}"
        server = harness.Server(data, "--trainer", harness.BIN / "normlab-fake-trainer").start()
        try:
            print("| question | answer, kB | median ms | most ms | processor ms |\n"
                  "| --- | ---: | ---: | ---: | ---: |")
            asker = Asker(server.endpoint)
            missed = time_lists(asker, options.rounds)
            run = server.create("a million steps", {**harness.TINY, "steps": STEPS})
            server.wait_for_state(run, "SUCCEEDED", timeout=600)
            path = f"/api/v1/runs/{run}/series?names=loss&max_points={DRAWN}"
            times, bodies, processor_ms = asker.ask_often(path, options.rounds)
            missed += curve_faults(bodies)
            missed += report(f"{STEPS:,} steps drawn with {DRAWN:,} points", times, bodies,
                             processor_ms)
            if server.metric("normlab_slow_reads_total") > 0:
                missed.append("a read of the database took more than a second")
        finally:
            server.stop()
            server.log.close()
    for what in missed:
        print(f"short of the target: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
