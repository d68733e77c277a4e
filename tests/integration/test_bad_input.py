"""Whatever comes in, the answer names the fault, the server lives, and nothing is stored."""

import http.client
import json
import re
import socket
import unittest

import grpc

from harness import TINY, ServerTest

NOWHERE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class BadInput(ServerTest):
    def tearDown(self):
        self.assertEqual(self.server.get("/api/v1/runs").get("runs", []), [], "nothing was stored")
        self.assertEqual(self.server.get("/api/v1/experiments").get("experiments", []), [])
        self.assertIsNone(self.server.process.poll(), "the server lives")

    def assert_violation(self, spec, field, said, **fields):
        status, answer = self.server.request(
            "POST", "/api/v1/runs", {"displayName": "x", "spec": spec, **fields})
        self.assertEqual(status, 400, answer)
        error = answer["error"]
        self.assertEqual(error["status"], "INVALID_ARGUMENT")
        named = {detail["field"]: detail["description"] for detail in error["details"]}
        self.assertIn(field, named, error)
        self.assertIn(said, named[field])

    def test_settings_that_cannot_be(self):
        self.assert_violation({"heads": 5}, "spec.heads", "64")
        self.assert_violation({"layers": 0}, "spec.layers", "0")
        self.assert_violation({"layers": 10**9}, "spec.layers", "1000000000")
        self.assert_violation({"learningRate": "NaN"}, "spec.learning_rate", "NaN")
        self.assert_violation({"learningRate": "Infinity"}, "spec.learning_rate", "")
        self.assert_violation({"learningRate": -1}, "spec.learning_rate", "-1")
        self.assert_violation({"placement": "sideways"}, "spec.placement", "pre, post, post-single")
        self.assert_violation({"threads": 1000}, "spec.threads", "1000")
        self.assert_violation({"warmupSteps": 3, "warmupFraction": 0.5}, "spec.warmup_fraction",
                              "warmup_steps")
        self.assert_violation({"dModel": 16384, "layers": 1024, "heads": 1}, "spec.d_model", "GiB")
        self.assert_violation({}, "device", "no GPU", device="gpu")
        self.assert_violation({}, "device", "cpu:99", device="cpu:99")
        self.assert_violation({}, "experiment", NOWHERE, experiment=NOWHERE)

    def test_every_fault_is_told_at_once(self):
        status, answer = self.server.request(
            "POST", "/api/v1/runs",
            {"displayName": "a\nb", "spec": {"layers": 0, "batchSize": 0, "placement": "x"}})
        self.assertEqual(status, 400)
        fields = {detail["field"] for detail in answer["error"]["details"]}
        self.assertLessEqual({"spec.layers", "spec.batch_size", "spec.placement"}, fields)

    def test_an_unknown_setting_is_named(self):
        status, answer = self.server.request("POST", "/api/v1/runs", {"spec": {"layerz": 6}})
        self.assertEqual(status, 400)
        self.assertIn("layerz", json.dumps(answer))
        result = self.server.cli("submit", "--layerz", "6")
        self.assertEqual(result.returncode, 2)
        self.assertIn("layers", result.stderr)
        result = self.server.cli("submit", "--set", "layerz=6")
        self.assertEqual(result.returncode, 2)
        self.assertIn("layers", result.stderr)

    def test_the_command_line_says_what_the_server_says(self):
        result = self.server.cli("submit", "--heads", "5")
        self.assertEqual(result.returncode, 4)
        self.assertIn("spec.heads", result.stderr)
        for value in ("nan", "1e", "", "six"):
            result = self.server.cli("submit", "--learning-rate", value)
            self.assertEqual(result.returncode, 2, value)
            self.assertIn("learning", result.stderr)

    def test_unknown_runs(self):
        for path in (f"/api/v1/runs/{NOWHERE}", "/api/v1/runs/x", f"/api/v1/runs/{NOWHERE}/series",
                     f"/api/v1/experiments/{NOWHERE}", f"/api/v1/events?runs={NOWHERE}"):
            status, answer = self.server.request("GET", path)
            self.assertEqual(status, 404, f"{path}: {answer}")
        status, _ = self.server.request("POST", f"/api/v1/runs/{NOWHERE}:cancel")
        self.assertEqual(status, 404)
        self.assertEqual(self.server.cli("show", NOWHERE).returncode, 4)
        status, answer = self.server.request("POST", "/api/v1/experiments", {"preset": "articel"})
        self.assertEqual(status, 400)
        self.assertIn("article", json.dumps(answer))

    def test_an_experiment_is_created_whole_or_not_at_all(self):
        status, answer = self.server.request(
            "POST", "/api/v1/experiments", {"preset": "article", "overrides": {"heads": 7}})
        self.assertEqual(status, 400)
        self.assertIn("spec.heads", json.dumps(answer))
        status, answer = self.server.request(
            "POST", "/api/v1/experiments",
            {"displayName": "two", "runs": [{"spec": TINY}, {"spec": {**TINY, "layers": 0}}]})
        self.assertEqual(status, 400)
        self.assertIn("runs[1].spec.layers", json.dumps(answer))

    def test_malformed_json(self):
        for body in ("{", "[]", "null", '{"spec": 3}', '{"spec": {"layers": "six"}}', "\xff\xfe",
                     '{"spec": {"layers": 1.5}}', "{" * 100_000, ""):
            status, answer = self.server.request("POST", "/api/v1/runs", body.encode("latin-1"))
            self.assertEqual(status, 400, f"{body[:40]!r}: {answer}")
            self.assertIn("error", answer)
        status, answer = self.server.request("POST", "/api/v1/runs", b"x" * (3 << 20))
        self.assertEqual(status, 413, answer)

    def test_malformed_http(self):
        host, port = self.server.endpoint["http"].split(":")
        for sent in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02",
                     b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     b"POST /api/v1/runs HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda c=connection: c.recv(65536), b""))
            self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0], sent)

    def test_malformed_protobuf_and_missing_tokens_over_grpc(self):
        def call(method, request, token):
            with grpc.insecure_channel(self.server.endpoint["grpc"]) as channel:
                stub = channel.unary_unary(f"/normlab.v1.{method}", lambda b: b, lambda b: b)
                metadata = [("authorization", f"Bearer {token}")] if token else []
                try:
                    return stub(request, metadata=metadata, timeout=10)
                except grpc.RpcError as error:
                    return error

        token = self.server.endpoint["token"]
        self.assertIsInstance(call("RunService/ListRuns", b"", token), bytes)
        for wrong in ("", "x", token[:-1], token + "0"):
            self.assertEqual(call("RunService/ListRuns", b"", wrong).code(),
                             grpc.StatusCode.UNAUTHENTICATED)
        # Field 1 (a message) with a length that is not there; an endless varint.
        for request in (b"\x0a\x7f\x01", b"\xff" * 20):
            error = call("RunService/CreateRun", request, token)
            self.assertIsInstance(error, grpc.RpcError)
        # ListRuns { states: 1000 }: proto3's enums are open.
        error = call("RunService/ListRuns", b"\x12\x02\xe8\x07", token)
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        error = call("RunService/GetRun", b"\x0a\x01x", token)
        self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
        # spec { heads: 5 }: the fault travels as google.rpc.BadRequest.
        error = call("RunService/CreateRun", b"\x0a\x04\x2a\x02\x40\x05", token)
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("spec.heads", error.details())
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        self.assertIn(b"google.rpc.BadRequest", details)

    def test_health_and_reflection_are_open_and_nothing_else(self):
        with grpc.insecure_channel(self.server.endpoint["grpc"]) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check", lambda b: b, lambda b: b)
            self.assertEqual(check(b"", timeout=10), b"\x08\x01")  # SERVING
            reflect = channel.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                lambda b: b, lambda b: b)
            listed = b"".join(reflect(iter([b"\x3a\x00"]), timeout=10))  # list_services
            services = {name.decode() for name in re.findall(rb"normlab\.[a-z.]*v1\.\w+", listed)}
            self.assertEqual(services, {
                "normlab.v1.RunService", "normlab.v1.ExperimentService",
                "normlab.v1.DeviceService", "normlab.v1.UserService",
                "normlab.v1.StorageService", "normlab.worker.v1.WorkerService"})
            for method in ("RunService/ListRuns", "RunService/GetRun", "RunService/CreateRun",
                           "RunService/CancelRun", "RunService/ReadSeries",
                           "ExperimentService/CreateExperiment", "ExperimentService/GetExperiment",
                           "ExperimentService/ListExperiments", "ExperimentService/ListPresets",
                           "DeviceService/ListDevices", "UserService/GetMe",
                           "UserService/CreateLoginCode", "UserService/ExchangeLoginCode"):
                call = channel.unary_unary(f"/normlab.v1.{method}", lambda b: b, lambda b: b)
                with self.assertRaises(grpc.RpcError, msg=method) as raised:
                    call(b"", timeout=10)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED, method)
            watch = channel.unary_stream("/normlab.v1.RunService/WatchRuns",
                                         lambda b: b, lambda b: b)
            with self.assertRaises(grpc.RpcError) as raised:
                list(watch(b"", timeout=10))
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)

    def test_a_stranger_cannot_speak_for_a_trainer(self):
        run = b"\x0a\x1a" + NOWHERE.encode() + b"\x10\x01\x1a\x01x"
        hello = b"\x0a" + bytes([len(run)]) + run
        with grpc.insecure_channel(self.server.endpoint["grpc"]) as channel:
            stub = channel.stream_stream("/normlab.worker.v1.WorkerService/Attach",
                                         lambda b: b, lambda b: b)
            for request, code in ((hello, grpc.StatusCode.PERMISSION_DENIED),
                                  (b"\x12\x00", grpc.StatusCode.INVALID_ARGUMENT)):
                with self.assertRaises(grpc.RpcError) as raised:
                    list(stub(iter([request]), timeout=10))
                self.assertEqual(raised.exception.code(), code)

    def test_resume_tokens(self):
        for token, status in (("nonsense", 400), ("deadbeef-1", 400)):
            got, answer = self.server.request("GET", f"/api/v1/events?all=true&resume={token}")
            self.assertEqual(got, status, answer)


class Names(ServerTest):
    def test_any_name_is_kept_exactly_or_refused_by_rule(self):
        kept = ["a/b", '"quoted", with comma', "<img src=x onerror=alert(1)>", "../../etc/passwd",
                "=1+1", "Ünï · 日本 · 🚀", "x" * 300, "%2F?#&"]
        for name in kept:
            run = self.server.create(name, {**TINY, "steps": 1})
            self.assertEqual(self.server.run(run)["displayName"], name)
            self.server.wait_for_state(run, "SUCCEEDED")
            exported = self.server.cli("export", run, "--format", "csv", "-o", "-", check=0).stdout
            self.assertEqual(exported.count("\n"), 2, exported)
        for name in ["x" * 301, "two\nlines", "nul\0", "tab\t"]:
            status, answer = self.server.request(
                "POST", "/api/v1/runs", {"displayName": name, "spec": TINY})
            self.assertEqual(status, 400, name)
            self.assertIn("display_name", json.dumps(answer))


if __name__ == "__main__":
    unittest.main(verbosity=2)
