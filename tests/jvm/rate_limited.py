"""Threads that wait for permits, beside some that wait for answers: rate_limited.py MAJOR. Needs root. There are more times off
the CPU than signals and records; but waits for locks have lock events anyway, so that what the JVM may have is left for the
others: all waits for permits are events, and so are the reads, with the right reason."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip  # noqa: E402
from walker import check, failures  # noqa: E402

# more waits would cost more than the 10 ms a second that lock events may always use, on a slow machine: then the kernel
# has to tell of them
WORKERS, READERS = 20, 2
SECONDS = 10


def seconds(events):
    return sum(e["duration_ns"] for e in events) / 1e9


def main():
    def told_alone():
        return daemon.target(jvm.pid).get("offcpu", {}).get("joins", {}).get("lock_only", 0) > 1000

    with Daemon("events: {cpu: {}, lock: {}, offcpu: {}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        with Jvm(sys.argv[1], "RateLimited", str(WORKERS), str(READERS)) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            end = time.monotonic() + 20
            while time.monotonic() < end and not told_alone():  # where signals are cheap, all may have one
                time.sleep(0.5)
            time.sleep(8)  # a minimum that has grown meanwhile is halved after five seconds
            lost = daemon.target(jvm.pid)["offcpu"]["lost"]
            events = [e for e in daemon.tail(jvm.pid, "offcpu", SECONDS)
                      if e["event"] == "offcpu" and e["thread"].startswith(("worker-", "reader-"))]
            target = daemon.target(jvm.pid)["offcpu"]
            minimum = daemon.status()["offcpu"]["min_ns"]
            out, err = jvm.end()
    waiting, reading, ns = (int(word) for word in out.split())
    waits = [e for e in events if e["thread"].startswith("worker-") and e["reason"] == "park" and e["lock"]]
    reads = [e for e in events if e["thread"].startswith("reader-")]
    whole = [e for e in waits if any("RateLimited.work" in frame for frame in e["stack"])]
    named = [e for e in reads if e["reason"] == "socket"]
    of_waits = seconds(waits) / (SECONDS * waiting / ns)
    of_reads = seconds(reads) / (SECONDS * reading / ns)
    lost = target["lost"] - lost
    print("%d waits for permits are %.1f %% of that time, %d have a stack; %d reads are %.1f %% of theirs, %d have the right "
          "reason; %d were lost; %s; minimum %d ns" % (len(waits), 100 * of_waits, len(whole), len(reads), 100 * of_reads,
                                                       len(named), lost, target["joins"], minimum))
    check(jvm.process.returncode == 0 and err == "", "it ended with %d: %r" % (jvm.process.returncode, err))
    check(0.9 < of_waits < 1.1, "not all waits for permits are events")
    check(len(whole) > 0.99 * len(waits), "waits for permits have no Java stack")
    check(of_reads > 0.8, "reads are no events")
    check(len(named) > 0.9 * len(reads), "reads have another reason: %s" % {e["reason"] for e in reads})
    check(lost * 20 < len(events), "%d times off the CPU were lost" % lost)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
