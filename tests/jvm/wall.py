"""Wall-clock samples of a program that knows where its threads are: wall.py MAJOR [--all] [--threads N]. The threads
of WallKnown sleep, wait, park and run, and print how long each was where. Checks: the weights of each thread add
up to real time within 3 %; each state has its share within 3 points, also in a thread with the same rhythm as the
sampling; a name selects threads; threads that are parked all the time are sampled completely without being woken,
as their voluntary context switches show. CPU samples at the same time are not affected. --all: with CPU samples at
another interval, interpreted, with virtual threads. --threads: parked threads (200)."""
import argparse
import collections
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import classes, java_home  # noqa: E402
from locks import Jvm  # noqa: E402
from session import Session  # noqa: E402
from walker import check, failures  # noqa: E402

SECONDS = 6
THREAD_MAX, STATE_MAX = 0.03, 0.03  # share of real time; a share of few polls is also off by chance
CHANCE = 2.5  # standard deviations
LATE = 5  # times as long as most polls stand for
WAKES_MAX = 2  # context switches of a parked thread in a whole session: one signal, and other programs' reads
AGENT_CPU_MAX = 0.15  # share of a CPU for 8,000 polls a second: about 0.04; a slow machine takes twice that


class Known(Jvm):
    def times(self):
        """({thread: {method: ns so far}}, time of the answer)"""
        before = self.read(self.out).count("\nTIME ")
        self.say(b"\n")
        while self.read(self.out).count("\nTIME ") == before or not self.read(self.out).endswith("\n"):
            time.sleep(0.005)
        block = self.read(self.out).split("\nTIME ")
        lines = [line.split() for line in block[-2].splitlines() if line.startswith("TIMES ")]
        return {words[1]: dict((m, int(n)) for m, n in (w.split("=") for w in words[2:])) for words in lines}, int(block[-1])

    def delays(self):
        """{thread: ns that it was ready to run without a CPU}, proc(5) of schedstat"""
        delays = {}
        for tid in os.listdir("/proc/%d/task" % self.pid):
            with open("/proc/%d/task/%s/comm" % (self.pid, tid)) as f:
                name = f.read().strip()
            if name.startswith("wall-") or name == "kindling":
                with open("/proc/%d/task/%s/schedstat" % (self.pid, tid)) as f:
                    delays[name] = int(f.read().split()[1])
        return delays

    def wakes(self):
        """{name of a parked thread: its voluntary context switches}"""
        wakes = {}
        for tid in os.listdir("/proc/%d/task" % self.pid):
            with open("/proc/%d/task/%s/status" % (self.pid, tid)) as f:
                text = f.read()
            name = re.search(r"^Name:\t(.*)$", text, re.M)[1]
            if name.startswith("idle-"):
                wakes[name] = int(re.search(r"^voluntary_ctxt_switches:\t(\d+)$", text, re.M)[1])
        return wakes


class Window:
    """The part of a session's samples between two answers of the program."""

    def __init__(self, session, begin, end):
        self.ns = end[1] - begin[1]
        self.true = {t: {m: end[0][t][m] - begin[0][t].get(m, 0) for m in end[0][t]} for t in end[0]}
        self.threads, self.states = collections.Counter(), collections.defaultdict(collections.Counter)
        self.looks, late = collections.Counter(), collections.defaultdict(list)
        for at, thread, weight, stack in session.walls:
            if not begin[1] <= at < end[1]:
                continue
            self.threads[thread] += weight
            self.looks[thread] += 1
            late[thread].append(weight)
            methods = [m[len("WallKnown."):] for m in stack if m.startswith("WallKnown.")]
            steps = ["step" for m in stack if re.match(r"WallKnown\$\d+\.step", m)]
            self.states[thread][next((m for m in methods + steps if m in self.true.get(thread, ())), "elsewhere")] += weight
        # a poll that came late stands for all of the time before it
        self.late = {t: sum(w for w in of if w > LATE * statistics.median(of)) for t, of in late.items()}


def judge(label, window, delays):
    for thread, methods in sorted(window.true.items()):
        reported = {m: window.states[thread][m] / window.ns for m in methods}
        true = {m: ns / window.ns for m, ns in methods.items()}
        looks = max(1, window.looks[thread])
        off = max(abs(reported[m] - true[m]) - CHANCE * math.sqrt(min(true[m], 1) * (1 - min(true[m], 1)) / looks)
                  for m in methods)
        elsewhere = window.states[thread]["elsewhere"] / window.ns
        share = window.threads[thread] / window.ns
        # a thread that waits for a CPU is polled late: on a busy machine shares are off by as much
        busy = (delays[thread] + delays["kindling"] + window.late.get(thread, 0)) / window.ns
        check(abs(share - 1) < THREAD_MAX + busy and off < STATE_MAX + busy and elsewhere < 0.01 + busy,
              "%s: %s is reported for %.3f of the time; %s (true %s), %.1f %% late" % (
                  label, thread, share, " ".join("%s %.3f" % p for p in reported.items()), " ".join("%.3f" % x for x in true.values()), 100 * busy))


def known(home, directory, label, flags, parked, events="wall", *options):
    with Known(home, directory, flags, "WallKnown", parked) as jvm:
        wakes = jvm.wakes()
        session = Session(jvm.pid, directory, events, "-W", "5000", *options)
        time.sleep(1)
        delays = jvm.delays()
        begin = jvm.times()
        time.sleep(SECONDS)
        end = jvm.times()
        after, delays = jvm.wakes(), {t: ns - delays[t] for t, ns in jvm.delays().items()}
        session.end()
    window = Window(session, begin, end)
    judge(label, window, delays)
    idle = [window.threads[name] / window.ns for name in wakes]
    woken = sorted(after[name] - wakes[name] for name in wakes)
    check(len(idle) == parked and min(idle) > 1 - THREAD_MAX - 0.04 and max(idle) < 1 + THREAD_MAX + 0.04 and woken[-1] <= WAKES_MAX,
          "%s: %d parked threads reported for %.3f to %.3f of the time, woken %d times at most" % (label, parked, min(idle), max(idle), woken[-1]))
    cpu = re.search(r"agent_cpu_ns=(\d+)", session.text)
    seconds = re.search(r"^seconds=(\S+)", session.text, re.M)
    cost = int(cpu[1]) / 1e9 / float(seconds[1])
    check(session.status == 0 and not session.wrong and cost < AGENT_CPU_MAX,
          "%s: the session, its accounts, %.1f %% of a CPU %s" % (label, cost * 100, session.wrong))
    return session


def beside_cpu(home, directory):
    session = known(home, directory, "beside CPU samples", [], 20, "cpu,wall", "-i", "4000")
    ratio = float(re.search(r" ratio=(\S+)", session.text)[1])
    check(0.94 < ratio < 1.05, "beside CPU samples: those tell %.3f of the CPU time" % ratio)


def chosen(home, directory):
    with Known(home, directory, [], "WallKnown", 20) as jvm:
        session = Session(jvm.pid, directory, "wall", "-W", "5000", "-N", "wall-r")
        time.sleep(1)
        session.end()
    names = {thread for _, thread, _, _ in session.walls}
    check(names == {"wall-runs", "wall-rhythm"} and session.status == 0, "chosen by name: %s %s" % (names, session.wrong))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--threads", type=int, default=200)
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp(prefix="kindling-wall-")
    shutil.copytree(classes(), directory, dirs_exist_ok=True)
    os.chmod(directory, 0o755)
    try:
        known(home, directory, "alone", [], args.threads)
        beside_cpu(home, directory)
        chosen(home, directory)
        if args.all:
            known(home, directory, "interpreted", ["-Xint"], 20)
            known(home, directory, "C1", ["-XX:TieredStopAtLevel=1"], 20)
    finally:
        shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
