"""Waits of virtual threads without a carrier against a program that knows its own:
unmounted.py MAJOR [--rounds N] [--gc ZGC].

UnmountedKnown's virtual threads park, sleep, and wait for locks, sockets and monitors, unpinned where this JDK can do
that, and tell how long each took by their own clock. With `events.offcpu.virtual: true`, `kindling tail --event offcpu
--json` must tell of each: the reason, the duration, the whole Java stack, what it parked for. A wait in Java is a
little longer than the time without a carrier, and a thread may wait for a CPU before it reads its clock. A JVM
without virtual threads has a note.
"""
import argparse
import bisect
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
import jdks  # noqa: E402
from kindling import BUILD, Daemon, Jvm, classes, java_home, skip, wait_for  # noqa: E402
from offcpu import Tail  # noqa: E402
from walker import check, failures  # noqa: E402

PAUSE_MS = 200
REASONS = {"u-park": "park", "u-sleep": "sleep", "u-semaphore": "park", "u-condition": "park", "u-lock": "park",
           "u-socket": "socket", "u-accept": "accept", "u-channel": "socket", "u-wait": "wait", "u-monitor": "lock",
           "u-starts": "park"}
# what a thread may also do within its wait: hand over to the thread that will wake it
OTHERWISE = {"runqueue", "park", "other", "safepoint", "gc"}
LOCKS = {"u-semaphore": "java.util.concurrent.Semaphore", "u-lock": "java.util.concurrent.locks.ReentrantLock",
         "u-wait": "java.lang.Object", "u-monitor": "java.lang.Object"}
JOINS_BY_WAIT = 27  # from this JDK on Thread.join of a virtual thread calls Object.wait
PINNED_BEFORE = {"u-wait": 24, "u-monitor": 24}  # the JDK from which on they leave their carrier
FOUND_MIN = 0.995
STACK_MIN = 0.999
NEAR = 0.01, 100_000  # of the wait, or ns
SUM_NEAR = 0.05  # of the waits' own sum
FIRST_NS = 2_000_000_000  # at most, the wait of the first round, which initialises classes: the program does not tell of it
NEAR_MIN = 0.7  # of all: other threads of the machine may run between the clock and the wait
ATTEMPTS = 3  # of which one has to be right: other work on the machine delays threads
SETTINGS = """events:
  cpu:
    interval: 20ms
  lock:
    min_wait: 1ms
    monitors: always
  offcpu:
    min: 1ms
    virtual: true
"""


class Program:
    """UnmountedKnown, and what it said: {thread: [(begin, end)]}."""

    def __init__(self, home, rounds, gc):
        self.waits = collections.defaultdict(list)
        self.process = subprocess.Popen(
            [*jdks.command(home, BUILD), "-Xmx200m", *(["-XX:+Use" + gc] if gc else []), "-Djdk.virtualThreadScheduler.parallelism=8", "-cp", classes(),
             "UnmountedKnown", str(rounds), str(PAUSE_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def until(self, word):
        for line in self.process.stdout:
            words = line.split()
            if words == [word]:
                return
            if words[0] == "T":
                self.waits[words[1]].append((int(words[2]), int(words[3])))
            else:
                check(False, "the program: %s" % line.strip())
        raise AssertionError("UnmountedKnown ended before " + word)

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def clocks():
    """CLOCK_REALTIME less CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def reported(known, events):
    """Is there an event of the last wait of each thread?"""
    last = {}
    for e in events:
        last[e["thread"]] = max(last.get(e["thread"], 0), e["ts_ns"])
    return all(last.get(thread, 0) - clocks() >= waits[-1][0] for thread, waits in known.items())


def is_balanced(counts):
    return counts["taken"] == counts["delivered"] + sum(counts["dropped"].values())


def judge_times(daemon, program):
    """`kindling threads` adds the events up; threads that wait in several ways are left out."""
    target = json.loads(daemon.cli("threads", str(program.pid), "--last", "60s", "--json").stdout)["targets"][0]
    begin, end = target["from_ns"] - clocks(), target["to_ns"] - clocks()
    sums = {}
    for name in ("u-sleep", "u-socket", "u-semaphore", "u-monitor", "u-wait"):
        known = sum(max(0, min(e, end) - max(b, begin)) for b, e in program.waits[name])
        sums[name] = known, sum(t["offcpu_ns"].get(REASONS[name], 0) for t in target["threads"] if t["virtual"] and t["name"] == name)
    check(all((1 - SUM_NEAR) * known <= ns <= (1 + SUM_NEAR) * known + FIRST_NS for known, ns in sums.values()),
          "ns that virtual threads waited, and by `threads`: %s" % sums)
    check(target["virtual_unseen_why"].startswith("waits without a carrier are seen if"), "and `threads` says why not all is seen")


def play(daemon, home, directory, rounds, gc):
    """(the program's words {thread: [(begin, end)]}, events, its target)"""
    with Program(home, rounds, gc) as program:
        program.until("READY")
        daemon.wait_state(program.pid, "streaming")
        wait_for("the agent to collect waits of virtual threads",
                 lambda: daemon.target(program.pid).get("offcpu", {}).get("unmounted_min_ns"))
        tail = Tail(daemon, program.pid, directory + "/tail")
        wait_for("an event", tail.events)
        program.go_on()
        program.until("END")
        try:
            wait_for("the last events", lambda: reported(program.waits, tail.events()), 10)
        except AssertionError:
            pass  # fewer are judged, not waited for
        tail.stop()
        judge_times(daemon, program)
        wait_for("balanced accounts", lambda: is_balanced(daemon.target(program.pid)["offcpu"]))
        return program.waits, tail.events(), daemon.target(program.pid)


def is_whole(e):
    stack = e["stack"] or ()
    return any("Thread.run" in f for f in stack[:5]) and any("UnmountedKnown" in f for f in stack)


def judge_thread(name, waits, events, seen):
    offset, ends = clocks(), [e["ts_ns"] for e in events]
    right = 0
    for begin, end in waits:
        inside = events[bisect.bisect_left(ends, begin + offset):bisect.bisect_right(ends, end + offset)]
        hits = [e for e in inside if e["reason"] == REASONS[name]]
        seen["wrong"].update("%s as %s" % (name, e["reason"]) for e in inside if e["reason"] not in OTHERWISE | {REASONS[name]})
        right += bool(hits)
        # while it leaves its carrier or comes back, that may have to wait for a CPU: the time is in both
        off = sum(e["duration_ns"] for e in inside if not e["carrier"] or e["reason"] == REASONS[name])
        seen["longer"] += off > end - begin
        if hits:
            lack = end - begin - off
            seen["lacks"].append(lack / max(NEAR[0] * (end - begin), NEAR[1]))
        seen["stacks"] += [is_whole(e) for e in hits]
        seen["bare"] += [e for e in hits if not is_whole(e)]
        if name in LOCKS:
            seen["locks"] += [bool(e["lock"]) and e["lock"]["class"] == LOCKS[name] for e in hits if e["duration_ns"] > PAUSE_MS * 500_000]
    print("%-12s %3d of %3d as %s" % (name, right, len(waits), REASONS[name]))
    return right


def judge(known, events, major, rounds):
    seen = {"wrong": collections.Counter(), "lacks": [], "stacks": [], "bare": [], "locks": [], "longer": 0}
    by_thread = collections.defaultdict(list)
    for e in sorted(events, key=lambda e: e["ts_ns"]):
        by_thread[e["thread"]].append(e)
    found = sum(judge_thread(name, waits, by_thread[name], seen) for name, waits in sorted(known.items()))
    n = sum(map(len, known.values()))
    near, lacks = sum(0 <= lack <= 1 for lack in seen["lacks"]), sorted(seen["lacks"])
    print("found %.2f %%, durations near %.2f %% (%.2f of that in the middle), whole stacks %.2f %% of %d" % (
        100 * found / n, 100 * near / n, lacks[len(lacks) // 2], 100 * sum(seen["stacks"]) / max(1, len(seen["stacks"])), len(seen["stacks"])))
    check(set(known) == set(REASONS), "the program played everything")
    check(found >= FOUND_MIN * n, "%d of %d waits have their reason" % (found, n))
    check(sum(seen["wrong"].values()) <= (1 - FOUND_MIN) * n, "other reasons: %s" % dict(seen["wrong"]))
    check(0 <= lacks[len(lacks) // 2] <= 0.5, "the middle duration lacks %.2f of what is near" % lacks[len(lacks) // 2])
    check(near >= NEAR_MIN * n, "%d of %d durations are near" % (near, n))
    check(seen["longer"] == 0, "%d waits are reported longer than they were" % seen["longer"])
    check(sum(seen["stacks"]) >= STACK_MIN * len(seen["stacks"]), "%d of %d stacks reach from Thread.run to the program; %s" % (
        sum(seen["stacks"]), len(seen["stacks"]), [e["stack"] for e in seen["bare"]][:1]))
    check(sum(seen["locks"]) >= 0.95 * len(seen["locks"]), "%d of %d have what they waited for" % (sum(seen["locks"]), len(seen["locks"])))
    carried = [e for t, es in by_thread.items() if t.startswith("u-") and major >= PINNED_BEFORE.get(t, 0)
               for e in es if e["carrier"] and e["reason"] in ("park", "sleep", "socket", "accept")]
    check(not carried, "no time of a carrier is an unpinned thread's: %s" % carried[:1])
    unnamed = [e for e in events if e["thread"].startswith("virtual #") and e["reason"] == "sleep"]
    rounds += 1  # the first one initialises classes
    check(len(unnamed) == rounds and len({e["thread"] for e in unnamed}) == rounds,
          "%d of %d threads without a name have their sleep, under a number of their own" % (len(unnamed), rounds))


def judge_target(target):
    counts = target["offcpu"]
    print({k: v for k, v in counts.items() if v})
    check(counts["short_unmounted"] > 0 and counts["unseen_unmounted"] == 0 and counts["unmounted_min_ns"] == 1_000_000,
          "%d shorter waits are counted, none is unseen" % counts["short_unmounted"])


def judge_old(daemon):
    with Jvm("17") as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("a note", lambda: [n for n in daemon.target(jvm.pid)["notes"] if n["step"] == "virtual"])
        what = [n["what"] for n in daemon.target(jvm.pid)["notes"] if n["step"] == "virtual"]
        check("has no virtual threads" in what[0], "a JVM of JDK 17: %s" % what[0])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("major")
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--gc", help="a collector: SerialGC, ParallelGC, ShenandoahGC, ZGC; without it the JVM's own choice")
    a = options.parse_args()
    home = java_home(a.major)
    REASONS["u-starts"] = "wait" if int(a.major) >= JOINS_BY_WAIT else "park"
    directory = tempfile.mkdtemp(prefix="kindling-unmounted-")
    try:
        with Daemon(SETTINGS) as d:
            why = d.status().get("offcpu", {}).get("why")
            if why:
                skip("no times off the CPU: " + why)
            judge_old(d)
            for attempt in range(ATTEMPTS):
                before = len(failures)
                own = os.path.join(directory, str(attempt))
                os.mkdir(own)
                known, events, target = play(d, home, own, a.rounds, a.gc)
                judge(known, events, int(a.major), a.rounds)
                judge_target(target)
                if len(failures) == before:
                    failures.clear()
                    break
    finally:
        if failures:
            print("files: " + directory)
        else:
            shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


main()
