"""How long submitting takes, and whether a long queue makes it slower.

    bash deploy/bench.sh
    python tests/bench/submit.py --bin build/release/bin [--runs 5000] [--processes 50]

A real server whose every slot is held, so that all that is submitted waits.

1. calls: runs submitted one after the other over one open connection. The last 500 may take 1.5
   times what the first 500 took; the median call may take 10 ms.
2. processes: `normlab submit`, from its start to its end, before and behind that queue; the median
   may be 25 ms. `normlab --version`, which talks to nobody, takes turns with it and says how much
   of that is a process of this program at all.
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TINY = {"layers": 1, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2,
        "steps": 1_000_000_000, "threads": 1}
SLOTS = 2
SLICE = 500
RATIO_TARGET = 1.5
CALL_TARGET = 10     # milliseconds, median
PROCESS_TARGET = 25  # milliseconds, median

# Stands where the trainer would: its attempt is alive until the pipe is written to, and costs
# nothing.
PLACEHOLDER = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done
mkfifo "$dir/ended"
read line < "$dir/ended"
"""


class Server:
    def __init__(self, programs, folder):
        self.data = folder / "data"
        placeholder = folder / "placeholder"
        placeholder.write_text(PLACEHOLDER)
        placeholder.chmod(0o700)
        self.process = subprocess.Popen(
            [programs / "normlabd", "--data-dir", self.data, "--http", "127.0.0.1:0", "--grpc",
             "127.0.0.1:0", "--cpu-slots", str(SLOTS), "--trainer", placeholder,
             "--log-level", "error"], stdin=subprocess.DEVNULL)
        endpoint = self.data / "endpoint.json"
        while not endpoint.exists():
            if self.process.poll() is not None:
                raise SystemExit(f"normlabd ended with {self.process.returncode}")
            time.sleep(0.005)
        self.endpoint = json.loads(endpoint.read_text())
        self.connection = http.client.HTTPConnection(self.endpoint["http"], timeout=60)
        self.headers = {"Authorization": f"Bearer {self.endpoint['token']}",
                        "Content-Type": "application/json"}

    def request(self, method, path, body=None):
        self.connection.request(method, path, body, self.headers)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {response.status} {answer}")
        return answer

    def submit(self, name):
        return self.request("POST", "/api/v1/runs",
                            json.dumps({"displayName": name, "spec": TINY}))["id"]

    def occupy(self):
        """Ids of runs that hold every slot."""
        runs = [self.submit(f"holds a slot {i}") for i in range(SLOTS)]
        while any(not (self.data / "attempts" / f"{run}-1" / "ended").exists() for run in runs):
            time.sleep(0.01)
        return runs

    def end(self, runs):
        # The server first, or it would start the next ones.
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        for run in runs:
            attempt = self.data / "attempts" / f"{run}-1"
            with open(attempt / "ended", "wb"):
                pass
            while not (attempt / "exit.json").exists():
                time.sleep(0.01)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_calls(server, count):
    times = []
    for i in range(count):
        start = time.perf_counter()
        server.submit(f"run {i}")
        times.append((time.perf_counter() - start) * 1000)
    return times


def time_process(command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    elapsed = (time.perf_counter() - start) * 1000
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.returncode} {done.stderr}")
    return elapsed


def time_processes(programs, data, count):
    """Medians of `normlab submit` and of `normlab --version`, taking turns."""
    settings = [f"--set={name}={value}" for name, value in (
        ("layers", 1), ("d_model", 8), ("heads", 2), ("steps", 1000))]
    submit = [programs / "normlab", "--data-dir", data, "submit", *settings]
    version = [programs / "normlab", "--version"]
    times = [(time_process(submit), time_process(version)) for _ in range(count)]
    return [statistics.median(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=50)
    options = parser.parse_args()
    if options.runs < 2 * SLICE:
        raise SystemExit(f"--runs must be at least {2 * SLICE}")
    programs = options.bin.resolve()
    with tempfile.TemporaryDirectory(prefix="normlab-submit-") as folder:
        server = Server(programs, pathlib.Path(folder))
        holders = server.occupy()
        before = time_processes(programs, server.data, options.processes)
        busy = processor_seconds(server.process.pid)
        times = time_calls(server, options.runs)
        busy = processor_seconds(server.process.pid) - busy
        behind = time_processes(programs, server.data, options.processes)
        server.end(holders)
    first, last = sum(times[:SLICE]), sum(times[-SLICE:])
    median = statistics.median(times)
    ordered = sorted(times)
    print(f"{options.runs:,} submits over one connection: median {median:.2f} ms (at most "
          f"{CALL_TARGET} wanted), 99th percentile {ordered[len(ordered) * 99 // 100]:.2f}, "
          f"most {ordered[-1]:.1f}; the server was busy for {busy * 1000 / options.runs:.2f} ms each")
    print(f"first {SLICE}: {first:.0f} ms, last {SLICE}: {last:.0f} ms, {last / first:.2f} times as "
          f"long (at most {RATIO_TARGET} wanted)")
    for where, (submit, version) in (("in an empty queue", before), ("behind that queue", behind)):
        print(f"normlab submit {where}: median {submit:.1f} ms (at most {PROCESS_TARGET} wanted); "
              f"normlab --version {version:.1f}")
    met = (last <= RATIO_TARGET * first and median < CALL_TARGET and
           max(before[0], behind[0]) < PROCESS_TARGET)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
