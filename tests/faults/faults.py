"""What goes wrong in a round of the fault suite, at moments of its choice."""

import json
import mmap
import os
import pathlib
import signal
import struct
import time

import checks

# Numbers of tests/fakes/fault_shim.c.
DISK_FULL, SYNC_DELAY, SYNC_ERROR, CLOCK_OFFSET, BITTEN = range(5)
FAULTY_SECONDS = 2.0  # so long things go wrong


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


class Faults:
    """The faults of a round: of its `server` and what that started, of its disk and clock
    (`control`), of the lines to it (`proxy` for event streams, `line` for trainers and command
    lines, or None), and by people. Which and when says its `random`."""

    def do_faults(self):
        kinds = [self.kill_server, self.kill_server, self.stop_server, self.pause_server,
                 self.kill_trainer, self.kill_shepherd, self.pause_trainer, self.kill_warm,
                 self.stop_warm, self.slow_disk,
                 self.full_disk, self.failing_sync, self.jump_clock, self.cut_watchers,
                 self.slow_watchers, self.cancel, self.pause_run]
        if self.line:
            kinds += 3 * [self.cut_line] + 2 * [self.slow_line]
        chosen = [self.random.choice(kinds) for _ in range(self.random.randint(1, 5))]
        moments = sorted(self.random.uniform(0, FAULTY_SECONDS) for _ in chosen)
        began = time.monotonic()
        for moment, fault in zip(moments, chosen):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            self.done.append(fault.__name__)
            fault()

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

    def break_disk(self, how, *nap):
        self.control[how] = 1
        self.nap(*nap)
        if self.random.random() < 0.3:
            self.kill_server()
        self.heal_disk()

    def full_disk(self):
        self.break_disk(DISK_FULL, 0.1, 1.0)

    def failing_sync(self):
        self.break_disk(SYNC_ERROR, 0.05, 0.5)

    def jump_clock(self):
        self.control[CLOCK_OFFSET] += self.random.choice([-86400, -3600, -5, 5, 3600, 86400])

    def cut(self, line):
        for _ in range(self.random.randint(1, 5)):
            line.cut()
            self.nap(0, 0.1)

    def cut_watchers(self):
        self.cut(self.proxy)

    def slow_watchers(self):
        self.proxy.delay = self.random.uniform(0.001, 0.05)

    def cut_line(self):
        """Of trainers and command lines."""
        self.cut(self.line)

    def slow_line(self):
        self.line.delay = self.random.uniform(0.001, 0.05)

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
