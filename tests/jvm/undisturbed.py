"""System calls in a JVM, with and without signals: undisturbed.py MAJOR. The calls of tests/harness/undisturbed.c
block, or copy for a long time; a thread of a JVM makes them without kindling, with times off the CPU, with CPU
samples at 1 ms, and with both. A call that does not return EINTR, or less than was asked for, without kindling
must not do so with it."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
import jdks  # noqa: E402
from kindling import BUILD, Daemon, classes, java_home, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

CALLS, RUNS = 43, 10
OFFCPU, CPU = "offcpu: {min: 100us}", "cpu: {interval: 1ms}"
WAYS = {"times off the CPU": ("offcpu",), "CPU at 1 ms": ("cpu",), "both": ("offcpu", "cpu")}
SETTINGS = {"offcpu": OFFCPU, "cpu": CPU}
SIGNALS_MIN = {"offcpu": 250, "cpu": 15}  # share of 430 calls that may differ: nearly all wait, few compute


def jvm_command(home):
    libraries = BUILD + "/tests"
    return [*jdks.command(home, BUILD), "-Xmx200m", "-cp", classes(), "Undisturbed",
            libraries + "/libundisturbed.so"]


def play(home, directory, ready):
    """{call: (fine, EINTR, short, wrong)}; @ready is called before the calls and after them."""
    jvm = subprocess.Popen(jvm_command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory)
    try:
        assert jvm.stdout.readline() == "READY\n"
        ready(jvm.pid)
        jvm.stdin.write("\n")
        jvm.stdin.flush()
        results = {}
        for line in jvm.stdout:
            if line == "END\n":
                break
            words = line.split()
            results[words[0]] = tuple(map(int, words[1:]))
        signals = ready(jvm.pid)
        return results, signals
    finally:
        jvm.kill()
        jvm.wait()


def with_kindling(home, directory, events, without):
    settings = "events: {%s}\n" % ", ".join(SETTINGS[e] for e in events)
    with Daemon(settings) as d:
        why = d.status().get("offcpu", {}).get("why")
        if why:
            skip("no times off the CPU: " + why)

        def signals(pid):
            d.wait_state(pid, "streaming")
            wait_for("the agent to collect", lambda: set(events) <= set(d.target(pid)["events"]))
            t = d.target(pid)
            return {e: t["samples" if e == "cpu" else e]["taken"] for e in events}
        results, counted = play(home, directory, signals)
    cut, short, other = (sum(max(0, r[i] - without[call][i]) for call, r in results.items()) for i in (1, 2, 3))
    for call, r in results.items():
        if r[0] < without[call][0]:
            print("    %s: %d EINTR, %d short, %d other results" % (call, *r[1:]))
    return len(results), cut, short, other, counted


def main():
    home = java_home(sys.argv[1])
    directory = tempfile.mkdtemp(prefix="kindling-undisturbed-")
    try:
        without, _ = play(home, directory, lambda pid: None)
        check(len(without) == CALLS, "%d calls, %d times each" % (len(without), RUNS))
        for name, events in WAYS.items():
            n, cut, short, other, counted = with_kindling(home, directory, events, without)
            check(n == CALLS and cut + short + other == 0, "%s: %d EINTR, %d more short, %d other results; signals %s" % (
                name, cut, short, other, counted))
            for e in events:
                check(counted[e] >= SIGNALS_MIN[e], "%s: %d signals for %s" % (name, counted[e], e))
    finally:
        shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


main()
