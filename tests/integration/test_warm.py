"""Trainers that are kept warm: they become attempts like any other, and nothing is left of them."""

import json
import os
import pathlib
import re
import signal
import time
import unittest

from harness import BIN, TERMINAL, TINY, ServerTest, process_identity, wait_for

FOREVER = {**TINY, "steps": 10**9}
SLOTS = 40


def warm_processes(server):
    """Of the server with that number: those that wait for an attempt."""
    marker = f"NORMLAB_ATTEMPT_DIR=warm:{server} ".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # gone meanwhile, or somebody else's
    return [pid for pid in found if process_identity(pid)]


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class WarmServer(ServerTest):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", str(SLOTS),
               "--warm-trainers", "1", "--cancel-grace", "1")
    environment = {"NORMLAB_FAKE_ENGINE": "steps_per_second=100"}

    def said(self, phrase):
        """How often the server's log has it, over all its lives."""
        path = self.server.data_dir.parent / f"{self.server.data_dir.name}.log"
        return len(re.findall(phrase, path.read_text()))

    def wait_for_warm(self, count=1):
        """The processes of that many trainers, which say that they are loaded."""
        wait_for(lambda: self.said("a trainer is kept warm") >= count, "warm trainers")
        found = warm_processes(self.server.process.pid)
        self.assertGreaterEqual(len(found), 2)
        return [process_identity(pid) for pid in found]

    def identities(self, run):
        return {process_identity(pid) for pid in self.server.processes(run)}


class One(WarmServer):
    def test_one_becomes_an_attempt_and_another_takes_its_place(self):
        warm = self.wait_for_warm()
        run = self.server.create("warm", {**TINY, "steps": 300})
        self.server.wait_for_state(run, "RUNNING", "SUCCEEDED")
        self.assertEqual(self.identities(run), set(warm))
        others = self.wait_for_warm(2)
        self.assertFalse(set(others) & set(warm))
        ended = self.server.wait_for_state(run, *TERMINAL)
        self.assertEqual(ended["state"], "STATE_SUCCEEDED")
        self.assertEqual(len(self.server.series(run, "loss")), 300)
        self.assertLess(ended["attempts"][0]["runSeconds"], 60)

    def test_they_are_no_runs_processes(self):
        self.wait_for_warm()
        self.assertFalse(any(device.get("run") or device.get("leases") for device
                             in self.server.get("/api/v1/devices")["devices"]))
        self.assertEqual(self.server.get("/healthz")["status"], "ok")
        self.server.cli("doctor", check=0)

    def test_neither_arguments_nor_environment_hold_a_secret(self):
        self.wait_for_warm()
        run = self.server.create("warm", FOREVER)
        wait_for(lambda: self.server.step(run) > 0, "a step")
        secrets = [(self.server.attempt_dir(run) / "token").read_bytes(),
                   self.server.endpoint["token"].encode()]
        for pid in self.server.processes(run):
            for name in ("cmdline", "environ"):
                text = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
                for secret in secrets:
                    self.assertNotIn(secret, text)
        self.assertIn(f"--run\0{run}\0".encode(),
                      pathlib.Path(f"/proc/{self.server.processes(run)[1]}/cmdline").read_bytes())

    def test_they_end_with_a_server_that_is_killed(self):
        warm = self.wait_for_warm()
        self.server.kill()
        wait_for(lambda: not any(process_identity(pid) for pid, _ in warm), "them to end", 5)

    def test_they_end_with_it_even_when_they_are_stopped(self):
        warm = self.wait_for_warm()
        for pid, _ in warm:
            os.kill(pid, signal.SIGSTOP)
        self.server.kill()
        wait_for(lambda: not any(process_identity(pid) for pid, _ in warm), "them to end", 5)

    def test_they_end_with_a_server_that_stops(self):
        warm = self.wait_for_warm()
        self.assertEqual(self.server.kill(signal.SIGTERM), 0)
        self.assertFalse([pid for pid, _ in warm if process_identity(pid)])

    def test_a_run_of_one_outlives_its_server_and_is_taken_over(self):
        warm = self.wait_for_warm()
        run = self.server.create("warm", {**TINY, "steps": 500})
        wait_for(lambda: self.server.step(run) > 0, "a step")
        self.server.kill()
        time.sleep(0.2)  # what is to be survived
        self.assertEqual(self.identities(run), set(warm))
        self.server.start()
        wait_for(lambda: self.server.step(run) > 100, "more steps")
        self.assertEqual(self.identities(run), set(warm))
        ended = self.server.wait_for_state(run, *TERMINAL)
        self.assertEqual((ended["state"], len(ended["attempts"])), ("STATE_SUCCEEDED", 1))
        self.assertEqual(len(self.server.series(run, "loss")), 500)
        self.wait_for_warm(2)

    def test_one_that_does_not_answer_is_ended_and_the_run_starts_once(self):
        warm = self.wait_for_warm()
        for pid, _ in warm:
            os.kill(pid, signal.SIGSTOP)
        run = self.server.create("cold", {**TINY, "steps": 50})
        ended = self.server.wait_for_state(run, *TERMINAL)
        self.assertEqual((ended["state"], len(ended["attempts"])), ("STATE_SUCCEEDED", 1))
        self.assertEqual(len(self.server.series(run, "loss")), 50)
        self.assertFalse(self.identities(run) & set(warm))
        self.assertEqual(self.said("a warm trainer could not be used"), 1)
        wait_for(lambda: not any(process_identity(pid) for pid, _ in warm), "them to end", 5)

    def test_one_whose_trainer_was_stopped_goes_on_when_it_is_wanted(self):
        warm = self.wait_for_warm()
        trainer, = [pid for pid, _ in warm if parent(pid) in dict(warm)]
        os.kill(trainer, signal.SIGSTOP)
        run = self.server.create("warm", {**TINY, "steps": 300})
        self.server.wait_for_state(run, "RUNNING", "SUCCEEDED")
        self.assertEqual(self.identities(run), set(warm))
        self.assertEqual(self.server.wait_for_state(run, *TERMINAL)["state"], "STATE_SUCCEEDED")

    def test_one_that_is_killed_is_replaced(self):
        warm = self.wait_for_warm()
        for pid, _ in warm:
            os.kill(pid, signal.SIGKILL)
        others = self.wait_for_warm(2)
        self.assertFalse(set(others) & set(warm))
        run = self.server.create("warm", {**TINY, "steps": 5})
        self.server.wait_for_state(run, "SUCCEEDED")
        note = json.loads((self.server.attempt_dir(run) / "shepherd.json").read_text())
        self.assertIn(note["pid"], [pid for pid, _ in others])


class Many(WarmServer):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", str(SLOTS),
               "--warm-trainers", str(SLOTS), "--cancel-grace", "1")

    def test_cancels_right_after_the_start_leave_nothing_behind(self):
        warm = self.wait_for_warm(SLOTS)
        runs = []
        for i in range(SLOTS):
            runs.append(self.server.create("warm", FOREVER))
            time.sleep((i % 10) / 200)  # up to 45 ms into the start
            status, answer = self.server.request("POST", f"/api/v1/runs/{runs[-1]}:cancel")
            self.assertEqual(status, 200, answer)
        for run in runs:
            self.server.wait_for_state(run, "CANCELLED")
        wait_for(lambda: not any(device.get("run") or device.get("leases") for device
                                 in self.server.get("/api/v1/devices")["devices"]),
                 "every lease to come back")
        used = [pid for path in (self.server.data_dir / "attempts").glob("*/shepherd.json")
                if (pid := json.loads(path.read_text())["pid"]) in dict(warm)]
        self.assertGreater(len(used), 0)
        self.assertFalse([pid for pid in used if (pid, dict(warm)[pid]) == process_identity(pid)])


class Off(ServerTest):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", "1")
    environment = {"NORMLAB_FAKE_ENGINE": "steps_per_second=100"}

    def test_a_program_of_ones_own_is_started_for_attempts_only(self):
        run = self.server.create("cold", {**TINY, "steps": 250})  # longer than one would take
        self.server.wait_for_state(run, "SUCCEEDED")
        self.assertEqual(warm_processes(self.server.process.pid), [])


if __name__ == "__main__":
    unittest.main()
