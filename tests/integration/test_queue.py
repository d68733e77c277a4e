"""The queue as people see it: who is next, for what, and until when."""

import json
import unittest

from harness import TINY, ServerTest, wait_for

LONG = {**TINY, "steps": 10**9}


class Queue(ServerTest):
    options = ("--cpu-slots", "2")

    def setUp(self):
        super().setUp()
        self.running = [self.server.create(f"long {i}", LONG) for i in range(2)]
        for run in self.running:
            wait_for(lambda run=run: self.server.step(run) > 0, "a step")
        self.wide = self.server.create("wide", {**LONG, "threads": 2})
        self.narrow = [self.server.create(f"narrow {i}", {**TINY, "steps": 5}) for i in range(3)]

    def cancel(self, run):
        status, answer = self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        self.assertEqual(status, 200, answer)

    def queue(self):
        return self.server.get("/api/v1/queue")

    def test_a_queued_run_tells_its_place_what_it_waits_for_and_when_it_starts(self):
        wait_for(lambda: len(self.queue().get("entries", [])) == 4, "four runs in the queue")
        entries = self.queue()["entries"]
        self.assertEqual([entry["position"] for entry in entries], ["1", "2", "3", "4"])
        self.assertEqual(entries[0]["run"], self.wide)
        self.assertEqual([entry["run"] for entry in entries[1:]], self.narrow)
        wait_for(lambda: "estimatedStartTime" in self.queue()["entries"][0],
                 "measured steps of those that train")
        entries = self.queue()["entries"]
        self.assertRegex(entries[0]["waitReason"],
                         r"^waits for run long \d on cpu:\d, about \d+ (h|days)$")
        self.assertRegex(entries[1]["waitReason"], r"^waits its turn behind 1 run")

        def told():
            run = self.server.run(self.narrow[1])
            return run["queuePosition"] == "3" and run["waitReason"].startswith("waits its turn")
        wait_for(told, "the run itself to tell the same")
        listed = self.server.get("/api/v1/runs?filter=name%3Dwide")["runs"][0]
        self.assertEqual(listed["queuePosition"], "1")

        table = self.server.cli("queue", check=0).stdout
        for word in ("wide", "narrow 2", "auto, 2 threads", "used lately"):
            self.assertIn(word, table)
        answer = json.loads(self.server.cli("queue", "--json", "-n", "1", check=0).stdout)
        self.assertEqual(len(answer["entries"]), 1)
        self.assertEqual(answer["totalSize"], "4")
        users = {usage["user"]: usage for usage in self.queue()["users"]}
        (usage,) = users.values()
        self.assertEqual((usage["running"], usage["queued"]), ("2", "4"))
        self.assertGreater(usage["decayedDeviceSeconds"], 0)

    def test_only_runs_that_will_have_ended_pass_a_wide_one(self):
        longer = self.server.create("longer", {**TINY, "steps": 2 * 10**9})
        self.cancel(self.running[0])
        self.server.wait_for_state(self.running[0], "CANCELLED")
        # The free slot is kept for the wide one. By now it is known how long a step takes.
        for run in self.narrow:
            self.server.wait_for_state(run, "SUCCEEDED")
        self.assertEqual(self.server.state(self.wide), "QUEUED")
        self.assertEqual(self.server.state(longer), "QUEUED")
        self.cancel(self.running[1])
        self.server.wait_for_state(self.wide, "RUNNING")
        self.cancel(self.wide)
        self.server.wait_for_state(longer, "RUNNING")
        self.cancel(longer)

    def test_what_was_used_is_known_after_a_restart(self):
        def used():
            return self.queue()["users"][0]["decayedDeviceSeconds"]
        for run in [*self.running, self.wide, *self.narrow]:
            self.cancel(run)
        for run in self.running:
            self.server.wait_for_state(run, "CANCELLED")
        wait_for(lambda: self.queue()["users"][0].get("running", "0") == "0", "nothing to run")
        before = used()
        self.assertGreater(before, 0)
        self.server.stop()
        self.server.start()
        # It answers a moment before it has read what was used.
        wait_for(lambda: self.queue().get("users"), "the users")
        self.assertAlmostEqual(used(), before, delta=0.05 * before + 1)


if __name__ == "__main__":
    unittest.main()
