"""The walker on programs whose stacks are known: walker.py MAJOR [--seconds N] [--all] [--aarch64 | --graal]. agent_reader
loads the agent and prints every sample. Checks: the share of stacks that do not reach their thread's root,
impossible calls (CallGraph: by the class files of the program and of the JDK no instruction on the caller's line
can lead to the callee), a stack known line by line, recursion of known depth, virtual threads, and that the JVM's
own signals keep working. --all: every collector and compiler mode. --aarch64: the cross-built agent in an arm64
JVM under qemu-user. --graal: GraalVM's compiler in place of C2."""
import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import callers  # noqa: E402
import graal  # noqa: E402
import jdks  # noqa: E402
from kindling import BUILD, classes, java_home, skip, until_cpu, wait_for  # noqa: E402

ROOTS = re.compile(r"^(java/lang/Thread\.(run|exit)|jdk/internal/misc/InnocuousThread\.run|[\w/$]+\.main|java/lang/ref/\S+\.run|"
                   r"jdk/internal/vm/Continuation\.enterSpecial|\[I2C/C2I adapters\]$|\[exited between ticks\]|\[found late\]|\[no timer\]|/.*\+0x[0-9a-f]+|\[vdso\].*)(:-?\d+)?$")
CALLS_WRONG_MAX = 1e-6  # share of the pairs that were decided; one wrong stack has up to three
BROKEN_MAX = 0.0002  # of the samples

# the debugger's agent wants to see exceptions, so compiled code that throws one is deoptimised
DEBUGGED = ["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:0"]

EMULATION_WARM_S = 5  # until virtual threads run: before that the walker cannot know the root of their frames
TICK_US = 4000  # for an emulated JVM, which gets its signals from timers
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

emulated = False
compiler = []  # options that choose it
enough = 200  # samples of a kind that a verdict needs; an emulated JVM gives fewer

failures = []


def check(ok, text):
    print(("  ok     " if ok else "  WRONG  ") + text)
    if not ok:
        failures.append(text)


def library(home):
    if jdks.is_aarch64(home):
        return os.path.realpath(os.path.join(SOURCE, "build", "aarch64", "lib", "libkindling.so"))
    return os.path.realpath(os.path.join(BUILD, "lib", "libkindling.so"))


def aarch64_home(major):
    """Builds the agent for arm64 and fetches a JVM for it."""
    for tool in (jdks.EMULATOR, "aarch64-linux-gnu-gcc"):
        if not shutil.which(tool):
            skip("there is no %s; tests/run matrix installs it" % tool)
    for words in ([], ["--build"]):
        done = subprocess.run(["cmake", *words, "--preset", "aarch64"], cwd=SOURCE, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
    return jdks.fetch_aarch64(major) or skip("there is no JDK %s for arm64" % major)


def check_symbols():
    """Like unit.sig_symbols: which functions the cross-built library and its handlers call."""
    build, objects = os.path.join(SOURCE, "build", "aarch64"), []
    for directory, _, names in os.walk(os.path.join(build, "agent", "CMakeFiles", "agent_sig.dir")):
        objects += [os.path.join(directory, name) for name in names if name.endswith(".o")]
    done = subprocess.run(["cmake", "-DNM=aarch64-linux-gnu-nm", "-DREADELF=aarch64-linux-gnu-readelf",
                           "-DAGENT=" + os.path.join(build, "lib", "libkindling.so"), "-DSIG_OBJECTS=" + ",".join(objects),
                           "-P", os.path.join(SOURCE, "tests", "unit", "sig_symbols.cmake")], capture_output=True, text=True)
    check(objects and done.returncode == 0, "symbols of the arm64 agent %s" % done.stderr[-300:])


class Run:
    """One JVM, sampled for some seconds. samples: (thread, weight, [leaf .. root]); stacks: with the frames' kinds."""

    def __init__(self, home, directory, flags, program, seconds, interval_us=1000, arguments=(), wait=False):
        self.out, self.err = (open(os.path.join(directory, "out"), "w+"), open(os.path.join(directory, "err"), "w+"))
        jvm = subprocess.Popen([*jdks.command(home, os.path.dirname(library(home))), *compiler, *flags, "-Xmx300m", "-cp", directory,
                                program, *arguments], stdout=self.out, stderr=self.err, stdin=subprocess.PIPE, cwd=directory)
        # the host's signals need handlers in native code, and qemu's are not
        rate = ["-i", str(max(interval_us, TICK_US))] if emulated else ["-H", "-i", str(interval_us)]
        try:
            self.wait_ready(directory, jvm)
            if emulated and program == "WalkVirtual":
                time.sleep(EMULATION_WARM_S)
            self.reader = self.read_samples(directory, jvm, rate, library(home), seconds)
            jvm.stdin.close()
            if wait:
                self.status = jvm.wait(timeout=600 if emulated else 120)
        finally:
            alive = jvm.poll() is None
            if alive:
                jvm.kill()
            jvm.wait()
        self.alive = alive or wait
        self.text, self.error = (self.read(f) for f in (self.out, self.err))
        self.parse()

    @staticmethod
    def read_samples(directory, jvm, rate, agent, seconds):
        """Reads agent_reader's output until there is enough. On a busy machine the first sample takes a while."""
        path = os.path.join(directory, "samples")
        with open(path, "w") as out:
            reader = subprocess.Popen([os.path.join(BUILD, "tests", "agent_reader"), "-v", "-K", "-l", agent, "-d", "900",
                                       *rate, str(jvm.pid)], stdout=out, stderr=subprocess.STDOUT)
        try:
            wait_for("HELLO", lambda: reader.poll() is not None or "HELLO" in Run.read(open(path, errors="replace")))
            until_cpu(jvm.pid, seconds)
            reader.terminate()
            reader.wait(timeout=seconds + 120)
        finally:
            reader.kill()
            reader.wait()
        with open(path, errors="replace") as f:
            return subprocess.CompletedProcess(reader.args, reader.returncode, f.read())

    @staticmethod
    def read(f):
        f.seek(0)
        with f:
            return f.read()

    @staticmethod
    def wait_ready(directory, jvm):
        for _ in range(1200):  # an emulated JVM is slow
            with open(os.path.join(directory, "out")) as f:
                if "READY" in f.read():
                    return
            if jvm.poll() is not None:
                break
            time.sleep(0.05)
        skip("the JVM does not start with these options")

    def parse(self):
        self.samples, self.stacks, self.names, self.hello = [], [], {}, ""
        for line in self.reader.stdout.splitlines():
            if line.startswith("HELLO"):
                self.hello = line
            m = re.match(r"THREAD (\d+) flags \d+ java \d+ (.*)", line)
            if m:
                self.names[m.group(1)] = m.group(2)
            m = re.match(r"CPU \S+ tid (\d+) (\d+) ns (.*)", line)
            if m:
                self.stacks.append(m.group(3).split(" < "))
                self.samples.append((m.group(1), int(m.group(2)), callers.plain(self.stacks[-1])))

    def unrooted(self):
        """Causes of stacks without their root; stacks deeper than the limit are counted separately. Those of a
        compiler in Java, which the JVM's compiler threads call anywhere, are not judged."""
        causes = collections.Counter()
        for _, _, frames in self.samples:
            if "too_deep" in frames[-1] or frames[-1].startswith("jdk/vm/ci/"):
                continue
            if not ROOTS.match(frames[-1]):
                causes[frames[-1] + " above " + frames[-2] if len(frames) > 1 else frames[-1]] += 1
            elif "[unknown]" in frames:
                causes["[unknown] inside"] += 1
        return causes

    def check_roots(self, label):
        causes, n = self.unrooted(), len(self.samples)
        bad = sum(causes.values())
        check(n > enough, "%s: %d samples" % (label, n))
        # a few failures are chance: shares are checked only with enough samples
        check(bad <= max(3, BROKEN_MAX * n), "%s: %d of %d without root %s" % (label, bad, n, dict(causes.most_common(4))))
        return bad, n


def check_calls(run, judge, label):
    """By the class files of the JDK and of the program every pair is a possible call."""
    verdict = judge.judge(run.stacks)
    wrong = sum(verdict.wrong.values())
    check(verdict.judged > 300 and wrong <= max(10 if emulated else 1, CALLS_WRONG_MAX * verdict.judged),
          "%s: %d impossible of %d calls; not judged: %s" % (label, wrong, verdict.judged, dict(verdict.unjudged)))
    verdict.show()
    return wrong, verdict.judged


def check_known(run, label):
    """Frames at the cooperative point, without the leaf's own line."""
    truth = [line[len("FRAME "):] for line in run.text.splitlines() if line.startswith("FRAME ")]
    seen = bad = 0
    for _, _, frames in run.samples:
        if not frames[0].startswith("WalkKnown.spin:"):
            continue
        seen += 1
        # Java's own stack traces do not show runWith (21+)
        got = [f.replace("/", ".") for f in frames[1:] if "$$Lambda" not in f and "Thread.runWith" not in f]
        want = [t for t in truth if "$$Lambda" not in t]
        bad += got != want
        if got != want and bad == 1:
            print("     e.g.", got, "\n     not", want)
    check(seen > enough and bad <= seen * 0.002, "%s: %d of %d differ from Thread.getStackTrace" % (label, bad, seen))


def check_depth(run, label):
    """recursion(200) of WalkMix."""
    depths = collections.Counter()
    for _, _, frames in run.samples:
        n = sum(f.startswith("WalkMix.recursion:") for f in frames)
        if n:
            depths[n] += 1
    n = sum(depths.values())
    # an instruction between two safepoints has the scope of the next one, which may be inlined one level deeper; three
    # may be chance
    check(n > enough // 60 and max(depths) <= 202 and depths[202] <= max(3, n // 100), "%s: recursion in %d samples, deepest %d of 201" % (
        label, n, max(depths, default=0)))


def check_virtual(run, label):
    seen = rooted = deep = unread = wrong = named = 0
    for tid, _, frames in run.samples:
        if not any(f.startswith("WalkVirtual.work") for f in frames) and \
                not any(f.startswith("WalkVirtual.down") for f in frames):
            continue
        seen += 1
        rooted += any(f.startswith("java/lang/VirtualThread.run:") for f in frames)
        name = run.names.get(tid, "")
        m = re.match(r"virtual-(\d+)-\d+$", name)
        named += m is not None
        if m and any(f.startswith("WalkVirtual.leaf:") for f in frames):
            deep += 1
            exact = sum(f.startswith("WalkVirtual.down:") for f in frames) == int(m.group(1)) + 1
            # in the middle of a yield, or in a chunk that the collector moves: the walk ends with [unknown]
            unread += not exact and "[unknown]" in frames
            wrong += not exact and "[unknown]" not in frames
            if not exact and "[unknown]" not in frames and wrong == 1:
                print("     e.g.", name, frames)
    check(seen > enough and rooted >= 0.999 * seen, "%s: %d of %d reach VirtualThread.run" % (label, rooted, seen))
    check(named >= 0.98 * seen, "%s: %d of %d with the virtual thread's name" % (label, named, seen))
    # a pc between two entries of debug information sometimes shows the inlined leaf() of the next one, also while the
    # thread is elsewhere in that nmethod: up to 0.15 % of samples
    check(deep > enough // 2 and wrong <= max(2, 0.003 * deep) and unread <= 0.01 * deep,
          "%s: of %d deep ones %d lack frames, %d say so" % (label, deep, wrong, unread))


def check_yields(run, label):
    """Nearly all samples fall while frames are frozen or thawed. Only yielding() yields, so all frames below the one
    that freezes are known."""
    virtual = seen = unread = wrong = 0
    for tid, _, frames in run.samples:
        m = re.match(r"virtual-(\d+)-\d+$", run.names.get(tid, ""))
        virtual += m is not None
        unread += m is not None and "[unknown]" in frames
        here = any(f.startswith("WalkYield.yielding:") for f in frames)
        if m and "[unknown]" not in frames and (here or any(".doYield:" in f for f in frames)):
            seen += 1
            down = sum(f.startswith("WalkYield.down:") for f in frames)
            # one more may be an inlined yielding() of the next entry
            bad = (down != int(m.group(1)) + 1 or not here) and not frames[0].startswith("WalkYield.")
            wrong += bad
            if bad and wrong == 1:
                print("     e.g.", m.group(0), frames)
    # under emulation 3 of 5,857 are [unknown]
    check(seen > enough and wrong <= max(2, 0.0005 * seen) and unread <= max(2, (0.002 if emulated else 0.0005) * virtual),
          "%s: of %d that yield %d lack frames; %d of %d say so" % (label, seen, wrong, unread, virtual))


def check_busy_heap(run, label):
    """A collector moves the threads, their names and their frozen frames all the time: a sample with another thread's
    name has frames of that deeper thread (one more may be an inlined leaf() of the next entry)."""
    seen = named = wrong = unread = 0
    for tid, _, frames in run.samples:
        if not any(f.startswith(("WalkVirtual.work", "WalkVirtual.down")) for f in frames):
            continue
        seen += 1
        unread += "[unknown]" in frames
        m = re.match(r"virtual-(\d+)-\d+$", run.names.get(tid, ""))
        named += m is not None
        wrong += m is not None and sum(f.startswith("WalkVirtual.down:") for f in frames) > int(m.group(1)) + 2
    check(seen > enough and named >= 0.98 * seen and not wrong and unread <= max(2, 0.002 * seen),
          "%s: of %d in virtual threads %d with their names, %d with another's; %d not read" % (label, seen, named, wrong, unread))


def version(major):
    """17 of "17-musl"."""
    return int(major.split("-")[0])


def has_debugger(home):
    return glob.glob(home + "/**/libjdwp.so", recursive=True) != []


def modes(major, home, everything):
    some = [["-XX:+UseParallelGC" if "musl" in major else "-XX:+UseG1GC"], ["-Xint"]]
    if compiler:
        return [["-XX:+UseG1GC"], ["-XX:+UseParallelGC"]]
    if has_debugger(home) and not emulated:
        some += [DEBUGGED]
    if not everything:
        return some
    more = [["-XX:TieredStopAtLevel=1"], ["-XX:-TieredCompilation"], ["-XX:+UseParallelGC"], ["-XX:+UseSerialGC"],
            ["-XX:+PreserveFramePointer"]]
    if version(major) == 8:
        more += [["-XX:ReservedCodeCacheSize=2000m"]]  # returns poll in another way
    if version(major) >= 17:
        more += [["-XX:+UseZGC"], ["-XX:+UseShenandoahGC"]]
    return some + more


def check_hazard(home, directory, flags, seconds):
    """The program counts the signals that it caused and those that it saw; the agent must not make a difference."""
    label = "hazard " + " ".join(flags)
    run = Run(home, directory, flags, "WalkHazard", seconds - 0.5, 200, ["-"], wait=True)
    # warnings that the JVM itself prints under -Xcheck:jni
    said = run.text.split()[-1:] if "-Xcheck:jni" in flags else run.text.split()
    check(run.status == 0 and said in (["OK"], ["READY", "OK"]),
          "%s: ends with %d, %s" % (label, run.status, run.text.replace("\n", " ")[-300:]))
    check("kindling" not in run.text + run.error and (run.error == "" or "-Xcheck:jni" in flags),
          "%s: nothing printed %s" % (label, run.error[-300:]))
    run.check_roots(label)


def check_brief(run, label):
    """A thread's first method that is about to return and stopped at a safepoint is gone from the stack."""
    held = [frames for _, _, frames in run.samples if any("afepoint" in f for f in frames)]
    lost = [frames for frames in held if "afepoint" in frames[-1]]
    check(not lost, "%s: %d of %d in the safepoint blob lack their first method %s" % (label, len(lost), len(held), lost[:1]))


def check_locks(run, label):
    """The locks of java.util.concurrent check the stack's reserved zone when their frame is gone, before they return."""
    seen = locking = bad = 0
    for _, _, frames in run.samples:
        own = [f[len("WalkLocks."):].split(":")[0] for f in frames if re.match(r"WalkLocks\.(work|one|two|three):", f)]
        held = frames[0].startswith("java/util/concurrent/locks/")
        wrong = own != ["three", "two", "one", "work"][-len(own):] or held and len(own) < 4
        seen += bool(own)
        locking += held
        bad += bool(own) and wrong
        if own and wrong and bad == 1:
            print("     e.g.", frames)
    check(locking > enough and bad <= max(1, BROKEN_MAX * seen), "%s: %d of %d lack callers, %d in the locks" % (label, bad, seen, locking))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("major")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--us", type=int, default=1000, help="interval of the mixed load (1000)")
    parser.add_argument("--soak", type=float, metavar="MINUTES",
                        help="only torture.py, every 200 us, for so long")
    parser.add_argument("--aarch64", action="store_true", help="an arm64 JVM under qemu-user")
    parser.add_argument("--graal", action="store_true", help="GraalVM's compiler in place of C2")
    parser.add_argument("--all", action="store_true", help="every collector and compiler mode")
    args = parser.parse_args()
    global emulated, enough, compiler
    if args.aarch64:
        emulated, enough = True, 30
    if args.soak:
        import torture
        return torture.torture(args.major, args.soak)
    if args.graal:
        compiler = graal.options(args.major) or skip("there is no GraalVM compiler; it comes from Maven Central")
    home = aarch64_home(args.major) if args.aarch64 else java_home(args.major)
    if args.aarch64:
        check_symbols()
    directory = tempfile.mkdtemp(prefix="kindling-walker-")
    try:
        for f in os.listdir(classes()):
            shutil.copy(os.path.join(classes(), f), directory)
        total = samples = wrong = calls = 0
        signed = [["-XX:UseBranchProtection=standard"]] if args.aarch64 and version(args.major) > 25 else []
        with callers.Judge(home, [directory]) as judge:
            for flags in modes(args.major, home, args.all) + signed:
                label = "mix " + " ".join(flags)
                run = Run(home, directory, flags, "WalkMix", args.seconds, args.us)
                if samples == 0:
                    check(", hotspot," in run.hello, "walker: " + run.hello)
                bad, n = run.check_roots(label)
                total, samples = total + bad, samples + n
                w, n = check_calls(run, judge, label)
                wrong, calls = wrong + w, calls + n
                check_depth(run, label)
                run = Run(home, directory, flags, "WalkKnown", 2)
                check_known(run, "known " + " ".join(flags))
        for flags in ([],) if compiler else ([], ["-Xint"], ["-Xcheck:jni"]):
            check_hazard(home, directory, flags, args.seconds)
        Run(home, directory, ["-Xint"], "WalkThrown", args.seconds, 200).check_roots("thrown")
        check_brief(Run(home, directory, ["-XX:+UseSerialGC"], "WalkBrief", args.seconds, 100), "brief")
        for flags in [["-XX:+UseG1GC"]] if compiler else [["-XX:TieredStopAtLevel=1"], ["-XX:-TieredCompilation"]]:
            alone = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,WalkLocks::*"]
            run = Run(home, directory, flags + alone, "WalkLocks", args.seconds)
            check_locks(run, "locks " + " ".join(flags))
            run.check_roots("locks " + " ".join(flags))
        if version(args.major) >= 21:
            for flags in [["-XX:+UseG1GC"], ["-XX:+UseZGC"]] + ([["-Xint"], ["-XX:+UseParallelGC"]] if args.all else []):
                check_virtual(Run(home, directory, flags, "WalkVirtual", args.seconds), "virtual " + " ".join(flags))
            for flags in [["-XX:+UseG1GC"]] + ([] if compiler else [["-Xint"]]) + ([["-XX:+UseZGC"], ["-XX:TieredStopAtLevel=1"]] if args.all else []):
                check_yields(Run(home, directory, flags, "WalkYield", args.seconds, 200), "yields " + " ".join(flags))
            late = Run(home, directory, [], "WalkYield", args.seconds + 8, 200, arguments=["late"])  # 3 s pass on two CPUs before
            check_yields(late, "yields late")
            generations = ["-XX:+ZGenerational"] if version(args.major) < 23 else []
            busy = [["-XX:+UseZGC", *generations]] + ([] if compiler else [["-XX:+UseShenandoahGC"]])
            busy += [["-XX:+UseZGC"]] if generations else []  # the older one
            busy += [["-XX:+UseG1GC"], ["-XX:+UseParallelGC"], ["-XX:+UseSerialGC"]] if args.all else []
            for flags in busy:
                check_busy_heap(Run(home, directory, flags, "WalkVirtual", args.seconds, arguments=["busy"]), "busy heap " + " ".join(flags))
        print("in all modes of mix: %d of %d without root, %d of %d calls impossible" % (total, samples, wrong, calls))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
