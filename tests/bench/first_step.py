"""How long after its submit a run's first step can be seen, with and without a warm trainer.

    bash deploy/bench.sh
    python tests/bench/first_step.py --bin build/release/bin [--rounds 9]

Two real servers with real trainers and one slot each, which is idle: one keeps a trainer warm, the
other none. They take turns, a run of each model a round. The time is from the call that submits the
run to its first step in the event stream of somebody who watches it; at most 300 ms are wanted
(median) of a warm one. The medians' ratio is of the same rounds, and its spread is that of the rounds'
own ratios.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TARGET = 300  # milliseconds, median, warm
MODELS = {
    "tiny": {"layers": 1, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4,
             "batchSize": 2, "steps": 20, "checkpointSeconds": 0},
    "article": {"steps": 3, "checkpointSeconds": 0},  # the defaults are the article's
}


class Server:
    def __init__(self, programs, data, warm):
        self.warm = warm
        self.log = open(data.parent / f"{data.name}.log", "wb")
        self.process = subprocess.Popen(
            [programs / "normlabd", "--data-dir", data, "--http", "127.0.0.1:0", "--grpc",
             "127.0.0.1:0", "--cpu-slots", "1", "--warm-trainers", str(warm)],
            stdin=subprocess.DEVNULL, stderr=self.log)
        endpoint = data / "endpoint.json"
        self.wait_for(endpoint.exists)
        self.endpoint = json.loads(endpoint.read_text())
        self.connection = http.client.HTTPConnection(self.endpoint["http"], timeout=60)
        self.runs = 0

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while not condition():
            if self.process.poll() is not None:
                raise SystemExit(f"normlabd ended with {self.process.returncode}")
            if time.monotonic() > until:
                raise SystemExit("waited a minute in vain")
            time.sleep(0.005)

    def request(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body else None,
                                {"Authorization": f"Bearer {self.endpoint['token']}"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {answer}")
        return answer

    def become_ready(self):
        """A trainer is warm for the run that comes, if this is the server that keeps one."""
        log = pathlib.Path(self.log.name)
        self.wait_for(lambda: log.read_text().count("a trainer is kept warm") >=
                      self.warm * (self.runs + 1))

    def first_step(self, spec):
        """Milliseconds; the run has ended when this returns."""
        self.become_ready()
        began = time.monotonic()
        run = self.request("POST", "/api/v1/runs", {"displayName": "bench", "spec": spec})["id"]
        self.runs += 1
        seen = self.watch(run) - began
        self.wait_for(lambda: self.request("GET", f"/api/v1/runs/{run}")["state"] ==
                      "STATE_SUCCEEDED")
        return seen * 1e3

    def watch(self, run):
        """When the first points came, by the monotonic clock."""
        with contextlib.closing(http.client.HTTPConnection(self.endpoint["http"],
                                                           timeout=60)) as stream:
            stream.request("GET", f"/api/v1/events?runs={run}",
                           headers={"Authorization": f"Bearer {self.endpoint['token']}"})
            response = stream.getresponse()
            while line := response.readline():
                if line == b"event: points\n":
                    return time.monotonic()
        raise SystemExit(f"the stream of {run} ended without points")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()


def report(model, warm, cold):
    ratios = sorted(there / here for here, there in zip(warm, cold))
    median = statistics.median(warm)
    print(f"first step of a {model} run: warm {median:.0f} ms ({min(warm):.0f} to {max(warm):.0f}; "
          f"at most {TARGET} wanted), cold {statistics.median(cold):.0f} ms ({min(cold):.0f} to "
          f"{max(cold):.0f}), {statistics.median(ratios):.1f} times as long "
          f"({ratios[0]:.1f} to {ratios[-1]:.1f} in {len(ratios)} rounds)")
    return median < TARGET


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    times = {model: ([], []) for model in MODELS}
    with tempfile.TemporaryDirectory(prefix="normlab-first-") as folder, \
            contextlib.ExitStack() as stack:
        servers = []
        for name, warm in (("warm", 1), ("cold", 0)):
            servers.append(Server(options.bin.resolve(), pathlib.Path(folder) / name, warm))
            stack.callback(servers[-1].stop)
        for number in range(options.rounds):
            for model, spec in MODELS.items():
                order = (0, 1) if number % 2 == 0 else (1, 0)
                for which in order:
                    servers[0].become_ready()  # so that it is not loading beside the other's run
                    times[model][which].append(servers[which].first_step(spec))
    good = [report(model, *both) for model, both in times.items()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
