"""
Whether a thread's times add up to the wall clock: programs of --threads threads each, over --seconds. Between two
moments of the bench's own clock, what kindling books for a thread as CPU time, run queue and time off the CPU by
reason must be the time that passed, within 0.5 % or 2 ms. What it books as not seen is what is missing. One program
at a time.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import bench
import stacks
from kindling import Daemon, classes, java_home, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jvm"))
import pools  # noqa: E402

NEAR = 0.005, 2_000_000
SETTINGS = "events: { cpu: { interval: %s }, lock: { monitors: always }, offcpu: {} }\n"


class Program:
    def __init__(self, args, path, main, *words, options=(), says="READY"):
        self.process = subprocess.Popen([java_home(args.jdk) + "/bin/java", "-Xmx400m", *options, "-cp", ":".join(path), main, *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.said = next(line.split() for line in self.process.stdout if line.split()[:1] == [says])

    def end(self):
        self.process.kill()
        self.process.wait()


def programs(args, folder):
    """{name: what starts it}"""
    path = [folder, classes(), *map(stacks.maven, stacks.JARS)]
    sources = [os.path.join(bench.HERE, "programs", name + ".java") for name in ("LedgerLoads", "DatabaseLoop", "ServletPool")]
    subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", folder, *sources], check=True)
    n = str(args.threads)
    return {**{kind: lambda kind=kind: Program(args, path, "LedgerLoads", kind, n) for kind in ("cpu", "locks", "sleeps")},
            "Tomcat": lambda: Program(args, path, "ServletPool", options=("-Dthreads=" + n,), says="PORT"),
            "H2": lambda: Program(args, path, "DatabaseLoop", n)}


def ask(daemon, pid):
    """{tid: row} between two moments in ns, and the sums of all threads."""
    before = time.monotonic_ns()
    answer = json.loads(daemon.cli("threads", "--json", "--last", "10m", str(pid)).stdout)["targets"][0]
    return before, time.monotonic_ns(), {t["tid"]: t for t in answer["threads"]}, answer["times"]


def judge(name, first, second):
    """A row of the table, and its figures."""
    least, most = second[0] - first[1], second[1] - first[0]
    judged = right = 0
    worst, worst_thread = 0, ""
    sums = {"wall": 0, "cpu": 0, "runqueue": 0, "offcpu": 0, "unseen": 0}
    for tid, now in second[2].items():
        was = first[2].get(tid)
        if not was or now["state"] == "ended":
            continue
        wall, cpu, runqueue, unseen = (now[k] - was[k] for k in ("wall_ns", "cpu_ns", "runqueue_ns", "unseen_ns"))
        off = sum(now["offcpu_ns"].values()) - sum(was["offcpu_ns"].values())
        missing = max(least - (cpu + runqueue + off), cpu + runqueue + off - most, 0)
        judged += 1
        right += missing <= max(NEAR[0] * most, NEAR[1])
        if missing > worst:
            worst, worst_thread = missing, now["name"]
        for key, ns in zip(sums, (wall, cpu, runqueue, off, unseen)):
            sums[key] += ns
    whole = max(1, sums["wall"])
    return ([name, judged, right, "%.2f ms" % (worst / 1e6), worst_thread[:20]]
            + ["%.1f %%" % (100 * sums[k] / whole) for k in ("cpu", "runqueue", "offcpu")]
            + ["%.3f %%" % (100 * sums["unseen"] / whole)],
            {"threads": judged, "right": right, "worst_ns": worst, "seconds": least / 1e9, **{k + "_ns": v for k, v in sums.items()}})


def play(args, name, start):
    with Daemon(SETTINGS % args.interval) as daemon:
        program, client = start(), None
        try:
            daemon.wait_state(program.pid, "streaming", bench.FOREVER)
            wait_for("the kernel's times", lambda: ask(daemon, program.pid)[3].get("by") == "kernel", bench.FOREVER)
            if name == "Tomcat":
                client = threading.Thread(target=pools.load, args=(args.jdk, int(program.said[1]), args.rate, args.seconds + 5))
                client.start()
            time.sleep(2)
            first = ask(daemon, program.pid)
            time.sleep(args.seconds)
            second = ask(daemon, program.pid)
            if client:
                client.join()
            return judge(name, first, second)
        finally:
            program.end()


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=int, default=60, help="that are judged (60)")
    p.add_argument("--threads", type=int, default=200, help="of each program (200)")
    p.add_argument("--rate", type=int, default=500, help="requests a second to Tomcat (500)")
    p.add_argument("--only", metavar="NAME,...", help="some of: cpu, locks, sleeps, Tomcat, H2")
    args = bench.begin(p)
    folder = tempfile.mkdtemp(prefix="kindling-ledger-")
    try:
        got = {name: play(args, name, start) for name, start in programs(args, folder).items()
               if not args.only or name in args.only.split(",")}
    finally:
        shutil.rmtree(folder)
    bench.table([["program", "threads", "right", "furthest", "of", "CPU", "run queue", "off the CPU", "not seen"]]
                + [row for row, _ in got.values()])
    bench.finish("ledger", args, {"programs": {name: figures for name, (_, figures) in got.items()}})


if __name__ == "__main__":
    main()
