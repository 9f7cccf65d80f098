"""Repeated stops and starts, attaches and detaches, births, deaths of daemon and injector. test_cycles.py MAJOR
[--cycles N] [--attaches N] [--births N] [--kills N]. Needs root."""
import argparse
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, classes, java_home, thread_names, timers, wait_for  # noqa: E402

READER = [BUILD + "/tests/agent_reader", "-l", BUILD + "/lib/libkindling.so"]
PARTS = 6  # parts into which the attaches are divided: what grows with each attach grows in all parts, what happens once (an arena, compiled code) in one
RSS_KIB_PER_ATTACH = 4  # KiB for each attach: 3 on 25, in glibc's arena of the attach listener, which HotSpot keeps of each load; the agent has no malloc
# musl maps each new file anew (injector/copies.c), up to a number of copies
MUSL_KIB_PER_ATTACH, MUSL_MAPPINGS_PER_ATTACH, MUSL_COPIES = 320, 10, 64
QUIET = ("-Xmx32m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch")  # the heap is excluded, as it may grow
# a JVM that begins looks at the files of others in /tmp/hsperfdata_*, and locks them; one that begins at the same time says so
LOCKED = r"(?m)^\[.*\]\[warning\]\[perf,memops\] Cannot use file /tmp/hsperfdata_.* because it is locked by another process .*\n"
ARGS = None


EVENTS = "cpu,lock,alloc,wall"


class Size:
    """Counts of everything in a process that could grow."""

    def __init__(self, pid):
        with open("/proc/%d/status" % pid) as f:
            self.rss_kib = int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))
        with open("/proc/%d/maps" % pid) as f:
            self.mappings = len(f.readlines())
        self.files = len(os.listdir("/proc/%d/fd" % pid))
        self.threads = len(os.listdir("/proc/%d/task" % pid))

    def __str__(self):
        return "%d KiB anonymous, %d mappings, %d descriptors, %d threads" % (
            self.rss_kib, self.mappings, self.files, self.threads)


def left_of(pid):
    """Files of attempts on this JVM."""
    return glob.glob("/tmp/kindling/*/*-%d-*" % pid) + glob.glob("/tmp/.attach_pid%d" % pid)


class Cycles(unittest.TestCase):
    def grows_not(self, before, after, rss_kib, what, mappings=0):
        print("JDK %s: %s: %s -> %s" % (ARGS.major, what, before, after))
        self.assertLessEqual(after.rss_kib - before.rss_kib, rss_kib)
        # without the JVM's own heap regions and idle threads, which come and go
        self.assertLessEqual(after.mappings, before.mappings + mappings + 8)
        self.assertLessEqual(after.files, before.files)
        self.assertLessEqual(after.threads, before.threads + 2)

    def read(self, pid, *options):
        done = subprocess.run([*READER, *options, str(pid)], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        return done.stdout

    def test_stopped_and_started_thousands_of_times(self):
        with Jvm(ARGS.major, "Idle", options=QUIET) as jvm:
            def size():  # the reader gets the last frame before the agent's thread has ended
                wait_for("the agent's thread to be gone", lambda: "kindling" not in thread_names(jvm.pid))
                return Size(jvm.pid)
            # each start looks up classes: code that runs so often is compiled once by the JVM
            self.read(jvm.pid, "-e", EVENTS, "-c", "10000", "-d", "0.5")
            before = size()
            begin = time.monotonic()
            self.read(jvm.pid, "-e", EVENTS, "-c", str(ARGS.cycles), "-d", "0.5")
            print("%d cycles in %.1f s" % (ARGS.cycles, time.monotonic() - begin))
            self.grows_not(before, size(), 512, "stop and start")
            self.assertEqual(timers(jvm.pid), 0)

    def test_attached_and_detached_hundreds_of_times(self):
        with Jvm(ARGS.major, "Idle", options=QUIET) as jvm, Daemon() as daemon:
            def once():
                daemon.cli("detach", str(jvm.pid))
                daemon.wait_state(jvm.pid, "detached")
                daemon.cli("attach", str(jvm.pid))
                daemon.wait_state(jvm.pid, "streaming")

            musl = ARGS.major.endswith("-musl")
            attaches = min(ARGS.attaches, 40) if musl else ARGS.attaches
            daemon.wait_state(jvm.pid, "streaming")
            for _ in range(10):
                once()
            sizes = [Size(jvm.pid)]
            for n in range(attaches):
                once()
                if (n + 1) * PARTS // attaches > n * PARTS // attaches:
                    sizes.append(Size(jvm.pid))
            each_kib = MUSL_KIB_PER_ATTACH if musl else RSS_KIB_PER_ATTACH
            self.grows_not(sizes[0], sizes[-1], 512 + attaches * each_kib,
                           "%d times attached" % attaches, attaches * MUSL_MAPPINGS_PER_ATTACH if musl else 0)
            grown = [b.rss_kib - a.rss_kib for a, b in zip(sizes, sizes[1:])]
            print("KiB in each %d-th of them: %s" % (PARTS, grown))
            # the second smallest: other parts may include an arena's growth, compiled code, or a table that doubles
            self.assertLessEqual(sorted(grown)[1], (each_kib + 1) * attaches / PARTS)
            if musl:
                for _ in range(MUSL_COPIES - attaches - 11):
                    once()
            daemon.cli("detach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "detached")
            if musl:
                self.assertRegex(daemon.cli("attach", str(jvm.pid), check=False).stderr,
                                 "%d copies of the agent from earlier attaches" % MUSL_COPIES)
            self.assertEqual(left_of(jvm.pid), [])
            self.assertEqual(jvm.process.communicate("x\n", timeout=60), ("END\n", ""))

    def test_born_while_the_daemon_attaches_at_once(self):
        """No JVM may die of a signal that came too early, or print anything unusual."""
        java = [java_home(ARGS.major) + "/bin/java", "-Xmx32m", "-XX:+UseSerialGC", "-cp", classes(), "Born"]
        seen = bad = 0
        with Daemon() as daemon:
            for n in range(0, ARGS.births, 4):
                born = [subprocess.Popen([*java, str(random.randrange(30, 600))], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True) for _ in range(4)]
                for jvm in born:
                    out, err = jvm.communicate(timeout=60)
                    out = re.sub(LOCKED, "", out)
                    if (jvm.returncode, out, err) != (0, "READY\nEND\n", ""):
                        bad += 1
                        print("  pid %d: %d %r %r" % (jvm.pid, jvm.returncode, out[:400], err[:400]))
                        print("".join("    " + line + "\n" for line in daemon.read_log().splitlines()
                                      if "pid=%d " % jvm.pid in line))
            seen = sum(t["samples"]["delivered"] > 0 for t in daemon.status()["targets"])
        print("JDK %s: %d births, %d not as alone; at the end %d in status with samples" % (
            ARGS.major, ARGS.births, bad, seen))
        self.assertEqual(bad, 0)
        self.assertGreater(seen, 0)

    def test_daemon_and_injector_killed_at_any_moment(self):
        with Jvm(ARGS.major) as jvm:
            kinds = {"daemon": 0, "injector": 0}
            with Daemon() as daemon:
                daemon.wait_state(jvm.pid, "streaming")
                for n in range(ARGS.kills):
                    daemon.cli("detach", str(jvm.pid))
                    daemon.wait_state(jvm.pid, "detached")
                    attach = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "attach", str(jvm.pid)],
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(random.random() * 0.12)
                    killed = subprocess.run(["pkill", "-KILL", "-P", str(daemon.process.pid), "kindling-inject"],
                                            stdout=subprocess.DEVNULL).returncode == 0
                    kinds["injector"] += killed
                    attach.wait()
                    if n % 2:
                        daemon.kill()
                        daemon.start()
                        kinds["daemon"] += 1
                    self.assertTrue(jvm.alive())
                    wait_for("it streams or says why", lambda: (daemon.target(jvm.pid) or {}).get("state") in (
                        "streaming", "detached", "failed"))
                    daemon.cli("attach", str(jvm.pid), check=False)
                    daemon.wait_state(jvm.pid, "streaming")
                self.assertEqual(daemon.stop(), 0)
            print("JDK %s: killed %s" % (ARGS.major, kinds))
            self.assertEqual(left_of(jvm.pid), [])
            wait_for("the agent's thread to be gone", lambda: "kindling" not in thread_names(jvm.pid))
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("major")
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--attaches", type=int, default=60)
    parser.add_argument("--births", type=int, default=80)
    parser.add_argument("--kills", type=int, default=20)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
