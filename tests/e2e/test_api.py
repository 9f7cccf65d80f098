"""The daemon's socket with many clients, with clients that send nothing, and at the daemon's end. test_api.py MAJOR.
Needs root."""
import json
import os
import re
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, wait_for  # noqa: E402

MAJOR = "17"
CONNECTIONS_MAX = 256
CONNECTIONS_OF_UID = 64
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: kindling\r\n\r\n"
AS_NOBODY = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
open_, refused = [], 0
for i in range(%d):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        s.sendall(%r)
    except BrokenPipeError:
        pass
    refused += b" 503 " in s.recv(4096)
    open_.append(s)
print(refused, flush=True)
sys.stdin.read()
""" % (CONNECTIONS_OF_UID + 10, REQUEST)


def connect(daemon):
    s = socket.socket(socket.AF_UNIX)
    s.connect(daemon.socket)
    s.settimeout(60)
    return s


def ask(s, request=REQUEST):
    """The first bytes of an answer; nothing = the connection was closed."""
    try:
        s.sendall(request)
    except BrokenPipeError:
        pass  # the connection is closed already: what was sent before can be read
    try:
        return s.recv(4096)
    except ConnectionResetError:
        return b""


def ask_for(daemon, path):
    """The whole body of an answer."""
    with connect(daemon) as s:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: kindling\r\nConnection: close\r\n\r\n" % path)
        return b"".join(iter(lambda: s.recv(65536), b"")).split(b"\r\n\r\n", 1)[1]


class Connections(unittest.TestCase):
    def test_as_many_as_there_may_be_and_more_and_then_again(self):
        with Daemon() as daemon:
            for _ in range(2):
                many = [connect(daemon) for _ in range(CONNECTIONS_MAX + 40)]
                said = [ask(s) for s in many]
                self.assertEqual(sum(b" 200 " in a for a in said), CONNECTIONS_MAX)
                self.assertEqual(sum(b" 503 " in a and b"too many connections" in a for a in said), 40)
                self.assertEqual(daemon.cli("status", check=False).returncode, 1)
                for s in many:
                    s.close()
                wait_for("an answer", lambda: daemon.cli("status", check=False).returncode == 0)

    def test_more_reports_at_once_than_are_made_at_a_time(self):
        def answers(daemon):
            of = "/proc/%d/fd/" % daemon.data_pid()
            return [fd for fd in os.listdir(of) if "kindling-answer" in os.readlink(of + fd)]

        def copies(daemon):
            with open("/proc/%d/task/%d/children" % (daemon.data_pid(), daemon.data_pid())) as f:
                return f.read().split()

        def something_is_left():
            try:
                return answers(daemon) or copies(daemon)
            except FileNotFoundError:  # it ended while it was looked at
                return True
        with Daemon() as daemon:
            many = [connect(daemon) for _ in range(80)]
            for s in many:
                s.sendall(b"GET /v1/profile?format=txt HTTP/1.1\r\nHost: kindling\r\nConnection: close\r\n\r\n")
            said = [s.recv(4096) for s in many]
            made = sum(b" 200 " in a for a in said)
            self.assertGreaterEqual(made, 2 + 32)  # as many answers as may be in the making or waiting
            self.assertEqual(sum(b" 503 " in a and b"busy" in a for a in said), len(many) - made)
            for s in many:
                s.close()
            self.assertEqual(json.loads(ask_for(daemon, b"/v1/top"))["samples"], 0)
            wait_for("the end of what was made for it", lambda: not something_is_left())

    def test_one_user_leaves_room_for_others(self):
        with Daemon() as daemon:
            os.chmod(daemon.dir, 0o755)
            os.chmod(daemon.socket, 0o666)
            nobody = subprocess.Popen([sys.executable, "-c", AS_NOBODY, daemon.socket], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            self.assertEqual(nobody.stdout.readline(), "10\n")
            daemon.cli("status")
            nobody.communicate("")

    def test_silent_connections_are_closed(self):
        with Daemon() as daemon:
            silent, half, asked = connect(daemon), connect(daemon), connect(daemon)
            half.sendall(REQUEST[:20])
            self.assertIn(b" 200 ", ask(asked))
            for s in silent, half, asked:
                s.settimeout(120)
                while s.recv(4096):
                    pass  # 408, where something was said


class End(unittest.TestCase):
    def test_the_daemon_ends_while_somebody_reads_events(self):
        with Jvm(MAJOR) as jvm, Daemon() as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            path = daemon.dir + "/events"
            with open(path, "w") as f:
                tail = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--json"],
                                        stdout=f, stderr=subprocess.PIPE, text=True)

            def lines():
                with open(path) as f:
                    return f.read().splitlines()
            # and a client that gets no events: its connection stays idle
            idle = connect(daemon)
            self.assertIn(b" 200 ", ask(idle, b"GET /v1/events?event=lock&min=1h HTTP/1.1\r\nHost: k\r\n\r\n"))
            wait_for("samples", lambda: len(lines()) > 100)
            self.assertEqual(daemon.stop(), 0, daemon.read_log())
            said = tail.communicate(timeout=60)[1]
            seen = [json.loads(line) for line in lines()]
            self.assertEqual(seen.pop(), {"event": "end", "reason": "kindlingd is stopping"})
            self.assertIn("kindlingd is stopping", said)
            words = b""
            while True:
                part = idle.recv(4096)
                words += part
                if not part:
                    break
            self.assertIn(b"kindlingd is stopping", words)
            self.assertTrue(all(e["event"] == "cpu" for e in seen))

            daemon.start()
            wait_for("the JVM to be found", lambda: daemon.target(jvm.pid))

            def reported():
                done = daemon.cli("report", str(jvm.pid), "--last", "5m", "-o", daemon.dir + "/all.txt")
                return int(re.search(r"(\d+) samples", done.stdout + done.stderr).group(1))
            # the last window is in the store; a report misses its last second while the new daemon's memory covers that second
            wait_for("all samples in the history", lambda: reported() >= len(seen))
            jvm.end()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2, warnings="ignore")
