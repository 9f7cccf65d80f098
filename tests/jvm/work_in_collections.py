"""Waits that end while a collection stops the JVM: work_in_collections.py MAJOR. Needs root. A thread's status cannot be
read then; the stack, or the monitor that it enters, tells what it waited for. Such waits of a pool and of timers are idle, as
all their others are, and those for a reply are not; those for a monitor have its owner. What the collection itself took
from a thread has the reason gc, which a wait that began before it has not, even if the collection was the greater part of
that time."""
import collections
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

SETTINGS = "events: {cpu: {}, lock: {monitors: always}, offcpu: {}}\n"
OPTIONS = ("-Xmx400m", "-Xmn60m", "-XX:+UseParallelGC")
SECONDS = 30
WAITS_MIN = 50  # with so many signals for others, threads that wait for work again and again are spared most of theirs
COLLECTED_MIN = 2  # times off the CPU of workers and timers that a collection took
SHARE_MIN = 0.99  # on a busy machine a thread may lose its CPU between two waits, in a futex of the JVM
WAITS = ("park", "wait", "lock", "other")  # not: the JVM or the machine took the time


def main():
    with Daemon(SETTINGS) as daemon, Jvm(sys.argv[1], "WorkInCollections", options=OPTIONS) as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        why = daemon.status()["offcpu"].get("why")
        if why:
            skip("no times off the CPU: %s" % why)
        wait_for("times off the CPU", lambda: daemon.target(jvm.pid).get("offcpu", {}).get("delivered", 0) > 500)
        events = daemon.tail(jvm.pid, "offcpu", SECONDS, "--idle")
    counts = collections.Counter((e["thread"], e["reason"], e["idle"]) for e in events)
    for (thread, reason, idle), n in sorted(counts.items()):
        if thread in ("worker", "timer", "clerk", "customer"):
            print("%6d %s: %s%s" % (n, thread, reason, ", idle" if idle else ""))
    for thread, wait in (("worker", "park"), ("timer", "wait"), ("clerk", "park")):
        idle = thread != "clerk"
        waits = sum(n for (t, reason, _), n in counts.items() if t == thread and reason in WAITS)
        right = counts[thread, wait, idle]
        check(waits >= WAITS_MIN and right >= SHARE_MIN * waits, "%s: %d of %d waits are %s, and idle: %s" % (thread, right, waits, wait, idle))
    entries = [e for e in events if e["thread"] == "customer" and e["reason"] in WAITS and e["stack"]]
    right = sum(e["reason"] == "lock" and (e["owner"] or {}).get("thread") == "seller" for e in entries)
    check(len(entries) >= WAITS_MIN and right >= SHARE_MIN * len(entries), "customer: %d of %d waits are for the seller" % (right, len(entries)))
    own = [e["duration_ns"] for e in events if e["thread"] == "clerk" and e["reason"] == "gc" and "pthread_cond_timedwait" in e["stack"]]
    check(not own, "%d waits of the clerk are taken for collections: %s" % (len(own), own[:5]))
    collected = counts["worker", "gc", False] + counts["timer", "gc", False]
    check(collected >= COLLECTED_MIN, "collections took %d times" % collected)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
