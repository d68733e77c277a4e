"""Pausing and resuming: a run gives its device away and goes on as if nothing had happened."""

import json
import os
import pathlib
import signal
import unittest

from harness import TERMINAL, TINY, ServerTest, process_identity, wait_for

# The article's kind of model, and long enough to be caught in the middle on a busy machine.
ARTICLE = {"layers": 2, "dModel": 32, "steps": 1500, "placement": "post", "warmupSteps": 100}
SERIES = ("loss", "gradient_norm", "learning_rate")
LONG = {**TINY, "steps": 10**9}


class PauseTest(ServerTest):
    options = ("--cpu-slots", "1")

    def pause(self, run, *states):
        status, answer = self.server.request("POST", f"/api/v1/runs/{run}:pause")
        self.assertEqual(status, 200, answer)
        wanted = states or ("PAUSED",)
        found = self.server.wait_for_state(run, *wanted, *TERMINAL)
        self.assertIn(found["state"].removeprefix("STATE_"), wanted, found["endReason"])
        return found

    def resume(self, run):
        status, answer = self.server.request("POST", f"/api/v1/runs/{run}:resume")
        self.assertEqual(status, 200, answer)

    def wait_for_step(self, run, step):
        wait_for(lambda: self.server.step(run) >= step, f"step {step}")

    def checkpoints(self, run):
        folder = self.server.data_dir / "runs" / run / "checkpoints"
        return sorted(path.name for path in folder.iterdir())

    def check_same_as_undisturbed(self, run, spec):
        """Every value of the run's curve equals, bit by bit, that of a run never paused."""
        other = self.server.create("undisturbed", spec)
        ended = self.server.wait_for_state(other, "SUCCEEDED", timeout=300)
        for name in SERIES:
            curve = self.server.series(run, name)
            self.assertEqual(sorted(curve), list(range(1, spec["steps"] + 1)), name)
            self.assertEqual(curve, self.server.series(other, name), name)
        for name in ("finalLoss", "minLoss", "maxGradientNorm", "validationLoss"):
            self.assertEqual(self.server.run(run)["summary"].get(name), ended["summary"].get(name))
        return other


class Paused(PauseTest):
    def test_a_paused_run_lends_its_device_and_ends_with_the_curve_of_one_never_paused(self):
        run = self.server.create("paused", ARTICLE)
        watch = self.server.cli_start("watch", run, "--json")
        self.wait_for_step(run, 100)
        paused = self.pause(run)
        step = int(paused["progress"]["step"])
        self.assertEqual(int(paused["attempts"][0]["checkpointStep"]), step)
        self.assertNotIn("endTime", paused)
        self.assertTrue(all(not device.get("run") for device in
                            self.server.get("/api/v1/devices")["devices"]), "it holds no device")
        self.assertIn("paused", self.server.cli("ls", check=0).stdout)
        self.assertIn(f"checkpoint of step {step}", self.server.cli("show", run, check=0).stdout)
        for path in (self.server.data_dir / "runs").rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, f"{path} is open to others")

        between = self.server.create("between", {**TINY, "steps": 50})
        self.server.wait_for_state(between, "SUCCEEDED")
        self.assertEqual(self.server.state(run), "PAUSED")
        self.assertEqual(self.server.step(run), step)

        self.resume(run)
        ended = self.server.wait_for_state(run, "SUCCEEDED", timeout=300)
        self.assertEqual(len(ended["attempts"]), 2)
        self.assertEqual(int(ended["attempts"][1]["resumedFromStep"]), step)
        watched = [json.loads(line) for line in watch.stdout]
        self.assertEqual(watch.wait(60), 0, watch.stderr.read())
        watch.stdout.close()
        watch.stderr.close()
        steps = [s for event in watched if event["event"] == "points"
                 for s in event["columns"]["loss"]["steps"]]
        self.assertEqual(steps, list(range(1, ARTICLE["steps"] + 1)), "over one watch")
        self.check_same_as_undisturbed(run, ARTICLE)

    def test_paused_and_resumed_three_times(self):
        run = self.server.create("paused", ARTICLE)
        for step in (100, 400, 700):
            self.wait_for_step(run, step)
            result = self.server.cli("pause", run, check=0)
            self.assertIn("paus", result.stdout)
            self.server.wait_for_state(run, "PAUSED")
            self.server.cli("resume", run, check=0)
        ended = self.server.wait_for_state(run, "SUCCEEDED", timeout=300)
        resumed = [int(attempt.get("resumedFromStep", 0)) for attempt in ended["attempts"]]
        self.assertEqual(len(resumed), 4)
        self.assertEqual(resumed, sorted(set(resumed)))
        self.check_same_as_undisturbed(run, ARTICLE)

    def test_checkpoints_at_intervals_are_pruned_and_can_be_taken_home(self):
        spec = {**TINY, "steps": 500, "checkpointEvery": 100, "keepCheckpoints": 2}
        run = self.server.create("with checkpoints", spec)
        ended = self.server.wait_for_state(run, "SUCCEEDED")
        step = int(ended["attempts"][0]["checkpointStep"])
        self.assertIn(step, (400, 500))
        self.assertEqual(len(self.checkpoints(run)), 2)
        out = pathlib.Path(self.folder.name) / "weights.safetensors"
        said = json.loads(self.server.cli("export", run, "--format", "safetensors", "-o", out,
                                          "--json", check=0).stdout)
        self.assertEqual(said["step"], step)
        folder = self.server.data_dir / "runs" / run / "checkpoints"
        self.assertIn(out.read_bytes(), [path.read_bytes() for path in folder.iterdir()])

    def test_what_cannot_be_paused_or_resumed_is_said_in_a_sentence(self):
        run = self.server.create("short", {**TINY, "steps": 5})
        self.server.wait_for_state(run, "SUCCEEDED")
        for verb, words in (("pause", "has already ended (succeeded)"), ("resume", "has already")):
            result = self.server.cli(verb, run, check=4)
            self.assertIn(words, result.stderr)
        result = self.server.cli("export", run, "--format", "safetensors", "-o", "/dev/null")
        self.assertEqual(result.returncode, 4)
        self.assertIn("has no checkpoint yet", result.stderr)

    def test_queued_runs_pause_at_once_and_paused_runs_can_be_cancelled(self):
        running = self.server.create("running", LONG)
        queued = self.server.create("queued", {**TINY, "steps": 5})
        self.wait_for_step(running, 1)
        self.assertEqual(self.pause(queued)["attempts"], [])
        self.pause(running)
        self.server.cli("cancel", running, check=0)
        cancelled = self.server.run(running)
        self.assertEqual(cancelled["state"], "STATE_CANCELLED")
        self.assertIn("while it was paused", cancelled["endReason"])
        self.resume(queued)
        self.server.wait_for_state(queued, "SUCCEEDED")


class ServerKilled(PauseTest):
    def test_kill_9_of_the_server_while_a_run_is_pausing(self):
        run = self.server.create("pausing", ARTICLE)
        self.wait_for_step(run, 50)
        _, trainer = self.server.processes(run)
        os.kill(trainer, signal.SIGSTOP)  # so that the pause takes as long as the test wants
        self.pause(run, "PAUSING")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.state(run), "PAUSING")
        self.assertIsNotNone(process_identity(trainer))
        os.kill(trainer, signal.SIGCONT)
        self.server.wait_for_state(run, "PAUSED")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.state(run), "PAUSED", "and stays so")
        self.resume(run)
        self.server.wait_for_state(run, "SUCCEEDED", timeout=300)
        self.check_same_as_undisturbed(run, ARTICLE)

    def test_kill_9_of_the_server_right_after_a_pause(self):
        run = self.server.create("pausing", LONG)
        self.wait_for_step(run, 10)
        self.server.request("POST", f"/api/v1/runs/{run}:pause")
        self.server.kill()  # the trainer may have heard of it, or hears of it from the next one
        self.server.start()
        paused = self.server.wait_for_state(run, "PAUSED")
        self.assertEqual(int(paused["attempts"][0]["checkpointStep"]),
                         int(paused["progress"]["step"]))

    def test_kill_9_of_a_trainer_while_it_pauses_is_a_fault(self):
        run = self.server.create("pausing", {**LONG, "onInterrupt": "fail"})
        self.wait_for_step(run, 10)
        _, trainer = self.server.processes(run)
        os.kill(trainer, signal.SIGSTOP)
        self.pause(run, "PAUSING")
        os.kill(trainer, signal.SIGKILL)
        failed = self.server.wait_for_state(run, "FAILED")
        self.assertIn("SIGKILL", failed["endReason"])


class Files(PauseTest):
    def test_a_checkpoint_cut_off_is_passed_over_for_the_one_before_it(self):
        self.check_passed_over(lambda content: content[:len(content) // 2], "is cut off")

    def test_a_checkpoint_with_one_bit_turned_is_passed_over_too(self):
        def turn(content):
            middle = len(content) // 2
            return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1:]
        self.check_passed_over(turn, "is damaged: its checksum")

    def check_passed_over(self, damage, reason):
        spec = {**ARTICLE, "checkpointEvery": 200, "onInterrupt": "fail"}
        run = self.server.create("paused", spec)
        self.wait_for_step(run, 450)
        paused = self.pause(run)
        before, latest = self.checkpoints(run)
        folder = self.server.data_dir / "runs" / run / "checkpoints"
        content = (folder / latest).read_bytes()
        (folder / latest).write_bytes(damage(content))
        self.resume(run)
        ended = self.server.wait_for_state(run, "SUCCEEDED", "FAILED", timeout=300)
        self.assertEqual(ended["state"], "STATE_SUCCEEDED", ended.get("endReason"))
        _, unreadable, last = ended["attempts"]
        self.assertEqual(unreadable["resumedFromStep"], paused["progress"]["step"])
        self.assertIn(reason, unreadable["endReason"])
        self.assertIn(int(last["resumedFromStep"]), range(200, 450))
        self.assertEqual(before, f"step-{int(last['resumedFromStep']):012}.safetensors")
        self.assertEqual((folder / f"{latest}.unreadable").read_bytes(), damage(content))
        self.check_same_as_undisturbed(run, spec)

    def test_weights_come_from_another_runs_checkpoint_by_name(self):
        source = self.server.create("source", LONG)
        self.wait_for_step(source, 10)
        self.pause(source)
        target = self.server.create("target", {**TINY, "steps": 5, "initFrom": "source"})
        self.assertEqual(self.server.run(target)["effectiveSpec"]["initFrom"], source)
        self.server.wait_for_state(target, "SUCCEEDED")
        kept = self.server.data_dir / "runs" / target / "init.safetensors"
        checkpoint = (self.server.data_dir / "runs" / source / "checkpoints" /
                      self.checkpoints(source)[-1])
        self.assertEqual(kept.read_bytes(), checkpoint.read_bytes())

    def test_the_shipped_text_goes_on_in_its_order_after_a_pause(self):
        spec = {**TINY, "vocabSize": 256, "sequenceLength": 16, "data": "text:alice",
                "dropout": 0.1, "validateEvery": 2000, "steps": 10_000}
        run = self.server.create("reader", spec)
        self.wait_for_step(run, 1)
        self.pause(run)
        self.resume(run)
        ended = self.server.wait_for_state(run, "SUCCEEDED", timeout=300)
        self.assertEqual(len(ended["attempts"]), 2)
        self.assertLess(ended["summary"]["validationLoss"], 5.4, "a guess has ln 256 = 5.545")
        other = self.check_same_as_undisturbed(run, spec)
        validation = self.server.series(run, "validation_loss")
        self.assertEqual(sorted(validation), list(range(2000, 10_001, 2000)))
        self.assertEqual(validation, self.server.series(other, "validation_loss"))

    def test_weights_of_another_shape_fail_the_run_with_their_names(self):
        source = self.server.create("source", {**TINY, "steps": 3, "checkpointEvery": 3})
        self.server.wait_for_state(source, "SUCCEEDED")
        target = self.server.create("target", {**TINY, "layers": 2, "steps": 3,
                                               "initFrom": source[:20].lower()})
        failed = self.server.wait_for_state(target, "FAILED")
        self.assertIn("block_1", failed["endReason"])

    def test_names_of_files_are_checked_at_submit_and_the_known_ones_listed(self):
        texts, weights = self.server.data_dir / "texts", self.server.data_dir / "weights"
        for folder in (texts, weights):
            folder.mkdir()
        (texts / "tale.txt").write_text("a tale")
        (texts / "nothing.txt").touch()
        (weights / "small.safetensors").write_bytes(b"x")
        self.server.create("never run", LONG)
        wait_for(lambda: self.server.get("/api/v1/runs")["runs"], "the run to be there")
        for spec, words in (
                ({"data": "text:tales"}, "there is no text tales"),
                ({"data": "text:tales"}, "tale"),
                ({"data": "text:nothing"}, "is empty"),
                ({"data": "text:../owner-token"}, "plain name"),
                ({"data": "text:"}, "text:"),
                ({"initFrom": "large.safetensors"}, "small.safetensors"),
                ({"initFrom": "../weights/small.safetensors"}, "plain name"),
                ({"initFrom": "nobody"}, "there is no run \"nobody\""),
                ({"initFrom": ""}, "there is no run"),
                ({"initFrom": "never run"}, "has no checkpoint yet")):
            status, answer = self.server.request(
                "POST", "/api/v1/runs?validate_only=true", {"spec": spec})
            self.assertEqual(status, 400, (spec, answer))
            self.assertIn(words, answer["error"]["message"])
            self.assertRegex(answer["error"]["details"][0]["field"], "^spec.(data|init_from)$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
