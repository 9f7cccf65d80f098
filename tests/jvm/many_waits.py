"""More times off the CPU than there are signals, and than there are records: many_waits.py MAJOR. Needs root. As long as
their records fit all are in the report, some without a Java stack; of more, nearly all of one length, a sample is, and the
report says how much is missing. Either way what was taken is the time that the threads slept. Of more threads than have
room `kindling threads` says how many have no times."""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip  # noqa: E402
from walker import check, failures  # noqa: E402

SETTLED_S = 15
SECONDS = 20
ASKED_NS = 1_000_000
NOTES = ("times off the CPU of less than", "only some times off the CPU of")
ROOM = 2048  # TIME_LEDGER_THREADS
# length in ms, and the number a second as a multiple of the signals: twice as many have records
FEW, MANY = (10, 1.8), (20, 4.5)


def report(daemon, pid, begin):
    """The profile of the threads in SECONDS, which began at @begin."""
    done = daemon.cli("report", str(pid), "-e", "offcpu", "--thread", "sleeper", "--from", "@%.3f" % begin, "--to",
                      "@%.3f" % (begin + SECONDS), "-f", "json", "-o", "-")
    return json.loads(done.stdout)


def measure(daemon, ms, signals):
    threads = round(daemon.status()["offcpu"]["signals_per_s"] * signals * ms / 1000)
    with Jvm(sys.argv[1], "Sleepers", str(threads), str(ms)) as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        time.sleep(SETTLED_S)
        begin = int(time.time() / 10 + 1) * 10  # windows of the history begin there
        time.sleep(begin + SECONDS + 2 - time.time())
        raised = daemon.status()["offcpu"]["signal_min_ns"] > ASKED_NS
        notes = [n["what"] for n in daemon.target(jvm.pid)["notes"] if n["step"] == "offcpu"]
        profile = report(daemon, jvm.pid, begin)
        jvm.end()
    slept_ns = threads * SECONDS * 1e9
    taken = profile["losses"]["taken_ns"] - sum(ns for _, ns in profile["left_out"].values())  # of these threads
    whole = sum(row[3] for row in profile["rows"] if any("Sleepers.sleep" in f for f in stack(profile, row[1])))
    result = {"taken": taken / slept_ns, "shown": profile["view"]["weight_ns"] / slept_ns, "whole": whole / slept_ns}
    print("%d threads that sleep for %d ms, parts of the time: %s; %s" % (threads, ms, result, notes))
    # dropped times of the JVM's own threads, which have no name, are among them
    check(0.97 < result["taken"] < 1.12, "what was taken is not what they slept")
    check(any(n.startswith(NOTES) for n in notes) or not raised, "no note in status: %s" % notes)
    return dict(result, min_ns=profile["min_ns"])


def stack(profile, node):
    while node:
        node, frame = profile["nodes"][node]
        yield profile["frames"][frame]["name"]


def crowd(daemon):
    with Jvm(sys.argv[1], "Sleepers", str(ROOM + 300), "1000") as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        time.sleep(SETTLED_S)
        known = json.loads(daemon.cli("threads", "--json", str(jvm.pid)).stdout)["targets"][0]
        shown = daemon.cli("threads", str(jvm.pid)).stdout
        jvm.end()
    without = sum(t["unseen_ns"] == t["wall_ns"] for t in known["threads"])
    print("%d threads, %d with times, %d without" % (len(known["threads"]), known["times"]["threads"], known["without_times"]))
    check(known["times"]["threads"] == ROOM and known["without_times"] >= 300, "threads without times are not counted")
    check(abs(without - known["without_times"]) <= 20, "%d threads have no times" % without)
    check("more threads: kindlingd keeps the times of %d" % ROOM in shown, "`kindling threads` does not say it: " + shown[:400])


def main():
    with Daemon("events: {offcpu: {}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        few, many = measure(daemon, *FEW), measure(daemon, *MANY)
        crowd(daemon)
    check(few["shown"] > 0.97, "not all are shown")
    check(few["min_ns"] < 10 * ASKED_NS, "the report says that times below %d ns may be missing" % few["min_ns"])
    check(many["min_ns"] > ASKED_NS, "the report of a sample has no longer minimum")
    check(few["whole"] > 0.2, "hardly any has a Java stack")
    check(0.2 < many["shown"] < 0.9, "not a part of them is shown")
    check(many["whole"] > 0.05, "hardly any of many has a Java stack")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
