"""Runs on GPUs, end to end, on a machine that has none: the driver is tests/fakes/fake_nvml.c, whose
GPUs are a text file, and trainers are scripted (tests/fakes/fake_engine.cc).
"""

import os
import pathlib
import signal
import tempfile
import unittest

from harness import BIN, TINY, ServerTest, process_identity, wait_for

FOREVER = {**TINY, "steps": 10**9}
GIB = 1 << 30
TOTAL = 81559  # MiB of each GPU
IDLE = 500     # MiB that the driver needs itself


class Machine:
    """GPUs by id, as the server names them, and who uses them."""

    def __init__(self, path, ids):
        self.path = path
        self.ids = ids
        self.lost = set()
        self.stuck = {}      # MiB in use by no process, by id
        self.processes = {}  # pid -> (id, MiB)
        self.write()

    def uuid(self, name):
        return ("MIG-" if name.count(":") == 2 else "GPU-") + name.replace(":", "-")

    def write(self):
        lines = []
        for name in self.ids:
            held = sum(mib for gpu, mib in self.processes.values() if gpu == name)
            used = IDLE + held + self.stuck.get(name, 0)
            if name.count(":") == 2:
                if name.endswith(":0"):  # the divided GPU itself
                    lines.append(f"gpu {self.uuid(name[:-2])} {TOTAL} {IDLE} 0 H100")
                lines.append(f"mig {self.uuid(name)} 20096 {used} MIG 1g.20gb")
            else:
                lines.append(f"gpu {self.uuid(name)} {TOTAL} {used} 0 NVIDIA H100 80GB HBM3")
            lines += [f"process {pid} {mib}"
                      for pid, (gpu, mib) in self.processes.items() if gpu == name]
            if name in self.lost:
                lines.append("lost")
        written = self.path.with_suffix(".new")
        written.write_text("\n".join(lines) + "\n")
        written.rename(self.path)  # a reader sees the one or the other

    def use(self, pid, name, mib):
        self.processes[pid] = (name, mib)
        self.write()

    def leave(self, *pids):
        for pid in pids:
            self.processes.pop(pid, None)
        self.write()


class GpuTest(ServerTest):
    gpus = ("gpu:0",)
    options = ("--trainer", str(BIN / "normlab-fake-trainer"), "--cpu-slots", "1",
               "--cancel-grace", "1")
    script = "gpus=8,steps_per_second=50"  # of every run
    scripts = {}                           # of the runs with a seed

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="normlab-gpus-")
        self.addCleanup(folder.cleanup)
        self.machine = Machine(pathlib.Path(folder.name) / "machine", self.gpus)
        self.environment = {"LD_LIBRARY_PATH": str(BIN / "fake_nvml"),
                            "FAKE_NVML": str(self.machine.path),
                            "NORMLAB_FAKE_ENGINE": self.script}
        self.environment |= {f"NORMLAB_FAKE_ENGINE_{seed}": script
                             for seed, script in self.scripts.items()}
        super().setUp()

    def submit(self, name, device="gpu", gib=None, gpus=None, exclusive=False, **spec):
        resources = {"exclusive": exclusive}
        if gib is not None:
            resources["gpuMemoryBytes"] = str(int(gib * GIB))
        if gpus is not None:
            resources["gpus"] = gpus
        fields = {"device": device}
        if device != "cpu":
            fields["resources"] = resources
        return self.server.create(name, {**FOREVER, **spec}, **fields)

    def running(self, run):
        """The device of a run, once it trains."""
        self.server.wait_for_state(run, "RUNNING")
        return self.server.run(run)["attempts"][-1]["device"]

    def trainer(self, run):
        return self.server.processes(run, len(self.server.run(run)["attempts"]))[1]

    def hold(self, run, mib):
        """The driver shows the run's trainer with so much memory. Returns its pid."""
        device = self.running(run)
        pid = self.trainer(run)
        self.machine.use(pid, device, mib)
        return pid

    def end(self, run):
        """Cancels a run; its memory is back as soon as its trainer has ended."""
        self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        self.server.wait_for_state(run, "CANCELLED")
        self.machine.leave(*[pid for pid in self.machine.processes
                             if process_identity(pid) is None])

    def device(self, name):
        devices = self.server.get("/api/v1/devices")["devices"]
        return {device["id"]: device for device in devices}[name]

    def why(self, name):
        return self.device(name).get("unavailableReason", "")

    def lenders(self, name):
        return [lease["run"] for lease in self.device(name).get("leases", [])]

    def wait_reason(self, run):
        return self.server.run(run).get("waitReason", "")

    def wait_for_reason(self, run, text):
        wait_for(lambda: text in self.wait_reason(run), f"{text!r}, not {self.wait_reason(run)!r}")


class Placement(GpuTest):
    gpus = ("gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4", "gpu:5", "gpu:6:0", "gpu:6:1", "gpu:7")

    def visible(self, run):
        environment = pathlib.Path(f"/proc/{self.trainer(run)}/environ").read_bytes().split(b"\0")
        return [entry.decode().split("=", 1)[1] for entry in environment
                if entry.startswith(b"CUDA_VISIBLE_DEVICES=")]

    def test_each_run_gets_a_gpu_of_its_own_while_there_are_any_and_sees_no_other(self):
        runs = [self.submit(f"run {i}", gib=15) for i in range(9)]
        places = [self.running(run) for run in runs]
        self.assertEqual(sorted(places), sorted(self.gpus))
        for run, place in zip(runs, places):
            self.assertEqual(self.visible(run), [self.machine.uuid(place)])
        cpu = self.submit("on a CPU", device="cpu")
        self.assertEqual(self.running(cpu), "cpu:0")
        self.assertEqual(self.visible(cpu), [""])
        # The next one shares the GPU with the most memory left, which is no instance.
        self.assertNotIn("6", self.running(self.submit("tenth", gib=15)))

    def test_a_run_is_where_it_was_asked_to_be_also_for_the_next_server(self):
        run = self.submit("named", device="gpu:6:1", gib=15)
        self.assertEqual(self.running(run), "gpu:6:1")
        self.hold(run, 9000)
        self.server.kill()
        self.server.start()
        wait_for(lambda: self.lenders("gpu:6:1") == [run], "the run to be taken over")
        wait_for(lambda: int(self.device("gpu:6:1").get("foreignMemoryBytes", 0)) == 0,
                 "the trainer to be known again")
        refused = self.server.request("POST", "/api/v1/runs", {
            "spec": TINY, "device": "gpu:6:1", "resources": {"gpuMemoryBytes": str(30 * GIB)}})
        self.assertEqual(refused[0], 400)
        self.assertIn("the largest GPU, gpu:6:1, has 21072183296 (19.6 GiB)", str(refused[1]))

    def test_a_wide_run_sees_all_its_gpus(self):
        run = self.submit("wide", gpus=3, exclusive=True)
        devices = self.running(run).split(",")
        self.assertEqual(len(devices), 3)
        self.assertEqual(self.visible(run), [",".join(self.machine.uuid(d) for d in devices)])


class Sharing(GpuTest):
    def test_runs_share_a_gpu_within_their_budgets_and_the_next_one_is_told_the_numbers(self):
        first, second = self.submit("first", gib=30), self.submit("second", gib=30)
        self.assertEqual([self.running(first), self.running(second)], ["gpu:0", "gpu:0"])
        third = self.submit("third", gib=30)
        self.wait_for_reason(third, "on gpu:0: asks for 30 GiB, and 19.6 GiB of 79.6 GiB are not "
                                    "lent")
        self.end(first)
        self.assertEqual(self.running(third), "gpu:0")
        self.assertCountEqual(self.lenders("gpu:0"), [second, third])
        small = self.submit("small", gib=2)
        self.assertEqual(self.running(small), "gpu:0")

    def test_one_that_wants_the_gpu_alone_waits_for_all_and_shares_with_nobody(self):
        first = self.submit("first", gib=10)
        self.running(first)
        alone, later = self.submit("alone", exclusive=True), self.submit("later", gib=1.5)
        self.wait_for_reason(alone, "waits for run first on gpu:0")
        self.end(first)
        self.assertEqual(self.running(alone), "gpu:0")
        self.wait_for_reason(later, "waits for run alone on gpu:0")
        self.hold(alone, TOTAL - IDLE)  # it may fill it
        self.end(alone)
        self.assertEqual(self.running(later), "gpu:0")

    def test_without_a_budget_of_its_own_a_run_has_what_its_settings_need(self):
        run = self.submit("plain")
        self.running(run)
        lease = self.device("gpu:0")["leases"][0]
        self.assertGreater(int(lease["memoryBytes"]), GIB)
        self.assertLess(int(lease["memoryBytes"]), 1.2 * GIB)


class Auto(GpuTest):
    def test_it_takes_a_gpu_with_room_then_a_cpu(self):
        first = self.submit("first", device="auto", gib=50)
        self.assertEqual(self.running(first), "gpu:0")
        second = self.submit("second", device="auto", gib=50)
        self.assertEqual(self.running(second), "cpu:0")
        third = self.submit("third", device="auto", gib=50)
        self.wait_for_reason(third, "waits for run")
        self.end(first)
        self.assertEqual(self.running(third), "gpu:0")

    def test_a_checkpoint_is_gone_on_from_on_the_kind_of_device_that_wrote_it(self):
        run = self.submit("moved", device="auto", checkpointEvery=10)
        self.assertEqual(self.running(run), "gpu:0")
        wait_for(lambda: self.server.step(run) >= 20, "a checkpoint")
        self.server.cli("pause", run, check=0)
        self.server.wait_for_state(run, "PAUSED")
        self.server.cli("devices", "--drain", "gpu:0", "--reason", "fan is broken", check=0)
        self.server.cli("resume", run, check=0)
        self.wait_for_reason(run, "no device: no GPU takes runs (gpu:0: fan is broken)")
        self.server.cli("devices", "--enable", "gpu:0", check=0)
        self.assertEqual(self.running(run), "gpu:0")


class Outsiders(GpuTest):
    def test_a_gpu_that_others_fill_is_left_alone_until_they_have_gone(self):
        self.machine.use(1, "gpu:0", 79000)
        wait_for(lambda: "others (process 1) use 77 GiB of its 80 GiB" in self.why("gpu:0"),
                 "outsiders to be seen")
        waiting = self.submit("waiting")
        self.wait_for_reason(waiting, "no device: no GPU takes runs (gpu:0: others (process 1) use "
                                      "77 GiB of its 80 GiB; it is used again when they have ended")
        auto = self.submit("auto", device="auto")
        self.assertEqual(self.running(auto), "cpu:0")
        self.machine.leave(1)
        self.assertEqual(self.running(waiting), "gpu:0")

    def test_what_they_leave_can_be_lent(self):
        self.machine.use(1, "gpu:0", 41000)
        wait_for(lambda: int(self.device("gpu:0").get("foreignMemoryBytes", 0)) == 41000 << 20,
                 "the outsider to be seen")
        self.assertEqual(self.running(self.submit("small", gib=20)), "gpu:0")
        large = self.submit("large", gib=30)
        self.wait_for_reason(large, "asks for 30 GiB, and 19.6 GiB of 79.6 GiB are not lent")
        larger = self.submit("larger", gib=40)
        self.wait_for_reason(larger, "no device: asks for 40 GiB of a GPU, and others leave 39.6 "
                                     "GiB of 79.6 GiB on gpu:0")


class Return(GpuTest):
    def cancel(self, run):
        self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        self.server.wait_for_state(run, "CANCELLED")

    def test_a_lease_ends_when_process_and_memory_are_gone(self):
        first = self.submit("first", gib=50)
        pid = self.hold(first, 40000)
        wait_for(lambda: int(self.device("gpu:0")["memoryUsedBytes"]) > 40000 << 20, "its memory")
        next_run = self.submit("next", gib=50)
        self.cancel(first)
        wait_for(lambda: process_identity(pid) is None, "the trainer to end")
        self.assertEqual(self.lenders("gpu:0"), [first])
        self.assertEqual(self.server.state(next_run), "QUEUED")
        self.machine.processes.clear()
        self.machine.stuck["gpu:0"] = 40000  # the driver is not done yet
        self.machine.write()
        self.assertEqual(self.lenders("gpu:0"), [first])
        self.machine.stuck.clear()
        self.machine.write()
        self.assertEqual(self.running(next_run), "gpu:0")
        self.assertEqual(self.lenders("gpu:0"), [next_run])

    def test_memory_that_does_not_come_back_quarantines_the_gpu(self):
        first = self.submit("first", gib=50)
        self.hold(first, 40000)
        wait_for(lambda: int(self.device("gpu:0")["memoryUsedBytes"]) > 40000 << 20, "its memory")
        next_run = self.submit("next", gib=5)
        self.running(next_run)
        self.end(next_run)
        self.cancel(first)
        self.machine.stuck["gpu:0"] = 40000
        self.machine.processes.clear()
        self.machine.write()
        reason = ("quarantined: 40000 MiB were still in use by no process after run first had "
                  "ended; when all is well there: normlab devices --enable gpu:0")
        wait_for(lambda: self.why("gpu:0") == reason, f"quarantine, not {self.why('gpu:0')!r}")
        self.assertEqual(self.lenders("gpu:0"), [])
        waiting = self.submit("waiting", gib=5)
        self.wait_for_reason(waiting, f"no device: no GPU takes runs (gpu:0: {reason}")
        self.server.cli("devices", "--enable", "gpu:0", check=0)
        self.assertEqual(self.running(waiting), "gpu:0")


class Budgets(GpuTest):
    scripts = {2: "gpu_mib=6000", 3: "gpu_mib=2000,gpu_total_mib=1000", 4: "oom_at=3"}

    def test_a_run_that_holds_more_than_its_budget_is_ended_with_both_numbers(self):
        run = self.submit("greedy", gib=4)
        other = self.submit("modest", gib=4)
        self.hold(other, 4096)
        self.hold(run, 4097)
        self.server.wait_for_state(run, "FAILED")
        self.assertEqual(self.server.told_everywhere(run),
                         "it held 4097 MiB of gpu:0's memory, and its budget is 4096 MiB; give it "
                         "more (--gpu-memory), ask for the GPU alone (--exclusive), or make "
                         "batch_size or the model smaller")
        self.assertEqual(self.server.state(other), "RUNNING")

    def test_the_engine_itself_is_told_its_budget_and_refuses_more(self):
        run = self.submit("large", gib=4, seed=2)
        self.server.wait_for_state(run, "FAILED")
        self.assertEqual(self.server.told_everywhere(run),
                         "out of GPU memory: asked for 1500 MiB, held 3000 MiB, its budget is 4096 "
                         "MiB, 1024 MiB of them for CUDA itself; the GPU has 78559 MiB of 81559 "
                         "MiB free; give it more (--gpu-memory), or make batch_size or the model "
                         "smaller")
        self.assertEqual(self.running(self.submit("enough", gib=8, seed=2)), "gpu:0")

    def test_a_full_gpu_is_told_with_its_sizes_and_what_to_do(self):
        run = self.submit("shared", gib=4, seed=3)
        self.server.wait_for_state(run, "FAILED")
        self.assertEqual(self.server.told_everywhere(run),
                         "out of GPU memory: asked for 500 MiB, held 1000 MiB, its budget is 4096 "
                         "MiB, 1024 MiB of them for CUDA itself; the GPU has 0 MiB of 1000 MiB "
                         "free; others hold what is missing: try again when they have ended, or "
                         "ask for it alone (--exclusive)")
        alone = self.submit("alone", exclusive=True, seed=3)
        self.server.wait_for_state(alone, "FAILED")
        self.assertEqual(self.server.told_everywhere(alone),
                         "out of GPU memory: asked for 500 MiB, held 1000 MiB, its budget is the "
                         "whole GPU; the GPU has 0 MiB of 1000 MiB free; make batch_size or the "
                         "model smaller")

    def test_what_libtorch_says_is_told_in_the_same_words_and_tried_again_if_asked_for(self):
        run = self.submit("tried", gib=4, seed=4, retries=1)
        text = ("out of GPU memory: asked for 2.50 GiB, held 3.56 GiB, its budget is 4.00 GiB; the "
                "GPU has 1.25 GiB of 139.81 GiB free; others hold what is missing: try again when "
                "they have ended, or ask for it alone (--exclusive)")
        wait_for(lambda: self.wait_reason(run) == f"tried again in 10 s (1 of 1): {text}",
                 f"the run to be tried again, not {self.wait_reason(run)!r}")
        self.server.wait_for_state(run, "FAILED")
        self.assertEqual(self.server.told_everywhere(run), f"{text} (tried again 1 of 1 times)")


class Lost(GpuTest):
    gpus = ("gpu:0", "gpu:1")

    def lose_the_gpu_of(self, **spec):
        run = self.submit("unlucky", device="gpu", checkpointEvery=10, **spec)
        device = self.running(run)
        wait_for(lambda: self.server.step(run) >= 20, "a checkpoint")
        self.machine.lost.add(device)
        self.machine.write()
        wait_for(lambda: self.why(device) == "the driver says: GPU is lost", "the loss")
        return run, device

    def test_its_run_is_interrupted_and_goes_on_elsewhere(self):
        run, device = self.lose_the_gpu_of(onInterrupt="resume")
        wait_for(lambda: len(self.server.run(run)["attempts"]) == 2, "the next attempt")
        first, second = self.server.run(run)["attempts"]
        self.assertRegex(first["endReason"], f"^{device} was lost: the driver says: GPU is lost; ")
        self.running(run)
        self.assertNotEqual(second["device"], device)
        self.assertGreaterEqual(int(second["resumedFromStep"]), 20)
        # Back again, it is used again.
        self.machine.lost.clear()
        self.machine.write()
        wait_for(lambda: self.why(device) == "" and self.lenders(device) == [], "all to be well")

    def test_it_fails_with_that_reason_if_asked_for(self):
        run, device = self.lose_the_gpu_of(onInterrupt="fail")
        self.server.wait_for_state(run, "FAILED")
        self.assertRegex(self.server.told_everywhere(run),
                         f"^{device} was lost: the driver says: GPU is lost; ")

    def test_a_trainer_that_dies_of_it_was_interrupted_by_it(self):
        run, device = self.lose_the_gpu_of(onInterrupt="resume")
        pid = self.trainer(run)
        os.kill(pid, signal.SIGSEGV)
        wait_for(lambda: len(self.server.run(run)["attempts"]) == 2, "the next attempt")
        self.assertRegex(self.server.run(run)["attempts"][0]["endReason"],
                         rf"^{device} was lost: .*signal 11 \(SIGSEGV\)")


class Wide(GpuTest):
    gpus = ("gpu:0", "gpu:1")
    scripts = {5: "steps_per_second=20"}

    def test_a_run_on_two_gpus_behind_an_endless_row_of_runs_on_one_starts_soon(self):
        def one(i):
            return self.submit(f"one {i}", exclusive=True, steps=20, seed=5)
        before = [one(i) for i in range(2)]
        for run in before:
            self.running(run)
        wide = self.submit("wide", gpus=2, exclusive=True, steps=10)
        row = [one(i) for i in range(2, 14)]
        self.server.wait_for_state(wide, "SUCCEEDED")
        started = self.server.run(wide)["startTime"]
        overtook = [run for run in row
                    if self.server.run(run).get("startTime", "9999") < started]
        # It waits for those that ran; on the GPU that was free first, some could end by then.
        self.assertLessEqual(len(overtook), 4)
        self.assertEqual(self.server.run(wide)["attempts"][0]["device"], "gpu:0,gpu:1")
        for run in row:
            self.server.request("POST", f"/api/v1/runs/{run}:cancel")


class Capabilities(GpuTest):
    def refusal(self, device, resources=None):
        status, answer = self.server.request(
            "POST", "/api/v1/runs", {"spec": TINY, "device": device, "resources": resources or {}})
        self.assertEqual(status, 400, answer)
        return str(answer)


class WithoutCuda(Capabilities):
    script = "steps_per_second=50"  # on no GPU

    def test_a_run_on_a_gpu_is_refused_with_the_reason_and_auto_takes_the_cpu(self):
        reason = "this normlab was built without CUDA (docs/gpu.md says how to build it in)"
        self.assertEqual(self.why("gpu:0"), reason)
        refusal = self.refusal("gpu")
        self.assertIn("device", refusal)
        self.assertIn(f"no GPU takes runs (gpu:0: {reason}); use cpu or auto", refusal)
        self.assertIn(f"gpu:0 takes no runs: {reason}", self.refusal("gpu:0"))
        self.assertIn("resources.gpus", self.refusal("auto", {"gpus": 1}))
        told = self.server.cli("submit", "--device", "gpu")
        self.assertNotEqual(told.returncode, 0)
        self.assertIn(reason, " ".join(told.stderr.split()))
        self.assertEqual(self.running(self.submit("anywhere", device="auto")), "cpu:0")


class WithCuda(Capabilities):
    script = "gpus=1,steps_per_second=50"  # as the engine
    gpus = ("gpu:0", "gpu:1")

    def test_a_trainer_for_one_gpu_gets_no_more(self):
        self.assertEqual(self.running(self.submit("one", gpus=1)), "gpu:0")
        self.assertIn("2 are asked for and a trainer of this normlab uses 1",
                      self.refusal("gpu", {"gpus": 2}))
        self.assertIn("CUDA itself is counted with 1.0 GiB",
                      self.refusal("gpu", {"gpuMemoryBytes": str(GIB // 2)}))


class UnknownTrainer(Capabilities):
    options = ("--trainer", "/bin/false", "--cpu-slots", "1")

    def test_one_that_does_not_answer_gets_no_gpu(self):
        self.assertIn("the trainer does not say that it can use GPUs", self.why("gpu:0"))


if __name__ == "__main__":
    unittest.main()
