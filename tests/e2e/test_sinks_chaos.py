"""Sinks whose servers are down, refuse, break off or are slow, and whose disk is full, while kindling-upload is
killed again and again: every loss is reported, nothing arrives twice, and the stream goes on. test_sinks_chaos.py
MAJOR."""
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kindling import Daemon, Jvm, wait_for  # noqa: E402
from servers import Pyroscope, S3, free_port, slowly  # noqa: E402
from test_sinks import Places, is_balanced, samples_of, sinks_of, upload_pid  # noqa: E402
import glob  # noqa: E402

MAJOR = "17"
KILLS = 4  # a kindling-upload that dies soon after its start is restarted later; test_uploads_chaos.py kills it a hundred times, at any moment
MEMORY_MAX_KB = 64 << 10


def reset(handler):
    """RST instead of an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()


class Moody(Pyroscope):
    """Accepts a profile only after it has failed in every way of its list, and once does not answer for one that it
    has accepted."""

    def __init__(self, port):
        self.moods = [self.too_many, self.error, self.cut, self.dawdles, self.takes_and_is_silent, self.error]
        self.seen = []
        super().__init__(port)

    def push(self, handler, body):
        with self.lock:
            mood = self.moods.pop(0) if self.moods else None
            self.seen.append((time.monotonic(), mood.__name__ if mood else "takes"))
        return mood(handler, body) if mood else super().push(handler, body)

    def too_many(self, *unused):
        return 429, {"Retry-After": "3"}, '{"code":"resource_exhausted","message":"slow down"}'

    def error(self, *unused):
        return 500, {}, "out of order"

    def cut(self, handler, body):
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal")
            handler.wfile.flush()
            reset(handler)

    def dawdles(self, handler, body):
        slowly(handler, "HTTP/1.1 200 OK\r\n", 8)

    def takes_and_is_silent(self, handler, body):
        super().push(handler, body)
        with contextlib.suppress(OSError):
            reset(handler)


class Chaos(unittest.TestCase):
    maxDiff = None

    def balanced(self, daemon):
        """Reads status all the time and checks that the accounts in it balance."""
        sinks = sinks_of(daemon)
        for s in sinks.values():
            self.assertTrue(is_balanced(s), s)
        return sinks

    def kill_again_and_again(self, daemon):
        end, kills, peak = time.monotonic() + 60, 0, 0
        while kills < KILLS and time.monotonic() < end:
            pid = upload_pid(daemon)
            if not pid:
                time.sleep(0.01)
                continue
            time.sleep(random.uniform(0.3, 3))
            with contextlib.suppress(OSError):
                with open("/proc/%d/status" % pid) as f:
                    peak = max([peak] + [int(line.split()[1]) for line in f if line.startswith("VmHWM")])
                os.kill(pid, signal.SIGKILL)
                kills += 1
            self.balanced(daemon)
        self.assertEqual(kills, KILLS)
        return peak

    def test_nothing_is_lost_unsaid_and_nothing_is_there_twice(self):
        port, s3_port = free_port(), free_port()
        with Places() as p:
            out, bucket = p.directory("out"), p.directory("s3")
            os.mkdir(bucket + "/profiles")
            for name in ("testid", "testsecret"):
                with open(p.dir + "/" + name, "w") as f:
                    f.write(name)
            settings = """
sinks:
  - {name: dir, type: files, directory: %s, format: json, interval: 10s}
  - {name: pyro, type: pyroscope, url: http://127.0.0.1:%d, interval: 10s, timeout: 4s}
  - {name: lake, type: s3, url: http://127.0.0.1:%d, bucket: profiles, format: json, interval: 10s,
     access_key_file: %s/testid, secret_key_file: %s/testsecret}
  - {name: tls, type: otlp, url: https://127.0.0.1:%d, interval: 10s}
  - {name: full, type: exec, command: [/bin/false], format: json, interval: 10s}
""" % (out, port, s3_port, p.dir, p.dir, s3_port)
            with self.daemon_with_full_disk(settings) as daemon, Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                with S3(bucket, "testid", "testsecret", s3_port):  # nothing listens for pyro, and the server of tls does not speak TLS
                    peak = self.kill_again_and_again(daemon)
                    with Moody(port) as pyro:
                        names = ["dir", "pyro", "lake"]
                        wait_for("moods", lambda: not pyro.moods and self.balanced(daemon), 60)
                        target = daemon.target(jvm.pid)
                        daemon.configure(settings.replace("interval: 10s", "interval: 1h"))  # no more is taken
                        daemon.cli("config", "reload")
                        wait_for("all delivered", lambda: all(s["delivered"] > 100 and not s["spooled"] + s["unconfirmed"]
                                                              for n, s in sinks_of(daemon).items() if n in names), 60)
                        sinks = self.balanced(daemon)
                        log = daemon.read_log()
                self.assertEqual(jvm.end(), ("END\n", ""))
                self.unmount(daemon)
            for name in names:
                self.assertEqual(sinks[name]["dropped"], {}, log)
            self.assertEqual(sum(map(samples_of, glob.glob(out + "/*.json"))), sinks["dir"]["delivered"])
            objects = glob.glob(bucket + "/profiles/*/*.json")
            self.assertEqual(sum(map(samples_of, objects)), sinks["lake"]["delivered"])
            self.assertEqual(pyro.samples, sinks["pyro"]["delivered"])
            self.assertGreater(sinks["full"]["dropped"]["disk_full"], 0)
            self.assertEqual(sinks["tls"]["delivered"], 0)
            self.assertGreater(sinks["tls"]["spooled"] + sinks["tls"]["unconfirmed"], 0)
            self.check_retry_after(pyro)
            self.assertLess(peak, MEMORY_MAX_KB)
            self.assertEqual(sum(target["samples"]["dropped"].values()), 0)

    def check_retry_after(self, pyro):
        """Requests under way at the same time finish within two seconds, whatever else the machine does;
        test_uploads.py tests this with a single body."""
        first = min(t for t, mood in pyro.seen if mood == "too_many")
        self.assertGreaterEqual(min(t for t, _ in pyro.seen if t > first + 2) - first, 3, pyro.seen)

    @contextlib.contextmanager
    def daemon_with_full_disk(self, settings):
        """The spool of `full` is limited to its ledger and little more."""
        with Daemon(settings) as daemon:
            where = daemon.dir + "/state/spool/full"
            wait_for("the spool", lambda: os.path.exists(where))
            self.assertEqual(daemon.stop(), 0)
            owner = os.stat(where)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=0750,uid=%d,gid=%d" % (owner.st_uid, owner.st_gid),
                            "tmpfs", where], check=True)
            try:
                daemon.start()
                yield daemon
            finally:
                self.unmount(daemon)

    def unmount(self, daemon):
        subprocess.run(["umount", "-l", daemon.dir + "/state/spool/full"], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
