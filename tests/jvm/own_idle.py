"""Waits for work that only the user knows: own_idle.py MAJOR. Needs root. The setting `idle` makes those of one method idle,
for locks and for times off the CPU, in a JVM that is being measured already; without it they are the application's again."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

SECONDS = 3
SETTINGS = "events: {cpu: {}, lock: {}, offcpu: {}}\n"
RULE = "idle: [com.acme.Elsewhere, Couriers.next]\n"


def tail(daemon, pid):
    """How many waits of SECONDS are not idle, by event and thread."""
    events = daemon.tail(pid, "lock,offcpu", SECONDS)
    return {(event, thread): sum(e["event"] == event and e["thread"] == thread for e in events)
            for event in ("lock", "offcpu") for thread in ("courier", "clerk")}


def idle_waits(daemon, pid):
    return daemon.target(pid)["lock"]["idle_waits"]


def reload(daemon, pid, settings):
    daemon.configure(settings)
    print(daemon.cli("config", "reload").stdout.strip())
    time.sleep(1.5)  # the agent has read the START, and what was on its way before has arrived
    before = idle_waits(daemon, pid)
    waits = tail(daemon, pid)
    time.sleep(1.1)  # until the next LEDGER
    waits["idle"] = idle_waits(daemon, pid) - before
    print(waits)
    return waits


def main():
    with Daemon(SETTINGS) as daemon, Jvm(sys.argv[1], "Couriers") as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("locks", lambda: daemon.target(jvm.pid).get("lock", {}).get("delivered", 0) > 100)
        offcpu = not daemon.status()["offcpu"].get("why")
        for with_rule in (False, True, False):
            waits = reload(daemon, jvm.pid, SETTINGS + RULE * with_rule)
            for event in ["lock"] + ["offcpu"] * offcpu:
                couriers, clerk = waits[event, "courier"], waits[event, "clerk"]
                check(clerk > 50, "the clerk has only %d waits (%s)" % (clerk, event))
                check(couriers == 0 if with_rule else couriers > 200, "the couriers have %d waits (%s)" % (couriers, event))
            check(waits["idle"] > 200 if with_rule else waits["idle"] < 20, "%d idle waits" % waits["idle"])
        jvm.end()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
