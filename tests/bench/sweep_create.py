"""How long it takes to create a thousand runs: one sweep, against a thousand calls of CreateRun on an
open connection to the same server.

    bash deploy/bench.sh
    python tests/bench/sweep_create.py --bin build/release/bin [--runs 1000]
"""

import argparse
import http.client
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

BOUND = 0.25  # of the time of single calls
SPEC = {"layers": 2, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2,
        "steps": 10}


class Server:
    def __init__(self, program, data):
        self.process = subprocess.Popen(
            [program, "--data-dir", data, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
             "--log-level", "error"], stdin=subprocess.DEVNULL)
        endpoint = data / "endpoint.json"
        while not endpoint.exists():
            if self.process.poll() is not None:
                raise SystemExit(f"normlabd ended with {self.process.returncode}")
            time.sleep(0.01)
        found = json.loads(endpoint.read_text())
        self.token = found["token"]
        self.connection = http.client.HTTPConnection(found["http"], timeout=600)

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body),
                                {"Authorization": f"Bearer {self.token}"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {answer}")
        return answer

    def stop(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.bin / "normlabd", pathlib.Path(folder) / "data")
        try:
            start = time.monotonic()
            for seed in range(options.runs):
                server.post("/api/v1/runs", {"spec": {**SPEC, "seed": seed}, "held": True})
            single = time.monotonic() - start
            start = time.monotonic()
            axis = {"setting": "seed", "range": {"minimum": 0, "maximum": options.runs - 1,
                                                 "count": options.runs}}
            made = server.post("/api/v1/experiments",
                               {"sweep": {"base": SPEC, "axes": [axis]}, "held": True})
            sweep = time.monotonic() - start
        finally:
            server.stop()
    if len(made["runs"]) != options.runs:
        raise SystemExit(f"{len(made['runs'])} runs instead of {options.runs}")
    print(f"{options.runs} runs: {single:.2f} s one by one, {sweep:.2f} s as a sweep "
          f"({sweep / single:.2f}, at most {BOUND})")
    sys.exit(sweep > BOUND * single)


if __name__ == "__main__":
    main()
