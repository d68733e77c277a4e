"""Who starts when users share a machine: turns, limits, and wide runs among narrow ones.

Trainers are scripted (tests/fakes/fake_engine.cc). Where it is about order they do nothing before
the test opens their gate; where it is about time each trains at its pace.
"""

import pathlib
import unittest

from harness import BIN, TERMINAL, TINY, ServerTest, wait_for

PACED = 1  # seed of runs that train at a pace; the others wait at their gates


class Shared(ServerTest):
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", "2")

    def setUp(self):
        super().setUp()
        self.gates = pathlib.Path(self.folder.name) / "gates"
        self.gates.mkdir()
        self.server.stop()
        self.server.env = {"NORMLAB_FAKE_ENGINE": f"gate={self.gates}",
                           f"NORMLAB_FAKE_ENGINE_{PACED}": "gate=,steps_per_second=200"}
        self.server.start()
        self.tokens, self.seed = {}, 100

    def add(self, name, **limits):
        status, answer = self.server.request(
            "POST", "/api/v1/users", {"name": name, "role": "member", "limits": limits})
        self.assertEqual(status, 200, answer)
        self.tokens[name] = answer["token"]

    def ask(self, user, path, body):
        return self.server.request("POST", path, body, token=self.tokens[user])

    def body(self, name, **spec):
        self.seed += 1
        return {"displayName": name, "spec": {**TINY, "steps": 40, "seed": self.seed, **spec}}

    def submit(self, user, name, **spec):
        status, run = self.ask(user, "/api/v1/runs", self.body(name, **spec))
        self.assertEqual(status, 200, run)
        return run["id"]

    def submit_many(self, user, count):
        status, answer = self.ask(user, "/api/v1/experiments", {
            "displayName": f"{count} of {user}",
            "runs": [self.body(f"{user} {i}") for i in range(count)]})
        self.assertEqual(status, 200, answer)
        return [run["id"] for run in answer["runs"]]

    def finish(self, run):
        """Lets a run that waits at its gate come to its end."""
        seed = self.server.run(run)["effectiveSpec"]["seed"]
        (self.gates / seed).write_text("finish")
        self.server.wait_for_state(run, "SUCCEEDED")


class Turns(Shared):
    def test_who_queues_one_run_is_next_behind_a_hundred(self):
        self.add("ann")
        self.add("bob")
        hundred = self.submit_many("ann", 100)
        for run in hundred[:2]:
            self.server.wait_for_state(run, "RUNNING")
        one = self.submit("bob", "bob's")
        wait_for(lambda: self.server.get("/api/v1/queue")["entries"][0]["run"] == one,
                 "bob's to be first")
        queue = self.server.get("/api/v1/queue?page_size=200")
        self.assertEqual([entry["run"] for entry in queue["entries"]], [one, *hundred[2:]])
        self.assertIn("bob's", self.server.cli("queue", "-n", "1", check=0).stdout)

        self.finish(hundred[0])
        self.server.wait_for_state(one, "RUNNING")
        self.assertEqual(self.server.state(hundred[2]), "QUEUED")
        # Each has a slot now, and ann has used one for longer.
        another = self.submit("bob", "bob's second")
        self.finish(one)
        self.server.wait_for_state(another, "RUNNING")
        self.assertEqual(self.server.state(hundred[2]), "QUEUED")
        self.finish(another)
        self.server.wait_for_state(hundred[2], "RUNNING")

    def test_two_who_queue_many_have_a_slot_each_until_one_has_no_more(self):
        self.add("ann")
        self.add("bob")
        left = {"ann": self.submit_many("ann", 6)}
        for run in left["ann"][:2]:
            self.server.wait_for_state(run, "RUNNING")
        left["bob"] = self.submit_many("bob", 4)
        self.finish(left["ann"].pop(0))
        for user in ("ann", "ann", "bob", "bob", "ann", "bob", "bob"):
            for own in left.values():
                self.server.wait_for_state(own[0], "RUNNING")
                for run in own[1:]:
                    self.assertEqual(self.server.state(run), "QUEUED")
            self.finish(left[user].pop(0))
        self.assertEqual((len(left["ann"]), len(left["bob"])), (2, 0))
        for run in left["ann"]:
            self.server.wait_for_state(run, "RUNNING")


class Limits(Shared):
    options = (*Shared.options[:3], "3")

    def test_no_more_than_so_many_run_until_an_admin_allows_more(self):
        self.add("ann", running=1)
        self.add("bob")
        first, second = self.submit("ann", "first"), self.submit("ann", "second")
        self.server.wait_for_state(first, "RUNNING")
        others = [self.submit("bob", f"bob {i}") for i in range(3)]
        for run in others[:2]:
            self.server.wait_for_state(run, "RUNNING")
        self.finish(others[0])
        self.server.wait_for_state(others[2], "RUNNING")  # passes ann's, which may not start
        self.finish(others[1])
        reason = "ann already runs 1 of at most 1"
        wait_for(lambda: reason in self.server.run(second)["waitReason"], reason)
        self.assertIn(reason, self.server.cli("queue", check=0).stdout)
        self.assertEqual(self.server.state(second), "QUEUED")
        self.server.cli("user", "set", "ann", "--max-running", "2", check=0)
        self.server.wait_for_state(second, "RUNNING")

    def test_no_more_than_so_many_wait(self):
        self.add("ann", queued=3, running=1)
        first = self.submit("ann", "runs")
        self.server.wait_for_state(first, "RUNNING")
        for i in range(3):
            self.submit("ann", f"waits {i}")
        status, answer = self.ask("ann", "/api/v1/runs", self.body("too many"))
        self.assertEqual(status, 400, answer)
        self.assertIn("ann has 3 runs in the queue and wants 1 more; the limit is 3", str(answer))
        self.finish(first)  # one of those that wait starts
        wait_for(lambda: self.ask("ann", "/api/v1/runs", self.body("fits"))[0] == 200, "room")


class Wide(Shared):
    def test_a_wide_run_behind_an_endless_row_of_narrow_ones_starts(self):
        """The row never ends: whenever one has started, another is queued. How long they take is
        known from the first ones on. They are short, shorter than an estimate can be."""
        self.add("ann")
        row = [self.submit("ann", f"narrow {i}", seed=PACED) for i in range(6)]
        for run in row[:2]:
            self.server.wait_for_state(run, "SUCCEEDED")
        wide = self.submit("ann", "wide", threads=2)
        before = len(row)

        def started():
            while sum(self.server.state(run) == "QUEUED" for run in row[-8:]) < 4:
                row.append(self.submit("ann", f"narrow {len(row)}", seed=PACED))
            self.assertLess(len(row), 200, "it never starts")
            return self.server.state(wide) == "RUNNING"
        wait_for(started, "the wide run to start", timeout=200)
        passed = [run for run in row[before:] if self.server.state(run) != "QUEUED"]
        self.assertLessEqual(len(passed), 4, f"of {len(row) - before} queued after it")
        self.finish(wide)
        for run in row:  # and then they go on
            self.server.wait_for_state(run, *TERMINAL)


if __name__ == "__main__":
    unittest.main(verbosity=2)
