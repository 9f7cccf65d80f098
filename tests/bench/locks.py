"""
What lock events cost an application, beside async-profiler 4.6's lock mode: operations per second of
tests/harness/java/LockBench.java with events against the same JVM without.

One JVM for each workload does all the work; blocks with events alternate with blocks without, and each is
held against the mean of the two beside it: a drift of the machine cancels out. "off again" is a block
without events measured the same way: the noise. Ours is agent_reader (attach, DETACH), the other
one's start and stop commands by jattach. Its threshold is ours (--min-wait) in one row, its own default
(10 us) in the other.

--thresholds: events a second and cost at 0.1, 1 and 10 ms, on waits of every length (holds) and on two
locks fought over for microseconds (monitors). --yield: what the environment of the monitor events costs a
virtual thread's yield on JDK 21 and later: JVMs with the agent (monitors auto, always, never) and without,
alternating, because an environment stays until the JVM ends; attached before the first virtual thread begins.
"""
import os
import re
import signal
import subprocess
import sys
import time

import bench
import stacks
from kindling import BUILD, Jvm

READER = os.path.join(BUILD, "tests", "agent_reader")
LIBRARY = os.path.realpath(os.path.join(BUILD, "lib", "libkindling.so"))
WORKLOADS = ("uncontended", "monitors", "locks", "parked", "pingpong", "permit")
HEAP = ("-Xms128m", "-Xmx128m")


class Application(Jvm):
    def look(self):
        self.process.stdin.write("count\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        while line[:1] != ["count"]:  # async-profiler may speak
            line = self.process.stdout.readline().split()
        return int(line[1]), int(line[2]), bench.cpu_clock_ns(self.pid)

    def block(self, seconds):
        """Operations (per second of wall time, per second of CPU time of the process)."""
        begin = self.look()
        time.sleep(seconds)
        end = self.look()
        return [(end[0] - begin[0]) * 1e9 / (end[i] - begin[i]) for i in (1, 2)]


class Ours:
    """The agent in a JVM with lock events on, for as long as the block is open."""

    def __init__(self, jvm, min_wait_ns, monitors="always"):
        self.jvm, self.options = jvm, ["-T", str(min_wait_ns), "-M", monitors, "-m", "10"]  # max_cpu: the default
        self.events = self.seconds = 0

    def __enter__(self):
        self.path = "/tmp/kindling-bench-locks-%d" % os.getpid()
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([READER, "-v", "-e", "lock", "-l", LIBRARY, "-d", "600", *self.options, str(self.jvm.pid)],
                                            stdout=out, stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while " events 2 " not in self.text() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        self.begin = time.monotonic()
        return self

    def text(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def __exit__(self, *unused):
        self.seconds += time.monotonic() - self.begin
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        text = self.text()
        os.unlink(self.path)
        taken = re.search(r"\block\.taken=(\d+)", text)
        self.events += int(taken.group(1)) if taken else 0
        if self.process.returncode:
            bench.cannot("agent_reader ends with %d: %s" % (self.process.returncode, text[-500:]))


class Theirs:
    def __init__(self, jvm, library, threshold):
        self.jvm, self.agent, self.threshold = jvm, library, threshold
        self.path = "/tmp/kindling-bench-%d.collapsed" % os.getpid()

    def command(self, words):
        done = subprocess.run(["jattach", str(self.jvm.pid), "load", self.agent, "true", words], capture_output=True, text=True)
        if done.returncode:
            bench.cannot("jattach: " + done.stdout + done.stderr)

    def __enter__(self):
        self.command("start,event=lock%s,collapsed,file=%s" % (",lock=" + self.threshold if self.threshold else "", self.path))

    def __exit__(self, *unused):
        self.command("stop,collapsed,file=" + self.path)
        if os.path.exists(self.path):
            os.unlink(self.path)


class Off:
    def __enter__(self):
        pass

    def __exit__(self, *unused):
        pass


def rounds(args, jvm, states):
    """{state: [rate on / mean of the rates off beside it]}, rates off."""
    ratios, off = {name: [] for name in states}, []

    def measure(state):
        with state:
            time.sleep(args.settle)
            return jvm.block(args.block)

    before = measure(Off())
    for i in range(args.rounds):
        names = list(states)
        for name in names[i % len(names):] + names[:i % len(names)]:
            on, after = measure(states[name]), measure(Off())
            ratios[name].append([2 * n / (b + a) for n, b, a in zip(on, before, after)])
            off.append(after)
            before = after
    return ratios, off


HEAD = ("workload", "with", "per s of wall time", "q1", "q3", "per s of CPU time", "q1", "q3")


def cells(pairs):
    return ["%.3f" % bench.quantile([pair[i] for pair in pairs], q) for i in (0, 1) for q in (0.5, 0.25, 0.75)]


def side_by_side(args):
    library, got = stacks.rival(), {}
    table = [HEAD + ("ns of CPU an operation, without",)]
    for workload in args.workloads:
        with Application(args.jdk, "LockBench", workload, options=HEAP) as jvm:
            time.sleep(args.warmup)
            states = {"off again": Off(), "kindling": Ours(jvm, args.min_wait_ns)}
            if library:
                states["async-profiler"] = Theirs(jvm, library, "%dus" % (args.min_wait_ns / 1000))
                states["async-profiler, 10 us"] = Theirs(jvm, library, "")
            ratios, off = rounds(args, jvm, states)
            got[workload] = {"ratios": ratios, "off": off, "events_per_s": states["kindling"].events / states["kindling"].seconds}
        ns = 1e9 / bench.quantile([rate[1] for rate in off], 0.5)
        table += [(workload, name, *cells(pairs), "%.0f" % ns) for name, pairs in ratios.items()]
        print("  %s done" % workload, flush=True)
    print("lock events on against off, JDK %s, threshold %.1f ms, %d rounds of %g s blocks" % (
        args.jdk, args.min_wait_ns / 1e6, args.rounds, args.block))
    bench.table(table)
    return got


def thresholds(args):
    got, table = {}, [HEAD + ("events/s",)]
    for workload in ("holds", "monitors", "locks"):
        with Application(args.jdk, "LockBench", workload, options=HEAP) as jvm:
            time.sleep(args.warmup)
            states = {"%g ms" % ms: Ours(jvm, int(ms * 1e6)) for ms in (0.01, 0.1, 1, 10)}
            ratios, off = rounds(args, jvm, states)
            for name, state in states.items():
                got[workload, name] = {"ratios": ratios[name], "events_per_s": state.events / state.seconds}
                table.append((workload, name, *cells(ratios[name]), "%.0f" % (state.events / state.seconds)))
    print("thresholds, JDK %s" % args.jdk)
    bench.table(table)
    return {" ".join(k): v for k, v in got.items()}


def yields(args):
    """ns a yield, one carrier."""
    carriers = ("-Djdk.virtualThreadScheduler.parallelism=1", "-Djdk.virtualThreadScheduler.maxPoolSize=1")
    got = {"without": [], "never": [], "auto": [], "always": []}
    for i in range(args.rounds):
        names = list(got)
        for name in names[i % 4:] + names[:i % 4]:
            with Application(args.jdk, "LockBench", "yield", options=HEAP + carriers) as jvm:
                state = Off() if name == "without" else Ours(jvm, args.min_wait_ns, name)
                with state:
                    jvm.look()  # the JVM's first virtual threads begin at this line
                    time.sleep(args.warmup)
                    got[name].append(1e9 / jvm.block(args.block)[1])
    print("a virtual thread's yield, ns of CPU, JDK %s, %d JVMs each" % (args.jdk, args.rounds))
    bench.table([("monitors", "median", "q1", "q3")] + [
        (name, *("%.0f" % bench.quantile(values, q) for q in (0.5, 0.25, 0.75))) for name, values in got.items()])
    return got


def main():
    p = bench.parser(__doc__)
    p.add_argument("--rounds", type=int, default=8, help="each state once (8)")
    p.add_argument("--block", type=float, default=2, metavar="SECONDS", help="one block (2)")
    p.add_argument("--settle", type=float, default=0.5, metavar="SECONDS", help="after a switch (0.5)")
    p.add_argument("--warmup", type=float, default=5, metavar="SECONDS", help="before the first block (5)")
    p.add_argument("--min-wait", dest="min_wait_ns", type=lambda ms: int(float(ms) * 1e6), default=1_000_000,
                   metavar="MS", help="the threshold (1)")
    p.add_argument("--workloads", nargs="+", default=WORKLOADS)
    p.add_argument("--thresholds", action="store_true")
    p.add_argument("--yield", dest="yields", action="store_true")
    args = bench.begin(p)
    if args.yields:
        figures = yields(args)
    else:
        figures = thresholds(args) if args.thresholds else side_by_side(args)
    bench.finish("locks" + ("-yield" if args.yields else "-thresholds" if args.thresholds else ""), args, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
