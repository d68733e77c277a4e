"""Random operations on the queue of a real server, with restarts in between: every run comes to
where the slow queue of model.py says, and they start in its order.

    NORMLAB_BIN=build/release/bin python tests/queue/random_operations.py [--seed N]

Trainers are scripted and do nothing before the test opens their gate (tests/fakes/fake_engine.cc),
so nothing happens by itself: after each operation the server comes to rest, and what it came to has
to be one of the outcomes of the model. Nearly always there is only one; the rest is counted, and
model.py says what is left open. What users have used is taken from the attempts in the database,
as it hangs on real time; who goes first for it is the model's business.

The server is ended by SIGTERM and by SIGKILL, also in the middle of an operation, which then has
happened whole or not at all. Trainers' gates are opened meanwhile.
"""

import argparse
import collections
import json
import pathlib
import random
import signal
import socket
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from harness import BIN, TINY, Server, wait_for  # noqa: E402

import checks  # noqa: E402
from model import CLASSES, ENDS, Model, Refused, Run, used_device_seconds  # noqa: E402

SLOTS = 3
USERS = {"root": 0, "ann": 0, "bob": 0, "cid": 1}  # with how many runs each may have on devices
MANY = 25            # queued runs: then fewer are submitted
PATIENCE = 30.0      # seconds that the server may take to come to rest
SETTLED = 1.0        # seconds after which nothing more is expected where it may or may not come
WORDS = {"finish": "SUCCEEDED", "diverge": "DIVERGED", "throw": "FAILED", "exit": "FAILED"}
NEVER_LAUNCHED = "it was never launched"  # the end of an attempt that a server died over
STATES = ("", "QUEUED", "STARTING", "ACTIVE", "PAUSING", "PAUSED", "CANCELLING", "SUCCEEDED",
          "FAILED", "CANCELLED", "DIVERGED", "TIMED_OUT")  # normlab.v1.Run.State


class Seen:
    """What the database says at one moment. `restarted`: a run that is STARTING may be one that
    the server before this one did not come to launch. An attempt that was never launched is none,
    unless it is one of the `counted`, by id."""

    def __init__(self, data, counted, restarted=False):
        database = sqlite3.connect(f"file:{data / 'normlab.db'}?mode=ro", uri=True)
        try:
            database.execute("BEGIN")
            self.facts = database.execute(
                "SELECT display_name, runs.id, not_before, number, attempts.end_reason FROM runs "
                "LEFT JOIN attempts ON runs.id = run").fetchall()
            self.runs, self.rows = {}, collections.defaultdict(list)
            for name, state, held, priority, user in database.execute(
                    "SELECT display_name, state, held, priority, user_name FROM runs "
                    "ORDER BY queue_rank, id"):
                number = int(name.split()[1])
                self.runs[number] = STATES[state], bool(held), priority
                if STATES[state] == "QUEUED":
                    self.rows[user, priority].append(number)
            rows = [row for row in database.execute(
                "SELECT display_name, user_name, attempts.device, attempts.start_time, "
                "attempts.end_time, attempts.id, attempts.end_reason "
                "FROM attempts JOIN runs ON runs.id = run ORDER BY attempts.id")
                if row[5] in counted or row[6] != NEVER_LAUNCHED]
            self.ids = {int(name.split()[1]): run for name, run in database.execute(
                "SELECT display_name, id FROM runs")}
        finally:
            database.close()
        self.starts = tuple((int(row[0].split()[1]), tuple(row[2].split(","))) for row in rows)
        self.attempts = [(user, len(device.split(",")), start / 1e6, end and end / 1e6)
                         for _, user, device, start, end, _, _ in rows]
        self.attempt_ids = [row[5] for row in rows]
        # Runs whose latest attempt that was counted is such a one.
        latest = {int(row[0].split()[1]): row[6] for row in rows if row[5] in counted}
        self.not_launched = {run for run, reason in latest.items() if reason == NEVER_LAUNCHED}
        moving = {"PAUSING", "CANCELLING"} | ({"STARTING"} if restarted else set())
        self.at_rest = not any(state in moving for state, _, _ in self.runs.values())
        self.runs = {number: ("ACTIVE" if run[0] == "STARTING" else run[0], *run[1:])
                     for number, run in self.runs.items()}

    def is_as(self, model, known):
        """`known`: how many starts there were before those of the model."""
        expected = {run.number: (run.state, run.held, CLASSES[run.priority])
                    for run in model.runs.values()}
        rows = collections.defaultdict(list)
        for run in sorted(model.of_state("QUEUED"), key=lambda run: run.place):
            rows[run.user, CLASSES[run.priority]].append(run.number)
        return (self.at_rest and self.runs == expected and self.rows == rows
                and self.starts[known:] == model.started)


class Suite:
    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.server = Server(folder / "data", "--cpu-slots", str(SLOTS), "--trainer",
                             BIN / "normlab-fake-trainer", "--cancel-grace", "10",
                             env={"NORMLAB_FAKE_ENGINE": f"gate={self.gates}"})
        self.model = Model(SLOTS, USERS)
        self.number = 0
        self.experiments = {}    # id by the model's number
        self.ids = {}            # of runs, by number
        self.labels = {}
        self.counted = []        # ids of the attempts that were compared
        self.done = collections.Counter()
        self.open_decisions = 0
        self.decisions = 0

    # --- talking to the server -------------------------------------------------------------------

    def start(self):
        self.server.start()
        self.tokens = {"root": self.server.endpoint["token"]}
        for user, running in USERS.items():
            if user == "root":
                continue
            status, answer = self.server.request("POST", "/api/v1/users", {
                "name": user, "role": "member", "limits": {"running": running}})
            assert status == 200, answer
            self.tokens[user] = answer["token"]

    def restart(self):
        self.server.start()
        self.tokens["root"] = self.server.endpoint["token"]

    def send_and_kill(self, call, user):
        """Sends a call and kills the server, with or without having let it answer."""
        method, path, body = call
        host, port = self.server.endpoint["http"].rsplit(":", 1)
        data = json.dumps(body or {})
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer "
                f"{self.tokens[user]}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(data)}\r\n\r\n{data}".encode())
            time.sleep(self.random.uniform(0, 0.015))
            self.server.kill()

    def open_gate(self, number, word):
        aside = self.gates / f"{number}.new"
        aside.write_text(word)
        aside.rename(self.gates / str(number))

    # --- operations ------------------------------------------------------------------------------
    # Each returns the call that it is, the user who makes it, and what it does to a model, which
    # returns the runs that have to end first. None: there is nothing to do it to.

    def pick(self, *states, own=None):
        runs = [run for run in self.model.of_state(*states) if own in (None, run.user)]
        return self.random.choice(runs) if runs else None

    def caller(self, run):
        return self.random.choice([run.user, run.user, "root"])

    def on_run(self, run, verb, change, body=None):
        return (("POST", f"/api/v1/runs/{self.ids[run.number]}:{verb}", body), self.caller(run),
                change)

    def wanted(self, user):
        """A run as it is submitted, with the body that says so."""
        self.number += 1
        device = self.random.choice(["auto", "auto", "cpu", *self.model.slots])
        run = Run(self.number, user, device=device, held=self.random.random() < 0.1,
                  priority=self.random.choice(
                      ["normal", "normal", "low"] + ["high"] * (user == "root")),
                  threads=2 if self.random.random() < 0.05 else 1)
        others = list(self.model.runs)[-12:]
        if others and self.random.random() < 0.25:
            chosen = self.random.sample(others, min(len(others), self.random.randint(1, 2)))
            run.after = tuple((other, self.random.choice(["ok", "any"])) for other in chosen)
        body = {"displayName": f"run {run.number}", "device": device, "held": run.held,
                "priority": run.priority,
                "spec": {**TINY, "steps": 1000, "seed": run.number, "threads": run.threads},
                "after": [{"run": self.ids[other], "condition": condition}
                          for other, condition in run.after]}
        return run, body

    def submit(self):
        run, body = self.wanted(self.random.choice(list(USERS)))
        return (("POST", "/api/v1/runs", body), run.user,
                lambda model: model.submit(Run(**vars(run))))

    def submit_experiment(self):
        user = self.random.choice(list(USERS))
        wanted = [self.wanted(user) for _ in range(self.random.randint(2, 4))]
        experiment = wanted[0][0].number

        def change(model):
            for run, _ in wanted:
                model.submit(Run(**{**vars(run), "experiment": experiment}))
        return (("POST", "/api/v1/experiments", {
            "displayName": f"experiment {experiment}", "runs": [body for _, body in wanted]}),
            user, change)

    def hold(self):
        run = self.pick("QUEUED", "QUEUED", "ACTIVE")
        return run and self.on_run(run, "hold", lambda model: model.hold(run.number, True))

    def release(self):
        held = [run for run in self.model.of_state("QUEUED") if run.held]
        run = self.random.choice(held) if held else self.pick("QUEUED")
        return run and self.on_run(run, "release", lambda model: model.hold(run.number, False))

    def move(self):
        run = self.pick("QUEUED")
        if run is None:
            return None
        where = self.random.choice(["first", "last", "before", "behind"])
        if where in ("first", "last"):
            return self.on_run(run, "move", lambda model: model.move(run.number, where),
                               {where: True})
        peers = [peer for peer in self.model.of_state("QUEUED") if peer.user == run.user]
        own = [peer for peer in peers if peer.priority == run.priority and peer is not run]
        other = self.random.choice(own + peers)
        return self.on_run(run, "move", lambda model: model.move(run.number, where, other.number),
                           {where: self.ids[other.number]})

    def priority(self):
        run = self.pick("QUEUED", "QUEUED", "PAUSED")
        priority = self.random.choice(list(CLASSES))
        user = "root" if priority == "high" else run and self.caller(run)
        return run and (("PATCH", f"/api/v1/runs/{self.ids[run.number]}", {"priority": priority}),
                        user, lambda model: model.set_priority(run.number, priority))

    def cancel(self):
        run = self.pick("QUEUED", "QUEUED", "ACTIVE", "PAUSED", "SUCCEEDED")
        return run and self.on_run(run, "cancel", lambda model: model.cancel(run.number))

    def cancel_experiment(self):
        alive = [run for run in self.model.runs.values()
                 if run.experiment in self.experiments and run.state not in ENDS]
        if not alive:
            return None
        run = self.random.choice(alive)
        return (("POST", f"/api/v1/experiments/{self.experiments[run.experiment]}:cancel", None),
                self.caller(run), lambda model: model.cancel_experiment(run.experiment))

    def pause(self):
        run = self.pick("ACTIVE", "ACTIVE", "QUEUED", "PAUSED", "FAILED")
        return run and self.on_run(run, "pause", lambda model: model.pause(run.number))

    def resume(self):
        run = self.pick("PAUSED") or self.pick("QUEUED")
        return run and self.on_run(run, "resume", lambda model: model.resume(run.number))

    def retry(self):
        run = self.pick("FAILED", "CANCELLED", "DIVERGED", "SUCCEEDED")
        if run is None:
            return None
        (self.gates / str(run.number)).unlink(missing_ok=True)
        return self.on_run(run, "retry", lambda model: model.retry(run.number))

    def drain(self):
        return self.set_drained(True)

    def undrain(self):
        return self.set_drained(False)

    def set_drained(self, drained):
        slots = [slot for slot in self.model.slots if (slot in self.model.drained) != drained]
        if not slots or (drained and len(slots) == 1):
            return None
        slot = self.random.choice(slots)
        return (("PATCH", "/api/v1/devices", {"id": slot, "drainReason": "cleaning" * drained}),
                "root", lambda model: model.drain(slot, drained))

    def label(self):
        run = self.pick("QUEUED", "ACTIVE", "SUCCEEDED")
        if run is None:
            return None
        self.labels[run.number] = [f"label {self.random.randrange(100)}"]
        return (("PATCH", f"/api/v1/runs/{self.ids[run.number]}",
                 {"labels": self.labels[run.number]}), self.caller(run), lambda model: None)

    # --- doing them ------------------------------------------------------------------------------

    def do(self, name):
        operation = getattr(self, name)()
        if operation is None:
            return False
        call, user, change = operation
        model = self.model.copy()
        try:
            ends, refused = change(model) or [], None
        except Refused as why:
            model, ends, refused = self.model.copy(), [], why
        status, answer = self.server.request(*call, token=self.tokens[user])
        if refused is None:
            assert status == 200, (name, call, status, answer)
        else:
            assert status in (400, 409), (name, call, status, answer, refused)
        if name == "submit_experiment" and status == 200:
            self.experiments[int(answer["displayName"].split()[1])] = answer["id"]
        self.done[name if refused is None else f"{name} (refused)"] += 1
        self.come_to_rest([(model, ends)], name)
        return True

    def foreign(self):
        """Nobody but its owner and admins does anything to a run."""
        run = self.pick("QUEUED", "ACTIVE", "PAUSED")
        if run is None:
            return False
        other = self.random.choice([user for user in USERS if user not in ("root", run.user)])
        verb = self.random.choice(["cancel", "pause", "hold", "move"])
        status, answer = self.server.request(
            "POST", f"/api/v1/runs/{self.ids[run.number]}:{verb}",
            {"first": True} if verb == "move" else None, token=self.tokens[other])
        assert status == 403, (status, answer)
        self.done["foreign"] += 1
        self.come_to_rest([(self.model.copy(), [])], "foreign")
        return True

    def end_one(self):
        run = self.pick("ACTIVE")
        if run is None:
            return False
        word = self.random.choice(["finish", "finish", *WORDS])
        self.open_gate(run.number, word)
        self.done["end"] += 1
        self.come_to_rest([(self.model.copy(), [(run.number, WORDS[word])])], f"end {run.number}")
        return True

    def end_while_down(self):
        """Opens some gates while no server is there."""
        ends = []
        for run in self.model.of_state("ACTIVE"):
            if self.random.random() < 0.3:
                word = self.random.choice(list(WORDS))
                self.open_gate(run.number, word)
                ends.append((run.number, WORDS[word]))
        time.sleep(self.random.uniform(0, 0.3))
        return ends

    def restart_server(self):
        number = self.random.choice([signal.SIGTERM, signal.SIGKILL])
        code = self.server.kill(number)
        assert code == (0 if number == signal.SIGTERM else -number), code
        ends = self.end_while_down()
        self.restart()
        self.done[f"restart after {number.name}"] += 1
        self.come_to_rest([(self.model.copy(), ends)], f"restart, {ends}",
                          restarted=True)
        return True

    def kill_in_the_middle(self):
        name = self.random.choice(["submit", "submit_experiment", "hold", "move", "priority",
                                   "cancel", "cancel_experiment", "pause", "resume", "retry"])
        operation = getattr(self, name)()
        if operation is None:
            return False
        call, user, change = operation
        ways = [(self.model.copy(), [])]
        try:
            model = self.model.copy()
            ways.append((model, change(model) or []))
        except Refused:
            pass
        self.send_and_kill(call, user)
        self.restart()
        self.done[f"SIGKILL in the middle of {name}"] += 1
        self.come_to_rest(ways, f"SIGKILL in the middle of {name} {call}", restarted=True)
        return True

    def come_to_rest(self, ways, what, restarted=False):
        """Waits until the server is where one of the models goes, and goes there."""
        began = time.monotonic()
        basis, outcomes, known = None, [], len(self.counted)
        while True:
            seen = Seen(self.server.data_dir, self.counted, restarted)
            fresh = seen.attempts[known:]
            lost = self.put_back(seen) if restarted else []
            if basis != (now := (fresh and fresh[0][2], lost)):
                basis = now
                when = fresh[0][2] if fresh else time.time()
                used = {user: used_device_seconds(seen.attempts, user, when) for user in USERS}
                outcomes = [one for model, ends in ways for one in model.outcomes(
                    ends + [end for end in lost if end[0] not in dict(ends)], used)]
            found = [model for model in outcomes if seen.is_as(model, known)]
            waited = time.monotonic() - began
            if found and (waited > SETTLED or not self.may_go_on(found[0], outcomes)):
                break
            if waited > PATIENCE:
                raise AssertionError(f"after {what}:\n" + difference(seen, known, outcomes, used))
            time.sleep(0.004)
        if found[0].started or len(outcomes) > 1:
            self.decisions += 1
            self.open_decisions += len(outcomes) > len(ways)
        self.model = found[0]
        self.model.started = ()
        self.counted = seen.attempt_ids
        self.ids = seen.ids

    def put_back(self, seen):
        """Runs that had been started and that the server died over before it had launched them."""
        return [(run.number, "QUEUED") for run in self.model.of_state("ACTIVE")
                if run.number in seen.not_launched]

    @staticmethod
    def may_go_on(found, outcomes):
        """Some other outcome only has more starts, which may just not have come yet."""
        length = len(found.started)
        return any(len(other.started) > length and other.started[:length] == found.started
                   for other in outcomes)

    # --- the whole -------------------------------------------------------------------------------

    def check(self):
        """The API says of every run what the model does, and of every device."""
        model = self.model
        listed = []
        page = ""
        while True:
            answer = self.server.get(f"/api/v1/runs?page_size=500{page}")
            listed += answer.get("runs", [])
            if not answer.get("nextPageToken"):
                break
            page = f"&page_token={answer['nextPageToken']}"
        names = [run["displayName"] for run in listed]
        assert sorted(names) == sorted(f"run {number}" for number in model.runs), "runs are lost"
        for listed_run in listed:
            run = model.runs[int(listed_run["displayName"].split()[1])]
            state = listed_run["state"].removeprefix("STATE_")
            state = "ACTIVE" if state in ("STARTING", "RUNNING") else state
            said = (state, listed_run["user"], listed_run["priority"], listed_run["held"],
                    listed_run["labels"])
            wanted = (run.state, run.user, run.priority, run.held, self.labels.get(run.number, []))
            assert said == wanted, (listed_run, run)
        held_by = {device["id"]: {lease["displayName"] for lease in device["leases"]}
                   for device in self.server.get("/api/v1/devices")["devices"]}
        for slot in model.slots:
            holders = {f"run {run.number}" for run in model.of_state("ACTIVE")
                       if slot in run.devices}
            assert held_by[slot] == holders, (slot, held_by[slot], holders)
        expected = {f"run {run.number}": not run.held and not model.waits_for_others(run)
                    for run in model.of_state("QUEUED")}

        def told():
            queue = self.server.get("/api/v1/queue?page_size=10000").get("entries", [])
            return {entry["displayName"]: entry["position"] != "0" for entry in queue} == expected
        wait_for(told, f"the queue to be {expected}")  # what it says may be some milliseconds old

    def run_out(self):
        """Everything that can still come to an end does, in the order of the queue."""
        for slot in sorted(self.model.drained):
            status, _ = self.server.request("PATCH", "/api/v1/devices", {"id": slot})
            assert status == 200
            model = self.model.copy()
            model.drain(slot, False)
            self.come_to_rest([(model, [])], "enable")
        for run in self.model.of_state("PAUSED", "QUEUED"):
            for verb, change in (("resume", Model.resume),
                                 ("release", lambda model, number: model.hold(number, False))):
                model = self.model.copy()
                try:
                    change(model, run.number)
                except Refused:
                    continue
                status, answer = self.server.request(
                    "POST", f"/api/v1/runs/{self.ids[run.number]}:{verb}")
                assert status == 200, answer
                self.come_to_rest([(model, [])], verb)
        while self.end_one():
            pass
        left = [run for run in self.model.runs.values() if run.state not in ENDS]
        assert not left, left
        self.check()

    def run(self, operations, verbose):
        self.start()
        weights = {"submit": 26, "submit_experiment": 4, "end_one": 18, "hold": 4, "release": 5,
                   "move": 9, "priority": 6, "cancel": 6, "cancel_experiment": 2, "pause": 7,
                   "resume": 6, "retry": 7, "drain": 3, "undrain": 4, "label": 2, "foreign": 3,
                   "restart_server": 6, "kill_in_the_middle": 8}
        while sum(self.done.values()) < operations:
            full = len(self.model.of_state("QUEUED")) > MANY
            now = {**weights, "submit": 4 if full else weights["submit"]}
            name = self.random.choices(list(now), now.values())[0]
            if verbose:
                print(f"{sum(self.done.values())}: {name}", flush=True)
            by_itself = name in ("end_one", "foreign", "restart_server", "kill_in_the_middle")
            happened = getattr(self, name)() if by_itself else self.do(name)
            if happened and sum(self.done.values()) % 20 == 0:
                self.check()
        self.run_out()
        assert self.server.kill(signal.SIGTERM) == 0
        data = self.server.data_dir
        left = checks.left_processes(data) + checks.left_spools(data)
        assert not left, left
        faults = checks.Stored(data).faults()
        assert not faults, faults

    def end_everything(self):
        """Nothing that was started here outlives the test, whatever went wrong."""
        if self.server.process is not None and self.server.process.poll() is None:
            self.server.kill()
        checks.kill_left_processes(self.server.data_dir)
        self.server.log.close()


def difference(seen, known, outcomes, used):
    """What is seen, against the nearest outcome."""
    lines = [f"started: {seen.starts[known:]}, at rest: {seen.at_rest}, used: {used}"]
    lines += [f"  may have: {model.started}" for model in outcomes]
    model = outcomes[-1]
    for number in sorted(seen.runs.keys() | model.runs.keys()):
        run = model.runs.get(number)
        expected = run and (run.state, run.held, CLASSES[run.priority])
        if seen.runs.get(number) != expected:
            lines.append(f"  run {number} is {seen.runs.get(number)} and should be {run}")
    concerned = {number for number, _ in seen.starts[known:]}
    concerned.update(number for model in outcomes for number, _ in model.started)
    lines += [f"  {fact}" for fact in seen.facts if int(fact[0].split()[1]) in concerned]
    lines += [f"  waits: {run}" for run in model.of_state("QUEUED")]
    lines += [f"  has devices: {run}" for run in model.of_state("ACTIVE")]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.operations} operations", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="normlab-queue-") as folder:
        suite = Suite(arguments.seed, pathlib.Path(folder))
        try:
            suite.run(arguments.operations, arguments.verbose)
        except BaseException:
            print((pathlib.Path(folder) / "data.log").read_text()[-6000:])
            raise
        finally:
            print(f"{sum(suite.done.values())} operations in {time.monotonic() - began:.1f} s, "
                  f"{len(suite.counted)} starts; {suite.open_decisions} of {suite.decisions} "
                  f"decisions were open; " + ", ".join(f"{n} {name}" for name, n in suite.done.most_common()))
            suite.end_everything()
    # Or nothing would have been compared.
    assert suite.decisions - suite.open_decisions >= arguments.operations / 8, "too few decisions"


if __name__ == "__main__":
    main()
