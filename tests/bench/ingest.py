"""How many points a second the server stores for good, and how long a point takes to be stored.

    bash deploy/bench.sh [--short]
    python tests/bench/ingest.py --bin build/release/bin [--short]

A real server, and trainers that have the real spool, observer and session but compute nothing
(tests/bench/ingest_load.cc). Server and generators share two cores. After each part the database is
read: each step of each series must be there once, with its value. The server's memory, read twice a
second, has a most, and in the last third of a part it grows no more; no read of the database by the
server itself may take a second.

1. paced: 16 trainers, 200 steps a second, 3 series, 60 s: the time from a step's report to its
   being durable, and what a report costs training.
2. flat out: the same trainers without a pause. Points a second, counted until the last is durable.
3. fair: the paced trainers again for 120 s, while one more reports 2,000 series a step: what their
   times to durable are then.
4. away: flat out, and for a third of the time the disk is full (tests/fakes/fault_shim.c). Nothing
   may be lost, and while the disk is full the server's memory stays what it was.
5. pinned: flat out, until another process's read of the database has let the write-ahead log grow
   to its limit of 1 GiB, so that points wait in the spools and the log stands still. How long it
   then takes, once that process has ended, until the server finds nothing wrong any more.
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
# The rare report costs more: one in 80 begins a page of the spool, which is a fault of a mapped
# file, and one after another program had the core finds its caches cold.
RARE_REPORT_TARGET = 50
FAIR_TARGET = 500          # milliseconds to durable, 99th percentile, beside 2,000 series
WELL_TARGET = 60           # seconds
CORES = 2
# The server's memory in MB. It keeps 2 MiB of recent events a run and 16 MiB of the database; flat
# out there is also what waits for the writer.
MOST_MEMORY = {"paced": 128, "out": 320, "fair": 160, "away": 320}
MOST_GROWTH = 8            # in the last third of a part, and while the disk is full
LOG_LIMIT = 1 << 30        # bytes; where points begin to wait
LOG_STANDS = 8 << 20       # by so much it may be beyond that, and grow while they wait
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

    def slow_reads(self):
        """Reads of the database that took more than a second, since the start."""
        request = urllib.request.Request(
            f"http://{self.endpoint['http']}/metrics",
            headers={"Authorization": f"Bearer {self.endpoint['token']}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return next(int(line.split()[1]) for line in answer.read().decode().splitlines()
                        if line.startswith("normlab_slow_reads_total "))

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


def run_load(programs, server, runs, seconds, rate, wide=0):
    """ingest_load for the runs, under way."""
    return subprocess.Popen(
        [programs / "ingest_load", "--data", server.data, "--seconds", str(seconds),
         "--rate", str(rate), "--wide", str(wide), *runs],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def take_report(process):
    """What ingest_load printed, once it has ended."""
    if process.wait(600) != 0:
        sys.exit(f"ingest_load ended with {process.returncode}")
    return json.loads(process.stdout.read())


def count_stored(server, runs, told, widths):
    """Notes the points found in the database, which must be those that were reported."""
    told["found"] = check_database(server.data, runs, told["steps"], widths)
    told["bytes_a_point"] = (server.data / "normlab.db").stat().st_size / told["found"]
    if told["found"] != told["points"]:
        sys.exit(f"{told['points']} points were reported and {told['found']} are stored")


def load(programs, trainers, seconds, rate, wide=0, away=False):
    """One load: what ingest_load printed, the server's memory, and the points found."""
    with tempfile.TemporaryDirectory(prefix="normlab-ingest-") as name:
        server = Server(programs, pathlib.Path(name), trainers)
        try:
            runs = server.submit(trainers)
            process = run_load(programs, server, runs, seconds, rate, wide)
            memory, memory_while_full, began = [], [], time.monotonic()
            while process.poll() is None:
                memory.append(server.rss_mb())
                if away:
                    full = 1 / 3 < (time.monotonic() - began) / seconds < 2 / 3
                    server.fill_disk(full)
                    if full:
                        memory_while_full.append(memory[-1])
                try:
                    process.wait(0.5)
                except subprocess.TimeoutExpired:
                    pass
            told = take_report(process)
            server.end(runs)
            told["memory_mb"], told["memory_while_full_mb"] = memory, memory_while_full
            told["slow_reads"] = server.slow_reads()
        finally:
            server.stop()
        count_stored(server, runs, told, [3] * (trainers - 1) + [wide or 3])
    return told


def pinned(programs, trainers):
    """What a reader that pins the log comes to: log size, if it was named, seconds to be well."""
    with tempfile.TemporaryDirectory(prefix="normlab-ingest-") as name:
        server = Server(programs, pathlib.Path(name), trainers)
        try:
            runs = server.submit(trainers)
            reader = subprocess.Popen([sys.executable, "-c", READER, server.data / "normlab.db"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert reader.stdout.readline() == "reading\n"
            process = run_load(programs, server, runs, 40, 0)
            wait_for(lambda: any("points wait" in text for text in server.problems()))
            named = any(f"process {reader.pid} (" in text for text in server.problems())
            log_bytes = [server.log_bytes()]
            time.sleep(5)
            log_bytes.append(server.log_bytes())
            reader.stdin.close()
            ended = time.monotonic()
            wait_for(lambda: not server.problems() and server.log_bytes() < 256 << 20)
            well_seconds = time.monotonic() - ended
            reader.wait(10)
            told = take_report(process)
            server.end(runs)
            told.update(named=named, log_bytes=log_bytes, well_seconds=well_seconds,
                        slow_reads=server.slow_reads())
        finally:
            server.stop()
        count_stored(server, runs, told, [3] * trainers)
    return told


def memory_faults(part, told, whole):
    """`whole` is a part that lasts so long that its last third shows whether memory still grows."""
    memory, found = told["memory_mb"], []
    if max(memory) > MOST_MEMORY[part]:
        found.append(f"{part}: the server took {max(memory):.0f} MB of at most {MOST_MEMORY[part]}")
    last = memory[len(memory) * 2 // 3:]
    if whole and max(last) - last[0] > MOST_GROWTH:
        found.append(f"{part}: memory grew by {max(last) - last[0]:.0f} MB in the last third")
    full = told["memory_while_full_mb"]
    if full and max(full) - full[0] > MOST_GROWTH:
        found.append(f"{part}: memory grew by {max(full) - full[0]:.0f} MB while the disk was full")
    return found


def read_faults(part, told):
    return [f"{part}: {told['slow_reads']} reads of the database took more than a second"
            ] if told["slow_reads"] else []


def rate_faults(part, told, wanted_points):
    """Of a part: what it is there to show."""
    found = []
    if part == "paced":
        if told["points"] != wanted_points:
            found.append(f"the trainers came to {told['points']} points and not {wanted_points}")
        cpu = told["report_cpu_us"]
        for name, cost, most in (
                ("median time", told["report_us"]["median"], REPORT_TARGET),
                ("mean processor time", cpu["mean"], REPORT_TARGET),
                ("99th percentile of processor time", cpu["p99"], RARE_REPORT_TARGET)):
            if cost > most:
                found.append(f"{name} of a report: {cost} us of at most {most}")
    if part == "out" and told["points"] / told["seconds"] < FLAT_OUT_TARGET:
        found.append(f"{told['points'] / told['seconds']:,.0f} points/s are stored flat out")
    if part == "fair" and told["durable_ms"]["p99"] > FAIR_TARGET:
        found.append(f"beside 2,000 series a step is durable after {told['durable_ms']['p99']} ms "
                     f"(99th percentile) and not {FAIR_TARGET}")
    return found


def pinned_faults(told):
    found = [] if told["named"] else ["the foreign reader was not named"]
    if told["well_seconds"] > WELL_TARGET:
        found.append(f"all was well only {told['well_seconds']:.1f} s after the foreign reader")
    first, last = told["log_bytes"]
    if last > LOG_LIMIT + LOG_STANDS:
        found.append(f"the log had {last / 1e6:,.0f} MB when points were to wait")
    if last - first > LOG_STANDS:
        found.append(f"the log grew by {(last - first) / 1e6:,.0f} MB while points were to wait")
    return found


def show(name, told):
    memory, cpu = told["memory_mb"], told["report_cpu_us"]
    print(f"| {name} | {told['points']:,} | {told['points'] / told['seconds']:,.0f} "
          f"| {told['durable_ms']['median']:.1f} / {told['durable_ms']['p99']:.1f} "
          f"| {told['report_us']['median']:.2f} / {told['report_us']['p99']:.2f} "
          f"| {cpu['mean']:.2f} / {cpu['p99']:.2f} "
          f"| {memory[0]:.0f} / {memory[-1]:.0f} / {max(memory):.0f} "
          f"| {told['bytes_a_point']:.1f} |", flush=True)


def show_pinned(told):
    first, last = (bytes_ / 1e6 for bytes_ in told["log_bytes"])
    print(f"\nA foreign reader pins the log: {first:,.0f} MB when points wait, {last:,.0f} MB 5 s "
          f"later, the reader {'' if told['named'] else 'NOT '}named; all is well "
          f"{told['well_seconds']:.1f} s after it has ended; {told['found']:,} points reported and "
          "stored", flush=True)


def use_cores():
    """This process and what it starts use two cores, as the targets say."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:CORES])
    print(f"on {min(CORES, len(cores))} of {len(cores)} cores", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--short", action="store_true",
                        help="a twelfth of the time a part, too short to say whether memory grows")
    parser.add_argument("--part", choices=[*MOST_MEMORY, "pinned"], action="append")
    arguments = parser.parse_args()
    seconds = 5 if arguments.short else 60
    # Name, trainers, seconds, steps a second, series of the last trainer, if the disk gets full.
    loads = {"paced": ("16 trainers, 200 steps/s", 16, seconds, 200, 0, False),
             "out": ("16 trainers, flat out", 16, seconds / 2, 0, 0, False),
             # Longer: 2,000 series fill the memory that the database may have only then.
             "fair": ("16 of 200 steps/s beside one of 2,000 series", 17, 2 * seconds, 200, 2000,
                      False),
             "away": ("16 flat out, the disk full for a third of the time", 16, seconds / 2, 0, 0,
                      True)}
    parts = arguments.part or [*loads, "pinned"]
    use_cores()
    print("| load | points | points/s | durable ms, median / p99 | report us, median / p99 "
          "| its processor time, mean / p99 | server MB, first / last / most | bytes a point |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    missed = []
    for part, (name, *how) in loads.items():
        if part in parts:
            told = load(arguments.bin, *how)
            show(name, told)
            missed += rate_faults(part, told, wanted_points=16 * 200 * seconds * 3)
            missed += memory_faults(part, told, whole=not arguments.short)
            missed += read_faults(part, told)
    if "pinned" in parts:
        told = pinned(arguments.bin, 16)
        show_pinned(told)
        missed += pinned_faults(told) + read_faults("pinned", told)
    for what in missed:
        print(f"short of the target: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
