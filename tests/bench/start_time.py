"""How long a server takes from its start until it is healthy, with 10,000 runs in its database.

    bash deploy/bench.sh
    python tests/bench/start_time.py --bin build/release/bin [--rounds 7]
"""

import argparse
import http.client
import json
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 10_000
TARGET = 500  # milliseconds, median
SPEC = {"layers": 2, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2,
        "steps": 10}
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Server:
    """A normlabd that has just been started; `seconds` is how long it took to be healthy."""

    def __init__(self, program, data):
        endpoint = data / "endpoint.json"
        start = time.monotonic()
        self.process = subprocess.Popen(
            [program, "--data-dir", data, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
             "--log-level", "error"], stdin=subprocess.DEVNULL)
        while not endpoint.exists():
            if self.process.poll() is not None:
                raise SystemExit(f"normlabd ended with {self.process.returncode}")
            time.sleep(0.001)
        self.endpoint = json.loads(endpoint.read_text())
        status, health = self.request("GET", "/healthz")
        self.seconds = time.monotonic() - start
        if status != 200 or health["status"] != "ok":
            raise SystemExit(f"not healthy: {health}")

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.endpoint["http"], timeout=30)
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Authorization": f"Bearer {self.endpoint['token']}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def multiply(path, run):
    """Copies a run, which has ended, until there are RUNS."""
    with sqlite3.connect(path) as database:
        for table, key in (("runs", "id"), ("run_specs", "run"), ("run_settings", "run")):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            chosen = ", ".join("ids.made" if column == key else f"{table}.{column}"
                               for column in columns)
            database.execute("CREATE TEMP TABLE IF NOT EXISTS ids (made TEXT)")
            if table == "runs":
                database.executemany("INSERT INTO ids VALUES (?)", (
                    (run[:20] + "".join(ALPHABET[n >> shift & 31] for shift in (25, 20, 15, 10, 5, 0)),)
                    for n in range(RUNS - 1)))
            database.execute(f"INSERT OR IGNORE INTO {table} SELECT {chosen} FROM {table}, ids "
                             f"WHERE {table}.{key} = ?", (run,))
    count, = database.execute("SELECT count(*) FROM runs").fetchone()
    database.close()
    if count != RUNS:
        raise SystemExit(f"{count} runs and not {RUNS}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="normlab-care-") as folder:
        data = pathlib.Path(folder) / "data"
        server = Server(options.bin / "normlabd", data)
        status, run = server.request("POST", "/api/v1/runs", {"spec": SPEC})
        if status != 200:
            raise SystemExit(f"no run: {run}")
        server.request("POST", f"/api/v1/runs/{run['id']}:cancel")
        while server.request("GET", f"/api/v1/runs/{run['id']}")[1]["state"] not in (
                "STATE_CANCELLED", "STATE_FAILED", "STATE_SUCCEEDED"):
            time.sleep(0.01)
        server.stop()
        multiply(data / "normlab.db", run["id"])
        times = []
        for _ in range(options.rounds):
            server = Server(options.bin / "normlabd", data)
            times.append(server.seconds * 1000)
            server.stop()
    median = statistics.median(times)
    print(f"start to healthy with {RUNS:,} runs: median {median:.0f} ms, "
          f"{min(times):.0f} to {max(times):.0f}, at most {TARGET} wanted")
    return 0 if median < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
