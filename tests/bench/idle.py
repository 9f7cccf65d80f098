"""
What the agent costs where little happens, and whether it keeps its interval there: idle.py [--jdk 17] [--jvms 60].

idle      the CPU time of the agents' own threads, by the kernel's clock of each, in JVMs that wait for a word:
          in one, and in many at once. The JVMs' own CPU time and the daemon's stand beside it.
interval  of two JVMs that use a quarter of a CPU each, and of H2 in three threads, 10, 30 and 60 seconds
          after they began.
"""
import os
import subprocess
import sys
import tempfile
import time

import bench
import stacks
from kindling import Daemon, Jvm, java_home


def agent_thread_ns(pid):
    """CPU time of the agent's thread in the JVM."""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            if f.read() == "kindling\n":
                with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as s:
                    return int(s.read().split()[0])
    bench.cannot("pid %d has no thread of the agent" % pid)


def clocks(daemon, pids):
    return {"agents": sum(map(agent_thread_ns, pids)), "jvms": sum(map(bench.cpu_clock_ns, pids)),
            "daemon": bench.cpu_clock_ns(daemon.data_pid()), "wall": time.monotonic_ns()}


def idle(args, n):
    with Daemon(bench.settings(args, "  lock:", "    min_wait: 1ms")) as daemon:
        jvms = [Jvm(args.jdk, "Idle", options=("-Xmx32m", "-XX:+UseSerialGC")) for _ in range(n)]
        try:
            pids = [j.pid for j in jvms]
            for pid in pids:
                daemon.wait_state(pid, "streaming", bench.FOREVER)
            time.sleep(args.settle)
            first = clocks(daemon, pids)
            time.sleep(args.seconds)
            last = clocks(daemon, pids)
            samples = sum(daemon.target(p)["samples"]["taken"] for p in pids)
        finally:
            for j in jvms:
                j.__exit__()
    seconds = (last["wall"] - first["wall"]) / 1e9
    return {k: (last[k] - first[k]) / 1e6 / seconds / (1 if k == "daemon" else n) for k in ("agents", "jvms", "daemon")}


class H2:
    """The H2 program of tests/bench/programs/DatabaseLoop.java."""

    def __init__(self, jdk):
        self.out = tempfile.mkdtemp(prefix="kindling-programs-")
        path = [self.out, *map(stacks.maven, stacks.JARS)]
        subprocess.run([java_home(jdk) + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", self.out,
                        os.path.join(bench.HERE, "programs", "DatabaseLoop.java")], check=True)
        self.process = subprocess.Popen([java_home(jdk) + "/bin/java", "-Xmx256m", "-cp", ":".join(path), "DatabaseLoop"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def intervals(args, jvms):
    """[(name, ms after 10 s, 30 s, 60 s, the agent's share of the JVM's CPU time, us a sample in the handler)]"""
    begin, got = time.monotonic(), {j.pid: [] for _, j in jvms}
    with Daemon(bench.settings(args, "  lock:", "    min_wait: 1ms")) as daemon:
        for _, j in jvms:
            daemon.wait_state(j.pid, "streaming", bench.FOREVER)
        for at in (10, 30, 60):
            time.sleep(max(0, begin + at - time.monotonic()))
            for _, j in jvms:
                t = daemon.target(j.pid)
                got[j.pid].append("%.4g" % (t["interval_ns"] / 1e6))
                if at == 60:
                    a = t["agent"]
                    got[j.pid] += ["%.2f" % (100 * a["cpu_share"]), "%.1f" % (a["handler_ns"] / max(a["taken"], 1) / 1e3),
                                   "%.1f" % ((a["cpu_ns"] - a["handler_ns"]) / max(a["taken"], 1) / 1e3),
                                   "%d" % a["taken"]]
    return [(name, *got[j.pid]) for name, j in jvms]


def main():
    p = bench.parser(__doc__)
    p.add_argument("--jvms", type=int, default=60, help="that are idle at once (60)")
    p.add_argument("--settle", type=float, default=40, metavar="SECONDS", help="before an idle JVM is measured (40)")
    p.add_argument("--seconds", type=float, default=30, help="measured of idle JVMs (30)")
    args = bench.begin(p)
    figures = {"idle": {n: idle(args, n) for n in sorted({1, args.jvms}) if n}}
    print("idle JVMs, JDK %s, ms of CPU time a second" % args.jdk)
    bench.table([("JVMs", "agent's thread, each", "JVM, agent included, each", "kindlingd")] +
                [(n, *("%.3f" % f[k] for k in ("agents", "jvms", "daemon"))) for n, f in figures["idle"].items()])
    jvms = [("a quarter of a CPU", Jvm(args.jdk, "Quarter")), ("another", Jvm(args.jdk, "Quarter"))]
    try:
        rows = intervals(args, jvms)
    finally:
        for _, j in jvms:
            j.__exit__()
    jvms = [("H2", H2(args.jdk))]
    try:
        rows += intervals(args, jvms)
    finally:
        jvms[0][1].__exit__()
    print("\nthe interval where %s is asked for, ms" % args.interval)
    bench.table([("program", "10 s", "30 s", "60 s", "agent, % of the JVM", "handler, us a sample", "thread, us a sample", "samples")] + rows)
    figures["intervals"] = rows
    bench.finish("idle", args, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
