"""Rounds of a small workload under random faults; after each, everything must be as if there had
been none, as far as the faults allow.

    NORMLAB_BIN=build/release/bin python tests/faults/fault_suite.py [--rounds 25] [--seed N]

A round is a real server in a folder of its own, up to four runs of the fake trainer under real
shepherds, watchers of both kinds, and faults at random moments: SIGKILL, SIGTERM and SIGSTOP of the
server, SIGKILL and SIGSTOP of trainers and shepherds, also of those that wait for attempts, a disk
that is slow, full, or fails to sync, a wall clock that jumps, watchers' connections that are cut or
slow, and people who cancel, pause and resume. In half of the rounds trainers and command lines find
no socket of the server's, only a TCP line, which is cut and slow as well. `--round SEED` repeats
one round by the number that was printed for it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import BIN, TERMINAL, TINY, Server  # noqa: E402

import checks  # noqa: E402
import verdicts  # noqa: E402
from faults import BITTEN, Control, Faults  # noqa: E402
from watchers import CommandLineWatcher, EventStreamWatcher, Proxy  # noqa: E402

SHIM = BIN / "normlab_fault_shim.so"
# With these a read may take more than a second through no fault of the server's.
HOLD_READS_UP = {"pause_server", "slow_disk", "full_disk", "failing_sync"}
PATIENCE = 60.0  # seconds; so long a round may take to come to its end afterwards

# Fake engines by the seed of the run.
ENGINES = {1: "steps_per_second=200", 2: "steps_per_second=1000,series=5",
           3: "steps_per_second=3000", 4: "steps_per_second=100,series=300"}


class Round(Faults):
    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.data = folder / "data"
        self.control = Control(folder / "control")
        self.server = Server(self.data, "--cpu-slots", str(self.random.randint(1, 4)),
                             "--trainer", BIN / "normlab-fake-trainer", "--cancel-grace", "2",
                             "--warm-trainers", str(self.random.randint(0, 3)),
                             env={"LD_PRELOAD": str(SHIM),
                                  "NORMLAB_FAULT_CONTROL": str(folder / "control"),
                                  **{f"NORMLAB_FAKE_ENGINE_{n}": text
                                     for n, text in ENGINES.items()}})
        self.address = ""
        self.grpc = ""
        self.token = ""
        self.line = Proxy(lambda: self.grpc) if self.random.random() < 0.5 else None
        self.servers = []     # numbers of their processes
        self.runs = {}        # id -> steps
        self.done_to = collections.defaultdict(verdicts.Done)
        self.began = 0.0      # by the monotonic clock
        self.done = []        # names of what was done, for the report
        self.faults = []
        self.watchers = {}

    def run(self):
        self.began = time.monotonic()
        self.start_server()
        self.submit()
        self.proxy = Proxy(lambda: self.address)
        try:
            self.watch()
            self.do_faults()
            self.come_to_an_end()
            self.check()
        finally:
            self.proxy.close()
            if self.line:
                self.line.close()
            self.end_everything()

    def start_server(self):
        """As often as it takes: a server does not start on a full disk."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.server.start()
                self.servers.append(self.server.process.pid)
                break
            except AssertionError:
                if time.monotonic() > deadline or not self.disk_is_bad():
                    raise
                self.heal_disk()
        endpoint = self.server.endpoint
        self.address, self.grpc, self.token = (endpoint[key] for key in ("http", "grpc", "token"))
        if self.line:
            self.name_the_line(endpoint)

    def name_the_line(self, endpoint):
        """From now on, who looks for the server finds the line to it and no socket. One that looks
        in the moment before this finds the socket, which is as good."""
        del endpoint["socket"]
        changed = self.server.endpoint_file.with_name("endpoint.changed")
        changed.touch(0o600)
        changed.write_text(json.dumps({**endpoint, "grpc": self.line.address}))
        changed.rename(self.server.endpoint_file)

    def submit(self):
        for number in range(self.random.randint(1, 4)):
            seed = self.random.choice(list(ENGINES))
            pace = int(ENGINES[seed].split("=")[1].split(",")[0])
            steps = max(20, int(pace * self.random.uniform(0.5, 2.5)))
            spec = {**TINY, "steps": steps, "seed": seed,
                    "checkpointEvery": self.random.choice([0, 20, 200]),
                    "onInterrupt": self.random.choice(["resume", "requeue", "fail"])}
            self.runs[self.server.create(f"run {number}", spec)] = (steps, spec["onInterrupt"])

    def watch(self):
        for number in range(self.random.randint(1, 3)):
            self.watchers[f"event stream {number}"] = EventStreamWatcher(
                self.proxy, lambda: self.token, list(self.runs), self.random.random())
        if self.random.random() < 0.5:
            run = self.random.choice(list(self.runs))
            self.watchers[f"normlab watch {run}"] = CommandLineWatcher(self.server, run)

    def come_to_an_end(self):
        self.heal_disk()
        self.proxy.delay = 0.0
        if self.line:
            self.line.delay = 0.0
        if self.server.process.poll() is not None:
            self.faults.append(f"the server had ended with {self.server.process.returncode}")
            self.start_server()
        deadline = time.monotonic() + PATIENCE
        for run in self.runs:
            while (state := self.server.state(run)) not in TERMINAL:
                if state == "PAUSED":
                    self.request(run, "resume")
                if time.monotonic() > deadline:
                    self.faults.append(f"{run} is still {state}: {self.server.run(run)}")
                    break
                time.sleep(0.02)

    def check(self):
        for run, (steps, on_interrupt) in self.runs.items():
            self.check_run(run, steps, on_interrupt)
        for name, watcher in self.watchers.items():
            self.check_watcher(name, watcher)
        self.faults += self.what_stays(lambda: checks.left_leases(self.server) +
                                       checks.left_processes(self.data) +
                                       checks.left_spools(self.data) +
                                       checks.left_warm(self.servers[:-1]))
        if not HOLD_READS_UP & set(self.done):
            self.faults += checks.slow_reads(self.server)
        code = self.server.kill(signal.SIGTERM)
        if code != 0:
            self.faults.append(f"a clean stop ended with {code}")
        self.faults += checks.left_warm(self.servers)
        stored = checks.Stored(self.data)
        self.faults += stored.faults()
        for name, watcher in self.watchers.items():
            self.faults += stored.missing(name, watcher.shown)

    @staticmethod
    def what_stays(find, seconds=5):
        """What find() finds, when that does not go away by itself."""
        deadline = time.monotonic() + seconds
        while (left := find()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left

    def check_run(self, run, steps, on_interrupt):
        ended = self.server.run(run)
        self.faults += verdicts.end_faults(ended, on_interrupt, self.done_to[run])
        self.faults += verdicts.attempt_faults(ended, on_interrupt, steps)
        # Attempts follow one another, and no clock that jumped measured them.
        took = time.monotonic() - self.began
        times = [attempt.get("runSeconds", 0) for attempt in ended.get("attempts", [])]
        if any(seconds < 0 for seconds in times) or sum(times) > took:
            self.faults.append(f"{run} ran for {times} s within {took} s")
        names = ["loss", "gradient_norm", "learning_rate"]
        answer = self.server.get(
            f"/api/v1/runs/{run}/series?names={','.join(names)}&max_points=100000")
        self.faults += checks.curve_faults(
            run, answer["columns"], steps if verdicts.state_of(ended) == "SUCCEEDED" else None)

    def check_watcher(self, name, watcher):
        if isinstance(watcher, CommandLineWatcher):
            code = watcher.stop(PATIENCE)
            if code is None:
                self.faults.append(f"{name} did not end by itself")
            return
        deadline = time.monotonic() + PATIENCE
        while not watcher.done() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not watcher.done():
            self.faults.append(f"{name} has not seen the end of {set(self.runs) - watcher.ended}")
        watcher.stop()

    def end_everything(self):
        """Nothing that was started here outlives the round, whatever went wrong."""
        self.heal_disk()
        if self.server.process.poll() is None:
            self.server.kill()
        checks.kill_left_processes(self.data)
        for server in self.servers:
            for pid in checks.warm_processes(server):
                self.signal(pid, signal.SIGKILL)
        for watcher in self.watchers.values():
            if isinstance(watcher, CommandLineWatcher) and watcher.running():
                watcher.stop(0)
        self.server.log.close()


def one_round(seed, keep):
    """(seed, what was done, what is wrong, seconds, numbers for the end). The folder stays when
    something is wrong."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="normlab-faults-"))
    began = time.monotonic()
    this = Round(seed, folder)
    try:
        this.run()
    except Exception:  # a fault of the server shows as any exception here
        this.faults.append(traceback.format_exc())
    took = time.monotonic() - began
    if this.faults:
        this.faults.append(f"see {folder}")
    elif not keep:
        shutil.rmtree(folder)
    counts = collections.Counter(this.done)
    counts["calls to the disk that failed or were late"] = this.control[BITTEN]
    if this.line:
        counts["connections by a TCP line of trainers and command lines"] = this.line.accepted
        counts["of these were cut"] = this.line.was_cut
    return seed, this.done, this.faults, took, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--round", type=int, help="repeat this one round")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at a time")
    parser.add_argument("--keep", action="store_true", help="keep the folders of good rounds too")
    arguments = parser.parse_args()
    if not SHIM.exists():
        sys.exit(f"{SHIM} is missing")
    seeds = [arguments.round] if arguments.round is not None else [
        arguments.seed * 100_000 + number for number in range(arguments.rounds)]
    print(f"seed {arguments.seed}, {len(seeds)} rounds", flush=True)
    failed, total = 0, collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for seed, done, faults, took, counts in pool.map(
                one_round, seeds, [arguments.keep] * len(seeds)):
            total.update(counts)
            print(f"round {seed}: {'FAILED' if faults else 'ok'}, {took:.1f} s, "
                  f"{', '.join(done)}", flush=True)
            for fault in faults:
                print(f"  {fault}", flush=True)
            failed += bool(faults)
    print(f"{len(seeds) - failed} of {len(seeds)} rounds are good; "
          + ", ".join(f"{count} {what}" for what, count in total.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
