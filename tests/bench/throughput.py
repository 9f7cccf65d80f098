"""Work done with the agent at 10 ms against without: throughput.py [--jdk 17] [--pairs 8] [--block 4].

One JVM, so that the compiler's choices are the same on both sides; blocks with and without a daemon
follow each other as A B B A, because the speed of a shared machine drifts. The second is taken after
the daemon streams, and before it is stopped.
"""
import argparse
import time

from bench import machine, save, spread
from kindling import Daemon, Jvm


def rate(jvm, seconds):
    """Pieces of work per second of wall time."""
    begin = jvm.mark()
    time.sleep(seconds)
    end = jvm.mark()
    return (end["pieces"] - begin["pieces"]) / (end["nanos"] - begin["nanos"]) * 1e9


def with_agent(jvm, seconds, interval):
    with Daemon("cpu_interval: %s\n" % interval if interval else "") as daemon:
        daemon.wait_state(jvm.pid, "streaming")
        time.sleep(0.5)
        return rate(jvm, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", default="17")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--block", type=float, default=4, help="seconds")
    parser.add_argument("--threads", default="2")
    args = parser.parse_args()
    ratios = []
    with Jvm(args.jdk, "Throughput", args.threads) as jvm:
        time.sleep(5)  # compiled, and the heap has its size
        for i in range(args.pairs):
            if i % 2:
                on = with_agent(jvm, args.block, "")
                off = rate(jvm, args.block)
            else:
                off = rate(jvm, args.block)
                on = with_agent(jvm, args.block, "")
            ratios.append(on / off)
            print("pair %d: %.0f with, %.0f without, ratio %.4f" % (i + 1, on, off, ratios[-1]), flush=True)
    print("JDK %s, %s: throughput with / without: %s" % (args.jdk, machine(), spread(ratios, digits=4)))
    save("throughput-%s" % args.jdk, {"ratios": ratios})


if __name__ == "__main__":
    main()
