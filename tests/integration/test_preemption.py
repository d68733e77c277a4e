"""Making room: a run that allows it gives its device to a more urgent one and goes on by itself,
as if nothing had happened. The trainer is the real one."""

import datetime
import json
import signal
import unittest

from harness import TERMINAL, TINY, ServerTest, wait_for

# The article's kind of model, and long enough to be caught in the middle on a busy machine.
PATIENT = {"layers": 2, "dModel": 32, "steps": 1500, "placement": "post", "warmupSteps": 100}
URGENT = {**TINY, "steps": 300}
MEASURED = {"step_milliseconds", "tokens_per_second"}  # series that no two runs have alike


def seconds(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


class Preemption(ServerTest):
    options = ("--cpu-slots", "1")

    def submit(self, name, priority, spec):
        return self.server.create(name, spec, priority=priority)

    def start_patient(self):
        run = self.submit("patient", "low", {**PATIENT, "preemptible": True})
        wait_for(lambda: self.server.step(run) >= 100, "step 100")
        return run

    def check_curve(self, run, spec):
        """Every value of every series of the run is, bit by bit, that of a run left alone."""
        alone = self.server.create("left alone", spec)
        self.server.wait_for_state(alone, "SUCCEEDED", timeout=300)
        query = "series?max_points=1000000"
        curves = [self.server.get(f"/api/v1/runs/{one}/{query}")["columns"] for one in (run, alone)]
        self.assertEqual(set(curves[0]), set(curves[1]))
        self.assertGreater(len(curves[0]), 3)
        self.assertEqual([int(step) for step in curves[0]["loss"]["steps"]],
                         list(range(1, spec["steps"] + 1)))
        for name in curves[1].keys() - MEASURED:
            self.assertTrue(curves[0][name] == curves[1][name], f"{name} is another")
        summaries = [self.server.run(one)["summary"] for one in (run, alone)]
        self.assertEqual(*summaries)

    def used(self):
        usage = self.server.get("/api/v1/queue")["users"]
        return usage[0]["decayedDeviceSeconds"] if usage else 0

    def check_times(self, first, urgent):
        """Nobody is on the device at the same time, and only that counts as used."""
        attempts = [*first["attempts"], *urgent["attempts"]]
        spans = sorted((seconds(one["startTime"]), seconds(one["endTime"])) for one in attempts)
        for (_, end), (start, _) in zip(spans, spans[1:]):
            self.assertLessEqual(end, start)
        held = sum(end - start for start, end in spans)
        # Its end is told a moment before its device is free.
        wait_for(lambda: abs(self.used() - held) < 0.02 * held + 0.2, f"{held} s to be used")
        for run in (first, urgent):
            span = sum(seconds(one["endTime"]) - seconds(one["startTime"])
                       for one in run["attempts"])
            self.assertAlmostEqual(run["runSeconds"],
                                   sum(one["runSeconds"] for one in run["attempts"]), places=6)
            self.assertLessEqual(run["runSeconds"], span + 0.05)
            self.assertGreater(run["runSeconds"], 0.5 * span)

    def test_a_run_makes_room_and_goes_on_by_itself_with_the_curve_of_one_left_alone(self):
        patient = self.start_patient()
        urgent = self.submit("urgent", "normal", URGENT)
        wait_for(lambda: "paused for urgent" in self.server.run(patient)["waitReason"],
                 "its reason to wait")
        # The same everywhere: in lists, alone, and in the queue.
        for text in (self.server.cli("show", patient, check=0).stdout,
                     self.server.cli("ls", "--json", check=0).stdout):
            self.assertIn("paused for urgent", " ".join(text.split()))
        done = self.server.wait_for_state(urgent, "SUCCEEDED")
        self.assertEqual(len(done["attempts"]), 1)
        ended = self.server.wait_for_state(patient, "SUCCEEDED", *TERMINAL, timeout=300)
        self.assertEqual(ended["state"], "STATE_SUCCEEDED", ended["endReason"])
        self.assertEqual(ended["waitReason"], "")
        first, second = ended["attempts"]
        self.assertEqual(first["endReason"], "paused for urgent")
        self.assertGreaterEqual(int(first["checkpointStep"]), 100)
        self.assertEqual(second["resumedFromStep"], first["checkpointStep"])
        self.assertIn("paused for urgent", self.server.cli("show", patient, check=0).stdout)
        self.check_times(ended, done)
        self.check_curve(patient, PATIENT)

    def test_the_same_when_the_server_is_killed_while_it_makes_room(self):
        patient = self.start_patient()
        urgent = self.submit("urgent", "normal", URGENT)
        wait_for(lambda: self.server.state(patient) != "RUNNING", "it to be told")
        self.server.kill(signal.SIGKILL)
        self.server.start()
        done = self.server.wait_for_state(urgent, "SUCCEEDED")
        ended = self.server.wait_for_state(patient, *TERMINAL, timeout=300)
        self.assertEqual(ended["state"], "STATE_SUCCEEDED", ended["endReason"])
        self.assertEqual(ended["attempts"][0]["endReason"], "paused for urgent")
        self.check_times(ended, done)
        self.check_curve(patient, PATIENT)

    def test_nobody_makes_room_who_does_not_allow_it_or_for_an_equal(self):
        fixed = self.submit("fixed", "low", {**TINY, "steps": 10**9})
        wait_for(lambda: self.server.step(fixed) > 0, "a step")
        urgent = self.submit("urgent", "high", URGENT)
        wait_for(lambda: "fixed" in self.server.run(urgent)["waitReason"], "its reason to wait")
        self.assertEqual(self.server.state(fixed), "RUNNING")
        self.server.cli("cancel", fixed, check=0)
        self.server.wait_for_state(urgent, "SUCCEEDED")

        willing = self.submit("willing", "normal",
                              {**TINY, "steps": 10**9, "preemptible": True})
        wait_for(lambda: self.server.step(willing) > 0, "a step")
        equal = self.submit("equal", "normal", URGENT)
        wait_for(lambda: "willing" in self.server.run(equal)["waitReason"], "its reason to wait")
        self.assertEqual(self.server.state(willing), "RUNNING")
        told = json.loads(self.server.cli("show", equal, "--json", check=0).stdout)
        self.assertRegex(told["waitReason"], r"^waits for run willing on cpu:0")
        self.server.cli("cancel", willing, check=0)
        self.server.wait_for_state(equal, "SUCCEEDED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
