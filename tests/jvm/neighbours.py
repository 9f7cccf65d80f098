"""Other profilers in the same JVM: neighbours.py MAJOR [--rival].

Two versions of our agent, each a library of its own: both stream, and whichever is detached first, the
signals' handlers and libjvm's slot of pthread_create are in the end what they were, or lead there through
one that only passes on. A new version takes over from an old one with a gap of less than a second. --rival:
async-profiler before us and after us, stopped before us and after us. From 25 on also JFR's CPU-time events. The program (WalkHazard) counts what
its signals did and must not notice.
"""
import argparse
import functools
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "bench")]
from kindling import BUILD, classes, java_home, skip, thread_names, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

READER = os.path.join(BUILD, "tests", "agent_reader")
NAMES = {4: "SIGILL", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 16: "SIGSTKFLT", 26: "SIGVTALRM", 27: "SIGPROF", 30: "SIGPWR"}


def versions(directory):
    """Two builds of the agent that the loader takes for different libraries: other files, other names, other
    versions."""
    with open(os.path.join(BUILD, "lib", "libkindling.so"), "rb") as f:
        bytes_ = f.read()
    paths = []
    for name, version in (("old", b"0.0.8"), ("new", b"0.0.9")):
        path = os.path.join(directory, "libkindling-%s.so" % name)
        with open(path, "wb") as f:
            f.write(bytes_.replace(b"\0000.1.0\0", b"\000" + version + b"\0"))
        os.chmod(path, 0o755)
        paths.append(path)
    return paths


@functools.cache
def slot_at(libjvm):
    """Where it has its import of pthread_create. Asked once, because the sessions that are looked at last only two seconds."""
    out = subprocess.run(["readelf", "-rW", libjvm], capture_output=True, text=True).stdout
    return int(re.search(r"^([0-9a-f]+) .* pthread_create", out, re.M).group(1), 16)


class Jvm:
    def __init__(self, major):
        native = ["--enable-native-access=ALL-UNNAMED"] if int(major) >= 17 else []
        self.process = subprocess.Popen(
            [java_home(major) + "/bin/java", *native, "-Xmx200m", "-cp", classes(), "WalkNeighbours",
             os.path.realpath(os.path.join(BUILD, "tests", "libhandlers.so"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "READY\n":
            raise AssertionError(self.process.communicate())
        time.sleep(0.5)

    def maps(self):
        with open("/proc/%d/maps" % self.pid) as f:
            for line in f:
                words = line.split()
                low, high = (int(x, 16) for x in words[0].split("-"))
                yield low, high, int(words[2], 16), words[5] if len(words) > 5 else ""

    def owner(self, address):
        if address < 2:
            return ("default", "ignored")[address]
        for low, high, _, path in self.maps():
            if low <= address < high:
                return os.path.basename(path)
        return "0x%x" % address

    def slot(self):
        """libjvm's import of pthread_create."""
        path, base = next((path, low) for low, _, offset, path in self.maps() if path.endswith("/libjvm.so") and offset == 0)
        with open("/proc/%d/mem" % self.pid, "rb") as f:
            f.seek(base + slot_at(path))
            return struct.unpack("<Q", f.read(8))[0]

    def look(self):
        """{what: address}"""
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        while line and not line.startswith("LOOK "):  # async-profiler speaks
            line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the JVM is gone: %d\n%s\n%s" % (self.process.wait(), *self.process.communicate()))
        words = dict(word.split("=") for word in line.split()[1:])
        return dict({NAMES[int(n)]: int(a) for n, a in words.items()}, pthread_create=self.slot())

    def end(self):
        try:
            out, err = self.process.communicate("end\n", timeout=30)
        finally:
            self.process.kill()
        return self.process.returncode, out, err


def read(library, jvm, seconds):
    """A session in the background; its output goes to a file, because a full pipe would stop it."""
    out = tempfile.TemporaryFile("w+", errors="replace")
    process = subprocess.Popen([READER, "-v", "-l", library, "-d", str(seconds), "-i", "4000", str(jvm.pid)],
                               stdout=out, stderr=subprocess.STDOUT)
    return process, out


SHORTEST_S = 3  # on a busy machine begin and end may take a tenth of a second


class Session:
    def __init__(self, reader, label):
        process, file = reader
        process.wait(timeout=90)
        with file:
            file.seek(0)
            out = file.read()
        times = [float(t) for t in re.findall(r"^CPU (\S+) tid", out, re.M)]
        self.first, self.last, self.n = (times[0], times[-1], len(times)) if times else (0, 0, 0)
        ratio = re.search(r" ratio=(\S+)", out)
        self.ratio = float(ratio.group(1)) if ratio else 0
        said = [line for line in out.splitlines() if line.startswith(("FAULT", "WRONG", "no session"))]
        check(process.returncode == 0 and self.n > 50 and 0.9 < self.ratio < 1.05 and not said,
              "%s: %d samples, weights are %.3f of the CPU time %s" % (label, self.n, self.ratio, said))


def left_by_all(jvm, before):
    """What differs from before once the agents' threads are gone; BYE comes a moment earlier."""
    wait_for("the end of the agents", lambda: "kindling" not in thread_names(jvm.pid))
    return changes(jvm, before, jvm.look())


def changes(jvm, before, after):
    return {what: jvm.owner(after[what]) for what in before if after[what] != before[what]}


def ends_well(jvm, label):
    status, out, err = jvm.end()
    check((status, out.split()[-1:], err) == (0, ["OK"], ""), "%s: the program ends with %d %s%s" % (label, status, out.strip()[-300:], err[-300:]))


def two_versions(major, libraries, old_first):
    label = "two agents, the %s one detached first" % ("older" if old_first else "newer")
    jvm = Jvm(major)
    before = jvm.look()
    old = read(libraries[0], jvm, 3 if old_first else 5)
    wait_for("the old one", lambda: changes(jvm, before, jvm.look()))
    time.sleep(1)  # so that the one that comes first also leaves first
    new = read(libraries[1], jvm, 4 if old_first else 2)
    time.sleep(1)
    # from 25 on SIGPROF is JFR's
    signals = ("SIGPROF", "SIGVTALRM", "SIGSTKFLT")[int(major) >= 25:]
    want = {"SIGSEGV": "new", "SIGBUS": "new", "pthread_create": "new", signals[0]: "old", signals[1]: "new"}
    want = {what: "libkindling-%s.so" % who for what, who in want.items()}
    for _ in range(10):
        both = changes(jvm, before, jvm.look())
        if both == want:
            break
        time.sleep(0.1)
    check(both == want, "%s: meanwhile %s" % (label, both))
    Session(old, label + ", old")
    Session(new, label + ", new")
    left = left_by_all(jvm, before)
    # a handler that was behind another one when its agent left stays installed, and only passes signals on
    want = {"SIGSEGV", "SIGBUS", "pthread_create"} if old_first else set()
    check(set(left) == want and all("old" in owner for owner in left.values()), "%s: left at the end: %s" % (label, left))
    if old_first:
        Session(read(libraries[0], jvm, SHORTEST_S), label + ", old once more")
        left = left_by_all(jvm, before)
        check(not left, "%s: left when it has come and gone again: %s" % (label, left))
    ends_well(jvm, label)


def hand_over(major, libraries):
    jvm = Jvm(major)
    before = jvm.look()
    old = read(libraries[0], jvm, 2)
    time.sleep(1.9)  # of the 2 s of the old one
    new = read(libraries[1], jvm, 2)
    old, new = Session(old, "hand-over, old"), Session(new, "hand-over, new")
    check(new.first - old.last < 1, "hand-over: %.0f ms between the last sample of the old and the first of the new" % (
        1000 * (new.first - old.last)))
    once = read(libraries[0], jvm, SHORTEST_S)
    Session(once, "and back")
    left = left_by_all(jvm, before)
    check(set(left) <= {"SIGSEGV", "SIGBUS", "pthread_create"}, "hand-over: left at the end: %s" % left)
    ends_well(jvm, "hand-over")


def jattach(jvm, library, options):
    subprocess.run(["jattach", str(jvm.pid), "load", library, "true", options], stdout=subprocess.DEVNULL, check=True)


def with_rival(major, ours, rival, rival_first, rival_leaves_first):
    label = "async-profiler %s us, stopped %s us" % ("before" if rival_first else "after",
                                                   "before" if rival_leaves_first else "after")
    out = tempfile.mktemp(prefix="kindling-rival-")
    options = "event=ctimer,interval=4ms,cstack=vm,collapsed,file=" + out
    jvm = Jvm(major)
    before = jvm.look()
    if rival_first:
        jattach(jvm, rival, "start," + options)
    reader = read(ours, jvm, 8 if rival_leaves_first else 4)
    if not rival_first:
        time.sleep(1.5)
        jattach(jvm, rival, "start," + options)
    time.sleep(5 if rival_leaves_first else 7)
    both = jvm.look()
    jattach(jvm, rival, "stop," + options)
    session = Session(reader, label)
    with open(out) as f:
        theirs = sum(int(line.rsplit(" ", 1)[1]) for line in f)
    os.unlink(out)
    check(theirs > 100, "%s: it has %d samples, we %d" % (label, theirs, session.n))
    left = left_by_all(jvm, before)
    check(not any("kindling" in owner for owner in left.values()) or not rival_leaves_first,
          "%s: left at the end: %s; meanwhile: %s" % (label, left, changes(jvm, before, both)))
    ends_well(jvm, label)


def with_jfr(major, ours, jfr_first):
    """With CPU-time events of JFR, JDK 25 and later: both profilers work, and the JVM prints no complaint."""
    label = "JFR %s us" % ("before" if jfr_first else "after")
    out = tempfile.mktemp(prefix="kindling-jfr-", suffix=".jfr")
    jvm = Jvm(major)
    before = jvm.look()
    start = ["jcmd", "JFR.start name=n filename=%s jdk.CPUTimeSample#enabled=true jdk.CPUTimeSample#throttle=10ms" % out]
    if jfr_first:
        subprocess.run(["jattach", str(jvm.pid), *start], stdout=subprocess.DEVNULL, check=True)
    reader = read(ours, jvm, 4)
    time.sleep(1)
    if not jfr_first:
        subprocess.run(["jattach", str(jvm.pid), *start], stdout=subprocess.DEVNULL, check=True)
    time.sleep(2)
    subprocess.run(["jattach", str(jvm.pid), "jcmd", "JFR.stop name=n"], stdout=subprocess.DEVNULL, check=True)
    Session(reader, label)
    said = subprocess.run([java_home(major) + "/bin/jfr", "summary", out], capture_output=True, text=True).stdout
    os.unlink(out)
    theirs = int(re.search(r"jdk.CPUTimeSample +(\d+)", said).group(1))
    check(theirs > 50, "%s: it has %d CPU-time samples" % (label, theirs))
    left = left_by_all(jvm, before)
    check(not any("kindling" in owner for owner in left.values()), "%s: left at the end: %s" % (label, left))
    status, printed, err = jvm.end()
    check(status == 0 and "error" not in printed and err == "", "%s: the JVM complains: %s" % (label, (printed + err).strip()[-300:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("major")
    parser.add_argument("--rival", action="store_true", help="only async-profiler")
    args = parser.parse_args()
    if not shutil.which("jattach"):
        skip("there is no jattach")
    directory = tempfile.mkdtemp(prefix="kindling-neighbours-")
    os.chmod(directory, 0o755)
    try:
        libraries = versions(directory)
        if args.rival:
            import stacks
            rival = stacks.rival() or skip("async-profiler cannot be had")
            for first in (True, False):
                for leaves_first in (True, False):
                    with_rival(args.major, libraries[0], rival, first, leaves_first)
        else:
            two_versions(args.major, libraries, old_first=True)
            two_versions(args.major, libraries, old_first=False)
            hand_over(args.major, libraries)
            if int(args.major) >= 25:
                with_jfr(args.major, libraries[0], True)
                with_jfr(args.major, libraries[0], False)
    finally:
        shutil.rmtree(directory)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
