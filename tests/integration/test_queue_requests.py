"""What people ask of the queue: hold, release, order, priority, and runs that wait for others."""

import json
import os
import signal
import unittest

from harness import TINY, ServerTest, wait_for

LONG = {**TINY, "steps": 10**9}
SHORT = {**TINY, "steps": 20}
DIVERGING = {**TINY, "steps": 5000, "placement": "none", "learningRate": 1000}


class QueueTest(ServerTest):
    options = ("--cpu-slots", "1")

    def occupy(self):
        """The id of a run that holds the only slot."""
        run = self.server.create("occupier", LONG)
        wait_for(lambda: self.server.step(run) > 0, "a first step")
        return run

    def cancel(self, run):
        status, answer = self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        self.assertEqual(status, 200, answer)

    def cli_json(self, *arguments, check=0):
        result = self.server.cli("--json", *arguments, check=check)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def check_cancelled_with(self, run, cause, words):
        ended = self.server.wait_for_state(run, "CANCELLED")
        self.assertEqual(
            ended["endReason"],
            f"run {self.server.run(cause)['displayName']} ({cause}), after which it was to start, "
            f"{words}")
        self.assertEqual(ended["attempts"], [])


class Order(QueueTest):
    def test_runs_start_as_they_were_put_in_order(self):
        occupier = self.occupy()
        names = "abcde"
        runs = {name: self.server.create(name, SHORT) for name in names}
        self.server.cli("move", "e", "--first", check=0)
        self.server.cli("move", "a", "--behind", "c", check=0)
        self.server.cli("priority", "high", "d", check=0)
        self.server.cli("priority", "low", "b", check=0)
        self.cancel(occupier)
        ended = {name: self.server.wait_for_state(run, "SUCCEEDED") for name, run in runs.items()}
        started = sorted(names, key=lambda name: ended[name]["startTime"])
        self.assertEqual(started, list("decab"))

    def test_a_held_run_waits_for_its_release_and_says_so(self):
        held = self.cli_json("submit", "--hold", "--name", "held", *self.flags(SHORT))[0]["id"]
        other = self.server.create("other", SHORT)
        self.server.wait_for_state(other, "SUCCEEDED")
        self.assertEqual(self.server.state(held), "QUEUED")
        self.assertIn("held", self.server.run(held)["waitReason"])
        self.server.cli("release", "held", check=0)
        self.server.wait_for_state(held, "SUCCEEDED")
        refused = self.server.cli("hold", "held", check=4)
        self.assertIn("is succeeded; only a queued run has a place in the queue", refused.stderr)

    @staticmethod
    def flags(spec):
        names = {"dModel": "d-model", "vocabSize": "vocab-size", "batchSize": "batch-size",
                 "sequenceLength": "sequence-length"}
        return [part for name, value in spec.items()
                for part in (f"--{names.get(name, name)}", str(value))]

    def test_what_cannot_be_is_refused_with_field_and_number(self):
        status, answer = self.server.request("POST", "/api/v1/runs", {
            "spec": {**TINY, "layers": 0}, "priority": "urgent",
            "after": [{"run": "01J00000000000000000000000"}]})
        self.assertEqual(status, 400)
        fields = {detail["field"] for detail in answer["error"]["details"]}
        self.assertEqual(fields, {"spec.layers", "priority", "after[0].run"}, answer)
        status, answer = self.server.request(
            "POST", "/api/v1/runs",
            {"spec": TINY, "resources": {"gpus": 99, "gpuMemoryBytes": str(1 << 60)}})
        self.assertEqual(status, 400)
        self.assertIn("resources.gpus: 99 are asked for and this machine has", str(answer))
        self.assertIn("resources.gpu_memory_bytes: 1152921504606846976", str(answer))


class Dependencies(QueueTest):
    def test_a_chain_starts_in_its_order(self):
        occupier = self.occupy()
        last = self.server.create("last", SHORT)
        middle = self.server.create("middle", SHORT)
        first = self.server.create("first", SHORT)
        self.server.cli("after", "last", "middle", check=0)
        self.server.cli("after", "middle", "first:any", check=0)
        refused = self.server.cli("after", "first", "last", check=4)
        self.assertIn("would wait for each other for ever", refused.stderr)
        self.cancel(occupier)
        ended = [self.server.wait_for_state(run, "SUCCEEDED") for run in (first, middle, last)]
        for before, behind in zip(ended, ended[1:]):
            self.assertLess(before["endTime"], behind["startTime"])

    def test_what_was_to_follow_a_success_ends_with_a_divergence_and_any_goes_on(self):
        first = self.server.create("first", DIVERGING)
        second = self.server.create("second", SHORT, after=[{"run": first}], held=True)
        third = self.server.create("third", SHORT, after=[{"run": second}])
        patient = self.server.create("patient", SHORT, after=[{"run": first, "condition": "any"}])
        self.server.wait_for_state(first, "DIVERGED")
        self.check_cancelled_with(second, first, "has diverged")
        self.check_cancelled_with(third, second, "was cancelled")
        self.server.wait_for_state(patient, "SUCCEEDED")
        refused = self.server.cli("retry", second, check=4)
        self.assertIn("retry that one first", refused.stderr)
        refused = self.server.cli("submit", "--after", first, check=4)
        self.assertIn("has diverged and is not going to succeed", refused.stderr)

    def test_an_end_while_the_server_was_down_counts_once(self):
        first = self.occupy()
        second = self.server.create("second", SHORT, after=[{"run": first}])
        third = self.server.create("third", SHORT, after=[{"run": second}])
        _, trainer = self.server.processes(first)
        self.server.kill()
        os.kill(trainer, signal.SIGSEGV)
        wait_for((self.server.attempt_dir(first) / "exit.json").exists, "the end of the trainer")
        for _ in range(2):  # the second start finds nothing left to do
            self.server.start()
            self.server.wait_for_state(first, "FAILED")
            self.check_cancelled_with(second, first, "has failed")
            self.check_cancelled_with(third, second, "was cancelled")
            times = {self.server.run(run)["endTime"] for run in (second, third)}
            self.server.stop()
        self.server.start()
        self.assertEqual(times, {self.server.run(run)["endTime"] for run in (second, third)})


class WholeExperiment(QueueTest):
    def test_every_run_ends_in_one_go(self):
        status, answer = self.server.request("POST", "/api/v1/experiments", {
            "displayName": "many", "priority": "low",
            "runs": [{"displayName": f"run {i}", "spec": LONG} for i in range(20)]})
        self.assertEqual(status, 200, answer)
        self.assertEqual({run["priority"] for run in answer["runs"]}, {"low"})
        runs = [run["id"] for run in answer["runs"]]
        wait_for(lambda: self.server.step(runs[0]) > 0, "a first step")
        other = self.server.create("other", SHORT)
        self.server.cli("cancel", "--experiment", "many", check=0)
        for run in runs:
            self.server.wait_for_state(run, "CANCELLED")
        self.server.wait_for_state(other, "SUCCEEDED")
        attempts = sum(len(self.server.run(run)["attempts"]) for run in runs)
        self.assertEqual(attempts, 1)

    def test_validate_only_stores_nothing(self):
        status, answer = self.server.request(
            "POST", "/api/v1/experiments?validate_only=true",
            {"preset": "article", "held": True, "priority": "low"})
        self.assertEqual(status, 200, answer)
        self.assertEqual(len(answer["runs"]), 3)
        self.assertEqual({run["id"] for run in answer["runs"]}, {""})
        self.assertTrue(all(run["held"] for run in answer["runs"]))
        self.assertEqual(self.server.get("/api/v1/experiments").get("experiments", []), [])
        self.assertEqual(self.server.get("/api/v1/runs").get("runs", []), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
