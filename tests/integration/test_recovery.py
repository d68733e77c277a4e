"""Interrupted runs go on, ended ones are tried again, and what was trained is the same as ever."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import unittest

import harness
from harness import TINY, ServerTest, process_identity, wait_for

# A step takes about a millisecond: long enough to be caught in the middle.
SPEC = {"layers": 2, "dModel": 32, "steps": 2000, "checkpointEvery": 100}

# Curves and summaries of runs that nothing happened to, by their settings: they are always the same.
UNDISTURBED = {}


class RecoveryTest(ServerTest):
    options = ("--cpu-slots", "1")

    def wait_for_step(self, run, step):
        wait_for(lambda: self.server.step(run) >= step, f"step {step}")

    def wait_for_attempt(self, run, number):
        wait_for(lambda: len(self.server.run(run).get("attempts", [])) >= number,
                 f"attempt {number}")
        return self.server.run(run)["attempts"]

    def check_curve(self, run, spec=SPEC):
        """Each step once, and each number that of a run that nothing happened to."""
        ended = self.server.wait_for_state(run, "SUCCEEDED", "FAILED")
        self.assertEqual(ended["state"], "STATE_SUCCEEDED", ended["endReason"])
        curves, summary = self.undisturbed(spec)
        for name, undisturbed in curves.items():
            curve = self.server.series(run, name)
            self.assertEqual(sorted(curve), list(range(1, spec["steps"] + 1)))
            self.assertEqual(curve, undisturbed)
        for name in ("finalLoss", "minLoss", "maxGradientNorm"):
            self.assertEqual(ended["summary"][name], summary[name], name)
        return ended

    def undisturbed(self, spec):
        key = json.dumps(spec, sort_keys=True)
        if key not in UNDISTURBED:
            run = self.server.create("undisturbed", spec)
            ended = self.server.wait_for_state(run, "SUCCEEDED")
            UNDISTURBED[key] = ({name: self.server.series(run, name)
                                 for name in ("loss", "gradient_norm")}, ended["summary"])
        return UNDISTURBED[key]


class Interrupted(RecoveryTest):
    def test_kill_9_of_a_trainer_twice_and_of_a_shepherd(self):
        run = self.server.create("unlucky", SPEC)
        steps = [0]
        for number, victim in ((1, "trainer"), (2, "shepherd"), (3, "trainer")):
            self.wait_for_attempt(run, number)
            self.wait_for_step(run, steps[-1] + 300)
            shepherd, trainer = self.server.processes(run, number)
            os.kill(trainer if victim == "trainer" else shepherd, signal.SIGKILL)
            attempts = self.wait_for_attempt(run, number + 1)
            self.assertIsNone(process_identity(trainer))
            self.assertEqual(int(attempts[-1]["resumedFromAttempt"]), number)
            steps.append(int(attempts[-1]["resumedFromStep"]))
            self.assertGreater(steps[-1], steps[-2])
            self.assertEqual(steps[-1] % SPEC["checkpointEvery"], 0)
        ended = self.check_curve(run)
        self.assertIn("SIGKILL", ended["attempts"][0]["endReason"])
        self.assertIn("lost", ended["attempts"][1]["endReason"])
        self.assertAlmostEqual(ended["runSeconds"],
                               sum(attempt["runSeconds"] for attempt in ended["attempts"]))
        self.assertIn("SIGKILL", self.server.cli("show", run, check=0).stdout)

    def test_requeue_starts_again(self):
        spec = {**SPEC, "onInterrupt": "requeue"}
        run = self.server.create("again", spec)
        self.wait_for_step(run, 300)
        os.kill(self.server.processes(run)[1], signal.SIGKILL)
        attempts = self.wait_for_attempt(run, 2)
        self.assertEqual(attempts[1].get("resumedFromAttempt", 0), 0)
        self.check_curve(run)

    def test_fail_ends_the_run_and_a_retry_goes_on(self):
        run = self.server.create("failing", {**SPEC, "onInterrupt": "fail"})
        self.wait_for_step(run, 300)
        os.kill(self.server.processes(run)[1], signal.SIGKILL)
        failed = self.server.wait_for_state(run, "FAILED")
        self.assertIn("SIGKILL", failed["endReason"])
        last = int(failed["progress"]["step"])
        self.assertEqual(sorted(self.server.series(run, "loss")), list(range(1, last + 1)))
        watch = self.server.cli_start("retry", run, "--watch", "--json")
        out, said = watch.communicate(timeout=120)
        self.assertEqual(watch.returncode, 0, said)
        self.assertEqual(json.loads(out.splitlines()[-1])["event"], "end")
        ended = self.check_curve(run)
        self.assertGreaterEqual(int(ended["attempts"][1]["resumedFromStep"]), 200)
        self.assertNotIn("exitSignal", ended)

    def test_a_trainer_that_is_killed_while_its_server_is_away(self):
        run = self.server.create("unlucky", SPEC)
        self.wait_for_step(run, 300)
        shepherd, trainer = self.server.processes(run)
        self.server.kill()
        os.kill(trainer, signal.SIGKILL)
        wait_for(lambda: process_identity(shepherd) is None, "the shepherd to end")
        self.server.start()
        self.check_curve(run)

    def test_both_are_killed_while_the_server_is_away(self):
        run = self.server.create("unlucky", SPEC)
        self.wait_for_step(run, 300)
        shepherd, trainer = self.server.processes(run)
        self.server.kill()
        os.kill(shepherd, signal.SIGKILL)
        wait_for(lambda: process_identity(trainer) is None, "the trainer to end with it")
        self.server.start()
        ended = self.check_curve(run)
        self.assertIn("lost", ended["attempts"][0]["endReason"])
        self.assertGreater(ended["attempts"][0]["runSeconds"], 0)

    def test_a_machine_that_went_down(self):
        """The processes are gone and the boot is another one."""
        run = self.server.create("rebooted", SPEC)
        self.wait_for_step(run, 300)
        shepherd, _ = self.server.processes(run)
        self.server.kill()
        os.kill(shepherd, signal.SIGKILL)
        database = sqlite3.connect(self.server.data_dir / "normlab.db")
        with database:
            # Its number is another process's by now.
            database.execute("UPDATE attempts SET shepherd_boot_id = 'before', shepherd_pid = ?",
                             (os.getpid(),))
        database.close()
        note = self.server.attempt_dir(run) / "shepherd.json"
        note.write_text(json.dumps({**json.loads(note.read_text()), "boot_id": "before"}))
        self.server.start()
        self.check_curve(run)

    def test_a_paused_run_whose_trainer_is_killed_while_it_pauses(self):
        run = self.server.create("pausing", SPEC)
        self.wait_for_step(run, 300)
        trainer = self.server.processes(run)[1]
        os.kill(trainer, signal.SIGSTOP)
        self.server.request("POST", f"/api/v1/runs/{run}:pause")
        os.kill(trainer, signal.SIGKILL)
        self.server.wait_for_state(run, "PAUSED")
        self.assertEqual(self.server.request("POST", f"/api/v1/runs/{run}:resume")[0], 200)
        self.check_curve(run)


class Orphaned(RecoveryTest):
    def setUp(self):
        os.environ["NORMLAB_REATTACH_GRACE"] = "2"
        self.addCleanup(os.environ.pop, "NORMLAB_REATTACH_GRACE")
        super().setUp()

    def test_a_trainer_whose_server_stays_away_leaves_a_checkpoint_to_go_on_from(self):
        spec = {**SPEC, "steps": 6000, "checkpointEvery": 0}
        run = self.server.create("orphan", spec)
        self.wait_for_step(run, 100)
        shepherd, _ = self.server.processes(run)
        self.server.kill()
        wait_for(lambda: process_identity(shepherd) is None, "the trainer to give up")
        self.assertEqual(
            json.loads((self.server.attempt_dir(run) / "exit.json").read_text())["exit_code"], 3)
        self.server.start()
        attempts = self.wait_for_attempt(run, 2)
        self.assertIn("no server for 2 s", attempts[0]["endReason"])
        self.assertEqual(attempts[1]["resumedFromStep"], attempts[0]["checkpointStep"])
        self.assertEqual(attempts[1]["resumedFromStep"], attempts[0]["lastStep"])
        self.check_curve(run, spec)


class Retried(RecoveryTest):
    def retry(self, run, **body):
        return self.server.request("POST", f"/api/v1/runs/{run}:retry", body)

    def test_every_end_but_success(self):
        cancelled = self.server.create("cancelled", SPEC)
        self.wait_for_step(cancelled, 300)
        self.assertEqual(self.retry(cancelled)[0], 400, "it runs")
        self.server.cli("cancel", cancelled, check=0)
        self.server.wait_for_state(cancelled, "CANCELLED")
        status, answer = self.retry(cancelled)
        self.assertEqual(status, 200, answer)
        self.assertNotIn("endTime", answer)
        self.assertNotIn("endReason", {k: v for k, v in answer.items() if v})
        ended = self.check_curve(cancelled)
        self.assertGreaterEqual(int(ended["attempts"][1]["resumedFromStep"]), 200)
        status, answer = self.retry(cancelled)
        self.assertEqual(status, 400)
        self.assertIn("has succeeded", answer["error"]["message"])

        diverging = self.server.create("diverging", {
            **TINY, "steps": 2000, "learningRate": 1000, "normGain": False, "placement": "none"})
        first = self.server.wait_for_state(diverging, "DIVERGED")
        self.server.cli("retry", diverging, "--from-start", check=0)
        self.wait_for_attempt(diverging, 2)
        again = self.server.wait_for_state(diverging, "DIVERGED")
        self.assertEqual(again["summary"]["firstBadStep"], first["summary"]["firstBadStep"])
        self.assertEqual(len(again["attempts"]), 2)

    def test_from_start_leaves_the_checkpoint_alone(self):
        run = self.server.create("fresh", SPEC)
        self.wait_for_step(run, 300)
        self.server.cli("cancel", run, check=0)
        self.server.wait_for_state(run, "CANCELLED")
        self.assertEqual(self.retry(run, fromStart=True)[0], 200)
        attempts = self.wait_for_attempt(run, 2)
        self.assertEqual(attempts[1].get("resumedFromAttempt", 0), 0)
        self.check_curve(run)


class Upgraded(RecoveryTest):
    def test_a_server_of_another_place_takes_over(self):
        run = self.server.create("survivor", SPEC)
        self.wait_for_step(run, 300)
        trainer = process_identity(self.server.processes(run)[1])
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        new = pathlib.Path(self.folder.name) / "new"
        new.mkdir()
        for program in ("normlabd", "normlab-shepherd", "normlab-trainer"):
            shutil.copy2(harness.BIN / program, new / program)
        old = harness.BIN
        harness.BIN = new
        self.addCleanup(setattr, harness, "BIN", old)
        self.server.start()
        self.assertEqual(process_identity(trainer[0]), trainer, "the same trainer goes on")
        harness.BIN = old
        ended = self.check_curve(run)
        self.assertEqual(len(ended["attempts"]), 1)

    def test_a_step_of_the_schema_is_taken_under_a_living_trainer(self):
        run = self.server.create("survivor", SPEC)
        waiting = self.server.create("waits", {**TINY, "steps": 20})
        self.wait_for_step(run, 300)
        trainer = process_identity(self.server.processes(run)[1])
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        self.set_back_to_schema_7()
        self.server.start()
        self.assertEqual(self.schema(), 8, "the server takes the step")
        self.assertEqual(process_identity(trainer[0]), trainer, "the same trainer goes on")
        ended = self.check_curve(run)
        self.assertEqual(len(ended["attempts"]), 1)
        self.server.wait_for_state(waiting, "SUCCEEDED")
        self.server.cli("doctor", "--check", check=0)

    def database(self):
        return contextlib.closing(sqlite3.connect(self.server.data_dir / "normlab.db"))

    def schema(self):
        with self.database() as database:
            return database.execute("PRAGMA user_version").fetchone()[0]

    def set_back_to_schema_7(self):
        """Undoes the newest migration; the next one takes its place here."""
        self.assertEqual(self.schema(), 8)
        with self.database() as database:
            database.executescript("BEGIN; ALTER TABLE runs DROP COLUMN gpu_need_bytes;"
                                   "PRAGMA user_version = 7; COMMIT;")
        self.assertEqual(self.schema(), 7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
