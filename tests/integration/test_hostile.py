"""Clients that mean harm: whatever they send, they are refused in words, and the server serves on."""

import json
import socket
import time
import unittest

import grpc

from harness import TINY, ServerTest, wait_for

NOWHERE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def text(number, value):
    """A protobuf field of text, or of a message."""
    data = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


class Hostile(ServerTest):
    def setUp(self):
        super().setUp()
        self.addr = self.server.endpoint["grpc"]
        self.token = self.server.endpoint["token"]

    def tearDown(self):
        self.assertIsNone(self.server.process.poll(), "the server lives")
        began = time.monotonic()
        self.server.get("/api/v1/runs")
        self.assertLess(time.monotonic() - began, 10, "and answers others")

    def call(self, method, request, streams=False):
        """The error of a call with these bytes, or its (first) answer."""
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(self.addr, options=options) as channel:
            make = channel.unary_stream if streams else channel.unary_unary
            stub = make(f"/normlab.v1.{method}", lambda b: b, lambda b: b)
            metadata = [("authorization", f"Bearer {self.token}")]
            try:
                answer = stub(request, metadata=metadata, timeout=60)
                return next(answer) if streams else answer
            except grpc.RpcError as error:
                return error

    def raw(self, sent, wait=10):
        """What comes back for these bytes, until the server closes."""
        host, port = self.server.endpoint["http"].split(":")
        with socket.create_connection((host, int(port)), timeout=wait) as connection:
            try:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all was sent; the answer is still there
            answer = b""
            try:
                while piece := connection.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
        return answer

    def head(self, first, *headers):
        return "\r\n".join(
            [f"{first} HTTP/1.1", f"Host: {self.server.endpoint['http']}",
             f"Authorization: Bearer {self.token}", *headers, "", ""]).encode("latin-1")

    def test_a_message_over_the_limit(self):
        error = self.call("RunService/CreateRun", text(1, text(2, "n" * (17 << 20))))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        # Just below it: read, and refused for what it says.
        error = self.call("RunService/CreateRun", text(1, text(2, "n" * (15 << 20))))
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertLess(len(error.details()), 1000, "the answer does not repeat the name")

    def test_text_that_is_no_utf8(self):
        for method, request in (("RunService/GetRun", text(1, b"\xff\xfe")),
                                ("RunService/CreateRun", text(1, text(2, b"caf\xe9"))),
                                ("ExperimentService/GetExperiment", text(1, b"\xc0\xaf"))):
            error = self.call(method, request)
            self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT, method)
            self.assertIn("UTF-8", error.details())

    def test_a_watch_of_ten_thousand_runs(self):
        for ids in ([NOWHERE] * 10_000, [f"{i:026d}" for i in range(10_000)]):
            error = self.call("RunService/WatchRuns", b"".join(text(1, i) for i in ids), True)
            self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("10000 runs are too many", error.details())

    def test_a_hundred_thousand_names_of_series(self):
        run = self.server.create("named", {**TINY, "steps": 3})
        request = text(1, run) + b"".join(text(2, f"no/such/{i}") for i in range(100_000))
        error = self.call("RunService/ReadSeries", request)
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("100000 names are too many", error.details())

    def test_deeply_nested_bodies(self):
        deep = 200_000
        for body in ('{"spec":' * deep + "1" + "}" * deep, "[" * deep, "[" * deep + "]" * deep,
                     '{"displayName":' + "[" * deep + "]" * deep + "}",
                     '{"a":' * deep, '{"labels":{"a":' + "{}" * 3 + "}}"):
            status, answer = self.server.request("POST", "/api/v1/runs", body.encode())
            self.assertIn(status, (400, 413), body[:30])
            self.assertLess(len(json.dumps(answer)), 20_000)

    def test_smuggled_requests(self):
        inner = self.head("GET /api/v1/me").decode("latin-1")
        body = f"0\r\n\r\n{inner}"
        for headers in (
                ("Content-Length: 5", "Transfer-Encoding: chunked"),
                (f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"),
                ("Content-Length: 5", f"Content-Length: {len(body)}"),
                ("Transfer-Encoding: chunked, identity",), ("Transfer-Encoding: identity",),
                ("Transfer-Encoding: xchunked",), ("Transfer-Encoding:\x0bchunked",),
                ("Transfer-Encoding: chunked", "Transfer-Encoding: x"),
                ("X: y\r\n Content-Length: 5", "Transfer-Encoding: gzip")):
            answer = self.raw(self.head("POST /api/v1/runs", *headers) + body.encode("latin-1"))
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, f"{headers}: {answer!r}")
            self.assertIn(b" 400 ", answer.split(b"\r\n")[0], headers)

    def test_huge_and_slow_heads(self):
        answer = self.raw(self.head("GET /healthz", *[f"X-{i}: {'y' * 100}" for i in range(5000)]))
        self.assertIn(b" 431 ", answer.split(b"\r\n")[0])
        answer = self.raw(self.head("GET /healthz", "X: " + "\xff" * 100))
        self.assertIn(b" 200 ", answer.split(b"\r\n")[0])
        # A hundred who send a byte now and then keep nobody else out, and are let go.
        host, port = self.server.endpoint["http"].split(":")
        slow = [socket.create_connection((host, int(port)), timeout=30) for _ in range(100)]
        for connection in slow:
            connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        began = time.monotonic()

        def all_gone():
            for connection in list(slow):
                try:
                    connection.sendall(b"X")
                    connection.setblocking(False)
                    try:
                        gone = connection.recv(1) == b""
                    except BlockingIOError:
                        gone = False
                    connection.setblocking(True)
                except OSError:
                    gone = True
                if gone:
                    connection.close()
                    slow.remove(connection)
            self.assertEqual(self.server.request("GET", "/healthz")[0], 200)
            time.sleep(0.2)
            return not slow

        wait_for(all_gone, "slow clients to be let go", timeout=30)
        self.assertGreater(time.monotonic() - began, 1)

    def test_bytes_that_are_no_text_in_every_part_of_a_request(self):
        for sent in (self.head("GET /api/v1/runs/\xff"), self.head("G\xcbT /"),
                     self.head("GET /healthz", "Origin: http://\xff\xfe"),
                     self.head("GET /healthz", "Host: \xff"),
                     self.head("GET /api/v1/events?all=1", "Last-Event-ID: \xff\xfe"),
                     self.head("GET /api/v1/runs?page_token=%ff"),
                     self.head("GET /api/v1/runs?%ff=1")):
            answer = self.raw(sent)
            status, _, rest = answer.partition(b"\r\n")
            self.assertRegex(status, rb"^HTTP/1.1 4\d\d ", sent)
            body = rest.partition(b"\r\n\r\n")[2]
            json.loads(body.decode("utf-8"))


if __name__ == "__main__":
    unittest.main()
