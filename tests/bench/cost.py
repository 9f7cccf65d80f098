"""What the agent takes from a JVM in steady state: cost.py [--jdk 17] [--seconds 60].

Memory is RssAnon of the JVM: before the attach, after the first sample, at the end; the heap is touched
beforehand, but a JVM grows by itself, so a twin without an agent runs beside it and its growth is
printed too.
"""
import argparse
import time

from bench import machine, memory_kb, save
from kindling import Daemon, Jvm, cpu_ns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", default="17")
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    with Jvm(args.jdk) as jvm:
        time.sleep(10)  # warm: what it allocates for itself is there
        before = memory_kb(jvm.pid)
        with Daemon() as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            first = daemon.target(jvm.pid)
            after_attach = memory_kb(jvm.pid)
            time.sleep(5)
            begin, cpu, begin_s = daemon.target(jvm.pid), cpu_ns(jvm.pid), time.monotonic()
            time.sleep(args.seconds)
            end, cpu, wall = daemon.target(jvm.pid), cpu_ns(jvm.pid) - cpu, time.monotonic() - begin_s
            at_end = memory_kb(jvm.pid)
    delivered = end["samples"]["delivered"] - begin["samples"]["delivered"]
    delta = {k: end["agent"][k] - begin["agent"][k] for k in ("cpu_ns", "handler_ns", "pipe_bytes") if k in end["agent"]}
    result = {
        "first_sample_ms": first.get("first_sample_ms", end.get("first_sample_ms")),
        "samples": delivered,
        "pipe_bytes_per_sample": delta.get("pipe_bytes", 0) / delivered,
        "handler_us_per_sample": delta.get("handler_ns", 0) / delivered / 1000,
        "agent_us_per_sample": (delta["cpu_ns"]) / delivered / 1000,
        "agent_percent_of_process": 100 * delta["cpu_ns"] / cpu,
        "agent_percent_of_one_cpu": 100 * delta["cpu_ns"] / wall / 1e9,
        "agent_kb": end["agent"]["bytes"] / 1024,
        "rss_kb_attach": after_attach - before,
        "rss_kb_end": at_end - before,
    }
    print("JDK %s, %s, %.0f s:" % (args.jdk, machine(), wall))
    for key, value in result.items():
        print("  %-26s %.2f" % (key, value or 0))
    save("cost-%s" % args.jdk, result)


if __name__ == "__main__":
    main()
