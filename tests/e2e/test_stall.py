"""Pipes that do not answer, beside a JVM whose stream goes on. test_stall.py MAJOR. Needs root."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, Lateness, Tail, skip, starts, wait_for  # noqa: E402

MAJOR = "17"
STALLS = 3
SECONDS = 12  # at least
STOP_S = 20  # TimeoutStopSec in deploy/systemd/kindlingd.service


class Stalls:
    """Processes whose pipes do not answer until they are killed."""

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="kindling-stall-")
        self.processes = [subprocess.Popen([BUILD + "/tests/stall", self.dir.name], stdout=subprocess.PIPE, text=True)
                          for _ in range(STALLS)]
        for p in self.processes:
            if p.stdout.readline() != "READY\n":
                skip("no page fault may be kept waiting here (userfaultfd)")
        return self

    def __exit__(self, *unused):
        for p in self.processes:
            p.kill()
            p.communicate()
        self.dir.cleanup()


class Stall(unittest.TestCase):
    def test_others_go_on_and_a_daemon_that_is_killed_has_a_successor_at_once(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            tail = Tail(daemon, jvm.pid)
            wait_for("the tail's first lines", lambda: tail.lines > 10)
            with Stalls() as stalls, Lateness() as late:
                tail.longest, slowest, end = 0.0, 0.0, time.monotonic() + SECONDS
                while time.monotonic() < end or not all(self.is_stuck(daemon, p.pid) for p in stalls.processes):
                    self.assertLess(time.monotonic(), end + 60)
                    begin = time.monotonic()
                    daemon.status()
                    slowest = max(slowest, time.monotonic() - begin)
                    time.sleep(0.5)
                tail.end()
                print("longest gap %.2f s, slowest answer %.2f s, on a machine %.2f s late" % (
                    tail.longest, slowest, late.seconds))
                self.assertLess(tail.longest, 1 + late.seconds)
                self.assertLess(slowest, 1 + late.seconds)
                for p in stalls.processes:
                    target = daemon.target(p.pid)
                    self.assertEqual(target["state"], "failed", json.dumps(target))
                    self.assertIn("does not answer", json.dumps(target))
                with starts:  # takes the lock of daemons first, so that the measured time does not include waiting for another test
                    begin = time.monotonic()
                    daemon.kill()
                    killed = time.monotonic() - begin
                    daemon.start()
                print("killed in %.2f s, its successor answers after %.2f s" % (killed, time.monotonic() - begin))
                self.assertLess(time.monotonic() - begin, 10 + late.seconds)
                daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_daemon_that_is_asked_to_end_does_so_and_has_a_successor_at_once(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            with Stalls() as stalls, Lateness() as late:
                for p in stalls.processes:
                    wait_for("one that is stuck", lambda pid=p.pid: self.is_stuck(daemon, pid))
                begin = time.monotonic()
                self.assertEqual(daemon.stop(), 0)
                ended = time.monotonic() - begin
                with starts:
                    begin = time.monotonic()
                    daemon.start()
                started = time.monotonic() - begin
                print("ended in %.2f s, its successor answers after %.2f s, on a machine %.2f s late" % (ended, started, late.seconds))
                self.assertLess(ended, STOP_S + late.seconds)
                self.assertLess(started, 10 + late.seconds)
                daemon.wait_state(jvm.pid, "streaming")
                delivered = daemon.target(jvm.pid)["samples"]["delivered"]
                wait_for("more samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > delivered + 20)
                for p in stalls.processes:  # the pipes are held by these processes
                    self.assertIsNone(p.poll())
            self.assertEqual(jvm.end(), ("END\n", ""))

    def is_stuck(self, daemon, pid):
        target = daemon.target(pid)
        return target and target["state"] == "failed" and "does not answer" in json.dumps(target)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
