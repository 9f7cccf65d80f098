"""daemon/upload/grpc.h against gRPC's own server (Python's grpcio is the C core), plain and with TLS, and against
one that speaks frames of HTTP/2 as no server may."""
import collections
import concurrent.futures
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import kindling  # noqa: E402
import wheels  # noqa: E402

wheels.use("grpcio")
import grpc  # noqa: E402

RETRY_INFO = (b"\x08\x0e\x1a\x31\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x05\x0a\x03\x08\xad\x02")


class Service(grpc.GenericRpcHandler):
    """Methods of /t.T/; records the metadata of each call."""

    def __init__(self):
        self.headers = {}
        self.cancelled = threading.Event()

    def service(self, details):
        self.headers = dict(details.invocation_metadata)
        method = getattr(self, details.method.rpartition("/")[2].lower(), None)
        return grpc.stream_stream_rpc_method_handler(method) if method else None

    def echo(self, requests, context):
        for request in requests:
            yield request

    def gate(self, requests, context):
        """Answers the first message before there are more; then counts all bytes."""
        next(requests)
        yield b"go"
        yield b"%d bytes" % sum(len(m) for m in requests)

    def many(self, requests, context):
        for i in range(100):
            yield b"%04d" % i + b"." * 996

    # These answer after the client has ended its part, because curl might otherwise take the reset that follows for the
    # answer
    def refuse(self, requests, context):
        collections.deque(requests, 0)
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "ni\u00f1o: 100% no\n\x1b[31m")

    def early(self, requests, context):
        """Ends the call while the client is about to send more."""
        next(requests)
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "enough")

    def busy(self, requests, context):
        collections.deque(requests, 0)
        context.set_trailing_metadata((("grpc-status-details-bin", RETRY_INFO),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "later")

    def never(self, requests, context):
        context.add_callback(self.cancelled.set)
        self.cancelled.wait(30)
        yield b"late"

    def slow(self, requests, context):
        """Reads slowly, so that the client's window is full."""
        total = 0
        for m in requests:
            time.sleep(0.2)
            total += len(m)
        yield b"%d bytes" % total


def call(url, method, *steps, deadline_ms=20000, answer_max=1 << 20, ca=""):
    """(lines of messages, status, text, the rest)"""
    done = subprocess.run([kindling.BUILD + "/tests/grpc_client", url, "/t.T/" + method, str(deadline_ms), str(answer_max),
                           ca, *steps], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    end = next((line for line in lines if line.startswith("end ")), "end -1 sent=0 after=0 ")
    found = re.match(r"end (-?\d+) sent=(\d) after=([\d.]+) ?(.*)", end)
    cpu, rss = re.match(r"cpu ([\d.]+) rss (\d+)", lines[-1]).groups()
    return {"messages": [line[8:] for line in lines if line.startswith("message ")], "status": int(found[1]),
            "sent": found[2] == "1", "after": float(found[3]), "text": found[4], "cpu": float(cpu), "rss_kb": int(rss)}


class RealServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.service = Service()
        cls.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[cls.service],
                                 options=[("grpc.max_receive_message_length", 50 << 20)])
        cls.url = "http://127.0.0.1:%d" % cls.server.add_insecure_port("127.0.0.1:0")
        cls.ca = cls.dir.name + "/cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", cls.dir.name + "/key.pem",
                        "-out", cls.ca], check=True, capture_output=True)
        with open(cls.dir.name + "/key.pem", "rb") as key, open(cls.ca, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        cls.tls = "https://localhost:%d" % cls.server.add_secure_port("127.0.0.1:0", credentials)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop(0)
        cls.dir.cleanup()

    def test_a_unary_call(self):
        got = call(self.url, "Echo", "send:1000", "end")
        self.assertEqual((got["status"], got["messages"]), (0, ["1000 " + "x" * 20]))
        self.assertEqual(self.service.headers["authentication"], "word")
        self.assertEqual(call(self.url + "/", "Echo", "send:0", "end")["messages"], ["0 "])

    def test_a_stream_that_waits_for_the_answer(self):
        steps = ["send:1048576", "room"] * 30
        got = call(self.url, "Gate", "send:40", "message", *steps, "end")
        self.assertEqual((got["status"], got["messages"]), (0, ["2 go", "14 31457280 bytes"]), got)
        self.assertLess(got["rss_kb"], 60000)  # only a part of it at once

    def test_with_tls(self):
        got = call(self.tls, "Gate", "send:40", "message", "send:1048576", "room", "send:1048576", "end", ca=self.ca)
        self.assertEqual((got["status"], got["messages"]), (0, ["2 go", "13 2097152 bytes"]), got)
        unknown = call(self.tls, "Echo", "send:4", "end")
        self.assertEqual((unknown["status"], unknown["sent"]), (14, False))
        self.assertIn("certificate", unknown["text"])

    def test_many_messages_of_an_answer_and_their_bound(self):
        got = call(self.url, "Many", "end")
        self.assertEqual((got["status"], len(got["messages"]), got["messages"][99][:9]), (0, 100, "1000 0099"))
        got = call(self.url, "Many", "end", answer_max=50000)
        self.assertEqual((got["status"], got["text"]), (8, "the server's answer has more than 50000 bytes"))

    def test_a_refusal_in_the_servers_words(self):
        got = call(self.url, "Refuse", "send:1", "end")
        self.assertEqual((got["status"], got["text"]), (7, "ni\u00f1o: 100% no??[31m"))

    def test_a_method_that_the_server_does_not_have(self):
        """A server that answers between our headers and our message resets the call, and curl before 8.0 may lose its
        status then (docs/decisions/0022): such a call ends at its deadline, and the next one works."""
        statuses = []
        while 12 not in statuses and len(statuses) < 5:
            statuses.append(call(self.url, "Unknown", "send:1", "end", deadline_ms=3000)["status"])
        self.assertEqual(statuses[-1], 12, statuses)
        self.assertNotIn(0, statuses)

    def test_a_server_that_ends_the_call_while_we_send(self):
        """curl reports the reset that follows in different ways; but no call ends as a success, or after its
        deadline."""
        for steps in ("message", "send:100"), ["send:1048576"] * 20:
            got = call(self.url, "Early", "send:100", *steps, "end", deadline_ms=2000)
            self.assertNotEqual(got["status"], 0, got)
            self.assertLess(got["cpu"], 1.5)

    def test_the_pause_that_a_server_asks_for(self):
        got = call(self.url, "Busy", "send:1", "end")
        self.assertEqual((got["status"], got["text"], got["after"]), (14, "later", 301.0))

    def test_no_answer(self):
        begin = time.monotonic()
        got = call(self.url, "Never", "send:1", "end", deadline_ms=1500)
        self.assertEqual(got["status"], 4)
        self.assertLess(time.monotonic() - begin, 10)
        got = call(self.url, "Gate", "send:1", "message", "message", deadline_ms=1500)
        self.assertEqual((got["status"], got["messages"]), (4, ["2 go"]))
        self.assertLess(got["cpu"], 0.5)  # the call waits, and does not use CPU time meanwhile

    def test_cancelled(self):
        got = call(self.url, "Gate", "send:1", "message", "cancel")
        self.assertEqual((got["status"], got["messages"]), (-1, ["2 go"]))

    def test_a_slow_server(self):
        got = call(self.url, "Slow", *["send:1048576", "room"] * 8, "end")
        self.assertEqual((got["status"], got["messages"]), (0, ["13 8388608 bytes"]))

    def test_nobody_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            got = call("http://127.0.0.1:%d" % free.getsockname()[1], "Echo", "send:1", "end")
        self.assertEqual((got["status"], got["sent"]), (14, False))
        self.assertTrue(got["text"])


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header that refers to no entry of the table."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


OK = b"\x88" + literal(b"content-type", b"application/grpc")
SETTINGS, DATA, HEADERS, RST, GOAWAY = 4, 0, 1, 3, 7


class Hostile(unittest.TestCase):
    """A hostile server: each of these calls ends with a status, and costs little."""

    def answer(self, *frames, after=b"", hold=0.0, steps=("send:100", "message", "send:1", "end")):
        """Serves one connection: sends @frames after the headers of a request."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                time.sleep(0.1)  # the call is under way
                try:
                    connection.sendall(frame(SETTINGS, 0, 0) + b"".join(frames))
                    connection.settimeout(hold or 0.3)
                    while connection.recv(65536):
                        if after:
                            connection.sendall(after)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return call("http://127.0.0.1:%d" % listener.getsockname()[1], "Echo", *steps, deadline_ms=2000,
                        answer_max=65536)
        finally:
            thread.join()
            listener.close()

    def test_a_message_of_a_gigabyte(self):
        got = self.answer(frame(HEADERS, 4, 1, OK), frame(DATA, 0, 1, b"\0\x40\0\0\0abc"), hold=3)
        self.assertEqual((got["status"], got["text"]), (8, "the server announces a message of 1073741824 bytes"))
        self.assertLess(got["rss_kb"], 60000)

    def test_a_compressed_message(self):
        got = self.answer(frame(HEADERS, 4, 1, OK), frame(DATA, 0, 1, b"\1\0\0\0\3abc"), hold=3)
        self.assertEqual((got["status"], got["text"]), (13, "the server's message is compressed"))

    def test_half_a_message(self):
        end = frame(HEADERS, 5, 1, literal(b"grpc-status", b"0"))
        got = self.answer(frame(HEADERS, 4, 1, OK), frame(DATA, 0, 1, b"\0\0\0\0\x09abc"), end, hold=3, steps=("send:1", "end"))
        self.assertEqual((got["status"], got["text"]), (13, "the server's answer ends inside a message"))

    def test_a_page_of_a_proxy(self):
        page = b"\x88" + literal(b"content-type", b"text/html")
        got = self.answer(frame(HEADERS, 4, 1, page), frame(DATA, 1, 1, b"<html>" * 1000), hold=3)
        self.assertEqual((got["status"], got["text"]), (2, "HTTP 200 with text/html is not an answer of gRPC"))

    def test_a_stream_that_is_reset(self):
        got = self.answer(frame(HEADERS, 4, 1, OK), frame(RST, 0, 1, struct.pack(">I", 2)), hold=3)
        self.assertIn(got["status"], (4, 14), got)

    def test_a_connection_that_ends(self):
        got = self.answer(frame(HEADERS, 4, 1, OK))
        self.assertEqual(got["status"], 14, got)

    def test_garbage(self):
        got = self.answer(b"\xff" * 5000)
        self.assertIn(got["status"], (4, 14), got)
        got = self.answer(frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff"))
        self.assertIn(got["status"], (4, 14), got)

    def test_an_end_while_we_wait(self):
        end = b"\x88" + literal(b"content-type", b"application/grpc") + literal(b"grpc-status", b"8") + \
            literal(b"grpc-message", b"enough")
        got = self.answer(frame(HEADERS, 5, 1, end), hold=3)
        self.assertEqual((got["status"], got["text"]), (8, "enough"), got)

    def test_no_status(self):
        got = self.answer(frame(HEADERS, 4, 1, OK), frame(DATA, 1, 1, b"\0\0\0\0\1a"), hold=3, steps=("send:1", "end"))
        self.assertEqual((got["status"], got["messages"]), (2, ["1 a"]), got)

    def test_headers_without_end(self):
        head = frame(HEADERS, 4, 1, b"\x88")
        got = self.answer(head, *[frame(HEADERS, 4, 1, literal(b"a%05d" % i, b"x" * 120)) for i in range(4000)], hold=3)
        self.assertNotEqual(got["status"], 0)
        self.assertLess(got["rss_kb"], 60000)

    def test_a_server_of_http_1(self):
        got = self.answer(after=b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.assertIn(got["status"], (4, 14), got)


if __name__ == "__main__":
    unittest.main(verbosity=2)
