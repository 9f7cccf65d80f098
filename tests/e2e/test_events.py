"""Waits and allocations, from the JVM to the file: test_events.py [MAJOR]. Needs root. EventsKnown knows how often
and how long it waited and how much it allocated. Reports of a recording, of the history, and of the history after
a restart must agree with it, in every format."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import jmc  # noqa: E402
from kindling import BUILD, Daemon, Jvm, java_home, wait_for  # noqa: E402

MAJOR = "17"
MONITORS = "events: { cpu: {}, lock: { monitors: always } }\n"
LOCKS = {"enter": "java.lang.Object", "park": "java.util.concurrent.locks.ReentrantLock"}


class Known:
    """The values that the program prints about itself."""

    def __init__(self, line):
        words = line.split()
        n = [int(w) for w in words[1:]]
        self.enters, self.enter_ns, self.parks, self.park_ns, self.bytes = n


def go(jvm):
    jvm.process.stdin.write("\n")
    jvm.process.stdin.flush()
    return Known(jvm.process.stdout.readline())


def ask(daemon, path, method="GET"):
    return daemon.ask(path, method)


def sums(profile, waiter):
    """{class on top: (samples, weight)} of the stacks with @waiter in them."""
    result = {}
    for _, leaf, samples, weight in profile["rows"]:
        frames, node = [], leaf
        while node:
            node, frame = profile["nodes"][node]
            frames.append(profile["frames"][frame])
        if not any(waiter in f["name"] for f in frames):
            continue
        top = frames[0]["name"] if frames[0]["kind"] == "class" else ""
        n, w = result.get(top, (0, 0))
        result[top] = (n + samples, w + weight)
    return result


def totals(profile):
    return sum(r[2] for r in profile["rows"]), sum(r[3] for r in profile["rows"])


class WithDaemon(unittest.TestCase):
    """Each test has a JVM of its own: what one did is in the history of the other."""

    def setUp(self):
        self.daemon = Daemon(MONITORS)
        self.addCleanup(self.daemon.__exit__)
        self.jvm = Jvm(MAJOR, "EventsKnown")
        self.addCleanup(self.jvm.__exit__)
        self.daemon.wait_state(self.jvm.pid, "streaming")
        self.wait_events({"cpu", "lock"})

    def wait_events(self, events):
        wait_for("events %s" % events, lambda: set(self.daemon.target(self.jvm.pid)["events"]) == events)

    def path(self, name):
        return os.path.join(self.daemon.dir, name)

    def waits_match(self, profile, known):
        found = sums(profile, "EventsKnown.waitFor")
        for kind, n, ns in (("enter", known.enters, known.enter_ns), ("park", known.parks, known.park_ns)):
            samples, weight = found.get(LOCKS[kind], (0, 0))
            print("  %s: %d of %d, %.3f of %.3f ms" % (kind, samples, n, weight / 1e6, ns / 1e6))
            # on a busy machine a thread may come late and wait for less than the threshold; one that wakes and finds
            # the lock taken parks once more
            self.assertTrue(n - 2 <= samples <= n + 2, (kind, samples, n))
            # between the end of a wait and reading its clock the program may have to wait for a CPU
            self.assertLess(abs(weight - ns), max(0.05 * ns, 2e6))

    def record(self, types, more="", threshold_ns=None):
        """The program's own values, and the number of a recording of that time. @threshold_ns: that of the recording."""
        made = json.loads(ask(self.daemon, "/v1/recordings?target=%d&seconds=60&type=%s%s" % (self.jvm.pid, types, more), "POST"))
        self.wait_events({"cpu", "lock"} | set(types.split(",")))
        if threshold_ns:
            wait_for("the threshold of the recording", lambda: self.threshold() == threshold_ns)
        known = go(self.jvm)
        self.daemon.wait_arrived(self.jvm.pid)
        ask(self.daemon, "/v1/recordings/%d" % made["id"], "DELETE")
        return known, "/v1/recordings/%d/profile" % made["id"]

    def test_a_recording_has_what_happened_in_every_format(self):
        known, path = self.record("lock,alloc")
        self.wait_events({"cpu", "lock"})  # and allocations no longer
        lock = json.loads(ask(self.daemon, path + "?type=lock"))
        alloc = json.loads(ask(self.daemon, path + "?type=alloc"))
        self.waits_match(lock, known)
        self.assertEqual((lock["event"], lock["unit"], lock["min_wait_ns"]), ("lock", "ns", 1000000))
        samples, allocated = sums(alloc, "EventsKnown.allocate").get("byte[]", (0, 0))
        print("  alloc: %d samples, %.1f of %.1f MB" % (samples, allocated / 1e6, known.bytes / 1e6))
        self.assertLess(abs(allocated - known.bytes), 0.2 * known.bytes)  # 512 samples: 4.4 % is one sigma
        self.idle_is_left_out(lock, path)
        self.pprof_agrees(path, totals(lock), totals(alloc))
        self.jfr_agrees(path, totals(lock), totals(alloc))
        self.assertIn("one type of event", ask(self.daemon, path + "?format=html").decode())
        self.assertIn("the recording has only lock,alloc", ask(self.daemon, path + "?format=txt&type=cpu").decode())

    def idle_is_left_out(self, lock, path):
        idle = json.loads(ask(self.daemon, path + "?type=lock&idle=1"))
        self.assertFalse(any("getTask" in f["name"] for f in lock["frames"]))
        self.assertTrue(any("getTask" in f["name"] for f in idle["frames"]))
        left_out = int(re.search(r"(\d+) waits? of threads that were idle", lock["absent"]).group(1))
        self.assertEqual(totals(lock)[0] + left_out, totals(idle)[0])
        self.assertEqual(totals(idle)[0], idle["losses"]["delivered"])
        self.assertEqual(idle["losses"]["taken"], idle["losses"]["delivered"] + idle["losses"]["dropped"])

    def pprof_agrees(self, path, lock, alloc):
        with open(self.path("x.pb.gz"), "wb") as f:
            f.write(ask(self.daemon, path + "?format=pb.gz"))
        go_tool = "/usr/local/go/bin/go" if os.path.exists("/usr/local/go/bin/go") else "go"
        try:
            raw = subprocess.run([go_tool, "tool", "pprof", "-raw", self.path("x.pb.gz")], capture_output=True, text=True).stdout
        except FileNotFoundError:
            return  # not every machine has a reader of pprof; unit.test_report_events checks the bytes
        self.assertIn("contentions/count delay/nanoseconds[dflt] alloc_objects/count alloc_space/bytes", raw)
        rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+): ", raw, re.M)
        self.assertEqual(tuple(sum(int(r[i]) for r in rows) for i in range(4)), lock + alloc)

    def jfr_agrees(self, path, lock, alloc):
        with open(self.path("x.jfr"), "wb") as f:
            f.write(ask(self.daemon, path + "?format=jfr"))
        out = subprocess.run([java_home(MAJOR) + "/bin/jfr", "summary", self.path("x.jfr")], capture_output=True, text=True).stdout
        count = {m[0]: int(m[1]) for m in re.findall(r"^ *([a-zA-Z.]+) +(\d+) +\d+ *$", out, re.M)}
        self.assertEqual(sum(count[k] for k in ("jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark")), lock[0], out)
        self.assertEqual(count["jdk.ObjectAllocationSample"], alloc[0])
        self.mission_control_agrees(lock, alloc)

    def mission_control_agrees(self, lock, alloc):
        """In the JDK's events, whose number is right, and in ours, whose weights are right."""
        got = jmc.sums(self.path("x.jfr"))
        waits = ("jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark")
        self.assertEqual(sum(got.get(("COUNT", k, ""), 0) for k in waits), lock[0])
        self.assertEqual((got["SUM", "kindling.WaitTime", "waits"], got["SUM", "kindling.WaitTime", "waitTime"]), lock)
        self.assertEqual((got["SUM", "kindling.Allocated", "samples"], got["SUM", "kindling.Allocated", "bytes"]), alloc)
        self.assertEqual(got["COUNT", "jdk.ObjectAllocationSample", ""], alloc[0])
        # all events of one stack get the same length: less than one event is lost by rounding
        self.assertLess(abs(sum(got.get(("SUM", k, "duration"), 0) for k in waits) - lock[1]), lock[0])
        self.assertGreater(got["METHOD", "jdk.ThreadPark", "EventsKnown.waitForLock"], 0)

    def threshold(self):
        return json.loads(self.daemon.cli("locks", "--json", str(self.jvm.pid)).stdout)["targets"][0]["min_wait_ns"]

    def test_a_recording_may_have_a_threshold_of_its_own(self):
        before = self.threshold()
        for ms in (1000, 0.1):
            known, path = self.record("lock", "&min_wait=%dus" % (ms * 1000), threshold_ns=int(ms * 1e6))
            profile = json.loads(ask(self.daemon, path + "?format=json"))
            if ms > 100:  # all waits are shorter
                self.assertEqual(sums(profile, "waitFor"), {})
                self.assertGreaterEqual(profile["short_waits"], known.enters + known.parks)
            else:
                # the longest threshold that was in force: until the agent read the START it was that of the settings
                self.assertIn(profile["min_wait_ns"], (ms * 1e6, before))
                self.assertEqual(sums(profile, "waitForMonitor")[LOCKS["enter"]][0], known.enters)
            wait_for("the threshold of the settings again", lambda: self.threshold() == before)
        done = self.daemon.cli("record", str(self.jvm.pid), "-e", "lock", "--min-wait", "100us", "-d", "1s", "-o", self.path("w.html"))
        self.assertEqual(done.returncode, 0)
        for words in (("-e", "lock", "--min-wait", "5"), ("--min-wait", "5ms"), ("-e", "lock", "--min-wait", "2m")):
            done = self.daemon.cli("record", str(self.jvm.pid), *words, "-o", "-", check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("--min-wait", done.stderr)

    def test_the_history_has_it_too_and_after_a_restart(self):
        begin = time.time_ns()
        known = go(self.jvm)
        self.daemon.wait_arrived(self.jvm.pid)
        end = time.time_ns()

        def history():
            return json.loads(ask(self.daemon, "/v1/profile?type=lock&from=%d&to=%d&target=%d" % (begin, end, self.jvm.pid)))
        windows = self.daemon.status()["store"]["windows"]
        self.waits_match(history(), known)
        wait_for("a window on disk", lambda: self.daemon.status()["store"]["windows"] > windows)
        self.daemon.stop()
        self.daemon.start()
        self.daemon.wait_state(self.jvm.pid, "streaming")
        self.waits_match(history(), known)

    def test_the_commands(self):
        out = self.path("both.html")
        done = self.daemon.cli("record", str(self.jvm.pid), "-d", "1s", "-e", "cpu,lock", "-o", out)
        self.assertIn("both.cpu.html: ", done.stderr)
        self.assertRegex(done.stderr, r"both.lock.html: \d+ waits, 0 dropped")
        self.assertTrue(os.path.exists(self.path("both.lock.html")))
        self.assertFalse(os.path.exists(out))
        done = self.daemon.cli("record", str(self.jvm.pid), "-e", "cpu,lock", "-o", "-", check=False)
        self.assertEqual((done.returncode, "one type of event" in done.stderr), (2, True))
        done = self.daemon.cli("record", str(self.jvm.pid), "-e", "wall", "-o", self.path("x.jfr"), check=False)
        self.assertEqual((done.returncode, "wall-clock" in done.stderr), (2, True))
        go(self.jvm)
        text = wait_for("waits", lambda: (lambda t: t if "waitFor" in t else None)(
            self.daemon.cli("report", str(self.jvm.pid), "--type", "lock", "-o", "-").stdout))
        self.assertRegex(text, r"s of waiting, \d+ waits of 1 ms and more, mean wait [0-9.]+ ms\nwaits: (\d+) taken = \1 delivered \+ 0 dropped")
        top = wait_for("waits in top", lambda: (lambda t: t if "ReentrantLock" in t else None)(
            self.daemon.cli("top", "--once", "--event", "lock", "-n", "30", str(self.jvm.pid)).stdout))
        self.assertRegex(top, r"s/s of waiting, [1-9]\d* samples\n +self% +total%  method")


class Alone(unittest.TestCase):
    def test_without_a_daemon(self):
        with Jvm(MAJOR, "EventsKnown") as jvm:
            out = "/tmp/kindling-test-%d.txt" % os.getpid()
            record = subprocess.Popen([BUILD + "/bin/kindling", "--socket", "/nowhere", "record", str(jvm.pid), "-d", "4s",
                                       "-e", "lock", "-o", out], stderr=subprocess.PIPE, text=True)
            while record.poll() is None:  # the first waits may be over before the agent is there
                go(jvm)
            err = record.communicate(timeout=60)[1]
            self.assertEqual(record.returncode, 0, err)
            with open(out) as f:
                self.assertIn("EventsKnown.waitForLock", f.read())
            os.unlink(out)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
