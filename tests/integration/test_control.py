"""What ends a run, and what it says then: limits, retries, stops of the server, faults, cancels.

Trainers are scripted (tests/fakes/fake_engine.cc): the seed of a run chooses its script. What must
come out bit for bit is trained for real.
"""

import os
import signal
import sqlite3
import tempfile
import time
import unittest

from harness import BIN, TINY, ServerTest, process_identity, wait_for

SCRIPTS = {
    1: "exit_at=40,exit_code=0,steps_per_second=20",
    2: "exit_at=40,exit_code=3,steps_per_second=20",
    3: "crash_at=40,steps_per_second=20",
    4: "steps_per_second=20",
    5: "oom_at=40,steps_per_second=20",
    6: "exit_at=5",
    7: "steps_per_second=200",
    8: "hang_at=20,ignore_stop=1",
}
# How a run with that seed ends by itself, with its step.
OWN_ENDS = {
    1: "the trainer exited with code 0 without a result after step 39; its log says more",
    2: "the trainer exited with code 3 without a result after step 39; its log says more",
    3: "the trainer was ended by signal 11 (SIGSEGV) after step 39",
    5: "out of GPU memory: asked for 2.50 GiB, held 3.56 GiB, its budget is the whole GPU; the GPU "
       "has 1.25 GiB of 139.81 GiB free; make batch_size or the model smaller",
}
FOREVER = {**TINY, "steps": 10**9}


class Scripted(ServerTest):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", "8",
               "--cancel-grace", "1", "--checkpoint-grace", "1")

    @classmethod
    def setUpClass(cls):
        for seed, script in SCRIPTS.items():
            os.environ[f"NORMLAB_FAKE_ENGINE_{seed}"] = script

    def create(self, seed, **spec):
        return self.server.create(f"seed {seed}", {**FOREVER, "seed": seed, **spec})

    def wait_for_step(self, run, step):
        wait_for(lambda: self.server.step(run) >= step, f"step {step}")


class Reasons(Scripted):
    def check(self, runs):
        reasons = {seed: self.server.told_everywhere(runs[seed]) for seed in OWN_ENDS}
        self.assertEqual(reasons, OWN_ENDS)
        killed = self.server.told_everywhere(runs["killed"])
        self.assertRegex(killed, r"^the trainer was ended by signal 9 \(SIGKILL\) after step \d+; "
                                 r"if nobody killed it, the machine ran out of memory "
                                 r"\(it had used \d+ MiB\)$")
        self.assertEqual(len({*reasons.values(), killed}), len(OWN_ENDS) + 1)

    def start(self):
        runs = {seed: self.create(seed) for seed in OWN_ENDS}
        runs["killed"] = self.create(4, onInterrupt="fail")
        for run in runs.values():
            self.wait_for_step(run, 1)
        return runs

    def test_each_way_to_end_has_a_reason_of_its_own(self):
        runs = self.start()
        cancelled, stopped = self.create(4), self.create(4)
        for run in (cancelled, stopped):
            self.wait_for_step(run, 1)
        os.kill(self.server.processes(runs["killed"])[1], signal.SIGKILL)
        self.server.cli("cancel", cancelled, check=0)
        self.server.wait_for_state(cancelled, "CANCELLED")
        for run in runs.values():
            self.server.wait_for_state(run, "FAILED")
        self.check(runs)
        self.assertRegex(self.server.told_everywhere(cancelled), r"^cancelled after step \d+$")

    def test_the_same_for_runs_that_end_while_the_server_is_down(self):
        runs = self.start()
        shepherds = [self.server.processes(run)[0] for run in runs.values()]
        trainer = self.server.processes(runs["killed"])[1]
        self.server.kill()
        os.kill(trainer, signal.SIGKILL)
        for shepherd in shepherds:
            wait_for(lambda: process_identity(shepherd) is None, "the shepherds to end")
        self.server.start()
        for run in runs.values():
            self.server.wait_for_state(run, "FAILED")
        self.check(runs)


class Limits(Scripted):
    def test_a_step_limit(self):
        run = self.create(7, steps=540, stepLimit=100)
        ended = self.server.wait_for_state(run, "TIMED_OUT")
        self.assertEqual(self.server.told_everywhere(run),
                         "stopped behind step 100, its step_limit, of 540")
        self.assertEqual(int(ended["progress"]["step"]), 100)
        self.assertEqual(int(ended["attempts"][0]["checkpointStep"]), 100)
        self.server.cli("retry", run, check=0)
        ended = self.server.wait_for_state(run, "TIMED_OUT")
        self.assertEqual(int(ended["progress"]["step"]), 200)
        self.assertEqual(int(ended["attempts"][1]["resumedFromStep"]), 100)

    def test_a_time_limit_over_pauses_and_restarts_of_the_server(self):
        run = self.create(7, timeLimit=6)
        self.wait_for_step(run, 20)
        self.server.cli("pause", run, check=0)
        self.server.wait_for_state(run, "PAUSED")
        self.server.cli("resume", run, check=0)
        wait_for(lambda: len(self.server.run(run)["attempts"]) == 2, "the second attempt")
        self.wait_for_step(run, 100)
        self.server.kill()
        self.server.start()
        ended = self.server.wait_for_state(run, "TIMED_OUT")
        self.assertRegex(self.server.told_everywhere(run), r"^stopped after \d+\.\d s, its time_limit is "
                                                    r"6\.0 s, behind step \d+ of 1000000000$")
        # The server counts from when it starts an attempt, its shepherd from some ms later.
        self.assertGreater(ended["runSeconds"], 5.9)
        self.assertEqual(ended["attempts"][1]["checkpointStep"], ended["progress"]["step"])

    def test_time_that_passes_while_no_server_is_there_counts(self):
        run = self.create(7, timeLimit=2)
        self.wait_for_step(run, 1)
        self.server.kill()
        time.sleep(3)  # the trainer's own time
        self.server.start()
        self.server.wait_for_state(run, "TIMED_OUT")
        self.assertGreaterEqual(self.server.run(run)["runSeconds"], 3)

    def test_a_trainer_that_does_not_listen_is_killed_when_its_time_is_over(self):
        run = self.create(8, timeLimit=1)
        ended = self.server.wait_for_state(run, "TIMED_OUT")
        self.assertIn("it did not end in time and has no checkpoint", self.server.told_everywhere(run))
        self.assertEqual(ended["exitSignal"], 9)


class Retries(Scripted):
    def test_a_run_that_fails_is_tried_again_also_by_the_next_server(self):
        run = self.create(6, retries=1)
        waiting = wait_for(lambda: (found := self.server.run(run))["state"] == "STATE_QUEUED"
                           and found.get("attempts") and found, "the run to wait again")
        self.assertRegex(waiting["waitReason"], r"^tried again in 10 s \(1 of 1\): the trainer "
                                                r"exited with code 9 without a result after step 4")
        self.server.kill()
        self.server.start()
        ended = self.server.wait_for_state(run, "FAILED")
        self.assertEqual(len(ended["attempts"]), 2)
        self.assertIn("(tried again 1 of 1 times)", self.server.told_everywhere(run))
        first, second = ended["attempts"]
        self.assertGreaterEqual(second["startTime"], first["endTime"])

    def test_one_that_waits_can_be_cancelled(self):
        run = self.create(6, retries=3)
        wait_for(lambda: self.server.run(run).get("waitReason", "").startswith("tried again"),
                 "the run to wait again")
        self.server.cli("cancel", run, check=0)
        self.assertEqual(self.server.state(run), "CANCELLED")


class Cancels(Scripted):
    def test_200_cancels_right_after_the_start_leave_nothing_behind(self):
        for i in range(200):
            run = self.create(4)
            time.sleep((i % 10) / 200)  # up to 45 ms into the start
            status, answer = self.server.request("POST", f"/api/v1/runs/{run}:cancel")
            self.assertEqual(status, 200, answer)
        runs = self.server.get("/api/v1/runs?page_size=1000")["runs"]
        self.assertEqual(len(runs), 200)
        for run in runs:
            self.server.wait_for_state(run["id"], "CANCELLED")
        wait_for(lambda: not any(device.get("run") or device.get("leases") for device
                                 in self.server.get("/api/v1/devices")["devices"]),
                 "every lease to come back")
        # Nothing of an attempt lives: its marker is in the environment of all its processes.
        marker = f"NORMLAB_ATTEMPT_DIR={self.server.data_dir}".encode()
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    self.assertNotIn(marker, file.read(), f"process {name} is left")
            except OSError:
                continue


class Stubborn(ServerTest):
    """A trainer that ignores SIGTERM, with a grandchild in a session of its own that does too."""

    PROGRAM = """#!/bin/bash
trap '' TERM
setsid bash -c 'trap "" TERM; echo $$ > grandchild; exec sleep 1000' &
while true; do sleep 1; done
"""
    GRACE = 1
    options = ("--cpu-slots", "1", "--cancel-grace", str(GRACE))

    def setUp(self):
        program = tempfile.NamedTemporaryFile("w", prefix="normlab-stubborn-", delete=False)
        self.addCleanup(os.unlink, program.name)
        with program:
            program.write(self.PROGRAM)
        os.chmod(program.name, 0o700)
        self.options = (*Stubborn.options, "--trainer", program.name)
        super().setUp()

    def start(self):
        """A run, and its processes: the shepherd, the trainer, its grandchild."""
        run = self.server.create("stubborn", FOREVER)
        processes = list(self.server.processes(run))
        note = self.server.attempt_dir(run) / "grandchild"
        wait_for(lambda: note.exists() and note.read_text().strip(), "the grandchild")
        processes.append(int(note.read_text()))
        return run, [process_identity(pid) for pid in processes]

    def check_gone(self, run, processes, since):
        self.server.wait_for_state(run, "CANCELLED")
        self.assertLess(time.monotonic() - since, self.GRACE + 5)
        for identity in processes:
            self.assertNotEqual(process_identity(identity[0]), identity)
        other = self.server.create("next", FOREVER)  # the slot is free
        wait_for(lambda: self.server.state(other) in ("STARTING", "RUNNING"), "the next run")

    def test_a_cancel_ends_it_for_certain(self):
        run, processes = self.start()
        since = time.monotonic()
        self.server.cli("cancel", run, check=0)
        self.check_gone(run, processes, since)

    def test_also_when_its_shepherd_is_killed(self):
        run, processes = self.start()
        since = time.monotonic()
        self.server.cli("cancel", run, check=0)
        os.kill(processes[0][0], signal.SIGKILL)
        self.check_gone(run, processes, since)


class StopWithCheckpoints(ServerTest):
    """The real trainer: what goes on after the stop is what would have been."""

    SPEC = {"layers": 2, "dModel": 32, "steps": 1500, "placement": "post"}
    options = ("--cpu-slots", "1", "--on-stop", "checkpoint")

    def test_a_stopped_run_is_in_the_queue_and_goes_on_bit_for_bit(self):
        undisturbed = self.server.create("undisturbed", self.SPEC)
        self.server.wait_for_state(undisturbed, "SUCCEEDED")
        run = self.server.create("stopped", self.SPEC)
        waiting = self.server.create("waiting", self.SPEC)
        wait_for(lambda: self.server.step(run) >= 200, "step 200")
        shepherd, _ = self.server.processes(run)
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        self.assertIsNone(process_identity(shepherd), "the server waited for its end")
        self.server.start()
        for one in (run, waiting):
            self.server.wait_for_state(one, "SUCCEEDED")
            for name in ("loss", "gradient_norm"):
                curve = self.server.series(one, name)
                self.assertEqual(sorted(curve), list(range(1, self.SPEC["steps"] + 1)))
                self.assertEqual(curve, self.server.series(undisturbed, name))
        first, second = self.server.run(run)["attempts"]
        self.assertEqual(first["endReason"], "the server was stopped")
        self.assertEqual(second["resumedFromStep"], first["checkpointStep"])
        self.assertEqual(len(self.server.run(waiting)["attempts"]), 1)


class StopThatWaits(Scripted):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cancel-grace", "1",
               "--on-stop", "checkpoint", "--checkpoint-grace", "300", "--stop-wait", "300")

    def test_a_run_that_was_stopped_says_so_while_no_server_is_there(self):
        run = self.create(7)
        self.wait_for_step(run, 1)
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        database = sqlite3.connect(f"file:{self.server.data_dir}/normlab.db?mode=ro", uri=True)
        state, reason = database.execute("SELECT state, wait_reason FROM runs").fetchone()
        database.close()
        self.assertEqual(state, 1)
        self.assertRegex(reason, r"^the server was stopped; it goes on from the checkpoint of "
                                 r"step \d+$")

    def test_a_second_signal_ends_the_wait_and_leaves_the_run_to_the_next_server(self):
        run = self.create(8)
        self.wait_for_step(run, 19)
        _, trainer = self.server.processes(run)
        self.server.process.send_signal(signal.SIGTERM)
        self.server.wait_for_state(run, "PAUSING")  # it still serves
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        self.assertIsNotNone(process_identity(trainer))


if __name__ == "__main__":
    unittest.main()
