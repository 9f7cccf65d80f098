"""Shared by all benches: options, tables of numbers, JSON files beside the build."""
import argparse
import json
import os
import platform
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import kindling  # noqa: E402

FOREVER = 600.0  # a bench waits as long as it takes, and fails only if nothing can be measured


def parser(text):
    p = argparse.ArgumentParser(description=text.strip(), formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jdk", default="17", metavar="MAJOR", help="which JDK (17)")
    p.add_argument("--interval", default="10ms", help="sampling interval (10ms)")
    p.add_argument("--json", metavar="FILE", help="where the figures go (BUILD/bench/NAME-jdkMAJOR.json)")
    p.add_argument("--alone", action="store_true",
                   help="with a /tmp/kindling of the bench's own: other daemons neither place their files there nor take any away")
    return p


def begin(p):
    """Parses the options; with --alone, runs again in a mount namespace of its own."""
    args = p.parse_args()
    if os.geteuid() != 0:
        kindling.skip("needs root")
    if args.alone and os.environ.get("KINDLING_BENCH") != "alone":
        setup = "mkdir -p /tmp/kindling && mount -t tmpfs -o mode=0755 kindling /tmp/kindling && exec \"$@\""
        os.environ["KINDLING_BENCH"] = "alone"
        os.execvp("unshare", ["unshare", "--mount", "sh", "-c", setup, "sh", sys.executable] + sys.argv)
    # if a bench is ended, its daemon and JVMs end too; also in the background, where SIGINT is ignored
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    args.load_before = os.getloadavg()
    return args


def settings(args, *more):
    """The daemon's settings for a bench."""
    return "".join(line + "\n" for line in ("events:", "  cpu:", "    interval: " + args.interval) + more)


def quantile(values, q):
    """By linear interpolation."""
    v = sorted(values)
    at = q * (len(v) - 1)
    low = int(at)
    return v[low] + (at - low) * (v[min(low + 1, len(v) - 1)] - v[low])


def cpu_clock_ns(pid):
    """CPU time of a whole process by its clock, whose number clock_getcpuclockid(3) computes."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def table(rows):
    """Prints rows of cells; the first row is the head."""
    rows = [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]))


def finish(name, args, figures):
    """Writes the JSON, and prints the kind of machine."""
    load = os.getloadavg()
    figures = dict(figures, bench=name, jdk=args.jdk, interval=args.interval, alone=args.alone,
                   machine={"kernel": platform.release(), "arch": platform.machine(), "cpus": os.cpu_count()},
                   load_average={"before": args.load_before, "after": load}, at=time.strftime("%FT%TZ", time.gmtime()))
    path = args.json or os.path.join(kindling.BUILD, "bench", "%s-jdk%s.json" % (name, args.jdk))
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as f:
        json.dump(figures, f, indent=1)
        f.write("\n")
    print("load average %.2f before, %.2f after, on %d CPUs; kernel %s; figures in %s" % (
        args.load_before[0], load[0], os.cpu_count(), platform.release(), os.path.relpath(path)))


def cannot(why):
    print("CANNOT MEASURE: " + why)
    sys.exit(1)
