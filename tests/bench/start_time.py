"""How long a server takes from its start until it is healthy, with 10,000 runs in its database.

    bash deploy/bench.sh
    python tests/bench/start_time.py --bin build/release/bin [--rounds 7]
"""

import argparse
import http.client
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import big_folder

TARGET = 500  # milliseconds, median


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
        status, health = self.get("/healthz")
        self.seconds = time.monotonic() - start
        if status != 200 or health["status"] != "ok":
            raise SystemExit(f"not healthy: {health}")

    def get(self, path):
        connection = http.client.HTTPConnection(self.endpoint["http"], timeout=30)
        connection.request("GET", path, headers={
            "Authorization": f"Bearer {self.endpoint['token']}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="normlab-care-") as folder:
        data = pathlib.Path(folder) / "data"
        big_folder.make(options.bin, data)
        times = []
        for _ in range(options.rounds):
            server = Server(options.bin / "normlabd", data)
            times.append(server.seconds * 1000)
            server.stop()
    median = statistics.median(times)
    print(f"start to healthy with {big_folder.RUNS:,} runs: median {median:.0f} ms, "
          f"{min(times):.0f} to {max(times):.0f}, at most {TARGET} wanted")
    return 0 if median < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
