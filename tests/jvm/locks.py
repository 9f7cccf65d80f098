"""Lock events against a program that knows its own waits: locks.py MAJOR [--all] [--judges] [--soak MINUTES].

LockKnown plays scripted waits (monitors, Object.wait, everything of java.util.concurrent) and tells at its
end, in the clock of the events, who waited for what, how long and because of whom; lock_judges.py compares.
Played by platform threads, with System.gc() all the time under a collector that stops the world and under
those that do not, with -Xcheck:jni, by virtual threads (21+); then LockChurn, a new lock object for every
operation, during which the agent's memory must stay what it is; `monitors: auto` of a young JVM, of one with
virtual threads and of one with a debugger (21+); and LockDeadlock, whose cycles `kindling
locks --graph` must show within 2 s. Each run is judged once more with its
events spoiled in every way that a judge is for: one that does not notice is a failure.

--all: every collector, compiler and locking mode. --judges: only the judges, without an agent. --soak: only
LockChurn, for minutes, beside the same program without an agent: the memory of both every 30 s.
"""
import argparse
import atexit
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import jdks  # noqa: E402
import lock_judges as judges  # noqa: E402
import kindling  # noqa: E402
from kindling import BUILD, ONLY_MINE, Daemon, classes, java_home, skip, wait_for  # noqa: E402
from walker import check, failures, version  # noqa: E402

READER = os.path.join(BUILD, "tests", "agent_reader")
LIBRARY = os.path.realpath(os.path.join(BUILD, "lib", "libkindling.so"))
MIN_NS = 1_000_000
ROUNDS = 25
ATTEMPTS = 5
GROWTH_MAX = 256 << 10  # bytes that the agent may grow by in the last two thirds of the churn
NATIVE_GROWTH_MAX = 2 << 20  # bytes that it may grow by more than a JVM without an agent, which is not constant either
HEAP_MIB = 200
SOAK_FLAGS = ["-Xms%dm" % HEAP_MIB, "-Xmx%dm" % HEAP_MIB, "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC"]
EVENT = re.compile(r"LOCK (\d+) (\d+) tid (\d+) (\w+) flags (\d+) (.*?)@(\d+) owner (\d+) stack (.*?) owner_stack (.*)$")


class Jvm:
    """A test program whose output goes to files."""

    def __init__(self, home, directory, flags, program, *args):
        self.out, self.err = os.path.join(directory, "out"), os.path.join(directory, "err")
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen(
                [*jdks.command(home, os.path.dirname(LIBRARY)), "-Xmx300m", *flags, "-cp", directory, program,
                 *map(str, args)], stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=directory)
        if program == "LockKnown":  # this thread sleeps; when it wakes up it must not wait for a CPU
            os.setpriority(os.PRIO_PROCESS, self.process.pid, -15)
        self.pid = self.process.pid
        self.wait_line("READY", 60)

    def read(self, which):
        with open(which, errors="replace") as f:
            return f.read()

    def wait_line(self, line, seconds):
        def said():
            if self.process.poll() is not None:
                skip("the JVM ends with these options: " + self.read(self.err)[-500:] + self.read(self.out)[-500:])
            return "\n%s\n" % line in "\n" + self.read(self.out)
        wait_for(line, said, seconds)

    def say(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Reader:
    """A session of lock events with a JVM."""

    def __init__(self, jvm, directory, *options):
        self.path = os.path.join(directory, "events")
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([READER, "-v", "-e", "lock", "-l", LIBRARY, "-d", "86400", *options, str(jvm.pid)],
                                            stdout=out, stderr=subprocess.STDOUT)
        atexit.register(self.process.kill)  # also if the test fails while it reads
        # wait for a LEDGER that reports lock events as on: bits 1 << enum wire_event
        wait_for("lock events", lambda: " events 2 " in self.text() or self.process.poll() is not None)
        if self.process.poll() is not None:
            sys.exit("no session: " + self.text())

    def text(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def end(self):
        """Its words, after DETACH."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        return self.text()


def parse(text):
    """Events with the names of their threads, which may arrive after them."""
    names, events = {"0": "-"}, []
    lines = text.splitlines()
    for line in lines:
        m = re.match(r"THREAD (\d+) flags (\d+) java \d+ (.*)", line)
        if m and not int(m.group(2)) & 1:
            names[m.group(1)] = m.group(3)
    for line in lines:
        m = EVENT.match(line)
        if m:
            begin, duration, tid, kind, flags, name, identity, owner, stack, owner_stack = m.groups()
            stack, owner_stack = ([] if s == "-" else s.split(" < ") for s in (stack, owner_stack))
            events.append(judges.Event(
                int(begin), int(duration), int(tid), names.get(tid, "?" + tid), kind, int(flags), name.replace("/", "."),
                int(identity), names.get(owner, "?" + owner), stack, owner_stack))
    return events


def verdicts(label, truth, events, rules):
    """[(right, text)] for the events, and for the same events spoiled."""
    print("%s: %d events" % (label, len(events)))
    blind = judges.blind(truth, events, rules)
    return judges.judge_all(truth, events, rules) + [(not blind, "the judges see what is spoiled %s" % blind)]


def foreign_lines(text):
    """The JVM's output apart from the program's own; digits are replaced, because they differ."""
    return {re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in text.splitlines()
            if not re.match(r"(READY|END|LOCK .*|WAIT .*|HOLD .*|CHURN .*|)$", line)}


def play(home, directory, label, flags, words, rules, agent):
    """One run of LockKnown: (verdicts, the JVM's other output)."""
    with Jvm(home, directory, flags, "LockKnown", ROUNDS, *words) as jvm:
        reader = Reader(jvm, directory, "-L", "-T", str(MIN_NS), "-M", "always") if agent else None
        jvm.say(b"\n")
        jvm.wait_line("END", 120)
        text = reader.end() if reader else ""
        truth = judges.Truth(jvm.read(jvm.out))
        jvm.say(b"q")
        jvm.process.wait(timeout=30)
        said = jvm.read(jvm.out) + jvm.read(jvm.err)
    result = verdicts(label, truth, parse(text) if agent else judges.made_up(truth, rules), rules)
    if agent:
        wrong = [line for line in text.splitlines() if re.match(r"WRONG|FAULT|no session", line)]
        result.append((reader.process.returncode == 0, "accounts exact %s" % wrong[:5]))
        result.append((jvm.process.returncode == 0, "the program ends with %d" % jvm.process.returncode))
    return result, foreign_lines(said)


def known(home, directory, major, label, flags=(), words=(), exact=True, agent=True):
    """Repeats LockKnown until a run is right: on a busy machine a thread may get a CPU only when its wait would be
    over. exact: the program reads the same clock as we do."""
    label = " ".join(["known", label, *flags])
    rules = judges.Rules(MIN_NS, 0 if exact else 0.1, 0.02 if exact else 0.12, "virtual" in words, version(major))
    for attempt in range(ATTEMPTS):
        result, said = play(home, directory, label, flags, words, rules, agent)
        wrong = [text for right, text in result if not right]
        if not wrong or attempt + 1 == ATTEMPTS:
            break
        print("  once more: %s" % "; ".join(wrong))
    for right, text in result:
        check(right, text)
    return said


def silent(home, directory, major):
    """-Xcheck:jni prints no more with the agent than without."""
    flags = ["-Xcheck:jni", *unbiased(major)]
    words = known(home, directory, major, "without agent", flags, agent=False)
    more = known(home, directory, major, "jni", flags) - words
    check(not more, "-Xcheck:jni is silent %s" % sorted(more)[:5])


def churn(home, directory, seconds):
    """The agent's memory while every operation has a lock object of its own."""
    flags = ["-Xms200m", "-XX:+AlwaysPreTouch"]
    with Jvm(home, directory, flags, "LockChurn") as jvm:
        reader, looks = Reader(jvm, directory, "-T", str(MIN_NS), "-M", "always"), []
        for _ in range(4):
            looks.append((agent_bytes(reader), resident(jvm.pid)))
            time.sleep(seconds / 3)
        print("churn: KiB at its begin, 1/3, 2/3 and the end (RssAnon): %s" % (
            ", ".join("%d (%d)" % (a >> 10, b >> 10) for a, b in looks)))
        end_churn(jvm, reader, seconds)
    check(looks[1][0] > 0 and looks[3][0] - looks[1][0] < GROWTH_MAX, "the agent grew by %d KiB in two thirds of it" % (
        (looks[3][0] - looks[1][0]) >> 10))


def end_churn(jvm, reader, seconds):
    jvm.say(b"\n")
    text = reader.end()
    jvm.say(b"q")
    jvm.process.wait(timeout=30)
    done = sum(map(int, jvm.read(jvm.out).split("CHURN ")[1].splitlines()[0].split()[:6]))
    said = foreign_lines(jvm.read(jvm.out) + jvm.read(jvm.err))
    taken, short = (int((re.findall(r"\b%s=(\d+)" % key, text) or ["0"])[-1]) for key in (r"lock\.taken", "short_waits"))
    print("churn: %d waits, %d reported, %d too short" % (done, taken, short))
    check(taken > 0.5 * done / 2 and done > 100 * seconds, "the churn is reported")
    check(reader.process.returncode == 0, "accounts exact: %s" % re.findall(r"^(?:WRONG|FAULT).*", text, re.M)[:5])
    check(not said, "nothing printed %s" % sorted(said)[:5])


def native(pid):
    """Private memory apart from the Java heap, all of which SOAK_FLAGS allocate at the start."""
    return resident(pid) - (HEAP_MIB << 20)


def soak(home, directory, minutes):
    """Prints every 30 s the agent's memory by part, and the native memory of this JVM and of one without an agent."""
    bare = shutil.copytree(directory, os.path.join(directory, "bare"))
    with Jvm(home, directory, SOAK_FLAGS, "LockChurn") as jvm, Jvm(home, bare, SOAK_FLAGS, "LockChurn") as other:
        reader, looks = Reader(jvm, directory, "-D", "-T", str(MIN_NS), "-M", "always"), []
        end = time.monotonic() + minutes * 60
        print("minutes   agent   native   native without agent, KiB; parts of the agent")
        while time.monotonic() < end:
            time.sleep(min(30, minutes * 6))
            looks.append((agent_bytes(reader), native(jvm.pid), native(other.pid)))
            parts = (re.findall(r"^memory now: (.*)", reader.text(), re.M) or [""])[-1]
            print("%7.1f %7d %8d %8d   %s" % (minutes - (end - time.monotonic()) / 60, *(n >> 10 for n in looks[-1]), parts), flush=True)
        end_churn(jvm, reader, minutes * 60)
    settled = looks[len(looks) // 3:]
    agent, ours, theirs = (column[-1] - column[0] for column in zip(*settled))
    check(settled[0][0] > 0 and agent < GROWTH_MAX, "the agent grew by %d KiB in the last two thirds" % (agent >> 10))
    check(ours - max(0, theirs) < NATIVE_GROWTH_MAX, "native memory of the JVM by %d KiB, without an agent by %d KiB" % (
        ours >> 10, theirs >> 10))


def deadlocks(major):
    """Three deadlocks and a starving thread in `kindling locks --graph`: seconds until all are shown, without those
    in which the machine did not let the test run."""
    with Daemon("events:\n  lock:\n    min_wait: 1ms\n    monitors: always\n" + ONLY_MINE) as daemon, kindling.Jvm(major, "LockDeadlock") as jvm:
        daemon.wait_state(jvm.pid, "streaming", 60)
        wait_for("lock events", lambda: "lock" in daemon.target(jvm.pid)["events"])
        jvm.process.stdin.write("\n")
        jvm.process.stdin.flush()
        def said():
            texts.append(daemon.cli("locks", str(jvm.pid), "--graph").stdout)
            return texts[-1].count("deadlock:") == 3 and '"glutton"' in texts[-1]

        texts = []
        try:
            _, took, late = kindling.timed_wait("the graph", said)
        except AssertionError:
            return kindling.WAIT_S, texts[-1]
        return took - late, texts[-1]


def check_deadlocks(major):
    for _ in range(ATTEMPTS):
        took, text = deadlocks(major)
        missing = [name for name in ("philosopher-1", "locker-2", "mixed-1", "glutton", "hungry-4") if '"%s"' % name not in text]
        if took < 2 and not missing:
            break
    check(took < 2 and not missing, "the graph of locks shows 3 deadlocks within %.1f s; missing: %s" % (took, missing))


class Price:
    """`monitors: auto` on 21 and later: no JVMTI environment, which would slow virtual threads down, in a JVM's first
    minute or where there are virtual threads; and the note names its cost."""

    MINUTE = 60

    def __init__(self, home, directory):
        self.home, self.directory, self.began = home, directory, time.monotonic()
        self.folders, self.open, self.readers = 0, [], []
        self.young = self.start("LockStories", "monitors")
        self.reader = self.read(self.young)
        self.young.say(b"go\n")  # waits that began before the events were on
        wait_for("a note about monitors", lambda: self.notes(self.reader))
        time.sleep(1)  # no event comes meanwhile
        note = self.notes(self.reader)
        if time.monotonic() - self.began < self.MINUTE / 2:
            check("first minute" in note and " enter " not in self.reader.text(), "no monitors in a JVM's first minute, as is said: %s" % note)
        self.judge_parks()

    def judge_parks(self):
        """Waits that go on are told with their threads also while monitors are not collected."""
        held = self.start("LockStories", "held", "now")
        reader = self.read(held, "never")
        waiter = lambda: [e for e in parse(reader.text()) if e.thread == "story-waiter" and e.flags & judges.OPEN]  # noqa: E731
        wait_for("the wait for the lock", waiter)
        told = [e for e in parse(reader.text()) if e.flags & judges.OPEN]
        alive = {int(tid) for tid in os.listdir("/proc/%d/task" % held.pid)}
        check(all(e.tid in alive for e in told), "%d waits that go on are those of threads: %s" % (len(told), {e.tid for e in told} - alive))
        first = waiter()[0]
        check(first.owner == "story-holder" and any("await" in frame for frame in first.owner_stack),
              "the owner that parks has a stack: %s %s" % (first.owner, first.owner_stack[:2]))

    def folder(self):
        self.folders += 1
        folder = os.path.join(self.directory, "price-%d" % self.folders)
        os.mkdir(folder)
        for name in os.listdir(self.directory):
            if name.endswith(".class"):
                os.link(os.path.join(self.directory, name), os.path.join(folder, name))
        return folder

    def start(self, *words, flags=()):
        jvm = Jvm(self.home, self.folder(), ["-Xmx64m", *flags], *words)
        self.open.append(jvm)
        return jvm

    def read(self, jvm, monitors="auto"):
        reader = Reader(jvm, self.folder(), "-L", "-M", monitors, "-T", str(MIN_NS))
        self.readers.append(reader)
        return reader

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for reader in self.readers:
            reader.process.kill()
            reader.process.wait()
        for jvm in self.open:
            jvm.__exit__()

    def judge(self):
        debugged = self.start("LockStories", "monitors", flags=["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:0"])
        reader = self.read(debugged)
        debugged.say(b"go\n")
        wait_for("enters beside a debugger", lambda: " enter " in reader.text())
        check(not self.notes(reader), "where a debugger has an environment monitors are reported from the begin, young or not: %s" % self.notes(reader))
        virtual = self.start("LockBench", "yield")
        virtual.say(b"count\n")
        wait_for("virtual threads", lambda: "\ncount " in virtual.read(virtual.out))
        texts = {mode: self.noted(self.read(virtual, mode)) for mode in ("auto", "always")}
        check("are left out: virtual threads are in use" in texts["auto"], "auto spares virtual threads: %s" % texts["auto"])
        check("of their yields about" in texts["always"], "always says what it costs: %s" % texts["always"])
        self.judge_young()

    def judge_young(self):
        wait_for("enters after a minute", lambda: " enter " in self.reader.text(), self.MINUTE + 30)
        check(time.monotonic() - self.began > self.MINUTE - 1, "monitors are reported when it is over")
        wait_for("the note is taken back", lambda: not self.notes(self.reader), 10)
        self.reader.end()
        check(self.reader.process.returncode == 0, "accounts exact")

    def noted(self, reader):
        wait_for("a note about monitors", lambda: self.notes(reader))
        reader.end()
        return self.notes(reader)

    def notes(self, reader):
        """The last note about locks."""
        return (re.findall(r"^NOTE \d+ lock: (.*)$", reader.text(), re.M) or [""])[-1]


def agent_bytes(reader):
    return int((re.findall(r"\bagent_bytes[ =](\d+)", reader.text()) or ["0"])[-1])


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1)) << 10


def unbiased(major):
    """A lock's bias is revoked at a safepoint before the wait begins, so that time is not part of the event."""
    return ["-XX:-UseBiasedLocking"] if version(major) < 15 else []


def modes(major, everything):
    """(label, flags, words, exact)"""
    n, musl, some = version(major), "musl" in major, []
    some.append(("platform", [], [], True))
    some.append(("gc loop", ["-XX:+UseSerialGC"] if musl else [], ["gc"], False))
    unlock = ["-XX:+UnlockExperimentalVMOptions"]
    if n >= 11:
        some.append(("gc loop", unlock + ["-XX:+UseZGC", *unbiased(major)], ["gc"], True))
        some.append(("gc loop", unlock + ["-XX:+UseShenandoahGC", *unbiased(major)], ["gc"], True))
    if n >= 21:
        some.append(("virtual", [], ["virtual"], True))
        some.append(("virtual gc loop", ["-XX:+UseZGC"], ["virtual", "gc"], True))
    if everything:
        more = [["-Xint"], ["-XX:+UseParallelGC"], ["-XX:TieredStopAtLevel=1"], ["-Xcomp"]]
        if n == 21:
            more += [["-XX:LockingMode=0"], ["-XX:LockingMode=2"]]
        if n in (8, 11):
            more += [["-XX:-UseBiasedLocking"], ["-XX:BiasedLockingStartupDelay=0"]]
        if n >= 24:
            more += [["-XX:+UseCompactObjectHeaders", *unlock], ["-XX:+UseObjectMonitorTable", "-XX:+UnlockDiagnosticVMOptions"]]
        some += [("platform", sorted(f, reverse="Unlock" in " ".join(f)), [], True) for f in more]
    return some


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("major")
    parser.add_argument("--all", action="store_true", help="every collector, compiler and locking mode")
    parser.add_argument("--churn", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="only LockChurn, beside one without an agent")
    parser.add_argument("--judges", action="store_true", help="only the judges, without an agent")
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp(prefix="kindling-locks-")
    try:
        for f in os.listdir(classes()):
            shutil.copy(os.path.join(classes(), f), directory)
        if args.soak:
            soak(home, directory, args.soak)
            return 1 if failures else 0
        if args.judges:
            known(home, directory, args.major, "made up", agent=False)
            return 1 if failures else 0
        with Price(home, directory) if version(args.major) >= 21 else contextlib.nullcontext() as price:
            for label, flags, words, exact in modes(args.major, args.all):
                more = known(home, directory, args.major, label, flags, words, exact)
                check(not more, "nothing printed %s" % sorted(more)[:5])
            silent(home, directory, args.major)
            churn(home, directory, args.churn)
            if price:
                price.judge()
        if not jdks.root_of(home) and "musl" not in args.major:
            check_deadlocks(args.major)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
