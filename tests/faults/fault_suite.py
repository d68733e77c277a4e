"""Rounds of a small workload under random faults; after each, everything must be as if there had
been none, as far as the faults allow.

    NORMLAB_BIN=build/release/bin python tests/faults/fault_suite.py [--rounds 25] [--seed N]

A round is a real server in a folder of its own, up to four runs of the fake trainer under real
shepherds, watchers of both kinds, and faults at random moments: SIGKILL, SIGTERM and SIGSTOP of the
server, SIGKILL and SIGSTOP of trainers and shepherds, also of those that wait for attempts, a
disk that is slow, full, or fails to sync, a wall clock that jumps, watchers' connections that are cut
or slow, and people who cancel, pause and resume. `--round SEED` repeats one round by the number that was printed for it.
"""

import argparse
import collections
import concurrent.futures
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import BIN, TERMINAL, TINY, Server  # noqa: E402

import checks  # noqa: E402
import verdicts  # noqa: E402
from watchers import CommandLineWatcher, EventStreamWatcher, Proxy  # noqa: E402

SHIM = BIN / "normlab_fault_shim.so"
DISK_FULL, SYNC_DELAY, SYNC_ERROR, CLOCK_OFFSET, BITTEN = range(5)
FAULTY_SECONDS = 2.0   # so long things go wrong
# With these a read may take more than a second through no fault of the server's.
HOLD_READS_UP = {"pause_server", "slow_disk", "full_disk", "failing_sync"}
PATIENCE = 60.0        # so long a round may take to come to its end afterwards

# Fake engines by the seed of the run.
ENGINES = {1: "steps_per_second=200", 2: "steps_per_second=1000,series=5",
           3: "steps_per_second=3000", 4: "steps_per_second=100,series=300"}


class Control:
    """The numbers by which tests/fakes/fault_shim.c makes faults."""

    def __init__(self, path):
        path.write_bytes(bytes(64))
        with open(path, "r+b") as file:
            self._numbers = mmap.mmap(file.fileno(), 64)

    def __getitem__(self, index):
        return struct.unpack_from("q", self._numbers, 8 * index)[0]

    def __setitem__(self, index, value):
        struct.pack_into("q", self._numbers, 8 * index, value)


class Round:
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
        self.token = ""
        self.servers = []     # numbers of their processes
        self.runs = {}        # id -> steps
        self.done_to = collections.defaultdict(verdicts.Done)
        self.began = 0.0      # by the monotonic clock
        self.done = []        # names of what was done, for the report
        self.faults = []
        self.watchers = {}

    # --- the round -----------------------------------------------------------------------------

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
        self.address, self.token = self.server.endpoint["http"], self.server.endpoint["token"]

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

    def do_faults(self):
        kinds = [self.kill_server, self.kill_server, self.stop_server, self.pause_server,
                 self.kill_trainer, self.kill_shepherd, self.pause_trainer, self.kill_warm,
                 self.stop_warm, self.slow_disk,
                 self.full_disk, self.failing_sync, self.jump_clock, self.cut_watchers,
                 self.slow_watchers, self.cancel, self.pause_run]
        chosen = [self.random.choice(kinds) for _ in range(self.random.randint(1, 5))]
        moments = sorted(self.random.uniform(0, FAULTY_SECONDS) for _ in chosen)
        began = time.monotonic()
        for moment, fault in zip(moments, chosen):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            self.done.append(fault.__name__)
            fault()

    def come_to_an_end(self):
        self.heal_disk()
        self.proxy.delay = 0.0
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

    # --- faults --------------------------------------------------------------------------------

    def disk_is_bad(self):
        return self.control[DISK_FULL] or self.control[SYNC_ERROR]

    def heal_disk(self):
        for index in (DISK_FULL, SYNC_DELAY, SYNC_ERROR):
            self.control[index] = 0

    def nap(self, least, most):
        time.sleep(self.random.uniform(least, most))

    def kill_server(self):
        self.server.kill()
        self.nap(0, 0.5)
        self.start_server()

    def stop_server(self):
        code = self.server.kill(signal.SIGTERM)
        if code != 0:
            self.faults.append(f"SIGTERM ended the server with {code}")
        self.nap(0, 0.5)
        self.start_server()

    def pause_server(self):
        self.pause_process(self.server.process.pid)

    def pause_process(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.nap(0.1, 0.8)
        os.kill(pid, signal.SIGCONT)

    def victim(self, which):
        """(run, pid) of a living shepherd (0) or trainer (1), or None."""
        found = []
        for path in (self.data / "attempts").glob("*/shepherd.json"):
            try:
                told = json.loads(path.read_text())
            except (OSError, ValueError):
                continue  # it is just being written, or its attempt has ended
            pid = (told["pid"], told["trainer_pid"])[which]
            if self.is_ours(pid, path.parent):
                found.append((path.parent.name.rsplit("-", 1)[0], pid))
        return self.random.choice(sorted(found)) if found else None

    @staticmethod
    def is_ours(pid, directory):
        try:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        return f"NORMLAB_ATTEMPT_DIR={directory}".encode() in environment.split(b"\0")

    def kill(self, which):
        if victim := self.victim(which):
            self.done_to[victim[0]].kills += 1
            try:
                os.kill(victim[1], signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself in this very moment

    def kill_trainer(self):
        self.kill(1)

    def kill_shepherd(self):
        self.kill(0)

    def pause_trainer(self):
        if victim := self.victim(1):
            try:
                self.pause_process(victim[1])
            except ProcessLookupError:
                pass

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it ended by itself in this very moment

    def warm_victim(self):
        found = checks.warm_processes(self.server.process.pid)
        return self.random.choice(found) if found else None

    def kill_warm(self):
        if victim := self.warm_victim():
            self.signal(victim, signal.SIGKILL)

    def stop_warm(self):
        """For ever: who wants to use it gets no answer."""
        if victim := self.warm_victim():
            self.signal(victim, signal.SIGSTOP)

    def slow_disk(self):
        self.control[SYNC_DELAY] = self.random.randint(5_000, 200_000)
        self.nap(0.1, 0.6)
        self.control[SYNC_DELAY] = 0

    def full_disk(self):
        self.control[DISK_FULL] = 1
        self.nap(0.1, 1.0)
        if self.random.random() < 0.3:
            self.kill_server()
        self.heal_disk()

    def failing_sync(self):
        self.control[SYNC_ERROR] = 1
        self.nap(0.05, 0.5)
        if self.random.random() < 0.3:
            self.kill_server()
        self.heal_disk()

    def jump_clock(self):
        self.control[CLOCK_OFFSET] += self.random.choice([-86400, -3600, -5, 5, 3600, 86400])

    def cut_watchers(self):
        for _ in range(self.random.randint(1, 5)):
            self.proxy.cut()
            self.nap(0, 0.1)

    def slow_watchers(self):
        self.proxy.delay = self.random.uniform(0.001, 0.05)

    def request(self, run, verb):
        """False when the server refused, which it may: the run may have ended meanwhile."""
        status, _ = self.server.request("POST", f"/api/v1/runs/{run}:{verb}")
        return status == 200

    def cancel(self):
        run = self.random.choice(list(self.runs))
        self.done_to[run].cancelled = True
        self.request(run, "cancel")

    def pause_run(self):
        run = self.random.choice(list(self.runs))
        self.request(run, "pause")
        self.nap(0, 0.3)
        self.request(run, "resume")


def one_round(seed, keep):
    """(seed, what was done, what is wrong). The folder stays when something is wrong."""
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
    return seed, this.done, this.faults, took, this.control[BITTEN]


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
    failed, kinds, bitten = 0, collections.Counter(), 0
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for seed, done, faults, took, bites in pool.map(
                one_round, seeds, [arguments.keep] * len(seeds)):
            kinds.update(done)
            bitten += bites
            print(f"round {seed}: {'FAILED' if faults else 'ok'}, {took:.1f} s, "
                  f"{', '.join(done)}", flush=True)
            for fault in faults:
                print(f"  {fault}", flush=True)
            failed += bool(faults)
    print(f"{len(seeds) - failed} of {len(seeds)} rounds are good; {bitten} calls to the disk "
          f"failed or were late; " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
