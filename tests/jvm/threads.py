"""Names and states of threads in a program whose threads do what their names say: threads.py MAJOR. Names are
complete and known at once; a rename and an end between two passes; nothing is sent twice while nothing changes;
states and CPU times; virtual threads by container and state (21+); the cost of 5,000 threads."""
import argparse
import collections
import concurrent.futures
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
LONG = "-thread-with-a-name-that-the-kernel-would-cut-\u00e9\u4e2d"
STATES = {"runnable": "runnable", "blocked": "blocked", "waiting": "waiting", "parked": "waiting", "timed": "timed_waiting",
          "holder": "timed_waiting"}
MANY = 5000
SECONDS = 14


class Known:
    """Runs the program and reads for some seconds; threads change in the middle."""

    def __init__(self, home, directory, many, virtual, *options):
        out = os.path.join(directory, "said")
        with open(out, "w") as f:
            jvm = subprocess.Popen([*jdks.command(home, os.path.realpath(BUILD), os.path.dirname(LIBRARY)), "-Xmx300m", "-cp",
                                    classes(), "ThreadsKnown", str(many), *([str(virtual)] if virtual else [])],
                                   stdin=subprocess.PIPE, stdout=f, stderr=subprocess.STDOUT, cwd=directory)
        try:
            wait_for("READY", lambda: "READY" in open(out).read(), 60)
            path = os.path.join(directory, "read")
            with open(path, "w") as f:
                reader = subprocess.Popen([READER, "-v", "-e", "lock", "-l", LIBRARY, "-d", str(SECONDS), *options, str(jvm.pid)],
                                          stdout=f, stderr=subprocess.STDOUT)
            wait_for("lock events", lambda: " events 2 " in open(path, errors="replace").read())
            time.sleep(2)  # the reader reads for a while before the threads change, and after it
            jvm.stdin.write(b"\n")
            jvm.stdin.flush()
            self.exact = reader.wait(timeout=120) == 0
            self.text = open(path, errors="replace").read()
        finally:
            jvm.kill()
            jvm.wait()
        self.names, self.ended, self.reported = {}, set(), collections.Counter()
        self.states, self.cpu, self.virtual = {}, collections.defaultdict(list), collections.defaultdict(collections.Counter)
        for line in self.text.splitlines():
            self.read(line)

    def read(self, line):
        m = re.match(r"THREAD (\d+) flags (\d+) java \d+ (.*)", line)
        if m and int(m.group(2)) & 1:
            self.ended.add(self.names.get(m.group(1)))
        elif m:
            self.names[m.group(1)] = m.group(3)
            self.reported[m.group(3)] += 1
        m = re.match(r"STATE \d+ tid (\d+) (\S+) cpu (\d+) ns", line)
        if m:
            name = self.names.get(m.group(1), "?")
            self.states[name] = m.group(2)
            self.cpu[name].append(int(m.group(3)))
        m = re.match(r"VIRTUAL (\d+) in \[(.*?)\] (\S+) on \[(.*?)\]: (\d+), mounted", line)
        if m:
            self.virtual[m.group(1)][(m.group(2).split("@")[0], m.group(3), m.group(4))] += int(m.group(5))

    def counter(self, name):
        return int(re.search(r" %s=(\d+)" % name, self.text).group(1))


def known(home, directory, virtual):
    k = Known(home, directory, 0, virtual, "-S")
    check(k.exact, "accounts exact: %s" % [line for line in k.text.splitlines() if "WRONG" in line][:3])
    wrong = {name: k.states.get(name + LONG) for name, state in STATES.items() if k.states.get(name + LONG) != state}
    check(not wrong, "full names and states: %s" % wrong)
    cpu = k.cpu["runnable" + LONG]
    check(len(cpu) >= 3 and cpu[-1] > cpu[0], "the CPU time of a running thread grows: %s" % cpu)
    check(len(k.cpu["parked" + LONG]) == 1, "a thread that does nothing is reported once: %s" % k.cpu["parked" + LONG])
    check(k.reported["after" + LONG] == 1 and k.reported["before" + LONG] == 1, "a rename is reported once")
    check("ending" + LONG in k.ended, "an end is reported")
    twice = {name: n for name, n in k.reported.items() if n > 1 and name.endswith(LONG)}
    check(not twice, "no name is reported twice: %s" % twice)
    if not virtual: # from JDK 24 on the class initialiser starts such a thread
        begun = [name for name in k.reported if name.startswith("VirtualThread")]
        check(not begun, "a pass initialises no class of the JDK: %s" % begun)
    else:
        wanted = {("", "waiting", "java/util/concurrent/CountDownLatch"): virtual,
                  ("java.util.concurrent.ThreadPerTaskExecutor", "timed_waiting", ""): virtual // 2}
        looks = list(k.virtual.values())
        # before JDK 22 a state does not show whether the wait has a time limit
        looks = [collections.Counter({(c, "timed_waiting" if c and s == "waiting" else s, o): n for (c, s, o), n in look.items()})
                 for look in looks]
        check(len(looks) >= 3 and all(look == wanted for look in looks), "virtual threads: %s" % looks[:2])


def cost(home, directory):
    """CPU time of the agent for 5,000 additional threads while nothing changes."""
    # at the same time, because both wait most of the time and only CPU time counts
    with concurrent.futures.ThreadPoolExecutor() as both:
        few, many = both.map(lambda n: Known(home, tempfile.mkdtemp(dir=directory), n, 0), (0, MANY))
    named = sum(1 for name in many.reported if name.startswith("many-"))
    check(many.exact and named == MANY, "%d of %d threads have their names" % (named, MANY))
    percent = (many.counter("agent_cpu_ns") - few.counter("agent_cpu_ns")) / SECONDS / 1e9 * 100
    check(percent < 3, "5,000 threads, reported at the beginning, cost %.2f %% of a CPU over %d s" % (percent, SECONDS))
    check(many.counter("agent_bytes") < few.counter("agent_bytes") + (512 << 10), "and %d KiB of memory" % (
        (many.counter("agent_bytes") - few.counter("agent_bytes")) >> 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--no-cost", action="store_true", help="names and states only")
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp()
    try:
        # at the same time, because both wait most of the time
        with concurrent.futures.ThreadPoolExecutor() as both:
            parts = [both.submit(known, home, tempfile.mkdtemp(dir=directory), virtual)
                     for virtual in (0, 1000)[:1 + (int(args.major.split("-")[0]) >= 21)]]
        for part in parts:
            part.result()
        if not args.no_cost:
            cost(home, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
