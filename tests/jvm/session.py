"""A session of the agent without a daemon: runs agent_reader and parses its output."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, wait_for  # noqa: E402

READER = os.path.join(BUILD, "tests", "agent_reader")
LIBRARY = os.path.realpath(os.path.join(BUILD, "lib", "libkindling.so"))
ALLOC = re.compile(r"ALLOC (\d+) tid (\d+) (\S+) size (\d+) weight (\d+) stack (.*)$")
WALL = re.compile(r"WALL (\d+) tid (\d+) (\d+) ns stack (.*)$")
THREAD = re.compile(r"THREAD (\d+) flags (\d+) java (\d+) (.*)$")
ENDED = 1


def methods(stack):
    """a/B.m:12 < ..." -> ["a/B.m", ...], leaf first; other frames unchanged."""
    return [re.sub(r":-?\d+$", "", frame) for frame in stack.split(" < ")] if stack else []


class Session:
    """Starts when it is constructed; its samples are there after end()."""

    def __init__(self, pid, directory, events, *options, begun=r"^HELLO "):
        self.path = os.path.join(directory, "events")
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([READER, "-L", "-e", events, "-l", LIBRARY, "-d", "900", *options, str(pid)],
                                            stdout=out, stderr=subprocess.STDOUT)
        wait_for("HELLO", lambda: re.search(begun, self.read(), re.M) or self.process.poll() is not None)
        time.sleep(0.5)  # START's events come on after HELLO; one that is refused never does, so there is no condition to wait for

    def read(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def end(self):
        self.process.terminate()
        self.status = self.process.wait(timeout=60)
        self.text = self.read()
        lines = self.text.splitlines()
        self.names = {}
        for match in filter(None, map(THREAD.match, lines)):
            if not int(match[2]) & ENDED:
                self.names[int(match[1])] = match[4]  # the last occurrence is the full name
        self.allocs = [(self.name(m[2]), m[3], int(m[4]), int(m[5]), methods(m[6])) for m in filter(None, map(ALLOC.match, lines))]
        self.walls = [(int(m[1]), self.name(m[2]), int(m[3]), methods(m[4])) for m in filter(None, map(WALL.match, lines))]
        self.notes = re.findall(r"^NOTE \d+ (.*)$", self.text, re.M)
        self.wrong = [line for line in lines if line.startswith(("WRONG", "FAULT", "no session"))]
        return self

    def name(self, tid):
        return self.names.get(int(tid), tid)
