"""Measuring a run that trains: the numbers come, and the run does not notice."""

import json
import os
import signal
import unittest

from harness import TERMINAL, TINY, ServerTest, wait_for

# The article's kind of model, and long enough to be caught in the middle on a busy machine.
ARTICLE = {"layers": 2, "dModel": 32, "steps": 1500, "placement": "post", "warmupSteps": 100}
LONG = {**TINY, "steps": 10**9}
QUANTITIES = ("attention_entropy", "attention_max_score", "angular_distance", "jacobian_gain",
              "jacobian_largest", "jacobian_distance")


class ProbeTest(ServerTest):
    options = ("--cpu-slots", "1")

    def wait_for_step(self, run, step):
        wait_for(lambda: self.server.step(run) >= step, f"step {step}")

    def probe(self, run):
        return json.loads(self.server.cli("probe", run, "--json", check=0).stdout)

    def test_a_probed_run_has_the_numbers_and_the_bits_of_one_that_was_not(self):
        run = self.server.create("probed", ARTICLE)
        self.wait_for_step(run, 20)
        first = self.probe(run)
        table = self.server.cli("probe", run, check=0).stdout.splitlines()
        self.assertRegex(table[0], r"^probed: step [\d,]+$")
        self.assertEqual(table[1], "block\tentropy\tmax score\tangle\tgain\tlargest\tdistance")
        self.assertEqual([line.split("\t")[0] for line in table[2:4]], ["block/1", "block/2"])
        self.assertRegex(table[4], r"^log Z \d")

        names = {f"block/{block}/{name}" for block in (1, 2) for name in QUANTITIES} | {"log_z"}
        self.assertEqual(set(first["values"]), names)
        for block in (1, 2):
            entropy = first["values"][f"block/{block}/attention_entropy"]
            self.assertTrue(0 < entropy < 2.5488, "the causal ceiling of 32 tokens")
            self.assertGreaterEqual(first["values"][f"block/{block}/jacobian_largest"],
                                    first["values"][f"block/{block}/jacobian_gain"])
        for name, value in first["values"].items():
            stored = self.server.series(run, name)
            self.assertEqual(len(stored), 2, "two were asked for")
            self.assertEqual(min(stored), first["step"])
            self.assertEqual(stored[first["step"]], value)
            self.assertEqual(f"probed: step {max(stored):,}", table[0])

        self.server.wait_for_state(run, "SUCCEEDED", timeout=300)
        other = self.server.create("not probed", ARTICLE)
        self.server.wait_for_state(other, "SUCCEEDED", timeout=300)
        for name in ("loss", "gradient_norm", "learning_rate", "block/2/update_ratio"):
            curve = self.server.series(run, name)
            self.assertTrue(curve)
            self.assertEqual(curve, self.server.series(other, name), name)
        self.assertEqual(self.server.series(other, "log_z"), {})

    def test_only_a_run_that_trains_is_measured(self):
        running = self.server.create("running", LONG)
        queued = self.server.create("queued", {**TINY, "steps": 5})
        self.wait_for_step(running, 1)
        self.assertIn("is queued; only a run that trains",
                      self.server.cli("probe", queued, check=4).stderr)
        status, answer = self.server.request("POST", f"/api/v1/runs/{queued}:probe")
        self.assertEqual((status, answer["error"]["status"]), (400, "FAILED_PRECONDITION"))
        status, answer = self.server.request("POST", f"/api/v1/runs/{running}:probe")
        self.assertEqual((status, answer["state"]), (200, "STATE_RUNNING"))
        wait_for(lambda: self.server.series(running, "log_z"), "the numbers")
        self.server.cli("pause", running, check=0)
        self.server.wait_for_state(running, "PAUSED")
        self.assertIn("is paused", self.server.cli("probe", running, check=4).stderr)
        self.server.wait_for_state(queued, "SUCCEEDED")
        self.assertIn("has already ended (succeeded)",
                      self.server.cli("probe", queued, check=4).stderr)

    def test_a_run_that_goes_on_after_a_pause_can_be_measured_again(self):
        run = self.server.create("resumed", LONG)
        self.wait_for_step(run, 5)
        before = self.probe(run)
        self.server.cli("pause", run, check=0)
        self.server.wait_for_state(run, "PAUSED")
        self.server.cli("resume", run, check=0)
        self.server.wait_for_state(run, "RUNNING")
        after = self.probe(run)
        self.assertGreater(after["step"], before["step"])
        self.assertEqual(set(self.server.series(run, "log_z")), {before["step"], after["step"]})

    def test_waiting_ends_by_itself_by_ctrl_c_and_when_the_run_ends(self):
        run = self.server.create("stuck", {**LONG, "onInterrupt": "fail"})
        self.wait_for_step(run, 1)
        _, trainer = self.server.processes(run)
        os.kill(trainer, signal.SIGSTOP)
        self.assertIn("no numbers of stuck after 0.5 s",
                      self.server.cli("probe", run, "--timeout", "0.5", check=4).stderr)
        waiting = self.server.cli_start("probe", run)
        wait_for(lambda: self.requests_to_measure() >= 2, "the request to be there")
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 130)
        self.assertIn("Stopped waiting", said)
        waiting = self.server.cli_start("probe", run)
        wait_for(lambda: self.requests_to_measure() >= 3, "the request to be there")
        os.kill(trainer, signal.SIGKILL)
        _, said = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 4)
        self.assertIn("nothing was measured", said)
        self.server.wait_for_state(run, *TERMINAL)

    def requests_to_measure(self):
        log = self.server.data_dir.parent / f"{self.server.data_dir.name}.log"
        return log.read_text().count("run to be measured")


if __name__ == "__main__":
    unittest.main(verbosity=2)
