"""The queue once more, as slowly and plainly as it can be said: what runs, devices and users may
come to by what people do. To compare a real server with.

It is written from docs/queue.md and docs/life_of_a_run.md alone, for CPU slots. Where the documents
leave it open what happens, all that may happen is listed:

- which of two users goes first whose shares differ by less than clocks can tell (TOLERANCE);
- whether a run passes a wider one on a slot that is kept for it, which hangs on measured times;
- in which order runs end that end together, and whether the server looks at the queue in between.

Left out are preemption, GPUs, retries that the server makes by itself, and pauses after
interruptions.
"""

import copy
import dataclasses
import itertools
import math

HALF_LIFE = 24 * 3600.0  # seconds
ADVANCE = 60.0           # device-seconds that a held device counts in advance
TOLERANCE = 0.25         # device-seconds
ENDS = {"SUCCEEDED", "FAILED", "CANCELLED", "DIVERGED"}
CLASSES = {"high": 1, "normal": 0, "low": -1}


class Refused(Exception):
    """What a server must refuse, changing nothing."""


def used_device_seconds(attempts, user, now):
    """What a user has used at a time: of (user, width, start, end or None), times in seconds."""
    total = 0.0
    for owner, width, start, end in attempts:
        if owner != user or start >= now:
            continue
        end = now if end is None else min(end, now)
        total += width * HALF_LIFE / math.log(2) * (
            2 ** (-(now - end) / HALF_LIFE) - 2 ** (-(now - start) / HALF_LIFE))
    return total


@dataclasses.dataclass
class Run:
    number: int  # in the order of submission
    user: str
    priority: str = "normal"
    device: str = "auto"
    threads: int = 1
    held: bool = False
    after: tuple = ()        # (number, "ok" or "any")
    experiment: int = 0      # 0: none
    rank: int = 0
    state: str = "QUEUED"    # ACTIVE: it holds devices
    devices: tuple = ()
    stopping: bool = False

    @property
    def place(self):
        return self.rank, self.number


class Model:
    def __init__(self, slots, limits):
        self.slots = [f"cpu:{i}" for i in range(slots)]
        self.drained = set()
        self.limits = limits  # runs on devices, by user
        self.runs = {}        # by number
        self.started = ()     # (number, devices), since somebody last looked

    def copy(self):
        other = copy.copy(self)
        other.drained = set(self.drained)
        other.runs = {number: copy.copy(run) for number, run in self.runs.items()}
        return other

    def of_state(self, *states):
        return [run for run in self.runs.values() if run.state in states]

    # --- what people do ------------------------------------------------------------------------

    def submit(self, run):
        # What is out of use may come back: a run waits for it.
        usable = [slot for slot in self.slots if run.device in ("auto", "cpu", slot)]
        if len(usable) < run.threads:
            raise Refused("more than the machine has")
        for number, condition in run.after:
            if condition == "ok" and self.runs[number].state in ENDS - {"SUCCEEDED"}:
                raise Refused("it can no longer succeed")
        self.runs[run.number] = run

    def queued(self, number):
        run = self.runs[number]
        if run.state != "QUEUED":
            raise Refused("only a queued run has a place in the queue")
        return run

    def hold(self, number, held):
        self.queued(number).held = held

    def set_priority(self, number, priority):
        run = self.queued(number)
        if run.priority != priority:
            run.priority, run.rank = priority, 0

    def move(self, number, where, other=None):
        run = self.queued(number)
        if other is not None:
            if other == number or self.queued(other).user != run.user \
                    or self.runs[other].priority != run.priority:
                raise Refused("not among the runs of its user and class")
        row = sorted((peer for peer in self.of_state("QUEUED") if peer.user == run.user
                      and peer.priority == run.priority and peer is not run),
                     key=lambda peer: peer.place)
        at = {"first": 0, "last": len(row)}.get(where)
        if at is None:
            at = row.index(self.runs[other]) + (where == "behind")
        row.insert(at, run)
        # Everybody stands before whoever comes next, with the highest rank that allows it.
        for before, behind in reversed(list(itertools.pairwise(row))):
            highest = behind.rank if before.number < behind.number else behind.rank - 1
            before.rank = min(before.rank, highest)

    def cancel(self, number):
        """The runs whose processes have to end first, with what they become."""
        run = self.runs[number]
        if run.state in ENDS:
            raise Refused("it has ended")
        if run.state == "ACTIVE":
            run.stopping = True
            return [(number, "CANCELLED")]
        self.end(number, "CANCELLED")
        return []

    def cancel_experiment(self, experiment):
        members = [run.number for run in self.runs.values()
                   if run.experiment == experiment and run.state not in ENDS]
        ends = []
        for number in reversed(members):
            if self.runs[number].state not in ENDS:
                ends += self.cancel(number)
        return ends

    def pause(self, number):
        run = self.runs[number]
        if run.state in ENDS:
            raise Refused("it has ended")
        if run.state == "ACTIVE":
            run.stopping = True
            return [(number, "PAUSED")]
        run.state = "PAUSED"
        return []

    def resume(self, number):
        if self.runs[number].state != "PAUSED":
            raise Refused("it is not paused")
        self.runs[number].state = "QUEUED"

    def retry(self, number):
        run = self.runs[number]
        if run.state not in ENDS - {"SUCCEEDED"}:
            raise Refused("only what has ended without success is tried again")
        if any(condition == "ok" and self.runs[other].state in ENDS - {"SUCCEEDED"}
               for other, condition in run.after):
            raise Refused("what it waits for has to be tried again first")
        run.state = "QUEUED"

    def drain(self, slot, drained):
        (self.drained.add if drained else self.drained.discard)(slot)

    def end(self, number, state):
        """A run leaves its devices; who was to start after its success is cancelled with it."""
        run = self.runs[number]
        run.state, run.devices, run.stopping = state, (), False
        if state in ENDS - {"SUCCEEDED"}:
            for other in self.of_state("QUEUED", "PAUSED"):
                if (number, "ok") in other.after and other.state not in ENDS:
                    self.end(other.number, "CANCELLED")

    # --- who starts ----------------------------------------------------------------------------

    def suits(self, run, slot):
        return slot not in self.drained and run.device in ("auto", "cpu", slot)

    def waits_for_others(self, run):
        return any(self.runs[number].state != "SUCCEEDED" if condition == "ok"
                   else self.runs[number].state not in ENDS for number, condition in run.after)

    def may_start(self, run):
        return run.state == "QUEUED" and not run.held and not self.waits_for_others(run)

    def rounds(self, used):
        """All that one look at the queue may come to, as rows of (number, devices) in their order.
        `used`: device-seconds by user."""
        found, seen = set(), set()
        waiting = [run for run in self.runs.values() if self.may_start(run)]
        active = self.of_state("ACTIVE")
        taken = {slot for run in active for slot in run.devices}
        leaving = {slot for run in active if run.stopping for slot in run.devices}
        work = [((), frozenset(), frozenset())]  # starts, numbers looked at, slots kept free
        while work:
            state = starts, looked, kept = work.pop()
            if state in seen:
                continue
            seen.add(state)
            free = [slot for slot in self.slots if slot not in self.drained and slot not in taken
                    and not any(slot in devices for _, devices in starts)]
            turns = self.turns(waiting, active, starts, looked, used) if free else []
            if not turns:
                found.add(starts)
            for run in turns:
                good = [slot for slot in free if self.suits(run, slot)]
                open_to_all = [slot for slot in good if slot not in kept]
                chosen = tuple(sorted((open_to_all + [s for s in good if s in kept])[:run.threads]))
                if len(good) >= run.threads:
                    work.append((starts + ((run.number, chosen),), looked | {run.number}, kept))
                    if len(open_to_all) >= run.threads:
                        continue
                # Those that are free first, then those that are about to be.
                rest = [slot for slot in self.slots if self.suits(run, slot) and slot not in kept]
                rest.sort(key=lambda slot: slot not in free and slot not in leaving)
                more = rest[:run.threads] if len(rest) >= run.threads else []
                work.append((starts, looked | {run.number}, kept | set(more)))
        return found

    def turns(self, waiting, active, starts, looked, used):
        """Who may be looked at next: one run, or one each of users that are too near to tell."""
        begun = dict(starts)
        holding = [(run, run.devices) for run in active] + [
            (self.runs[number], devices) for number, devices in starts]
        for priority in CLASSES:
            lines = {}
            for run in waiting:
                if run.priority == priority and run.number not in begun:
                    lines.setdefault(run.user, []).append(run)
            shares = {}
            for user, line in lines.items():
                own = [devices for run, devices in holding if run.user == user]
                if all(run.number in looked for run in line):
                    continue
                if 0 < self.limits.get(user, 0) <= len(own):
                    continue
                shares[user] = used[user] + ADVANCE * sum(map(len, own))
            if not shares:
                continue
            least = min(shares.values())
            near = [user for user, share in shares.items() if share <= least + TOLERANCE]
            if all(shares[user] == least for user in near):  # nobody has used anything yet
                near = [min(near, key=lambda user: min(run.number for run in lines[user]))]
            return [min((run for run in lines[user] if run.number not in looked),
                        key=lambda run: run.place) for user in near]
        return []

    def after_rounds(self, used):
        for starts in self.rounds(used):
            model = self.copy()
            for number, devices in starts:
                model.runs[number].state, model.runs[number].devices = "ACTIVE", devices
            model.started += starts
            yield model

    def outcomes(self, ends, used):
        """Every model that this one may become once the runs in `ends` have ended; those that
        started since are in `started`."""
        found = {}
        work = [(self, tuple(ends))] + [(model, tuple(ends)) for model in self.after_rounds(used)]
        while work:
            model, left = work.pop()
            if not left:
                for last in model.after_rounds(used):
                    found[last.started] = last
                continue
            for one in left:
                after = model.copy()
                after.end(*one)
                rest = tuple(other for other in left if other is not one)
                work.append((after, rest))
                if rest:
                    work += [(looked, rest) for looked in after.after_rounds(used)]
        return list(found.values())
