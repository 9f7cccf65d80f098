"""
What the agent uses in a JVM in steady state, under the mixed workload tests/harness/java/KnownShares.java:
threads that burn, threads that sleep, deep stacks, garbage, threads that live for 3 ms.

The heap is touched in full at the start and the JVM runs on its own first, so that the growth of RssAnon
by attaching is the agent's and not the heap's; "in the same time before" is the control. CPU and bytes are
differences of what the accounts of `kindling status --json` say at both ends of the time measured. Memory by part
is the agent's own count, asked for by agent_reader in a JVM of its own, at the first sample and --parts later.
"""
import os
import re
import subprocess
import sys
import time

import bench
from kindling import BUILD, Daemon, Jvm, agent_copies, accounts_balance, wait_for

ATTEMPTS = 5


def memory(pid):
    """Resident bytes, by kind."""
    got = {}
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            key, value = line.split(":", 1)
            if key in ("VmRSS", "RssAnon", "RssFile"):
                got[key] = int(value.split()[0]) * 1024
    return got


def look(daemon, jvm):
    t = daemon.target(jvm.pid)
    s, a = t["samples"], t["agent"]
    return {"wall_ns": time.monotonic_ns(), "process_ns": bench.cpu_clock_ns(jvm.pid),
            "daemon_ns": bench.cpu_clock_ns(daemon.data_pid()), "taken": s["taken"], "delivered": s["delivered"],
            "dropped": sum(s["dropped"].values()), "broken": s["broken"], "pipe_bytes": s["pipe_bytes"],
            "agent_ns": a["cpu_ns"], "handler_ns": a["handler_ns"]}


def report(args, d, steps, end, rss):
    seconds, samples = d["wall_ns"] / 1e9, max(d["delivered"], 1)
    agent = end["agent"]
    got = {
        "seconds": seconds, "cpus": d["process_ns"] / d["wall_ns"], "samples": d["delivered"],
        "samples_per_s": d["delivered"] / seconds, "dropped": d["dropped"], "broken": d["broken"],
        "pipe_bytes_per_sample": d["pipe_bytes"] / samples, "pipe_bytes_per_s": d["pipe_bytes"] / seconds,
        "agent_cpu_percent_of_process": 100 * d["agent_ns"] / d["process_ns"],
        "agent_cpu_percent_of_one_cpu": 100 * d["agent_ns"] / d["wall_ns"],
        "handler_ns_per_sample": d["handler_ns"] / max(d["taken"], 1),
        "writer_ns_per_sample": (d["agent_ns"] - d["handler_ns"]) / samples,
        "real_interval_ns": end["interval_ns"], "agent_bytes": agent["bytes"], "threads": agent["threads"],
        "daemon_cpu_percent_of_one_cpu": 100 * d["daemon_ns"] / d["wall_ns"],
        "daemon_cpu_ns_per_sample": d["daemon_ns"] / samples, "daemon_rss_bytes": rss, "memory": steps,
    }
    print("cost, JDK %s, every %s (%.1f ms real), %.0f s of %.2f CPUs, %d threads" % (
        args.jdk, args.interval, end["interval_ns"] / 1e6, seconds, got["cpus"], agent["threads"]))
    bench.table([
        ("what", "value", "unit"),
        ("samples", "%d" % got["samples"], "%.0f/s, %d dropped, %d broken" % (got["samples_per_s"], d["dropped"], d["broken"])),
        ("bytes on the pipe", "%.1f" % got["pipe_bytes_per_sample"], "a sample"),
        ("agent CPU", "%.3f" % got["agent_cpu_percent_of_process"], "% of the process's CPU time"),
        ("agent CPU", "%.3f" % got["agent_cpu_percent_of_one_cpu"], "% of one CPU"),
        ("  in handlers", "%.2f" % (got["handler_ns_per_sample"] / 1000), "us a sample"),
        ("  in its thread", "%.2f" % (got["writer_ns_per_sample"] / 1000), "us a sample"),
        ("agent memory by its own count", "%d" % (agent["bytes"] // 1024), "KiB"),
        ("kindlingd CPU", "%.3f" % got["daemon_cpu_percent_of_one_cpu"], "% of one CPU"),
        ("kindlingd CPU", "%.2f" % (got["daemon_cpu_ns_per_sample"] / 1000), "us a sample"),
        ("kindlingd RSS", "%d" % (rss // 1024), "KiB"),
    ])
    print()
    begin = steps["before attach"]
    bench.table([("resident memory, KiB", "RssAnon", "change", "RssFile", "change")] +
                [(when, m["RssAnon"] // 1024, "%+d" % ((m["RssAnon"] - begin["RssAnon"]) // 1024),
                  m["RssFile"] // 1024, "%+d" % ((m["RssFile"] - begin["RssFile"]) // 1024)) for when, m in steps.items()])
    return got


def measure(args, jvm):
    """The arguments of report(), or None if another daemon was in the JVM before ours."""
    # the control: memory as long before the attach as the last reading is after it
    time.sleep(args.warmup)
    steps = {"%.0f s before attach" % args.seconds: memory(jvm.pid)}
    time.sleep(args.seconds)
    if agent_copies(jvm.pid):
        print("  another daemon of this machine has its agent in the JVM: once more with another JVM")
        return None
    steps["before attach"] = memory(jvm.pid)
    with Daemon(bench.settings(args)) as daemon:
        daemon.wait_state(jvm.pid, "streaming", bench.FOREVER)
        wait_for("a sample", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 0, bench.FOREVER)
        steps["after the first sample"] = memory(jvm.pid)
        time.sleep(5)  # so that names and stacks, which are sent once, are not measured
        first = look(daemon, jvm)
        time.sleep(args.seconds)
        last, end = look(daemon, jvm), daemon.target(jvm.pid)
        steps["%.0f s later" % (args.seconds + 5)] = memory(jvm.pid)
        rss = memory(daemon.data_pid())["VmRSS"]
        if end["state"] != "streaming" or last["delivered"] <= first["delivered"]:
            bench.cannot("pid %d is %s: %s" % (jvm.pid, end["state"], end["reason"]))
        accounts_balance(end)
    return {k: last[k] - first[k] for k in first}, steps, end, rss


def parts(args, options):
    """{when: {part: bytes}}, by the agent's own count."""
    with Jvm(args.jdk, "KnownShares", options=options, full=True) as jvm:
        time.sleep(min(args.warmup, 5))
        before = memory(jvm.pid)["RssAnon"]
        reader = subprocess.Popen(
            [os.path.join(BUILD, "tests", "agent_reader"), "-D", "-d", str(args.parts), "-i", "10000",
             "-l", os.path.join(BUILD, "lib", "libkindling.so"), str(jvm.pid)], stdout=subprocess.PIPE, text=True)
        time.sleep(1.5)
        grown = [memory(jvm.pid)["RssAnon"] - before]
        time.sleep(max(0, args.parts - 2))
        grown.append(memory(jvm.pid)["RssAnon"] - before)
        out = reader.communicate()[0]
    got = {when: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)}
           for when, line in re.findall(r"^memory (first|last):(.*)$", out, re.M)}
    if len(got) < 2:
        bench.cannot(out)
    print("\nmemory by part, JDK %s, at the first sample and %.0f s later" % (args.jdk, args.parts))
    bench.table([("KiB", "first", "last")] +
                [(part, got["first"][part] // 1024, got["last"][part] // 1024) for part in got["first"]] +
                [("all", *(sum(got[when].values()) // 1024 for when in ("first", "last"))),
                 ("RssAnon grew by", *(g // 1024 for g in grown))])
    return dict(got, rss_anon_grown=grown)


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=float, default=60, help="measured (60)")
    p.add_argument("--warmup", type=float, default=60, metavar="SECONDS", help="of the JVM before the attach (60)")
    p.add_argument("--parts", type=float, default=300, metavar="SECONDS", help="between the two looks at memory by part (300)")
    p.add_argument("--heap", default="128m", help="of the JVM (128m)")
    args = bench.begin(p)
    heap = ("-Xms" + args.heap, "-Xmx" + args.heap, "-XX:+AlwaysPreTouch")
    for _ in range(ATTEMPTS):
        with Jvm(args.jdk, "KnownShares", options=heap, full=True) as jvm:
            got = measure(args, jvm)
        if got:
            figures = report(args, *got)
            bench.finish("cost", args, dict(figures, parts=parts(args, heap)) if args.parts else figures)
            return 0
    bench.cannot("another daemon of this machine is in every JVM")


if __name__ == "__main__":
    sys.exit(main())
