"""Waits of allocating threads for a collector that runs beside them: stalls.py MAJOR. Needs root. No safepoint tells of
them, and the JVM gives their threads the state that those have which a safepoint holds; the native frames show what
they are. Each is reported as `gc`, or as `lock` if it was for one of the JVM's mutexes."""
import collections
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
import jdks  # noqa: E402
from kindling import BUILD, Daemon, Jvm, java_home, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

PLACES = ("ShenandoahPacer::pace_for_alloc", "ShenandoahControlThread::handle_alloc_failure", "ShenandoahController::handle_alloc_failure",
          "ZPageAllocator::alloc_page", "XPageAllocator::alloc_page")
LOCKS = ("pthread_mutex_lock", "__lll_lock_wait", "Mutex::lock")
BESIDE = ("runqueue", "throttled", "fault")  # a thread may also be off the CPU for these there
COLLECTORS = {"Shenandoah": ["-XX:+UseShenandoahGC"], "Z": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"]}
ENOUGH = 20
SECONDS = 60  # at most, until there are enough


def stalls(path):
    with open(path) as f:
        lines = [line for line in f.read().split("\n")[:-1] if line.startswith("{")]
    events = [e for e in map(json.loads, lines) if e["event"] == "offcpu" and e["syscall"] == "futex" and e["reason"] not in BESIDE]
    return [e for e in events if any(f.startswith(PLACES) for f in e["stack"] or ())]


def judge(daemon, name, flags):
    path = os.path.join(daemon.dir, name)
    with Jvm(sys.argv[1], "AllocStalls", options=("-Xmx150m", *flags)) as jvm, open(path, "w") as out:
        daemon.wait_state(jvm.pid, "streaming")
        tail = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--event", "offcpu", "--json",
                                 "--idle", str(jvm.pid)], stdout=out)
        end = time.monotonic() + SECONDS
        while len(stalls(path)) < ENOUGH and time.monotonic() < end:
            time.sleep(1)
        tail.terminate()
        tail.wait()
    found = stalls(path)
    wrong = collections.Counter()
    for e in found:
        reasons = {"gc", "lock"} if any(f.startswith(LOCKS) for f in e["stack"]) else {"gc"}
        if e["reason"] not in reasons or e["idle"]:
            wrong[e["reason"], e["idle"], " < ".join(f.split("(")[0] for f in e["stack"][:-12:-1])] += 1
    print("%s: %s" % (name, dict(collections.Counter(e["reason"] for e in found))))
    check(len(found) >= ENOUGH, "%s: %d waits for the collector" % (name, len(found)))
    check(not wrong, "%s: other reasons: %s" % (name, dict(wrong)))


def main():
    with Daemon("events: {cpu: {}, offcpu: {min: 1ms}}\n") as daemon:
        why = daemon.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)
        for name, flags in COLLECTORS.items():
            done = subprocess.run([*jdks.command(java_home(sys.argv[1]), BUILD), *flags, "-version"], capture_output=True)
            if done.returncode:
                print("%s: not in this JDK" % name)
            else:
                judge(daemon, name, flags)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
