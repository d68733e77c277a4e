"""How many points a second the server stores for good, and how long a point takes to be stored.

    bash deploy/bench.sh [--short]
    python tests/bench/ingest.py --bin build/release/bin [--short]

A real server, and trainers that have the real spool, observer and session but compute nothing
(tests/bench/ingest_load.cc). Every part shares this machine's cores with the generators. After each
part the database is read: each step of each series must be there once, with its value.

1. paced: 16 trainers, 200 steps a second, 3 series, 60 s. The server's memory, read twice a second,
   must be flat; the time from a step's report to its being durable; what a report costs training.
2. flat out: the same trainers without a pause. Points a second, counted until the last is durable.
3. fair: the paced trainers again, while one more reports 2,000 series a step: what their times to
   durable are then.
4. away: flat out, and for a third of the time the disk is full (tests/fakes/fault_shim.c). Nothing
   may be lost, and the server's memory must stay what it was.
5. pinned: flat out, until another process's read of the database has let the write-ahead log grow to
   its limit of 1 GiB, so that points wait in the spools. How long it then takes, once that process
   has ended, until the server finds nothing wrong any more.
"""

import argparse
import json
import os
import pathlib
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request

TINY = {"layers": 1, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2,
        "steps": 1_000_000_000, "threads": 1}
FLAT_OUT_TARGET = 100_000  # points a second
REPORT_TARGET = 10         # microseconds
PARTS = ("paced", "out", "fair", "away", "pinned")
WELL_TARGET = 60           # seconds
READER = """
import sqlite3, sys
database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
database.execute("BEGIN")
database.execute("SELECT count(*) FROM runs").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""

# Stands where the trainer would, so that an attempt is alive until the load has ended. Reading from
# a pipe without a writer, it costs nothing.
PLACEHOLDER = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done
mkfifo "$dir/ended"
read line < "$dir/ended"
"""


class Server:
    def __init__(self, programs, folder, slots):
        self.data = folder / "data"
        self.control = folder / "control"
        self.control.write_bytes(bytes(64))
        placeholder = folder / "placeholder"
        placeholder.write_text(PLACEHOLDER)
        placeholder.chmod(0o700)
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            [programs / "normlabd", "--data-dir", self.data, "--http", "127.0.0.1:0", "--grpc",
             "127.0.0.1:0", "--cpu-slots", str(slots), "--trainer", placeholder],
            stdin=subprocess.DEVNULL, stderr=self.log,
            env={**os.environ, "LD_PRELOAD": str(programs.resolve() / "normlab_fault_shim.so"),
                 "NORMLAB_FAULT_CONTROL": str(self.control)})
        wait_for(lambda: (self.data / "endpoint.json").exists() or self.process.poll() is not None)
        if self.process.poll() is not None:
            sys.exit("normlabd did not start")
        self.endpoint = json.loads((self.data / "endpoint.json").read_text())

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://{self.endpoint['http']}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.endpoint['token']}",
                     "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def submit(self, count):
        """Ids of runs whose attempts wait for us."""
        runs = [self.request("POST", "/api/v1/runs", {"displayName": f"load {i}", "spec": TINY})
                ["id"] for i in range(count)]
        for run in runs:
            wait_for(lambda: self.pipe(run).exists())
        return runs

    def pipe(self, run):
        return self.data / "attempts" / f"{run}-1" / "ended"

    def end(self, runs):
        """Lets the placeholders go and waits for the runs to succeed."""
        for run in runs:
            assert stat.S_ISFIFO(self.pipe(run).stat().st_mode)
            self.pipe(run).write_text("\n")
        for run in runs:
            wait_for(lambda: self.request("GET", f"/api/v1/runs/{run}")["state"]
                     == "STATE_SUCCEEDED")

    def fill_disk(self, full):
        with open(self.control, "r+b") as file:
            file.write(int(full).to_bytes(8, "little"))

    def problems(self):
        return self.request("GET", "/api/v1/storage").get("problems", [])

    def log_bytes(self):
        return (self.data / "normlab.db-wal").stat().st_size

    def rss_mb(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()


def wait_for(condition, timeout=120):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("waited in vain")
        time.sleep(0.01)


def check_database(data, runs, steps, series):
    """Every step of every series once, with its value: the number of points found."""
    database = sqlite3.connect(f"file:{data / 'normlab.db'}?mode=ro", uri=True)
    found = 0
    for run, last, width in zip(runs, steps, series):
        rows = database.execute(
            "SELECT position, step, value FROM points JOIN series ON series.id = points.series "
            "JOIN attempts ON attempts.id = series.attempt WHERE run = ? "
            "ORDER BY position, step", (run,))
        expected = ((position, step) for position in range(width) for step in range(1, last + 1))
        for (position, step, value), wanted in zip(rows, expected, strict=True):
            if (position, step) != wanted or value != step / 7 + position:
                sys.exit(f"{run}: {(position, step, value)} where {wanted} should be")
            found += 1
    database.close()
    return found


def load(programs, trainers, seconds, rate, wide=0, away=False):
    """Runs one load; returns what ingest_load printed, the server's memory, and the points found."""
    with tempfile.TemporaryDirectory(prefix="normlab-ingest-") as name:
        server = Server(programs, pathlib.Path(name), trainers)
        try:
            runs = server.submit(trainers)
            process = subprocess.Popen(
                [programs / "ingest_load", "--data", server.data, "--seconds", str(seconds),
                 "--rate", str(rate), "--wide", str(wide), *runs],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            memory, began = [], time.monotonic()
            while process.poll() is None:
                memory.append(server.rss_mb())
                if away:
                    server.fill_disk(1 / 3 < (time.monotonic() - began) / seconds < 2 / 3)
                try:
                    process.wait(0.5)
                except subprocess.TimeoutExpired:
                    pass
            if process.returncode != 0:
                sys.exit(f"ingest_load ended with {process.returncode}")
            told = json.loads(process.stdout.read())
            server.end(runs)
            told["memory_mb"] = memory
        finally:
            server.stop()
        widths = [3] * trainers
        if wide:
            widths[-1] = wide
        told["found"] = check_database(server.data, runs, told["steps"], widths)
        told["bytes_a_point"] = (server.data / "normlab.db").stat().st_size / told["found"]
    if told["found"] != told["points"]:
        sys.exit(f"{told['points']} points were reported and {told['found']} are stored")
    return told


def pinned(programs, trainers):
    """What a reader that pins the log comes to: log size, whether it was named, seconds to be well."""
    told = {}
    with tempfile.TemporaryDirectory(prefix="normlab-ingest-") as name:
        server = Server(programs, pathlib.Path(name), trainers)
        try:
            runs = server.submit(trainers)
            reader = subprocess.Popen([sys.executable, "-c", READER, server.data / "normlab.db"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert reader.stdout.readline() == "reading\n"
            process = subprocess.Popen(
                [programs / "ingest_load", "--data", server.data, "--seconds", "40", "--rate", "0",
                 "--wide", "0", *runs], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            wait_for(lambda: any("points wait" in text for text in server.problems()))
            told["named"] = any(f"process {reader.pid} (" in text for text in server.problems())
            time.sleep(5)  # it must stand still, not grow on
            told["log_mb"] = server.log_bytes() / 1e6
            reader.stdin.close()
            ended = time.monotonic()
            wait_for(lambda: not server.problems() and server.log_bytes() < 256 << 20)
            told["well_seconds"] = time.monotonic() - ended
            reader.wait(10)
            if process.wait(300) != 0:
                sys.exit(f"ingest_load ended with {process.returncode}")
            told.update(json.loads(process.stdout.read()))
            server.end(runs)
        finally:
            server.stop()
        told["found"] = check_database(server.data, runs, told["steps"], [3] * trainers)
    if told["found"] != told["points"]:
        sys.exit(f"{told['points']} points were reported and {told['found']} are stored")
    return told


def show(name, told):
    memory = told["memory_mb"]
    print(f"| {name} | {told['points']:,} | {told['points'] / told['seconds']:,.0f} "
          f"| {told['durable_ms']['median']:.1f} | {told['durable_ms']['p99']:.1f} "
          f"| {told['report_us']['median']:.2f} | {told['report_us']['p99']:.2f} "
          f"| {memory[0]:.0f} / {memory[-1]:.0f} / {max(memory):.0f} "
          f"| {told['bytes_a_point']:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--short", action="store_true", help="5 s instead of 60 a part")
    parser.add_argument("--part", choices=PARTS, action="append")
    arguments = parser.parse_args()
    seconds = 5 if arguments.short else 60
    parts = arguments.part or PARTS
    print("| load | points | points/s | durable ms, median | p99 | report us, median | p99 "
          "| server MB, first / last / most | bytes a point |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    missed = []
    if "paced" in parts or "fair" in parts:
        paced = load(arguments.bin, 16, seconds, 200)
        show("16 trainers, 200 steps/s", paced)
        if paced["points"] != 16 * 200 * seconds * 3:
            missed.append(f"the trainers came to {paced['points']} points only")
        if paced["report_us"]["median"] > REPORT_TARGET:
            missed.append(f"a report takes {paced['report_us']['median']} us")
    if "out" in parts:
        out = load(arguments.bin, 16, seconds / 2, 0)
        show("16 trainers, flat out", out)
        if out["points"] / out["seconds"] < FLAT_OUT_TARGET:
            missed.append(f"{out['points'] / out['seconds']:,.0f} points/s are stored flat out")
    if "fair" in parts:
        show("16 of 200 steps/s beside one of 2,000 series",
             load(arguments.bin, 17, seconds, 200, wide=2000))
    if "away" in parts:
        show("16 flat out, the disk full for a third of the time",
             load(arguments.bin, 16, seconds / 2, 0, away=True))
    if "pinned" in parts:
        told = pinned(arguments.bin, 16)
        print(f"\nA foreign reader pins the log: {told['log_mb']:,.0f} MB when points wait, the reader "
              f"{'' if told['named'] else 'NOT '}named; all is well {told['well_seconds']:.1f} s "
              f"after it has ended; {told['found']:,} points reported and stored", flush=True)
        if not told["named"] or told["well_seconds"] > WELL_TARGET:
            missed.append("a foreign reader")
    for what in missed:
        print(f"short of the target: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
