"""Programs that look for trouble, sampled every 200 us: torture.py MAJOR [--seconds N] [--minutes N].

Several JVMs at once, each with its own `kindling record` (no daemon, the host engine's signals; where BPF is
refused the kernel's tick, and a line says so): implicit null checks, stack overflows, deoptimisation,
exceptions, class unloading and threads that live for a moment (WalkHazard, WalkMix), virtual threads, and a
Go runtime that is loaded before us or after us (WalkGo). Each program checks its own results and must end as
it does alone; Java stacks must reach their roots. --minutes: compilers and collectors in turn, that long in all.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import jdks  # noqa: E402
from kindling import BUILD, HERE, classes, java_home, skip  # noqa: E402
import walker  # noqa: E402

INTERVAL_US = 200
ATTEMPTS = 3  # another daemon of this machine may have its agent in the JVM already
GO_SOURCE = os.path.join(HERE, "go", "walkgo.go")


def go_library():
    """Builds the Go library, once for each version of its source."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        skip("there is no Go compiler; tests/run installs one")
    out = os.path.realpath(os.path.join(BUILD, "walkgo-%d.so" % int(os.path.getmtime(GO_SOURCE))))
    if not os.path.exists(out):
        temp = out + ".%d" % os.getpid()
        subprocess.run([go, "build", "-buildmode=c-shared", "-o", temp, GO_SOURCE], check=True,
                       env=dict(os.environ, CGO_ENABLED="1"))
        os.rename(temp, out)
    return out


class Ride:
    """One JVM with one recording, both in the background."""

    def __init__(self, home, directory, flags, program, arguments, seconds, ends=True):
        self.label = " ".join([program, *(f for f in flags if "native" not in f), *(a for a in arguments if "/" not in a)])
        self.ends, self.seconds = ends, seconds
        self.dir = tempfile.mkdtemp(dir=directory)
        self.command = [*jdks.command(home, os.path.realpath(BUILD)), *flags, "-Xmx300m", "-cp", classes(), program, *arguments]
        self.begin()

    def begin(self):
        with open(self.dir + "/out", "w") as out, open(self.dir + "/err", "w") as err:
            self.jvm = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.dir)
        walker.Run.wait_ready(self.dir, self.jvm)
        with open(self.dir + "/said", "w") as said:
            self.record = subprocess.Popen(
                [BUILD + "/bin/kindling", "--socket", self.dir + "/none", "record", str(self.jvm.pid), "--threads",
                 "-d", "%ds" % (self.seconds + 60 if self.ends else self.seconds), "-i", "%dus" % INTERVAL_US,
                 "-o", self.dir + "/out.collapsed"], stdout=said, stderr=said)

    def read(self, name):
        with open(os.path.join(self.dir, name), errors="replace") as f:
            return f.read()

    def wait(self):
        """Waits until both have ended; starts again if another agent was in the JVM."""
        for attempt in range(ATTEMPTS):
            try:
                if self.ends:
                    self.status = self.jvm.wait(timeout=self.seconds + 60)
                code = self.record.wait(timeout=self.seconds + 90)
            finally:
                self.kill()
            if code == 0 or attempt + 1 == ATTEMPTS:
                return code == 0
            print("  again: %s: %s" % (self.label, self.read("said").strip()[-200:]))
            self.begin()

    def kill(self):
        self.alive = self.jvm.poll() is None
        for p in (self.jvm, self.record):
            if p.poll() is None:
                p.kill()
            p.wait()

    def judge(self):
        recorded = self.wait()
        self.check_program()
        if recorded:
            self.check_profile()
        else:
            walker.check(False, "%s: %s" % (self.label, self.read("said").strip()[-300:]))

    def check_program(self):
        out, err = self.read("out").split(), self.read("err")
        if self.ends:
            walker.check(self.status == 0 and out == ["READY", "OK"], "%s: ends with %d, %s" % (
                self.label, self.status, " ".join(out)[-300:]))
        else:
            walker.check(self.alive, "%s: lives" % self.label)
        if err:
            walker.check(False, "%s: says %s" % (self.label, err[-300:]))

    def broken(self, lines):
        """Weight of stacks that are not whole, by the frame at their root."""
        causes = collections.Counter()
        # Go names its own threads after the Java thread that made it start them
        java = {thread for thread, stack, _ in lines if re.search(r";WalkGo\.|;WalkGo/", stack)}
        for thread, stack, weight in lines:
            rooted = not stack.startswith("[broken:")
            if thread in java:
                rooted = re.match(r"java[./]lang[./]Thread\.(run|exit)|\[exited|\[found|\[no signal|WalkGo[./]main|\[libc|clone3(;|$)", stack)
            elif java:
                continue
            if "too_deep" not in stack and (not rooted or "[unknown]" in stack):
                causes[stack.split(";")[0]] += weight
        return causes

    def check_profile(self):
        lines = [re.match(r"([^;]*);?(.*) (\d+)$", line).groups() for line in self.read("out.collapsed").splitlines()]
        lines = [(thread, stack, int(weight)) for thread, stack, weight in lines]
        samples = int(re.search(r": (\d+) samples", self.read("said")).group(1))
        total, causes = sum(weight for _, _, weight in lines), self.broken(lines)
        bad = sum(causes.values())
        walker.check(samples > 100 * self.seconds and bad <= walker.BROKEN_MAX * total,
                     "%s: %d samples, one every %.0f us of CPU, %.4f %% of the time in stacks that are not whole %s" % (
                         self.label, samples, total / max(samples, 1) / 1e3, 100 * bad / max(total, 1),
                         {k: "%.4f %%" % (100 * v / total) for k, v in causes.most_common(3)}))
        if total / max(samples, 1) > 3 * INTERVAL_US * 1e3:
            print("  the host engine was refused or held back: this was not every %d us" % INTERVAL_US)


def rides(major, home, directory, flags, seconds):
    """Runs all programs at once, then checks their results."""
    def ride(program, *arguments, more=(), **options):
        return Ride(home, directory, [*flags, *more], program, arguments, seconds, **options)

    native = ["--enable-native-access=ALL-UNNAMED"] if int(major) >= 17 else []
    library, s = go_library(), "%d" % seconds
    everyone = [ride("WalkHazard", s), ride("WalkMix", ends=False), ride("WalkGo", library, s, "0", more=native),
                ride("WalkGo", library, s, "1500", more=native)]
    if "-Xint" not in flags:
        everyone.append(ride("WalkHazard", s, more=["-Xint"]))
    if int(major) >= 21:
        everyone.append(ride("WalkVirtual", ends=False))
    try:
        for one in everyone:
            one.judge()
    finally:
        for one in everyone:
            one.kill()


def torture(major, minutes=0, seconds=15):
    home, directory = java_home(major), tempfile.mkdtemp(prefix="kindling-torture-")
    modes = [[]]
    if minutes:
        modes += [["-Xint"], ["-XX:TieredStopAtLevel=1"], ["-XX:+UseParallelGC"]]
        modes += [["-XX:+UseZGC"]] if int(major) >= 17 else []
        seconds = max(5, int(minutes * 60 / len(modes)))
    try:
        for flags in modes:
            begin = time.monotonic()
            rides(major, home, directory, flags, seconds)
            print("JDK %s %s: %.0f s" % (major, " ".join(flags), time.monotonic() - begin))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if walker.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("major")
    parser.add_argument("--seconds", type=int, default=15, help="of each program, all at once (15)")
    parser.add_argument("--minutes", type=float, default=0, help="modes in turn for so long in all")
    args = parser.parse_args()
    if os.geteuid() != 0:
        skip("needs root")
    return torture(args.major, args.minutes, args.seconds)


if __name__ == "__main__":
    sys.exit(main())
