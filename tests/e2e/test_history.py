"""The history of a service over restarts, of its own and of kindlingd: test_history.py [MAJOR]. Needs root.

kindlingd is killed at random moments beside a JVM; what the history has of the JVM's CPU time is held against the
clock of its process. At most a second of it may be missing for each death, beside the time in which no kindlingd ran.
And a disk that is full stops the history and nothing else.
"""
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import Daemon, Jvm, Tail, cpu_ns, wait_for  # noqa: E402

MAJOR = "17"
OPTIONS = ("-Xmx64m", "-XX:+UseSerialGC", "-Dotel.service.name=shop")
LOSS_S = 1.3  # a second, and what the agent had not sent yet
TICK_NS = 3e7


class History(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.jvm = Jvm(MAJOR, "Quarter", options=OPTIONS)
        self.daemon.wait_state(self.jvm.pid, "streaming")

    def tearDown(self):
        self.jvm.__exit__()
        self.daemon.__exit__()

    def report(self, *who):
        return json.loads(self.daemon.cli("report", *who, "--last", "10m", "-f", "json", "-o", "-").stdout)

    def live(self, seconds):
        """One life of kindlingd, killed at its end: the JVM's CPU time meanwhile, and the CPUs that it used on
        average."""
        begin, first = time.monotonic(), cpu_ns(self.jvm.pid)
        time.sleep(seconds)
        used = cpu_ns(self.jvm.pid) - first
        self.daemon.kill()
        return used, used / 1e9 / (time.monotonic() - begin)

    def test_deaths_of_the_daemon_and_of_a_jvm(self):
        used = allowed = 0
        for _ in range(3):
            life, share = self.live(random.uniform(2, 7))
            used += life
            allowed += LOSS_S * share * 1e9 + TICK_NS
            self.daemon.start()
            self.daemon.wait_state(self.jvm.pid, "streaming")
            self.assertGreaterEqual(self.daemon.status()["store"]["recovered_windows"], 1)
        first = self.report(str(self.jvm.pid))
        time.sleep(0.1)  # some ticks of the clock that the JVM's CPU time is read from
        # the samples of the fourth life so far are part of both
        got, most = first["view"]["process_cpu_ns"], cpu_ns(self.jvm.pid)
        self.assertGreater(got, used - allowed, "%d of %d ns are missing, %d may" % (used - got, used, allowed))
        self.assertLess(got, most)
        self.assertLess(abs(first["view"]["weight_ns"] - got), 0.5 * got)

        # the service starts again
        old, self.jvm = self.jvm, Jvm(MAJOR, "Quarter", options=OPTIONS)
        old.__exit__()
        self.daemon.wait_state(self.jvm.pid, "streaming")
        pids = {old.pid, self.jvm.pid}

        def closed():
            listed = json.loads(self.daemon.cli("history", "--json").stdout)["processes"]
            return [p for p in listed if p["service"] == "shop"] if pids <= {p["pid"] for p in listed} else None
        listed = {p["pid"]: p for p in wait_for("windows of both", closed, 30)}
        self.assertEqual([listed[p]["alive"] for p in (old.pid, self.jvm.pid)], [False, True])
        self.assertEqual(set(listed), pids)
        self.assertGreater(listed[old.pid]["samples"], 20)
        both = self.report("--service", "shop")
        self.assertEqual({p["pid"] for p in both["processes"]}, pids)
        self.assertEqual([p["pid"] for p in self.report("Quarter")["processes"]], [self.jvm.pid])
        self.assertEqual([p["pid"] for p in self.report(str(old.pid))["processes"]], [old.pid])

        table = self.daemon.cli("history", "--service", "shop", "--last", "1h").stdout
        self.assertRegex(table, r"PID +NAME +SERVICE +PLACE +FROM +TO +SAMPLES +BYTES\n")
        self.assertRegex(table, r"(?m)^ *%d Quarter +shop .* now +[0-9.k]+ +[0-9.k]+$" % self.jvm.pid)
        self.assertRegex(table, r"\n2 JVMs, 1 alive; the history takes [0-9.]+[kM]?B of 1.1GB, and goes back 24 h at most\n$")
        for words in (("--service", "sho"), ("--pod", "shop"), ("--service", "shop", "--container", "x")):
            no = self.daemon.cli("report", *words, "-o", "-", check=False)
            self.assertEqual(no.returncode, 1)
            self.assertIn("no JVM of that time has the %s \"%s\"" % (words[-2][2:], words[-1]), no.stderr)
        two = self.daemon.cli("report", "Quarter", "--service", "shop", "-o", "-", check=False)
        self.assertEqual(two.returncode, 2)

        # after a restart kindlingd does not know the old process; the history does
        self.daemon.stop()
        self.daemon.start()
        self.daemon.wait_state(self.jvm.pid, "streaming")
        self.assertEqual([p["pid"] for p in self.report(str(old.pid))["processes"]], [old.pid])
        self.assertIsNone(re.search(r"(?m)^event=.*level=err", self.daemon.read_log()))


class FullDisk(unittest.TestCase):
    @contextlib.contextmanager
    def small_disk(self, daemon):
        """The segments lie on a file system of their own."""
        where = daemon.dir + "/state/segments"
        self.assertEqual(daemon.stop(), 0)
        owner = os.stat(where)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0750,uid=%d,gid=%d" % (owner.st_uid, owner.st_gid), "tmpfs", where],
                       check=True)
        try:
            daemon.start()
            yield where
        finally:
            daemon.stop()
            subprocess.run(["umount", "-l", where], check=True)

    def test_a_full_disk_stops_the_history_and_not_the_stream(self):
        with Daemon() as daemon, Jvm(MAJOR, options=OPTIONS) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            with self.small_disk(daemon) as where:
                daemon.wait_state(jvm.pid, "streaming")
                tail = Tail(daemon, jvm.pid)
                wait_for("samples", lambda: tail.lines > 10)
                dropped = daemon.target(jvm.pid)["samples"]["dropped"]  # those of the restart
                self.fill(where)
                stopped = wait_for("the warning", lambda: daemon.status()["store"]["note"], 60)
                self.assertRegex(stopped, r"^the history stopped at .* \(No space left on device\); profiling goes on")
                wait_for("the line in the log",
                         lambda: re.search(r"(?m)^history\.stopped error=\"No space left", daemon.read_log()), 10)
                self.assertIn("the history stopped", daemon.cli("status").stdout)
                lines = tail.lines
                wait_for("samples after it", lambda: tail.lines > lines + 100)
                live = json.loads(daemon.cli("report", str(jvm.pid), "--last", "5s", "-f", "json", "-o", "-").stdout)
                self.assertGreater(live["view"]["samples"], 50)
                os.unlink(where + "/full")
                wait_for("the history", lambda: daemon.status()["store"]["note"] is None, 60)
                self.assertIn("history.goes_on", daemon.read_log())
                tail.end()
                self.assertLess(tail.longest, 5)
                self.assertEqual(daemon.target(jvm.pid)["samples"]["dropped"], dropped)

    def fill(self, where):
        with self.assertRaises(OSError), open(where + "/full", "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
