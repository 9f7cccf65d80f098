"""The reports of mounts and unmounts, on and off under tens of thousands of parks a second: unmounted_storm.py MAJOR
[--cycles N] [--seconds N] [--all].

Virtual threads begin, park in many ways and end, all the time, beside one collection after the other, while the agent's
session begins and ends N times, while agents come and go, and while one is there for long. The JVM must print nothing and
end well, every thread must end with the right sum, the accounts must be exact, and no entry may be left of threads that
have ended: the table would become full. --all: every collector.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import jdks  # noqa: E402
from kindling import BUILD, classes, java_home, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

READER = os.path.join(BUILD, "tests", "agent_reader")
LIBRARY = os.path.realpath(os.path.join(BUILD, "lib", "libkindling.so"))
OURS = re.compile(r"READY$|STORM \d+ \d+$|END$")
MIN_NS = 1_000_000
COLLECTORS = ["-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseShenandoahGC"]
MADE_FOR = {"21": ["-XX:+UseZGC -XX:+ZGenerational"]}


class Storm:
    def __init__(self, home, directory, flags, threads):
        self.path = os.path.join(directory, "said")
        with open(self.path, "w") as out:
            self.jvm = subprocess.Popen(
                [*jdks.command(home, os.path.realpath(BUILD), os.path.dirname(LIBRARY)), *flags, "-Xmx400m", "-cp", classes(),
                 "UnmountedStorm", str(threads), "gc"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, cwd=directory)
        self.pid, self.asked = self.jvm.pid, 0
        wait_for("READY", lambda: "READY" in self.said() or self.jvm.poll() is not None, 60)

    def said(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def counts(self):
        """(parks made so far, threads that have ended)"""
        self.asked += 1
        self.jvm.stdin.write(b"\n")
        self.jvm.stdin.flush()
        wait_for("an answer", lambda: len(re.findall(r"^STORM .*\n", self.said(), re.M)) == self.asked)
        return tuple(map(int, re.findall(r"^STORM (\d+) (\d+)", self.said(), re.M)[-1]))

    def end(self):
        self.jvm.stdin.close()
        self.jvm.wait(timeout=120)
        lines = self.said().splitlines()
        foreign = {line for line in lines if not OURS.match(line)}
        check(lines and lines[-1] == "END" and self.jvm.returncode == 0, "every thread ended with its sum: %s" % lines[-1:])
        check(not foreign, "the JVM says nothing: %s" % sorted(foreign)[:3])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.jvm.poll() is None:
            self.jvm.kill()
        self.jvm.wait()


def read(storm, *options):
    """(accounts exact, {counter: value}) of a session."""
    text = subprocess.run([READER, "-e", "cpu,lock,offcpu", "-M", "always", "-V", str(MIN_NS), "-l", LIBRARY, *options, str(storm.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if text.returncode != 0:
        print("  " + "\n  ".join(text.stdout.splitlines()[:8]))
    return text.returncode == 0, {k: int(v) for k, v in re.findall(r"([\w.]+)=(\d+)", text.stdout)}


def collectors(home, major):
    for one in COLLECTORS:
        for flags in [one] + [f for f in MADE_FOR.get(major, []) if f.startswith(one)]:
            if subprocess.run([home + "/bin/java", *flags.split(), "-version"], stderr=subprocess.DEVNULL).returncode == 0:
                yield flags.split()


def ride(home, directory, flags, a):
    print("%s" % " ".join(flags))
    with Storm(home, directory, flags, a.threads) as storm:
        begin, before = time.monotonic(), storm.counts()
        exact, _ = read(storm, "-d", "0.2", "-c", str(a.cycles))
        check(exact, "%d times off and on in %.1f s" % (a.cycles, time.monotonic() - begin))
        for _ in range(2):
            exact, counts = read(storm, "-d", "2")
            met = counts.get("short_unmounted", 0) + counts.get("offcpu.taken", 0)
            check(exact and met > 100, "attached again: %d waits met" % met)
        exact, counts = read(storm, "-d", str(a.seconds))
        check(exact and counts.get("offcpu.taken", 0) > 100 and not counts.get("unseen_unmounted"),
              "%d waits recorded, %d counted, %d unseen" % tuple(counts.get(k, 0) for k in ("offcpu.taken", "short_unmounted", "unseen_unmounted")))
        parks, ended = (now - then for now, then in zip(storm.counts(), before))
        took = time.monotonic() - begin
        check(ended > 50, "%d parks, %d threads ended, in %.0f s" % (parks, ended, took))
        storm.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--cycles", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--all", action="store_true")
    a = parser.parse_args()
    home = java_home(a.major)
    with tempfile.TemporaryDirectory() as directory:
        for flags in list(collectors(home, a.major))[:None if a.all else 2]:
            ride(home, directory, flags, a)
        ride(home, directory, ["-Xcheck:jni"], argparse.Namespace(**{**vars(a), "cycles": 5, "threads": 20}))
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
