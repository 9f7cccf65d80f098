"""
What kindlingd pays at high rates, and how old a sample is then when somebody reads it: several JVMs
(tests/harness/java/KnownShares.java, which keeps more than two CPUs busy) at --interval. CPU time is that of
kindlingd-data and of all receivers between two looks at the accounts, first without a reader, then with one
`kindling tail --json` of one of the JVMs; age as in latency.py.
"""
import sys
import time

import bench
from kindling import Daemon, Jvm, accounts_balance, wait_for
from latency import Tail, spread

SETTINGS = ("    max_cpu: 100%",)


def receivers(daemon):
    """Their numbers."""
    found = []
    with open("/proc/%d/task/%d/children" % (daemon.process.pid, daemon.process.pid)) as f:
        for pid in map(int, f.read().split()):
            with open("/proc/%d/cmdline" % pid) as words:
                if "receive" in words.read().split("\0"):
                    found.append(pid)
    return found


def look(daemon, jvms, pids):
    targets = [daemon.target(j.pid) for j in jvms]
    accounts = [accounts_balance(t) for t in targets]
    return {"wall_ns": time.monotonic_ns(), "data_ns": bench.cpu_clock_ns(daemon.data_pid()),
            "receivers_ns": sum(map(bench.cpu_clock_ns, pids)), "delivered": sum(b["delivered"] for b in accounts),
            "dropped": sum(sum(b["dropped"].values()) for b in accounts), "agents_ns": sum(t["agent"]["cpu_ns"] for t in targets)}


def measure(daemon, jvms, seconds):
    pids = receivers(daemon)
    first = look(daemon, jvms, pids)
    time.sleep(seconds)
    last = look(daemon, jvms, pids)
    d = {k: last[k] - first[k] for k in first}
    rate, n = d["delivered"] / d["wall_ns"] * 1e9, max(d["delivered"], 1)
    return {"samples_per_s": rate, "dropped": d["dropped"], "data_us": d["data_ns"] / n / 1e3, "receivers_us": d["receivers_ns"] / n / 1e3,
            "agents_us": d["agents_ns"] / n / 1e3, "percent_per_10000": (d["data_ns"] + d["receivers_ns"]) / n * 1e4 / 1e7}


def row(name, m):
    return (name, "%.0f" % m["samples_per_s"], "%d" % m["dropped"], "%.2f" % m["data_us"], "%.2f" % m["receivers_us"],
            "%.2f" % m["agents_us"], "%.1f" % m["percent_per_10000"])


def run(args, jvms):
    with Daemon(bench.settings(args, *SETTINGS)) as daemon:
        for jvm in jvms:
            daemon.wait_state(jvm.pid, "streaming", bench.FOREVER)
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100, bench.FOREVER)
        time.sleep(3)  # so that names and stacks, which are sent once, are not measured
        alone = measure(daemon, jvms, args.seconds)
        tail = Tail(daemon, str(jvms[0].pid))
        time.sleep(1)
        read = measure(daemon, jvms, args.seconds)
        events = tail.end()
        engine = daemon.target(jvms[0].pid)["engine"]
    ages = [(moment - e["ts_ns"]) / 1e6 for moment, e in events if e["event"] == "cpu"]
    lost = sum(e["count"] for _, e in events if e["event"] == "dropped")
    if len(ages) < 100:
        bench.cannot("%d samples in %g s" % (len(ages), args.seconds))
    figures = spread(ages)
    print("%d JVMs, JDK %s, every %s (engine %s), %g s each" % (len(jvms), args.jdk, args.interval, engine, args.seconds))
    bench.table([("CPU us a sample", "samples/s", "dropped", "kindlingd-data", "receivers", "agents", "% of a CPU per 10,000/s"),
                 row("no reader", alone), row("one is read", read)])
    print("age of a sample on its tail, ms: p50 %.1f, p90 %.1f, p99 %.1f, max %.1f; %d lines, %d lost by the reader" % (
        figures["p50"], figures["p90"], figures["p99"], figures["max"], len(ages), lost))
    return {"no_reader": alone, "one_is_read": read, "age_ms": figures, "lost": lost, "jvms": len(jvms)}


def main():
    p = bench.parser(__doc__)
    p.set_defaults(interval="200us")
    p.add_argument("--jvms", type=int, default=3, help="how many (3)")
    p.add_argument("--seconds", type=float, default=15, help="measured, twice (15)")
    args = bench.begin(p)
    jvms = []
    try:
        for _ in range(args.jvms):
            jvms.append(Jvm(args.jdk, "KnownShares", full=True).__enter__())
        bench.finish("rates", args, run(args, jvms))
    finally:
        for jvm in jvms:
            jvm.__exit__()
    return 0


if __name__ == "__main__":
    sys.exit(main())
