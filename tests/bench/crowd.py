"""
What kindling costs JVMs of hundreds of threads that wait nearly all the time: crowd.py [--jvms 20] [--threads 315].

The same JVMs without kindling, then with each build in turns (--build may be given more than once), started anew each
time: the CPU time of all of them and of their agents' threads, that of kindlingd, and the context switches of the host.
"""
import os
import subprocess
import sys
import tempfile
import time

import bench
from idle import agent_thread_ns
from kindling import BUILD, Daemon, Jvm, java_home

SETTINGS = ("  lock: {}", "  offcpu: {}")


def compiled(folder):
    subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "--release", "11", "-d", folder,
                    os.path.join(bench.HERE, "programs", "Crowd.java")], check=True)
    return folder


def switches():
    with open("/proc/stat") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("ctxt "))


def clocks(pids, daemon):
    agents = [agent_thread_ns(p) for p in pids] if daemon else [0] * len(pids)
    return {"wall": time.monotonic_ns(), "switches": switches(), "jvms": sum(map(bench.cpu_clock_ns, pids)), "agents": agents,
            "daemon": bench.cpu_clock_ns(daemon.data_pid()) if daemon else 0}


def measured(args, pids, daemon):
    """In % of one CPU, and switches a second."""
    time.sleep(args.settle)
    first = clocks(pids, daemon)
    time.sleep(args.seconds)
    last = clocks(pids, daemon)
    ns = last["wall"] - first["wall"]
    each = [b - a for a, b in zip(first["agents"], last["agents"])]
    return {"jvms": 100 * (last["jvms"] - first["jvms"]) / ns, "agents": 100 * sum(each) / ns, "most": 100 * max(each) / ns,
            "daemon": 100 * (last["daemon"] - first["daemon"]) / ns, "switches": (last["switches"] - first["switches"]) * 1e9 / ns}


def run(args, folder, build):
    """@build None = without kindling."""
    jvms = [Jvm(args.jdk, "Crowd", str(args.threads), str(args.mean), options=("-Xmx64m", "-XX:+UseSerialGC"), path=folder)
            for _ in range(args.jvms)]
    pids = [j.pid for j in jvms]
    try:
        if not build:
            return measured(args, pids, None)
        with Daemon(bench.settings(args, *SETTINGS), build=build) as daemon:
            for pid in pids:
                daemon.wait_state(pid, "streaming", bench.FOREVER)
            return measured(args, pids, daemon)
    finally:
        for j in jvms:
            j.__exit__()


def main():
    p = bench.parser(__doc__)
    p.add_argument("--jvms", type=int, default=20, help="at once (20)")
    p.add_argument("--threads", type=int, default=315, help="of each (315)")
    p.add_argument("--mean", type=int, default=2000, metavar="MS", help="how long they wait in the mean (2000)")
    p.add_argument("--settle", type=float, default=30, metavar="SECONDS", help="after the last attach (30)")
    p.add_argument("--seconds", type=float, default=15, help="measured (15)")
    p.add_argument("--rounds", type=int, default=2, help="with each build (2)")
    p.add_argument("--build", action="append", metavar="FOLDER", help="a build to measure (this one)")
    args = bench.begin(p)
    rows = []
    with tempfile.TemporaryDirectory(prefix="kindling-crowd-") as folder:
        os.chmod(folder, 0o755)
        compiled(folder)
        for build in [None] + (args.build or [BUILD]) * args.rounds:
            rows.append((build or "without kindling", run(args, folder, build)))
    print("%d JVMs of %d threads, JDK %s: %% of one CPU" % (args.jvms, args.threads, args.jdk))
    bench.table([("build", "all JVMs", "of it agents", "one agent, at most", "kindlingd", "switches a second of the host")] +
                [(name, *("%.2f" % f[k] for k in ("jvms", "agents", "most", "daemon")), "%.0f" % f["switches"]) for name, f in rows])
    bench.finish("crowd", args, {"runs": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
