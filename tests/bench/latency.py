"""
How soon a new JVM is seen, and how old a sample is when somebody reads it.

start: JVMs with one spinning thread are launched one after the other while kindlingd runs. Times count
from the launch, taken before the fork; kindlingd's own figure (`target.first_sample ... after_ms=`)
counts from the moment in which it learned of the process, which with BPF is its exec and without is a
scan. Lines of its log are timed when they are seen, at most 2 ms late.

tail: `kindling tail --json` on a busy JVM, of its CPU samples or other events; age = the moment in which this program reads a line less the
line's ts_ns (the host's real time at which the handler ran).
"""
import json
import os
import re
import subprocess
import sys
import threading
import time

import bench
from kindling import BUILD, Daemon, Jvm, java_home, classes, wait_for

GIVE_UP_S = 30  # seconds for one launch: another daemon may have attached, or the JVM did not start


class Tail:
    """Lines of `kindling tail --json`, each with the time at which it was read."""

    def __init__(self, daemon, *words):
        self.process = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--json", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.chunks = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        fd = self.process.stdout.fileno()
        while True:
            data = os.read(fd, 1 << 20)
            self.chunks.append((time.time_ns(), data))
            if not data:
                return

    def end(self):
        """[(time, event)]; a line belongs to the chunk in which it ended."""
        self.process.terminate()
        self.thread.join()
        self.process.wait()
        self.process.stdout.close()
        events, rest = [], b""
        for moment, data in self.chunks:
            *lines, rest = (rest + data).split(b"\n")
            events += [(moment, json.loads(line)) for line in lines]
        return events


class Log:
    """The daemon's log lines, each with the time at which it was seen."""

    def __init__(self, daemon):
        self.path, self.lines, self.stop = daemon.dir + "/log", [], False
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self):
        with open(self.path) as f:
            rest = ""
            while not self.stop:
                text = f.read()
                if text:
                    *lines, rest = (rest + text).split("\n")
                    self.lines += [(time.time_ns(), line) for line in lines]
                else:
                    time.sleep(0.002)

    def find(self, pattern, since=0):
        for moment, line in list(self.lines):
            if moment >= since and re.search(pattern, line):
                return moment, line
        return None

    def end(self):
        self.stop = True
        self.thread.join()


class Watch:
    """Records every 20 ms whether the threads that pass a sample on ran or waited for a CPU."""

    def __init__(self, daemon, jvm, tail):
        tids = [t for t in os.listdir("/proc/%d/task" % jvm.pid) if self.name(jvm.pid, t) == "kindling"]
        self.paths = {"agent": "/proc/%d/task/%s/schedstat" % (jvm.pid, tids[0])} if tids else {}
        self.paths.update({"kindlingd": "/proc/%d/schedstat" % daemon.data_pid(),
                           "kindling tail": "/proc/%d/schedstat" % tail.process.pid,
                           "this reader": "/proc/self/task/%d/schedstat" % tail.thread.native_id})
        self.looks, self.stop = [], False
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    @staticmethod
    def name(pid, tid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
                return f.read().strip()
        except OSError:
            return ""

    def follow(self):
        while not self.stop:
            look = {}
            for who, path in self.paths.items():
                with open(path) as f:
                    look[who] = [int(n) / 1e6 for n in f.read().split()[:2]]
            self.looks.append((time.time_ns(), look))
            time.sleep(0.02)

    def end(self):
        self.stop = True
        self.thread.join()

    def between(self, begin, end):
        """{thread: (ms on a CPU, ms waiting for one)}"""
        first = max((l for l in self.looks if l[0] <= begin), default=self.looks[0])
        last = min((l for l in self.looks if l[0] >= end), default=self.looks[-1])
        return {who: [b - a for a, b in zip(first[1][who], last[1][who])] for who in self.paths}


def spread(values):
    return {"p50": bench.quantile(values, 0.5), "p90": bench.quantile(values, 0.9),
            "p99": bench.quantile(values, 0.99), "max": max(values), "n": len(values)}


def launch(args, log):
    """One JVM until its first sample: times in ms since the launch, or None."""
    begin = time.time_ns()
    process = subprocess.Popen([java_home(args.jdk) + "/bin/java", "-Xmx64m", "-cp", classes(), "Work", "1"],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = process.pid
    try:
        first = wait_for("the first sample", lambda: log.find(r"target.first_sample pid=%d " % pid, begin), GIVE_UP_S)
    except AssertionError:
        return None
    finally:
        time.sleep(0.2)
        process.kill()
        process.communicate()
    found = log.find(r"target.found pid=%d " % pid, begin)
    streaming = log.find(r"target.state pid=%d .*to=streaming" % pid, begin)
    return {"pid": pid, "launch_real_ns": begin, "found": (found[0] - begin) / 1e6,
            "streaming": (streaming[0] - begin) / 1e6, "first sample in kindlingd": (first[0] - begin) / 1e6,
            "by kindlingd's clock since it saw it": float(first[1].split("after_ms=")[1])}


def starts(args):
    with Daemon(bench.settings(args)) as daemon:
        source = daemon.status()["discovery"]["source"]
        log, tail, good, failed = Log(daemon), Tail(daemon), [], 0
        for _ in range(args.launches):
            one = launch(args, log)
            if one:
                good.append(one)
            else:
                failed += 1
            time.sleep(0.3)
        log.end()
        events = tail.end()
    if 2 * failed > args.launches:
        bench.cannot("%d of %d launches gave no sample\n%s" % (
            failed, args.launches, "\n".join(line for _, line in log.lines[-30:])))
    for one in good:
        mine = [(moment, e) for moment, e in events
                if e.get("event") == "cpu" and e.get("pid") == one["pid"] and moment > one["launch_real_ns"]]
        if mine:
            one["first sample taken"] = (min(e["ts_ns"] for _, e in mine) - one["launch_real_ns"]) / 1e6
            one["first sample on the tail"] = (mine[0][0] - one["launch_real_ns"]) / 1e6
    rows = [("start of a JVM, ms since its launch", "p50", "p90", "max")]
    figures = {}
    for key in ("found", "streaming", "first sample taken", "first sample in kindlingd", "first sample on the tail",
                "by kindlingd's clock since it saw it"):
        values = [one[key] for one in good if key in one]
        if values:
            figures[key] = spread(values)
            rows.append((key, *("%.1f" % figures[key][q] for q in ("p50", "p90", "max"))))
    print("first sample of a new JVM, JDK %s, %d launches, %d without one, discovery by %s" % (
        args.jdk, args.launches, failed, source))
    bench.table(rows)
    return {"launches": good, "without": failed, "source": source, "ms": figures}


def tails(args):
    more = [] if args.event == "cpu" else ["  lock: {}", "  offcpu: {}"]
    with Jvm(args.jdk, full=True) as jvm, Daemon(bench.settings(args, *more)) as daemon:
        daemon.wait_state(jvm.pid, "streaming", bench.FOREVER)
        wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100, bench.FOREVER)
        tail = Tail(daemon, "--event", args.event, str(jvm.pid))
        watch = Watch(daemon, jvm, tail)
        time.sleep(args.seconds)
        watch.end()
        events = tail.end()
    ages = sorted(((moment - e["ts_ns"]) / 1e6, moment, e["ts_ns"]) for moment, e in events if e["event"] == args.event)
    lost = sum(e["count"] for _, e in events if e["event"] == "dropped")
    if len(ages) < 100:
        bench.cannot("%d events in %g s" % (len(ages), args.seconds))
    figures = spread([age for age, _, _ in ages])
    print("age of an event %s on the tail, JDK %s: %d of them in %g s, %d lost by the reader" % (
        args.event, args.jdk, len(ages), args.seconds, lost))
    bench.table([("ms", "p50", "p90", "p99", "max"), ("age", *("%.1f" % figures[q] for q in ("p50", "p90", "p99", "max")))])
    # late lines come in bursts: prints the oldest line of each, and what delayed it
    worst = []
    for age, moment, taken in ages[::-1]:
        if len(worst) < 5 and all(abs(moment - w["moment"]) > 1e9 for w in worst):
            worst.append({"moment": moment, "age_ms": age, "at_s": (moment - events[0][0]) / 1e9,
                          "ms_on_and_waiting_for_cpu": watch.between(taken, moment)})
    for w in worst:
        print("  at %4.1f s: %5.1f ms old; ms on a CPU + waiting for one meanwhile: %s" % (w["at_s"], w["age_ms"], ", ".join(
            "%s %.1f + %.1f" % (who, *ms) for who, ms in w["ms_on_and_waiting_for_cpu"].items())))
    return {"ms": figures, "lost": lost, "worst": worst, "seconds": args.seconds}


def main():
    p = bench.parser(__doc__)
    p.add_argument("--launches", type=int, default=20, help="JVMs to launch (20); 0 = only the tail")
    p.add_argument("--seconds", type=float, default=60, help="of tail (60); 0 = only the launches")
    p.add_argument("--event", default="cpu", help="what the tail shows (cpu); an event offcpu is as old as its end")
    args = bench.begin(p)
    java_home(args.jdk)
    classes()
    figures = {}
    if args.seconds:
        figures["tail"] = tails(args)
    if args.launches:
        figures["start"] = starts(args)
    bench.finish("latency", args, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
