"""The native method of Unsafe.park, replaced by ours and restored, under hundreds of thousands of parks a second:
parks.py MAJOR [--cycles N]. N times STOP and START; a thread that parks before the change and wakes after it;
interrupts; two libraries of the agent in one JVM, loaded and detached in both orders; -Xcheck:jni. The JVM must
print nothing, no thread may hang, and each agent that is loaded must see parks."""
import argparse
import os
import re
import shutil
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


class Storm:
    def __init__(self, home, directory, *flags, pairs=2):
        self.path = os.path.join(directory, "said")
        with open(self.path, "w") as out:
            self.jvm = subprocess.Popen(
                [*jdks.command(home, os.path.realpath(BUILD), os.path.dirname(LIBRARY)), *flags, "-Xmx200m", "-cp", classes(),
                 "ParkStorm", str(pairs)], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, cwd=directory)
        self.pid = self.jvm.pid
        self.asked = 0
        wait_for("READY", lambda: "READY" in self.said(), 60)

    def said(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def parks(self):
        """The number of parks so far; checks that an interrupt worked meanwhile."""
        self.asked += 1
        self.jvm.stdin.write(b"\n")
        self.jvm.stdin.flush()
        wait_for("an answer", lambda: len(re.findall(r"^STORM .*\n", self.said(), re.M)) == self.asked)
        return int(re.findall(r"^STORM (\d+)", self.said(), re.M)[-1])

    def end(self, expected=()):
        self.jvm.stdin.close()
        self.jvm.wait(timeout=60)
        lines = self.said().splitlines()
        foreign = {line for line in lines if not OURS.match(line)} - set(expected)
        check(lines and lines[-1] == "END" and self.jvm.returncode == 0, "everybody woke up, no interrupt is lost: %s" % lines[-1:])
        check(not foreign, "the JVM says nothing: %s" % sorted(foreign)[:3])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.jvm.poll() is None:
            self.jvm.kill()
        self.jvm.wait()


def read(storm, library, *options, wait=True):
    reader = subprocess.Popen([READER, "-e", "lock", "-l", library, *options, str(storm.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return seen(reader) if wait else reader


def seen(reader):
    """(are the accounts exact, number of parks) at the end of a reader."""
    text = reader.communicate(timeout=600)[0]
    short, long = re.search(r" short_waits=(\d+)", text), re.search(r"lock\.taken=(\d+)", text)
    if reader.returncode != 0:
        print("  " + "\n  ".join(text.splitlines()[:8]))
    return reader.returncode == 0, (int(short.group(1)) if short else 0) + (int(long.group(1)) if long else 0)


def cycles(storm, n):
    before, begin = storm.parks(), time.monotonic()
    exact, _ = read(storm, LIBRARY, "-d", "0.1", "-c", str(n))
    took = time.monotonic() - begin
    parks = storm.parks() - before
    check(exact, "%d times off and on in %.1f s under %d parks a second" % (n, took, parks / took))
    for _ in range(3):
        exact, met = read(storm, LIBRARY, "-d", "0.5")
        check(exact and met > 1000, "attached again: %d parks met" % met)
    time.sleep(0.2)


def two(storm, directory):
    """Two versions, detached in both orders; then each alone."""
    other = os.path.join(directory, "libkindling-other.so")
    shutil.copy(LIBRARY, other)
    for first, second, label in ((("-d", "4"), ("-d", "1.5"), "the later one goes first"),
                                 (("-d", "2"), ("-d", "4"), "the earlier one goes first"),
                                 (("-d", "2"), ("-d", "4"), "once more")):
        a = read(storm, LIBRARY, *first, wait=False)
        time.sleep(1)
        b = read(storm, other, *second, wait=False)
        results = [seen(a), seen(b)]
        check(all(exact and met > 1000 for exact, met in results), "two agents, %s: %s" % (label, [m for _, m in results]))
    for library in (other, LIBRARY):
        exact, met = read(storm, library, "-d", "0.5")
        check(exact and met > 1000, "%s alone again: %d parks met" % (os.path.basename(library), met))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--cycles", type=int, default=200)
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp()
    try:
        with Storm(home, directory) as storm:
            cycles(storm, args.cycles)
            two(storm, directory)
            storm.end()
        # JDK 8's own launcher does not check exceptions
        launcher = ["WARNING in native method: JNI call made without checking exceptions when required to from "
                    "CallStaticObjectMethod"]
        with Storm(home, directory, "-Xcheck:jni", pairs=1) as storm:
            cycles(storm, 5)
            storm.end(launcher)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
