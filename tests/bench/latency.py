"""How long things take: latency.py [--jdk 17] [--launches 20] [--seconds 30].

Start: from the moment the daemon sees a new JVM (one spinning thread) to its first sample, as the daemon
measures it, and from the launch. Tail: from a sample's own clock to the line that `kindling tail` prints.
"""
import argparse
import json
import re
import subprocess
import time

from bench import machine, quantile, save
from kindling import BUILD, Daemon, Jvm, wait_for


def show(what, values, unit="ms"):
    print("  %-34s p50 %.1f %s, p90 %.1f, p99 %.1f, max %.1f (n = %d)" % (
        what, quantile(values, 0.5), unit, quantile(values, 0.9), quantile(values, 0.99), max(values), len(values)))


def starts(daemon, jdk, launches):
    """(ms since seen, ms since launch) of each."""
    out = []
    for _ in range(launches):
        begin = time.monotonic()
        with Jvm(jdk, "Throughput", "1") as jvm:
            line = wait_for("a first sample", lambda: re.search(
                r"target.first_sample pid=%d after_ms=([\d.]+)" % jvm.pid, daemon.read_log()), 30)
            out.append((float(line.group(1)), (time.monotonic() - begin) * 1000))
    return out


def lines(daemon, pid, seconds):
    """ms from each sample to its line."""
    tail = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--json", str(pid)],
                            stdout=subprocess.PIPE, text=True)
    out, end = [], time.monotonic() + seconds
    for line in tail.stdout:
        now = time.time_ns()
        out.append((now - json.loads(line)["ts_ns"]) / 1e6)
        if time.monotonic() > end:
            break
    tail.terminate()
    tail.stdout.close()
    tail.wait()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", default="17")
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    print("JDK %s, %s:" % (args.jdk, machine()))
    with Daemon() as daemon:
        started = starts(daemon, args.jdk, args.launches)
        show("seen to first sample", [s for s, _ in started])
        show("launch to first sample (polled)", [s for _, s in started])
        with Jvm(args.jdk, "Throughput", "1") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            late = lines(daemon, jvm.pid, args.seconds)
    show("sample to line", late)
    save("latency-%s" % args.jdk, {"start_ms": started, "tail_ms": {q: quantile(late, q) for q in (0.5, 0.9, 0.99, 1)}})


if __name__ == "__main__":
    main()
