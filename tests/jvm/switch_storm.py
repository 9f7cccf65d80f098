"""A JVM whose threads switch so often that measuring all of it would cost more than 1 % of the CPUs: switch_storm.py
MAJOR. Needs root. It is measured for a part of the time, and who reads its numbers is told so."""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

PAIRS_PER_CPU = 4
RESTS = 2  # that are waited for
NOTE = "times off the CPU were measured for a part of this time only"


def counts(daemon, pid):
    return daemon.target(pid)["offcpu"]


def is_part(daemon, pid):
    c = counts(daemon, pid)
    return 0 < c["measured_s"] < c["measured_of_s"]


def report(daemon, pid, event):
    return daemon.cli("report", str(pid), "-e", event, "--idle", "--last", "20s", "-f", "txt", "-o", "-").stdout


def judge_storm(daemon, pid):
    wait_for("%d rests" % RESTS, lambda: daemon.status()["offcpu"]["rests"] >= RESTS)
    c, cost = counts(daemon, pid), daemon.status()["offcpu"]
    print("measured in %d of %d s, at %d switches a second" % (c["measured_s"], c["measured_of_s"], cost["switches_per_s"]))
    check(is_part(daemon, pid), "not measured for a part of the time: %s" % c)
    notes = [n["what"] for n in daemon.target(pid)["notes"] if n["step"] == "offcpu"]
    check(any("were measured in" in n for n in notes), "no note in status: %s" % notes)
    wait_for("the note in the report", lambda: NOTE in report(daemon, pid, "offcpu"))
    check(NOTE not in report(daemon, pid, "cpu"), "the note is about CPU time, too")
    times = json.loads(daemon.cli("threads", "--json", "--last", "30s", str(pid)).stdout)["targets"][0]["times"]
    seen_ns = times["cpu_ns"] + times["runqueue_ns"] + sum(times["offcpu_ns"].values())
    check(times["unseen_ns"] > 0 and "rested" in (times["unseen_why"] or ""), "nothing unseen: %s" % times)
    check(seen_ns > 0 and seen_ns + times["unseen_ns"] == times["wall_ns"], "the parts are not the whole: %s" % times)
    lines = [line for line in daemon.read_log().split("\n") if "offcpu.rests" in line]
    check(len(lines) == 1, "a line for each rest: %s" % lines)


def judge_calm(daemon, jvm):
    jvm.process.stdin.write("calm\n")
    jvm.process.stdin.flush()
    before = counts(daemon, jvm.pid)["measured_s"]
    wait_for("no rest", lambda: daemon.status()["offcpu"]["state"] == "on")
    rests = daemon.status()["offcpu"]["rests"]
    time.sleep(15)
    check(daemon.status()["offcpu"]["rests"] == rests, "it rests although the storm is over")
    check(counts(daemon, jvm.pid)["measured_s"] > before, "not measured again: %s" % counts(daemon, jvm.pid))


def main():
    with Daemon("events: {cpu: {}, lock: {}, offcpu: {}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        with Jvm(sys.argv[1], "SwitchStorm", str(PAIRS_PER_CPU * os.cpu_count())) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            judge_storm(daemon, jvm.pid)
            judge_calm(daemon, jvm)
            out, err = jvm.end()
            check(jvm.process.returncode == 0 and out == "END\n" and err == "", "it ended with %d: %r %r" % (jvm.process.returncode, out, err))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
