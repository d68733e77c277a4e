"""A full disk: nothing is lost, everybody waits, and all goes on by itself."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import unittest

from harness import BIN, TERMINAL, TINY, Server, ServerTest, wait_for

SPEC = {**TINY, "steps": 60_000, "checkpointEvery": 2000}


class DiskFull(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="normlab-full-")
        self.addCleanup(os.rmdir, self.folder)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48M,mode=700", "tmpfs", self.folder],
            capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", self.folder], check=True)
        self.server = Server(pathlib.Path(self.folder) / "data", "--cpu-slots", "1").start()
        self.addCleanup(self.server.log.close)
        self.addCleanup(self.server.stop)

    def fill(self):
        filler = pathlib.Path(self.folder, "filler")
        with open(filler, "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(b"x" * 65536)
        return filler

    def test_points_wait_in_the_spool_and_queued_runs_in_the_queue(self):
        first = self.server.create("first", SPEC)
        watch = self.server.cli_start("watch", first, "--json")
        self.assertEqual(self.problems(), [])
        second = self.server.create("second", {**SPEC, "steps": 200})
        wait_for(lambda: self.server.step(first) > 500, "some steps")
        filler = self.fill()

        def stands_still():
            before = self.server.step(first)
            return before if not wait_for_change(before) else None

        def wait_for_change(before):
            try:
                return wait_for(lambda: self.server.step(first) != before, "a step", timeout=1)
            except AssertionError:
                return None

        step = wait_for(stands_still, "the run to stand still")
        self.assert_everybody_is_told()
        self.assertNotIn(self.server.state(first), ("FAILED", "SUCCEEDED"))
        filler.unlink()
        wait_for(lambda: self.server.step(first) > step, "the run to go on")
        self.server.wait_for_state(first, "SUCCEEDED")
        wait_for(lambda: not self.problems(), "all to be well")
        self.assert_watcher_was_told(watch)
        self.assertEqual(self.server.cli("ls", check=0).stderr, "")
        self.assertEqual(sorted(self.server.series(first, "loss")),
                         list(range(1, SPEC["steps"] + 1)))
        log = self.server.cli("log", first, check=0).stdout
        self.assertIn("no checkpoint of step", log)
        self.assertEqual(int(self.server.run(first)["attempts"][0]["checkpointStep"]),
                         SPEC["steps"], f"checkpoints come again; {log}")
        self.server.wait_for_state(second, "SUCCEEDED")

    def problems(self):
        status, health = self.server.request("GET", "/healthz", token="")
        self.assertEqual(status, 200, "the server lives")
        return health.get("problems", [])

    def metric(self, name):
        text = self.server.request("GET", "/metrics")[1].decode()
        return float(next(line.split()[1] for line in text.splitlines()
                          if line.startswith(name + " ")))

    def assert_everybody_is_told(self):
        def nothing_stored(texts):
            return any("nothing can be stored" in text and "make room" in text for text in texts)

        wait_for(lambda: nothing_stored(self.problems()), "healthz to say so")
        self.assertTrue(any("nearly full" in text for text in self.problems()), self.problems())
        self.assertIn("nothing can be stored", self.server.cli("doctor").stdout)
        self.assertIn("nothing can be stored", self.server.cli("ls", check=0).stderr)
        self.assertEqual(self.metric("normlab_writing_ok"), 0)
        self.assertLess(self.metric("normlab_disk_free_bytes"), 1 << 20)

    def assert_watcher_was_told(self, watch):
        """By its run's end, which may come before anybody can be sure that all is well again."""
        out, _ = watch.communicate(timeout=60)
        notices = [event.get("problems", []) for event in map(json.loads, out.splitlines())
                   if event["event"] == "notice"]
        self.assertTrue(any("nothing can be stored" in text for told in notices for text in told),
                        notices)
        self.assertEqual(self.metric("normlab_writing_ok"), 1)

    def test_a_run_is_not_started_without_room_and_says_so(self):
        filler = self.fill()
        with open(filler, "r+b") as file:
            file.truncate(filler.stat().st_size - (4 << 20))  # rows fit, a spool does not
        run = self.server.create("waits", {**TINY, "steps": 20})
        wait_for(lambda: "disk space" in self.server.run(run)["waitReason"], "the reason")
        self.assertEqual(self.server.state(run), "QUEUED")
        filler.unlink()
        self.server.wait_for_state(run, "SUCCEEDED")


class NoRoomForACheckpoint(ServerTest):
    """What asks for one waits for it. tests/fakes/fault_shim.c makes the disk full."""

    options = ("--cpu-slots", "1")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="normlab-control-")
        self.addCleanup(folder.cleanup)
        self.control = pathlib.Path(folder.name, "control")
        self.control.write_bytes(bytes(64))
        self.environment = {"LD_PRELOAD": str(BIN / "normlab_fault_shim.so"),
                            "NORMLAB_FAULT_CONTROL": str(self.control)}
        super().setUp()
        self.addCleanup(self.set_disk_full, 0)

    def set_disk_full(self, full):
        with open(self.control, "r+b", buffering=0) as file:
            file.write(struct.pack("q", full))

    def test_a_pause_waits_for_room_and_loses_no_step(self):
        run = self.server.create("pausing", {**TINY, "steps": 10**9, "onInterrupt": "fail"})
        wait_for(lambda: self.server.step(run) > 10, "some steps")
        _, trainer = self.server.processes(run)
        os.kill(trainer, signal.SIGSTOP)  # so that the pause is stored and not yet obeyed
        try:
            self.server.cli("pause", run, check=0)
            self.set_disk_full(1)
        finally:
            os.kill(trainer, signal.SIGCONT)
        log = self.server.attempt_dir(run) / "log"
        wait_for(lambda: "the run waits for it" in log.read_text(), "the trainer to say so")
        self.assertEqual(self.server.state(run), "PAUSING")
        self.set_disk_full(0)
        paused = self.server.wait_for_state(run, "PAUSED", *TERMINAL)
        self.assertEqual(paused["state"], "STATE_PAUSED", paused.get("endReason"))
        self.assertEqual(paused["attempts"][0]["checkpointStep"], paused["progress"]["step"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
