"""What may have become of a run, by what was done to it and what it asked for.

Every function returns a list of sentences: what is wrong. `run` is a run as the API gives it.
"""

import dataclasses
import re

FRUITLESS_LIMIT = 3  # interruptions in a row without progress, after which a run fails
KILLED = ("the trainer was ended by signal 9", "the trainer was lost")


@dataclasses.dataclass
class Done:
    """What was done to a run."""
    kills: int = 0  # SIGKILL of its trainer or shepherd
    cancelled: bool = False


def state_of(run):
    return run["state"].removeprefix("STATE_")


def was_killed(reason):
    return reason.startswith(KILLED)


def end_faults(run, on_interrupt, done):
    """A run succeeds unless something was done to it that its on_interrupt does not survive."""
    state, reason = state_of(run), run.get("endReason", "")
    if state == "SUCCEEDED" or state == "CANCELLED" and done.cancelled:
        return []
    if state == "FAILED" and done.kills and on_interrupt == "fail" and was_killed(reason):
        return []
    gave_up = re.match(r"interrupted (\d+) times in a row without coming further", reason)
    if state == "FAILED" and gave_up and on_interrupt != "fail":
        if FRUITLESS_LIMIT <= int(gave_up[1]) <= done.kills:
            return []
    return [f"{run['id']} ({on_interrupt}) is {state} after {done}: {reason}"]


def attempt_faults(run, on_interrupt, steps):
    """What follows an attempt that was killed is as on_interrupt says."""
    found = []
    attempts = run.get("attempts", [])
    for before, after in zip(attempts, attempts[1:]):
        if not was_killed(before.get("endReason", "")):
            continue
        began = int(after.get("resumedFromStep", 0))
        latest = max(int(before.get("checkpointStep", 0)), int(before.get("resumedFromStep", 0)))
        if on_interrupt == "fail":
            wrong = "there should be none"
        elif on_interrupt == "requeue" and began != 0:
            wrong = f"it should begin anew, not behind step {began}"
        elif on_interrupt == "resume" and latest < steps and began != latest:
            wrong = f"it should begin behind step {latest}, not {began}"
        else:
            continue
        found.append(f"{run['id']} ({on_interrupt}), attempt {after['number']}: {wrong}")
    return found
