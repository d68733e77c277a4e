"""What happens when processes die: nothing stored is lost, nothing is doubled, nothing hangs."""

import json
import os
import signal
import unittest

from harness import TINY, ServerTest, process_identity, wait_for

# Long enough to be caught in the middle; the same in every test, so that curves can be compared.
LONG = {**TINY, "steps": 20_000}
# One whose end is that of its process; test_recovery.py has those that go on.
FAILING = {**LONG, "onInterrupt": "fail"}


class TrainerKilled(ServerTest):
    options = ("--cpu-slots", "1")

    def test_kill_9_of_a_trainer_fails_its_run_keeps_its_curve_and_starts_the_next(self):
        first = self.server.create("killed", FAILING)
        second = self.server.create("next", {**TINY, "steps": 50})
        wait_for(lambda: self.server.step(first) > 100, "some steps")
        self.assertEqual(self.server.state(second), "QUEUED")
        shepherd, trainer = self.server.processes(first)
        os.kill(trainer, signal.SIGKILL)
        ended = self.server.wait_for_state(first, "FAILED")
        self.assertIn("signal 9 (SIGKILL)", ended["endReason"])
        self.assertEqual(ended["exitSignal"], 9)
        curve = self.server.series(first, "loss")
        last = int(ended["progress"]["step"])
        self.assertEqual(sorted(curve), list(range(1, last + 1)))
        self.assertGreater(last, 100)
        self.server.wait_for_state(second, "SUCCEEDED")
        self.assertIsNone(process_identity(shepherd))

    def test_kill_9_of_a_shepherd_ends_its_trainer_and_frees_the_slot(self):
        first = self.server.create("orphaned", FAILING)
        second = self.server.create("next", {**TINY, "steps": 50})
        wait_for(lambda: self.server.step(first) > 100, "some steps")
        shepherd, trainer = self.server.processes(first)
        os.kill(shepherd, signal.SIGKILL)
        ended = self.server.wait_for_state(first, "FAILED")
        self.assertIn("lost", ended["endReason"])
        self.server.wait_for_state(second, "SUCCEEDED")
        self.assertIsNone(process_identity(trainer))

    def test_cancel_of_a_running_run(self):
        first = self.server.create("cancelled", {**LONG, "steps": 10_000_000})
        wait_for(lambda: self.server.step(first) > 10, "some steps")
        _, trainer = self.server.processes(first)
        result = self.server.cli("cancel", first, check=0)
        self.assertIn("cancel", result.stdout + result.stderr)
        self.server.wait_for_state(first, "CANCELLED")
        self.assertIsNone(process_identity(trainer))
        self.assertEqual(self.server.request("POST", f"/api/v1/runs/{first}:cancel")[0], 400)


class ServerKilled(ServerTest):
    """Ways for a server to go and come back in the middle of a run."""

    def undisturbed(self):
        run = self.server.create("undisturbed", LONG)
        self.server.wait_for_state(run, "SUCCEEDED")
        return self.server.series(run, "loss")

    def check_whole(self, run):
        """The run went on as if nothing had happened: each step once, each number the same."""
        ended = self.server.wait_for_state(run, "SUCCEEDED")
        self.assertEqual(len(ended["attempts"]), 1, "the same trainer all along")
        curve = self.server.series(run, "loss")
        self.assertEqual(sorted(curve), list(range(1, LONG["steps"] + 1)))
        self.assertEqual(curve, self.undisturbed())

    def test_kill_9_and_restart_in_the_middle_of_a_run(self):
        run = self.server.create("survivor", LONG)
        wait_for(lambda: self.server.step(run) > 500, "some steps")
        watch = self.server.cli_start("watch", run, "--json")
        watched = []
        for line in watch.stdout:
            watched.append(json.loads(line))
            if watched[-1]["event"] == "points":
                break
        self.server.kill()
        self.assertEqual(self.server.process.returncode, -signal.SIGKILL)
        _, trainer = self.server.processes(run)
        self.assertIsNotNone(process_identity(trainer), "the trainer outlives its server")
        self.server.start()
        for line in watch.stdout:
            watched.append(json.loads(line))
        self.assertEqual(watch.wait(60), 0, watch.stderr.read())
        watch.stdout.close()
        watch.stderr.close()
        steps = [step for event in watched if event["event"] == "points"
                 for step in event["columns"]["loss"]["steps"]]
        self.assertEqual(steps, list(range(1, LONG["steps"] + 1)), "over one watch, two servers")
        self.assertEqual(watched[-1]["event"], "end")
        self.check_whole(run)

    def test_a_clean_stop_leaves_the_trainer_to_the_next_server(self):
        run = self.server.create("survivor", LONG)
        wait_for(lambda: self.server.step(run) > 500, "some steps")
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        self.assertFalse(self.server.endpoint_file.exists())
        self.server.start()
        self.check_whole(run)

    def test_a_run_that_ended_while_the_server_was_down_ends_as_it_did(self):
        run = self.server.create("ended alone", FAILING)
        wait_for(lambda: self.server.step(run) > 100, "some steps")
        shepherd, trainer = self.server.processes(run)
        self.server.kill()
        os.kill(trainer, signal.SIGKILL)
        wait_for(lambda: process_identity(shepherd) is None, "the shepherd to end")
        self.server.start()
        ended = self.server.wait_for_state(run, "FAILED")
        self.assertIn("signal 9 (SIGKILL)", ended["endReason"])
        last = int(ended["progress"]["step"])
        self.assertEqual(sorted(self.server.series(run, "loss")), list(range(1, last + 1)))

    def test_killed_again_and_again(self):
        run = self.server.create("survivor", LONG)
        seen = 0
        for _ in range(4):
            before = seen
            seen = wait_for(
                lambda: (s := self.server.step(run)) > before and s or
                self.server.state(run) == "SUCCEEDED" and LONG["steps"], "progress")
            self.server.kill()
            self.server.start()
            self.assertGreaterEqual(self.server.step(run), seen, "what was shown is still there")
        self.check_whole(run)


if __name__ == "__main__":
    unittest.main(verbosity=2)
