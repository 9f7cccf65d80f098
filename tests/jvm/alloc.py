"""Allocation samples of a program that knows what it allocates: alloc.py MAJOR [--all] [--rival]. AllocKnown
allocates objects of its own class, strings, buffers and large arrays in four threads, and prints how many bytes by
the JVM's own count. Checks: the weights of each class are within 5 % of that, their sum within 3 %; the classes
are right, and each stack leads from the method that allocates to the thread's first; in interpreted and in
compiled code. A second session works like the first, and one without allocations gets none. From 21 on there are
no samples in JVMs with virtual threads unless they are asked for. --all: more collectors and compiler modes.
--rival: only with async-profiler loaded before, and its figures."""
import argparse
import collections
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "bench")]
import stacks  # noqa: E402
from kindling import classes, java_home, skip  # noqa: E402
from locks import Jvm  # noqa: E402
from session import Session  # noqa: E402
from walker import check, failures  # noqa: E402

INTERVAL = 128 << 10
CLASS_MAX, TOTAL_MAX = 0.05, 0.03
MADE_BY = {"alloc-nodes": "AllocKnown.nodes", "alloc-strings": "AllocKnown.strings", "alloc-buffers": "AllocKnown.buffers",
           "alloc-tables": "AllocKnown.tables"}


class Known(Jvm):
    """AllocKnown: after it has run, truth is {thread: (class, bytes)}."""

    def play(self):
        self.say(b"\n")
        self.wait_line("END", 120)
        lines = [line.split() for line in self.read(self.out).splitlines() if line.startswith("ALLOCATED")]
        self.truth = {words[1]: (words[2], int(words[3])) for words in lines}


def judge(label, session, truth):
    weights, wrong = collections.Counter(), collections.Counter()
    for thread, klass, size, weight, stack in session.allocs:
        if thread not in truth:
            continue  # the JVM's own, and our thread's
        weights[thread] += weight
        java = [frame for frame in stack if not frame.startswith(("[", "/"))]
        # an allocation on the thread's way to the loop is small: it may be sampled or not
        if klass == truth[thread][0] and (java[:1] != [MADE_BY[thread]] or not any(frame.startswith("AllocKnown$Kind.") for frame in java[1:])):
            wrong["stack " + " < ".join(stack)] += 1
        elif klass != truth[thread][0]:
            wrong["other classes"] += weight
    others = wrong.pop("other classes", 0)
    total = sum(n for _, n in truth.values())
    shares = {klass: weights[thread] / max(n, 1) for thread, (klass, n) in truth.items()}
    text = " ".join("%s %.3f" % pair for pair in sorted(shares.items()))
    check(len(shares) == 4 and all(abs(share - 1) < CLASS_MAX for share in shares.values()),
          "%s: bytes reported of those allocated: %s, from %d samples" % (label, text, len(session.allocs)))
    check(abs(sum(weights.values()) / total - 1) < TOTAL_MAX, "%s: all of them %.4f" % (label, sum(weights.values()) / total))
    check(others < total * 0.005 and not wrong, "%s: classes and stacks; %d of other classes %s" % (label, others, dict(wrong)))
    drops = re.findall(r"alloc\.drop\S+=\d+", session.text)
    check(session.status == 0 and not session.wrong and not drops, "%s: the session, its accounts %s %s" % (label, session.wrong, drops))


def one(home, directory, label, flags, *arguments):
    with Known(home, directory, flags, "AllocKnown", *arguments) as jvm:
        session = Session(jvm.pid, directory, "alloc", "-A", str(INTERVAL), "-M", "always", "-r", str(8 << 20))
        jvm.play()
        judge(label, session.end(), jvm.truth)
        return jvm.process.poll() is None


def again(home, directory):
    """Sessions one after the other: without allocation samples, with them, without them."""
    counts = []
    for events in ("cpu", "cpu,alloc", "cpu", "alloc"):
        with Known(home, directory, [], "AllocKnown", 100) as jvm:
            for first in ("cpu", "alloc"):
                Session(jvm.pid, directory, first).end()
            session = Session(jvm.pid, directory, events)
            jvm.play()
            session.end()
        counts.append((len(session.allocs) > 300) == ("alloc" in events) and session.status == 0)
        check(counts[-1], "%s after other sessions: %d allocations %s" % (events, len(session.allocs), session.wrong))


def old(home, directory):
    with Known(home, directory, [], "AllocKnown", 10) as jvm:
        session = Session(jvm.pid, directory, "cpu,alloc")
        jvm.play()
        session.end()
    check(not session.allocs and any("JDK 11" in note for note in session.notes) and session.status == 0,
          "before JDK 11 there are none, and it says so: %s %s" % (session.notes, session.wrong))


def virtual(home, directory):
    """With virtual threads: no samples and a note; if asked for explicitly, samples as in other threads."""
    one(home, directory, "virtual threads", [], 1500, "virtual")
    for mode, wanted in (("auto", False), ("always", True)):
        with Known(home, directory, [], "AllocKnown", 50, "virtual") as jvm:
            session = Session(jvm.pid, directory, "cpu,alloc", "-M", mode)
            jvm.play()
            session.end()
        note = [note for note in session.notes if "virtual thread" in note]
        check(bool(session.allocs) == wanted and len(note) == 1 and session.status == 0,
              "virtual threads, %s: %d samples, %s %s" % (mode, len(session.allocs), note, session.wrong))


def rival(home, directory):
    """A JVM gives allocation samples to one agent: a later one gets none and a note; the first keeps them."""
    library = stacks.rival() or skip("async-profiler cannot be had")
    file = os.path.join(directory, "rival.txt")
    flags = ["-agentpath:%s=start,event=alloc,alloc=%d,collapsed,total,threads,file=%s" % (library, INTERVAL, file)]
    with Known(home, directory, flags, "AllocKnown", 1500) as jvm:
        session = Session(jvm.pid, directory, "cpu,alloc")
        jvm.play()
        session.end()
        check(not session.allocs and any("another agent" in note for note in session.notes) and session.status == 0,
              "async-profiler came first: %s %s" % (session.notes, session.wrong))
        jvm.process.stdin.close()
        jvm.process.wait(timeout=60)
    weights = collections.Counter()
    with open(file) as f:
        for line in f:
            stack, weight = line.rsplit(" ", 1)
            for thread in jvm.truth:
                if stack.startswith("[" + thread):
                    weights[thread] += int(weight)
    print("         async-profiler tells " + " ".join("%s %.3f" % (jvm.truth[t][0], w / jvm.truth[t][1]) for t, w in sorted(weights.items())))


MODES = [("G1, all compilers", ["-XX:+UseG1GC"], 1500), ("interpreted", ["-Xint"], 800)]
MORE = [("C1", ["-XX:TieredStopAtLevel=1"], 1500), ("Parallel", ["-XX:+UseParallelGC"], 1500),
        ("Serial, no TLABs", ["-XX:+UseSerialGC", "-XX:-UseTLAB"], 1500),
        ("Z", ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"], 1500),
        ("Shenandoah", ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"], 1500)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rival", action="store_true")
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp(prefix="kindling-alloc-")
    shutil.copytree(classes(), directory, dirs_exist_ok=True)
    os.chmod(directory, 0o755)
    try:
        if int(args.major.split("-")[0]) < 11:
            old(home, directory)
        elif args.rival:
            rival(home, directory)
            one(home, directory, "without async-profiler", [], 1500)
        else:
            for label, flags, megabytes in MODES + (MORE if args.all else []):
                alive = one(home, directory, label, flags, megabytes)
                check(alive, "%s: the JVM lives" % label)
            again(home, directory)
        if int(args.major.split("-")[0]) >= 21 and not args.rival:
            virtual(home, directory)
    finally:
        shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
