"""A JVM most of whose times off the CPU are waits for work: spared.py MAJOR. Needs root. There are too many for the budget
of signals, but what its threads do otherwise has its events, each with a Java stack."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

WORKERS = 64
SECONDS = 10
NOTES = ("of threads that usually wait for work or locks most times off the CPU of less than", "only times off the CPU of", "only some times off the CPU of")


def main():
    with Daemon("events: {cpu: {}, lock: {}, offcpu: {}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        with Jvm(sys.argv[1], "WaitingPool", str(WORKERS)) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("waits for work that give way", lambda: daemon.status()["offcpu"]["spared"] > 1000)
            time.sleep(8)  # a minimum that has grown meanwhile is halved after five seconds
            before = daemon.status()["offcpu"]
            events = [e for e in daemon.tail(jvm.pid, "offcpu", SECONDS, "--idle") if e["event"] == "offcpu"]
            after = daemon.status()["offcpu"]
            notes = [n["what"] for n in daemon.target(jvm.pid)["notes"] if n["step"] == "offcpu"]
            report = daemon.cli("report", str(jvm.pid), "-e", "offcpu", "--last", "5s", "-f", "txt", "-o", "-").stdout
            out, err = jvm.end()
    sleeps = [e for e in events if e["thread"] == "owner" and e["reason"] == "sleep"]
    whole = [e for e in sleeps if any("WaitingPool.own" in frame for frame in e["stack"])]
    slept, ns = (int(word) for word in out.split())
    expected = slept * SECONDS * 1e9 / ns
    spared = after["spared"] - before["spared"]
    print("%d of some %.0f sleeps are events, %d with a stack; %d signals were spared; minimum %d ns" % (
        len(sleeps), expected, len(whole), spared, after["min_ns"]))
    check(jvm.process.returncode == 0 and err == "", "it ended with %d: %r" % (jvm.process.returncode, err))
    check(len(sleeps) > 0.8 * expected, "most sleeps are no events")
    check(len(whole) > 0.8 * len(sleeps), "most sleeps have no Java stack")
    check(spared > 1000, "hardly a signal was spared")
    check(any(n.startswith(NOTES) for n in notes), "no note in status: %s" % notes)
    check("of threads that usually wait for work or locks most times off the CPU are missing" in " ".join(report.split()),
          "the report does not say what is missing: %s" % report[:2000])
    check(after["min_ns"] <= 16_000_000, "the minimum has grown to %d ns" % after["min_ns"])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
