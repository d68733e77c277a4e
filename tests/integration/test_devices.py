"""GPUs of a driver library whose machine is a text file (tests/fakes/fake_nvml.c)."""

import json
import pathlib
import tempfile
import unittest

from harness import BIN, ServerTest, wait_for

MACHINE = """
gpu GPU-aaaa 81559 520 3 NVIDIA H100 80GB HBM3
gpu GPU-bbbb 81559 500 0 NVIDIA H100 80GB HBM3
mig MIG-1 20096 10 MIG 1g.20gb
mig MIG-2 40192 10 MIG 3g.40gb
gpu GPU-cccc 81559 500 97 NVIDIA H100 80GB HBM3
"""


class DevicesTest(ServerTest):
    options = ("--gpus", "on", "--cpu-slots", "1")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="normlab-gpus-")
        self.addCleanup(folder.cleanup)
        self.machine = pathlib.Path(folder.name) / "machine"
        self.machine.write_text(MACHINE)
        self.environment = {"LD_LIBRARY_PATH": str(BIN / "fake_nvml"),
                            "FAKE_NVML": str(self.machine)}
        super().setUp()

    def device(self, name):
        return {device["id"]: device for device in self.server.get("/api/v1/devices")["devices"]}[
            name]

    def why(self, name):
        return self.device(name).get("unavailableReason", "")

    def test_what_the_driver_names_is_listed(self):
        ids = [device["id"] for device in self.server.get("/api/v1/devices")["devices"]]
        self.assertEqual(ids, ["cpu:0", "gpu:0", "gpu:1:0", "gpu:1:1", "gpu:2"])
        first = self.device("gpu:0")
        self.assertEqual((first["kind"], first["uuid"], first["memoryBytes"], first["utilization"]),
                         ("KIND_GPU", "GPU-aaaa", str(81559 << 20), 0.03))
        self.assertEqual(self.why("gpu:0"), "")
        lines = self.server.cli("devices", check=0).stdout.splitlines()
        self.assertTrue(any(line.startswith("gpu:1:1\tMIG 3g.40gb\t10 MiB of 39 GiB used")
                            for line in lines), lines)

    def test_one_that_others_fill_and_one_that_is_lost_say_so_until_all_is_well(self):
        self.machine.write_text(MACHINE.replace("81559 500 97", "81559 80000 97")
                                + "process 1 79000\n")
        wait_for(lambda: "others (process 1) use 77 GiB of its 80 GiB" in self.why("gpu:2"),
                 "outsiders to be seen")
        self.assertEqual(self.device("gpu:2")["foreignMemoryBytes"], str(79000 << 20))
        self.machine.write_text(MACHINE + "lost\n")
        wait_for(lambda: self.why("gpu:2") == "the driver says: GPU is lost", "the loss")
        self.assertEqual(self.why("gpu:0"), "")
        self.machine.write_text(MACHINE)
        wait_for(lambda: self.why("gpu:2") == "", "all to be well")

    def test_a_drained_device_stays_so_over_a_restart(self):
        self.server.cli("devices", "--drain", "gpu:2", "--reason", "fan is broken", check=0)
        self.server.cli("devices", "--drain", "cpu:0", check=0)
        self.server.stop()
        self.server.start()
        self.assertEqual(self.why("gpu:2"), "fan is broken")
        self.assertEqual(self.why("cpu:0"), "taken out of use")
        answer = self.server.cli("devices", "--enable", "gpu:2", "--json", check=0).stdout
        self.assertNotIn("unavailableReason", json.loads(answer))
        self.assertEqual(self.server.request("PATCH", "/api/v1/devices", {"id": "cpu:0"})[0], 200)
        self.assertEqual(self.why("cpu:0"), "")
        self.assertEqual(self.server.cli("devices", "--enable", "gpu:9").returncode, 4)
        status, answer = self.server.request(
            "PATCH", "/api/v1/devices", {"id": "gpu:0", "drainReason": "two\nlines"})
        self.assertEqual(status, 400)
        self.assertIn("drain_reason", json.dumps(answer))


class WithoutCuda(unittest.TestCase):
    """What `auto` makes of GPUs depends on the build; `off` never lends them."""

    def test_gpus_are_shown_with_the_reason(self):
        test = DevicesTest()
        test.options = ("--gpus", "off")
        test.setUp()
        self.addCleanup(test.doCleanups)
        self.assertEqual(test.why("gpu:0"), "the server was told to use no GPU (--gpus off)")


if __name__ == "__main__":
    unittest.main()
