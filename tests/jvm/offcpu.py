"""Times off the CPU against a program that knows its own: offcpu.py MAJOR [--rounds N].

OffCpuKnown's threads sleep, park, wait, queue for a monitor and for a pipe, a socket, a connection and a selector,
and tell how long each took by their own clock. `kindling tail --event offcpu --json` must tell of each once: the
reason, the duration, the whole Java stack, and for the monitor its lock and owner. A thread's wait in Java is a
little longer than its time off the CPU, so a duration is right when what it lacks is short; how many are, is judged
as a share, because other work on the machine delays single ones.
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
from kindling import BUILD, Daemon, classes, java_home, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

PAUSE_MS = 100  # so that all threads together stay below the budget of signals
REASONS = {"known-sleep": "sleep", "known-park": "park", "known-wait": "wait", "known-lock": "lock",
           "known-pipe": "pipe", "known-socket": "socket", "known-accept": "accept", "known-poll": "poll"}
BESIDE = {"runqueue", "safepoint", "gc", "fault"}  # may come to any thread
HANDS_OVER = {"known-socket", "known-accept"}  # to another thread, for which they may have to wait
FOUND_MIN = 0.995  # of the waits, with the right reason
STACK_MIN = 0.999  # of the events
ATTEMPTS = 3  # of which one has to be right: a loaded machine delays threads, and spends the budget of signals
NEAR_MIN = 0.9  # of the durations: other threads of the machine may run between the clock and the wait
NEAR = 0.01, 500_000  # of the wait, or ns: two readings of the clock and a switch on each side
SETTINGS = """events:
  cpu:
    interval: 20ms
  lock:
    min_wait: 1ms
    monitors: always
  offcpu:
    min: 1ms
"""


class Tail:
    def __init__(self, daemon, pid, path):
        self.path = path
        with open(path, "w") as out:
            self.process = subprocess.Popen(
                [BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--event", "offcpu", "--json", "--idle",
                 str(pid)], stdout=out, stderr=subprocess.STDOUT)

    def events(self):
        with open(self.path) as f:
            lines = [line for line in f.read().split("\n")[:-1] if line.startswith("{")]
        return [e for e in map(json.loads, lines) if e["event"] == "offcpu"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def play(home, daemon, directory, rounds):
    """(the program's own words {thread: [(begin, end)]}, events)"""
    jvm = subprocess.Popen([*jdks.command(home, os.path.join(BUILD, "lib")), "-Xmx200m", "-cp", classes(),
                            "OffCpuKnown", str(rounds), str(PAUSE_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, cwd=directory)
    try:
        assert jvm.stdout.readline() == "READY\n"
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("the agent to collect times off the CPU", lambda: "offcpu" in daemon.target(jvm.pid).get("events", []))
        tail = Tail(daemon, jvm.pid, directory + "/tail")
        wait_for("an event", tail.events)
        jvm.stdin.write("\n")
        jvm.stdin.flush()
        known = collections.defaultdict(list)
        for line in jvm.stdout:
            if line == "END\n":
                break
            words = line.split()
            if words[0] != "T":
                check(False, "the program: %s" % line.strip())
            else:
                known[words[1]].append((int(words[2]), int(words[3])))
        with_deadline(lambda: told(known, tail.events()))
        tail.stop()
        return known, tail.events(), daemon.target(jvm.pid)
    finally:
        jvm.kill()
        jvm.wait()


def told(known, events):
    """Is there an event of the last wait of each thread?"""
    last = {}
    for e in events:
        last[e["thread"]] = max(last.get(e["thread"], 0), e["ts_ns"])
    return all(last.get(thread, 0) - clocks() >= waits[-1][0] for thread, waits in known.items())


def with_deadline(condition):
    """The last events come within 2 s; fewer are judged, not waited for."""
    try:
        wait_for("the last events", condition, 10)
    except AssertionError:
        pass


def clocks():
    """CLOCK_REALTIME less CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def judge(known, events, offset):
    by_thread = collections.defaultdict(list)
    for e in events:
        by_thread[e["thread"]].append(e)
    n = found = near = twice = 0
    wrong, stacks = collections.Counter(), [0, 0]
    for thread, waits in sorted(known.items()):
        mine = sorted(by_thread[thread], key=lambda e: e["ts_ns"])
        ends = [e["ts_ns"] - offset for e in mine]
        right, missed = 0, []
        for begin, end in waits:
            inside = mine[bisect.bisect_left(ends, begin):bisect.bisect_right(ends, end)]
            hits = [e for e in inside if e["reason"] == REASONS[thread]]
            others = [e["reason"] for e in inside if e["reason"] not in BESIDE | {REASONS[thread]}
                      and not (thread in HANDS_OVER and e["reason"] == "park")]
            wrong.update("%s as %s" % (thread, r) for r in others)
            n += 1
            missed += [] if hits else [(waits.index((begin, end)), [(e["reason"], e["duration_ns"]) for e in inside])]
            right += bool(hits)
            off = sum(e["duration_ns"] for e in inside)
            near += bool(hits) and off <= end - begin and end - begin - off <= max(NEAR[0] * (end - begin), NEAR[1])
            twice += off > end - begin
            for e in hits:
                stacks[0] += 1
                stacks[1] += bool(e["stack"]) and "Thread.run" in e["stack"][0] and any("OffCpuKnown" in f for f in e["stack"])
        found += right
        if right < len(waits):
            print("    not found: rounds %s" % missed)
        print("%-14s %3d of %3d as %s" % (thread, right, len(waits), REASONS[thread]))
    print("found %.2f %%, durations near %.2f %%, stacks to the root %.2f %% of %d, wrong %s" % (
        100 * found / n, 100 * near / n, 100 * stacks[1] / max(1, stacks[0]), stacks[0], dict(wrong)))
    check(found >= FOUND_MIN * n, "%d of %d waits are told with their reason" % (found, n))
    check(sum(wrong.values()) <= (1 - FOUND_MIN) * n, "other reasons: %s" % dict(wrong))
    check(near >= NEAR_MIN * n, "%d of %d durations are near" % (near, n))
    check(twice == 0, "%d waits are told longer than they were" % twice)
    check(stacks[1] >= STACK_MIN * stacks[0], "%d of %d stacks reach from Thread.run to the program" % (stacks[1], stacks[0]))
    locks = [e for e in by_thread["known-lock"] if e["reason"] == "lock"]
    both = [e for e in locks if e["lock"] and e["lock"]["class"] == "java.lang.Object"]
    owned = [e for e in both if e["owner"] and e["owner"]["thread"] == "helper-holder"]
    woken = [e for e in locks if e["waker"] and e["waker"].get("thread") == "helper-holder"]
    print("monitor: %d, with the lock %d, its owner %d, woken by it %d" % (len(locks), len(both), len(owned), len(woken)))
    return locks, both, owned


def judge_all(known, events):
    locks, both, owned = judge(known, events, clocks())
    check(len(both) >= 0.95 * len(locks), "%d of %d waits for the monitor have their lock" % (len(both), len(locks)))
    check(len(owned) >= 0.95 * len(locks), "%d of %d have its owner" % (len(owned), len(locks)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("major")
    options.add_argument("--rounds", type=int, default=60)
    a = options.parse_args()
    home = java_home(a.major)
    directory = tempfile.mkdtemp(prefix="kindling-offcpu-")
    try:
        with Daemon(SETTINGS) as d:
            why = d.status().get("offcpu", {}).get("why")
            if why:
                skip("no times off the CPU: " + why)
            for attempt in range(ATTEMPTS):
                before = len(failures)
                known, events, target = play(home, d, directory, a.rounds)
                judge_all(known, events)
                print(json.dumps(target["offcpu"])[:80])
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
