"""Threads that read answers, beside many that compute: busy_readers.py MAJOR. Needs root. There are more times in the run queue
than signals; these are for the reads first, which nothing else tells of: nearly all are events, with their stack."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip  # noqa: E402
from walker import check, failures  # noqa: E402

READERS = 2
COMPUTERS = 8 * os.cpu_count()
SECONDS = 10


def main():
    with Daemon("events: {cpu: {}, lock: {}, offcpu: {}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        with Jvm(sys.argv[1], "BusyReaders", str(COMPUTERS), str(READERS)) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(15)  # the budget follows what signals cost; a minimum that has grown is halved after five seconds
            lost = daemon.target(jvm.pid)["offcpu"]["lost"]
            events = [e for e in daemon.tail(jvm.pid, "offcpu", SECONDS) if e["event"] == "offcpu"]
            lost = daemon.target(jvm.pid)["offcpu"]["lost"] - lost
            engine = daemon.status()["offcpu"]
            notes = [n["what"] for n in daemon.target(jvm.pid)["notes"] if n["step"] == "offcpu"]
            out, err = jvm.end()
    reading, ns = (int(word) for word in out.split())
    reads = [e for e in events if e["thread"].startswith("reader-") and e["reason"] == "socket"]
    whole = [e for e in reads if any("AnswerReaders.read" in frame for frame in e["stack"])]
    queued = [e for e in events if e["reason"] == "runqueue"]
    of_reads = sum(e["duration_ns"] for e in reads) / 1e9 / (SECONDS * reading / ns)
    print("%d reads are %.1f %% of their time, %d have their stack; %d times in the run queue, %d with a stack; %d were lost; %s" % (
        len(reads), 100 * of_reads, len(whole), len(queued), sum(len(e["stack"]) > 1 for e in queued), lost,
        {k: engine[k] for k in ("min_ns", "signal_min_ns", "runqueue_min_ns", "runqueue_signal_min_ns", "signals_per_s")}))
    check(jvm.process.returncode == 0 and err == "", "it ended with %d: %r" % (jvm.process.returncode, err))
    check(of_reads > 0.9, "reads are no events")
    # who answers sleeps as often. A quarter of the signals is kept for longer waits, an eighth is for the run queue; where
    # a signal is dear, the rest is hardly enough, and waits do not come evenly
    room = 0.75 * 0.875 * engine["signals_per_s"] / (2 * len(reads) / SECONDS)
    check(len(whole) > 0.9 * min(1, 0.85 * room) * len(reads), "reads have no stack, of %.2f that may have one" % min(1, room))
    check(len(queued) > 100, "times in the run queue are no events")
    check(engine["runqueue_signal_min_ns"] <= 1_000_000 or any("times in the run queue of" in n for n in notes),
          "no note of what is missing: %s" % notes)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
