"""
What kindling costs an application, with CPU samples and lock events or with the --events that are named: operations
of a deterministic workload (tests/harness/java/Work.java), with --tomcat the answers of a server
(programs/ServletLoop.java), with --handoff of threads that switch all the time (programs/HandOff.java), with the
agent in it, against the same JVM without, or with --against the same JVM with other events. With --rival also async-profiler 4.6, event=cpu at the same interval,
in turns in the same JVM.

One JVM does all the work. Two JVMs of the same program differ by several percent (what the JIT inlined,
where code and heap lie), which is more than the agent costs; one warm JVM does not. Between blocks the
daemon is started (it attaches) or ended by SIGTERM (it detaches: no timer, no thread, no handler of ours
stays). The states alternate as off on, on off, off on, ...: a drift of the machine cancels out over two
pairs. Two blocks of the same state that follow each other tell the noise. Worker threads are fewer than
the CPUs, so that the daemon and the rest of the machine have one of their own; the server and its clients, in
one JVM, have all of them.

Two rates: per second of wall time, and per second of CPU time of the whole process, which does not see
the neighbours take CPUs away, but does see all CPU that the agent uses in the process.

A pair in which another daemon reached into the JVM, or ours was not streaming at the asked interval, is
thrown away, counted and repeated.

What this cannot see: what an attach leaves behind after the detach (on JDK 21 and later the environment
of JVMTI). The row "before the first attach" says it, with the drift of warming up in it.

With --against the daemon stays; a reload changes what it collects.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

import bench
import stacks
from kindling import Daemon, Jvm, java_home, timers, wait_for

SPOILED_MAX = 20
OFF, ON, RIVAL = "off", "on", "async-profiler"


def settings(args, events):
    return bench.settings(args, *("  %s: {}" % e for e in events.split(",") if e != "cpu"))


class Application(Jvm):
    """Answers "count"."""

    def look(self):
        self.process.stdin.write("count\n")
        self.process.stdin.flush()
        # the rival writes into the application's output
        said = next(line for line in self.process.stdout if line.startswith("COUNT "))
        _, operations, at_ns = said.split()
        return int(operations), int(at_ns), bench.cpu_clock_ns(self.pid)

    def block(self, seconds):
        """(operations per second of wall time, per second of CPU time)"""
        begin = self.look()
        time.sleep(seconds)
        end = self.look()
        operations, wall, cpu = (e - b for b, e in zip(begin, end))
        return operations * 1e9 / wall, operations * 1e9 / cpu


@contextlib.contextmanager
def program(args, main, *words, jars=()):
    """One of programs/, compiled."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
    path = [tempfile.mkdtemp(prefix="kindling-throughput-"), *map(stacks.maven, jars)]
    subprocess.run([java_home(args.jdk) + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", path[0],
                    "%s/%s.java" % (here, main)], check=True, stderr=subprocess.DEVNULL)
    try:
        with Application(args.jdk, main, *words, options=("-Xms256m", "-Xmx256m"), path=":".join(path)) as jvm:
            yield jvm
    finally:
        shutil.rmtree(path[0])


def application(args):
    if args.tomcat:
        return program(args, "ServletLoop", jars=stacks.JARS)
    if args.handoff:
        return program(args, "HandOff", "4")
    return Application(args.jdk, "Work", str(args.threads), options=("-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch"))


class Switch:
    """Attaches the profiler of a block to the JVM: none, kindling, or the rival."""

    def __init__(self, daemon, jvm, args):
        self.daemon, self.jvm, self.args = daemon, jvm, args
        self.state = ON

    def rival(self, what):
        subprocess.run(["jattach", str(self.jvm.pid), "load", stacks.rival(), "true", what],
                       stdout=subprocess.DEVNULL, check=True)

    def collect(self, events):
        self.daemon.configure(settings(self.args, events))
        self.daemon.cli("config", "reload")
        wait_for("these events", lambda: set(self.daemon.target(self.jvm.pid)["events"]) == set(events.split(",")), bench.FOREVER)

    def leave(self):
        if self.state == ON:
            self.daemon.stop()
        elif self.state == RIVAL:
            self.rival("stop,file=/dev/null,collapsed")

    def put(self, state):
        if self.args.against:
            self.collect(self.args.events if state == ON else self.args.against)
        elif state != self.state:
            self.leave()
            if state == RIVAL:
                self.rival("start,event=cpu,interval=" + self.args.interval)
            elif state == ON:
                self.daemon.start()
        self.state = state
        if state == ON and not self.args.against:
            self.daemon.wait_state(self.jvm.pid, "streaming", bench.FOREVER)
            wait_for("samples", lambda: self.daemon.target(self.jvm.pid)["samples"]["delivered"] > 0, bench.FOREVER)
        time.sleep(self.args.settle)

    def sampled(self):
        return self.state == ON or bool(self.args.against)

    def accounts(self):
        if not self.sampled():
            return None
        t = self.daemon.target(self.jvm.pid)
        return t["state"], t["interval_ns"], t["samples"]["taken"], t["agent"]["cpu_ns"]

    def measure(self):
        """(wall rate, CPU rate), or None if the block was disturbed; number of samples in it."""
        before, timers_before = self.accounts(), timers(self.jvm.pid)
        rates = self.jvm.block(self.args.block)
        after, timers_after = self.accounts(), timers(self.jvm.pid)
        if not self.sampled():
            return (rates, 0) if timers_before == timers_after == 0 else (None, 0)
        if before[0] != "streaming" or after[0] != "streaming" or before[1] != after[1] or after[2] <= before[2]:
            return None, 0
        return rates, after[2] - before[2]


def interval_of_median(values):
    """The 95 % interval of the median by order statistics; the whole range for fewer than 6 values."""
    v, n, tail, k = sorted(values), len(values), 0.5 ** len(values), 0
    term = tail
    while tail <= 0.025:
        k += 1
        term = term * (n - k + 1) / k
        tail += term
    k = max(k - 1, 0)
    return v[k], v[n - 1 - k]


def percent(ratios):
    """Converts ratios on/off to percent of lost throughput."""
    low, high = interval_of_median(ratios)
    return {"median": 100 * (1 - bench.quantile(ratios, 0.5)), "q1": 100 * (1 - bench.quantile(ratios, 0.75)),
            "q3": 100 * (1 - bench.quantile(ratios, 0.25)), "low95": 100 * (1 - high), "high95": 100 * (1 - low)}


def ratio(rates, base):
    return [a / b for a, b in zip(rates, base)]


def run(args, daemon, jvm):
    switch = Switch(daemon, jvm, args)
    states = [OFF, ON] + [RIVAL] * args.rival
    switch.put(OFF)
    before, untouched = jvm.untouched, timers(jvm.pid) == 0
    pairs, same, spoiled, samples, previous = [], [], 0, 0, None
    while len(pairs) < args.pairs:
        order = states[::-1] if len(pairs) % 2 else states
        rates = {}
        for state in order:
            switch.put(state)
            rates[state], n = switch.measure()
            samples += n
        if not all(rates.values()):
            spoiled += 1
            previous = None
            if spoiled > SPOILED_MAX:
                bench.cannot("%d blocks in which something else happened to the JVM\n%s" % (
                    spoiled, daemon.read_log()[-3000:]))
            continue
        if previous and previous[0] == order[0]:
            same.append(ratio(rates[order[0]], previous[1]))
        previous = order[-1], rates[order[-1]]
        pairs.append({"first": order[0], "rates": rates, "ratio": {s: ratio(rates[s], rates[OFF]) for s in states[1:]}})
        print("  pair %2d (%s first): %8.0f operations/s off; %s" % (
            len(pairs), order[0], rates[OFF][0], ", ".join("%s %.4f, by CPU time %.4f" % (s, *r)
                                                           for s, r in pairs[-1]["ratio"].items())), flush=True)
    switch.put(OFF)
    return {"pairs": pairs, "same_state": same, "spoiled": spoiled, "samples": samples,
            "before_first_attach": before if untouched else None}


def report(got, args):
    off = [bench.quantile([p["rates"][OFF][i] for p in got["pairs"]], 0.5) for i in (0, 1)]
    rows = [("throughput lost, %", "median", "q1", "q3", "95 % of the median")]
    got["lost_percent"] = {}
    for i, clock in ((0, "wall"), (1, "cpu")):
        named = [("%s, per s of %s time" % (s, clock), [p["ratio"][s][i] for p in got["pairs"]])
                 for s in got["pairs"][0]["ratio"]]
        if args.rival:
            named.append(("  kindling against it", [p["ratio"][ON][i] / p["ratio"][RIVAL][i] for p in got["pairs"]]))
        for what, ratios in [*named, ("  the same state twice", [s[i] for s in got["same_state"]])]:
            if not ratios:
                continue
            p = percent(ratios)
            got["lost_percent"][what.strip() + (" " + clock if what[0] == " " else "")] = p
            rows.append((what, *("%+.2f" % p[k] for k in ("median", "q1", "q3")),
                         "%+.2f to %+.2f" % (p["low95"], p["high95"])))
    bench.table(rows)
    if got["before_first_attach"]:
        print("  before the first attach against off: %+.2f %% by CPU time" % (
            100 * (got["before_first_attach"][1] / off[1] - 1)))
    print("  %d pairs of %g s blocks, %s, %d samples, %d pairs thrown away" % (
        len(got["pairs"]), args.block, "Tomcat" if args.tomcat else "threads that switch" if args.handoff else "%d threads" % args.threads, got["samples"],
        got["spoiled"]))


def main():
    p = bench.parser(__doc__)
    p.add_argument("--pairs", type=int, default=12, help="pairs of blocks (12)")
    p.add_argument("--block", type=float, default=3, metavar="SECONDS", help="one block (3)")
    p.add_argument("--settle", type=float, default=1.5, metavar="SECONDS", help="after a switch (1.5)")
    p.add_argument("--warmup", type=float, default=20, metavar="SECONDS", help="before the first block (20)")
    p.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="workers (CPUs - 2)")
    p.add_argument("--tomcat", action="store_true", help="a server and its clients instead of the workload")
    p.add_argument("--handoff", action="store_true", help="threads that switch all the time instead of the workload")
    p.add_argument("--events", default="cpu,lock", metavar="LIST", help="what the daemon collects (cpu,lock)")
    p.add_argument("--against", default="", metavar="LIST", help="compare with a daemon that collects these, not with none")
    p.add_argument("--rival", action="store_true", help="also async-profiler's event=cpu")
    args = bench.begin(p)
    if args.rival and not stacks.rival():
        return 1
    with application(args) as jvm:
        time.sleep(args.warmup)
        jvm.untouched = jvm.block(2 * args.block)
        with Daemon(settings(args, args.events)) as daemon:
            daemon.wait_state(jvm.pid, "streaming", bench.FOREVER)
            time.sleep(args.settle)
            got = run(args, daemon, jvm)
    print("throughput, JDK %s, %s every %s%s" % (args.jdk, args.events, args.interval, args.against and ", against " + args.against))
    report(got, args)
    bench.finish("throughput", args, dict(got, threads=args.threads, block_s=args.block))
    return 0


if __name__ == "__main__":
    sys.exit(main())
