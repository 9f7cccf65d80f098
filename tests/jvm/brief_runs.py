"""Threads that run for some milliseconds and end: brief_runs.py MAJOR [FLAG...]. Their CPU samples have their full names, and
so have those of the JVM's compiler threads, which JVMTI does not list. When more have ended than kindlingd has rows for,
`threads` still has the times of all: of those that live one by one, of others in one row."""
import collections
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kindling import Daemon, Jvm, cpu_ns, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

NAME = "request-of-a-customer-whose-name-no-kernel-would-keep-\u00e9\u4e2d-"
ROOM = 2048
SPAN_NS = 20 * 10 ** 9


def jvm_of(major, millis, flags):
    return Jvm(major, "BriefRuns", str(millis), options=("-Xmx200m", "-Dfile.encoding=UTF-8", *flags))


def names(daemon, major, flags):
    """A thread that ends before it has had a sample is accounted for by the kernel's name, also one sampled as it ends."""
    with jvm_of(major, 6, flags) as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        events = [json.loads(line) for line in daemon.cli("tail", "--json", "-n", "700", str(jvm.pid)).stdout.splitlines()]
    named = list(collections.Counter(e["thread"] for e in events if "thread" in e).elements())
    runs = [n for n in named if n.startswith(NAME[:15])]
    full = [n for n in runs if re.fullmatch(NAME + r"\d+", n)]
    check(len(runs) >= 300, "%d samples of threads that run for 6 ms" % len(runs))
    check(len(full) >= 0.93 * len(runs), "%d of %d have the full name" % (len(full), len(runs)))
    compilers = [n for n in named if re.match("C[12] Comp", n)]
    known = [n for n in compilers if re.fullmatch(r"C[12] CompilerThread\d+", n)]
    check(len(known) >= 0.5 * len(compilers), "%d of %d samples of compiler threads have the full name" % (len(known), len(compilers)))


def ask(daemon, pid):
    return json.loads(daemon.cli("threads", "--json", "--last", "20s", str(pid)).stdout)["targets"][0]


def times(daemon, major, flags):
    with jvm_of(major, 1, flags) as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        begin = cpu_ns(jvm.pid), time.monotonic()
        wait_for("more threads than rows", lambda: ask(daemon, jvm.pid)["times"]["ended_together"] > 2 * ROOM)
        wait_for("whole slices", lambda: ask(daemon, jvm.pid)["times"]["span_ns"] >= SPAN_NS)
        a = ask(daemon, jvm.pid)
        cpus = (cpu_ns(jvm.pid) - begin[0]) / 1e9 / (time.monotonic() - begin[1])
        text = daemon.cli("threads", "--last", "20s", str(jvm.pid)).stdout
    sums, rows = a["times"], a["threads"]
    # a thread that has just begun has no times yet
    rows = [t for t in rows if not t["wall_ns"] == t["unseen_ns"] == sums["span_ns"]]
    for key in ("wall_ns", "cpu_ns", "runqueue_ns", "unseen_ns"):
        check(sums[key] == sum(t[key] for t in rows), "%s of all is %d" % (key, sums[key]))
    together = [t for t in rows if re.fullmatch(r"\[\d+ ended threads\]", t["name"])]
    check(len(together) == 1 and together[0]["tid"] is None, "the row of ended threads: %s" % together)
    check(re.search(r"\n +- \[\d+ ended threads\] +ended ", text), "it is shown")
    used = sums["cpu_ns"] / sums["span_ns"]
    check(0.8 * cpus <= used <= 1.15 * cpus, "all threads used %.2f CPUs, the process %.2f" % (used, cpus))
    long = [t["name"] for t in rows if t["state"] == "ended" and t["wall_ns"] > 10 ** 9 and t is not together[0]]
    check(not long, "ended threads of more than a second: %s" % long[:3])
    starts = [t for t in rows if t["name"] == "starts" and t["java_id"]]  # others had no name of their own yet
    check(len(starts) == 1 and starts[0]["unseen_ns"] < 0.02 * starts[0]["wall_ns"], "the thread that starts them has its times: %s" % starts)
    check(a["without_times"] <= 10, "%d threads without times: %s" % (a["without_times"], a["without_times_why"]))


def main():
    with Daemon() as daemon:
        names(daemon, sys.argv[1], sys.argv[2:])
        times(daemon, sys.argv[1], sys.argv[2:])
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
