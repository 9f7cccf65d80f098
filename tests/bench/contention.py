"""
Who reports the contention in a server whose threads are idle most of the time: kindlingd with its defaults,
async-profiler 4.6's lock mode from 1 ms on, and JFR (JavaMonitorEnter and ThreadPark from 1 ms on). The server is
Tomcat with the two scripted locks of tests/harness/java/PoolLoad.java, at --rate requests a second out of another
JVM; it knows how many waits of 1 ms and more there were, and how long they took. One JVM for each, one after the
other; also one without a profiler, for the CPU time of a request.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench
import stacks
from kindling import Daemon, java_home, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jvm"))
import pools  # noqa: E402

EVENTS = "jdk.JavaMonitorEnter,jdk.ThreadPark"
SETTINGS = """<configuration version="2.0">
  <event name="jdk.JavaMonitorEnter"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting></event>
  <event name="jdk.ThreadPark"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting></event>
</configuration>
"""


def of_jfr(args, path):
    """{class: (waits, ns)} of all events, and the file's size."""
    text = subprocess.run([java_home(args.jdk) + "/bin/jfr", "print", "--json", "--events", EVENTS, path],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for event in json.loads(text)["recording"]["events"]:
        values = event["values"]
        of = (values.get("monitorClass") or values.get("parkedClass") or {"name": ""})["name"].replace("/", ".")
        seconds = float(re.fullmatch(r"PT([\d.]+)S", values["duration"]).group(1)) if values["duration"].endswith("S") else 0
        n, ns = found.get(of, (0, 0))
        found[of] = n + 1, ns + int(seconds * 1e9)
    return found


@contextlib.contextmanager
def nobody(args, server):
    yield lambda: {}


@contextlib.contextmanager
def ours(args, server):
    with Daemon(pools.SETTINGS) as daemon:
        daemon.wait_state(server.pid, "streaming", bench.FOREVER)
        wait_for("lock events", lambda: "lock" in daemon.target(server.pid)["events"])

        def finish():
            time.sleep(pools.TELL_S)
            target, rows = pools.ask(daemon, server.pid)
            print("  kindling: threshold %.3f ms, %d idle waits counted apart" % (target["min_wait_ns"] / 1e6, target["idle_waits"]))
            return {name: (row["waits"], row["ns"]) for name, row in rows.items()}
        yield finish


@contextlib.contextmanager
def rival(args, server):
    path = os.path.join(args.folder, "rival.jfr")
    options = "event=lock,lock=1ms,jfr,file=" + path

    def command(what):
        subprocess.run(["jattach", str(server.pid), "load", stacks.rival(), "true", what + "," + options],
                       stdout=subprocess.DEVNULL, check=True)

    def finish():
        command("stop")
        return of_jfr(args, path)
    command("start")
    yield finish


@contextlib.contextmanager
def jfr(args, server):
    path, settings = os.path.join(args.folder, "jdk.jfr"), os.path.join(args.folder, "locks.jfc")
    with open(settings, "w") as f:
        f.write(SETTINGS)

    def command(*words):
        subprocess.run([java_home(args.jdk) + "/bin/jcmd", str(server.pid), *words], stdout=subprocess.DEVNULL, check=True)

    def finish():
        command("JFR.stop", "name=locks", "filename=" + path)
        return of_jfr(args, path)
    command("JFR.start", "name=locks", "settings=" + settings)
    yield finish


PROFILERS = {"nobody": nobody, "kindling": ours, "async-profiler": rival, "JFR": jfr}


def play(args, name, path):
    """A row of the table, and its figures."""
    with pools.Server(args.jdk, "ServletPool", path) as server:
        pools.load(args.jdk, server.port, args.rate, args.warmup)
        with PROFILERS[name](args, server) as finish:
            server.say("go")
            before = bench.cpu_clock_ns(server.pid)
            per_s = pools.load(args.jdk, server.port, args.rate, args.seconds)
            cpu_ns = bench.cpu_clock_ns(server.pid) - before
            server.say("stop")
            truth = [int(word) for word in server.line("TRUTH")]
            found = finish()
    figures = {"requests_per_s": per_s, "cpu_us_per_request": cpu_ns / 1e3 / (per_s * args.seconds)}
    row = [name, "%.0f" % per_s, "%.1f" % figures["cpu_us_per_request"]]
    for i, lock in enumerate(pools.LOCKS):
        (waits, ns), known = found.get(lock, (0, 0)), truth[1 + 2 * i:3 + 2 * i]
        figures[lock] = {"waits": waits, "ns": ns, "true_waits": known[0], "true_ns": known[1]}
        row.append("%d of %d, %.0f of %.0f ms" % (waits, known[0], ns / 1e6, known[1] / 1e6))
    others = [pair for of, pair in found.items() if of not in pools.LOCKS]
    figures["others"] = {"waits": sum(n for n, _ in others), "ns": sum(ns for _, ns in others)}
    return row + ["%d, %.1f s" % (figures["others"]["waits"], figures["others"]["ns"] / 1e9)], figures


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=int, default=20, help="of requests (20)")
    p.add_argument("--warmup", type=int, default=5, help="seconds of requests before anything is asked for (5)")
    p.add_argument("--rate", type=int, default=2000, help="requests a second (2000)")
    p.add_argument("--only", metavar="NAME,...", help="some of: " + ", ".join(PROFILERS))
    args = bench.begin(p)
    args.folder, path = tempfile.mkdtemp(prefix="kindling-contention-"), pools.tomcat()
    rows, figures = [["", "requests/s", "CPU us each", *(lock.split("$")[1] for lock in pools.LOCKS), "other waits"]], {}
    for name in args.only.split(",") if args.only else PROFILERS:
        if name == "async-profiler" and not stacks.rival():
            continue
        row, figures[name] = play(args, name, path)
        rows.append(row)
    bench.table(rows)
    shutil.rmtree(path[0])
    shutil.rmtree(args.folder)
    bench.finish("contention", args, figures)


if __name__ == "__main__":
    main()
