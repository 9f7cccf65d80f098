"""A new version of kindling takes over, an old one comes back, and a daemon that is started again and again.

test_upgrade.py [--jvms N] [--restarts N]. Needs root. The next version is this one with another number in it.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import versions  # noqa: E402
import wire  # noqa: E402
from kindling import BUILD, ONLY_MINE, Contention, Daemon, Jvm, agent_copies, accounts_balance, cpu_ns, thread_names, timers, wait_for  # noqa: E402

ARGS = None
GAP_S = 2
SETTINGS = "events: {cpu: {interval: 1ms}, lock: }\n"
# the default, which must not delay JVMs that were attached to before
TARGETS = ONLY_MINE.replace("attach_rate: 0", "attach_rate: 5")
SMALL = ("-Xmx32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def next_version(directory):
    """A tree of the next version's programs."""
    build = directory + "/next"
    for path in glob.glob(BUILD + "/bin/*") + [BUILD + "/lib/libkindling.so"]:
        copy = build + path[len(BUILD):]
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)
    return build, versions.make_next(build)


def version_of(build):
    return versions.version_of(build + "/bin/kindling-inject")


@contextlib.contextmanager
def services(n):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Jvm("25" if i % 4 == 3 else "17", "Pulse", options=SMALL)) for i in range(n)]


def state_of(daemon, jvms):
    targets = {t["pid"]: t for t in daemon.status()["targets"]}
    return [targets.get(jvm.pid) for jvm in jvms]


def all_sampled(daemon, jvms):
    """Waits until all JVMs stream and samples of each have arrived."""
    def there():
        found = state_of(daemon, jvms)
        return found if all(t and t["state"] == "streaming" and t["samples"]["delivered"] > 5 for t in found) else None
    try:
        return wait_for("all JVMs streaming", there, 120)
    except AssertionError:
        raise AssertionError("%s\n%s" % ([(t["pid"], t["state"], t["reason"]) if t else None for t in state_of(daemon, jvms)],
                                         daemon.read_log()[-6000:]))


def left_of(jvms):
    """Files and mounts that attempts on these JVMs left."""
    found = glob.glob("/tmp/kindling/%s/*" % ARGS.next)
    for jvm in jvms:
        found += glob.glob("/tmp/kindling/*/*-%d-*" % jvm.pid) + glob.glob("/tmp/.attach_pid%d" % jvm.pid)
        with open("/proc/%d/mountinfo" % jvm.pid) as f:
            found += [line for line in f if "kindling" in line.split(" - ")[0].split()[4]]
    return found


def in_history(daemon, jvm):
    """CPU samples of all daemons together."""
    done = daemon.cli("report", str(jvm.pid), "--last", "10m", "--format", "json", "-o", "-")
    return json.loads(done.stdout)["losses"]["delivered"]


def read(path):
    with contextlib.suppress(FileNotFoundError), open(path) as f:
        return f.read()
    return ""


class Size:
    """Counts of everything in a process that could grow."""

    def __init__(self, pid):
        self.files = len(os.listdir("/proc/%d/fd" % pid))
        self.threads = len(os.listdir("/proc/%d/task" % pid))
        self.timers = timers(pid)

    def __str__(self):
        return "%d descriptors, %d threads, %d timers" % (self.files, self.threads, self.timers)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.mkdtemp(prefix="kindling-upgrade-")
        self.addCleanup(shutil.rmtree, directory)
        os.chmod(directory, 0o755)  # for the data process
        self.next, ARGS.next = next_version(directory)

    def gaps(self, what, targets, times, more_s):
        """@more_s: the daemon before was killed, and its last reading of the clocks may be that long ago."""
        gaps = sorted(t["gap"]["ns"] / 1e9 for t in targets)
        print("%s: %d JVMs without samples for %.2f s (median), %.2f s (longest), on a machine that is %.1f times as slow as alone" % (
            what, len(gaps), gaps[len(gaps) // 2], gaps[-1], times))
        self.assertLess(gaps[-1], (GAP_S + more_s) * times)

    def one_agent(self, jvm, copies):
        wait_for("one agent's thread", lambda: thread_names(jvm.pid).count("kindling") == 1)
        self.assertLessEqual(agent_copies(jvm.pid), copies)

    def clean(self, jvms):
        for jvm in jvms:
            wait_for("the agent's thread to be gone", lambda: "kindling" not in thread_names(jvm.pid))
            self.assertEqual(timers(jvm.pid), 0)
            self.assertTrue(jvm.alive())
        wait_for("nothing left: %s" % left_of(jvms), lambda: left_of(jvms) == [])


class Versions(Case):
    def take_over(self, daemon, jvms, build, killed):
        """Starts another version; returns its status of the JVMs."""
        if killed:  # once a second it writes down what the next daemon has to know
            wait_for("what is sampled in its file", lambda: all(" %d " % jvm.pid in read(daemon.dir + "/state/sampled") for jvm in jvms))
        with Contention() as contention:
            if killed:
                daemon.kill()
            else:
                self.assertEqual(daemon.stop(), 0)
            daemon.build = build
            daemon.start()
            targets = all_sampled(daemon, jvms)
        self.assertEqual(daemon.status()["version"], version_of(build))
        self.gaps("%s %s" % (version_of(build), "after kill -9" if killed else "after a stop"), targets, contention.times,
                  1 if killed else 0)
        for jvm, t in zip(jvms, targets):
            self.assertTrue(jvm.alive())
            self.one_agent(jvm, 2)
            accounts_balance(t)
            # the time without samples is in the accounts, and a sentence reports it
            self.assertGreater(t["samples"]["dropped"]["restart"], 0)
            self.assertAlmostEqual(t["samples"]["dropped"]["restart"], t["gap"]["cpu_ns"] / 1e6, delta=1)
            self.assertIn("restart", [note["step"] for note in t["notes"]])
        wait_for("the old version's files to be gone: %s" % left_of(jvms), lambda: left_of(jvms) == [])
        return targets

    def there_and_back(self, killed):
        with services(ARGS.jvms) as jvms, Daemon(SETTINGS + TARGETS) as daemon:
            begin = time.monotonic()
            before = all_sampled(daemon, jvms)
            self.assertTrue(all(t["gap"] is None for t in before))
            print("%d JVMs stream %.2f s after the first look" % (len(jvms), time.monotonic() - begin))
            for build in self.next, BUILD:
                # a window (of ten seconds) that begins in the second of the next daemon's start appears in reports only
                # when that second has left its memory
                time.sleep(1.1)
                wait_for("the middle of a window", lambda: 2 < time.time() % 10 < 9)
                had = [in_history(daemon, jvm) for jvm in jvms]
                targets = self.take_over(daemon, jvms, build, killed)
                for jvm, n, t in zip(jvms, had, targets):
                    # seconds that are in no journal yet are lost when a daemon is killed
                    wait_for("more in the history", lambda: in_history(daemon, jvm) > (0 if killed else n))
            if killed:
                # on a slow machine some agents have noticed that their daemon is gone, and ended, before the next one
                # connects
                self.assertIn(len(re.findall(r"target\.send_away", daemon.read_log())), range(1, 2 * len(jvms) + 1))
            self.assertIn(" while kindlingd was restarted", daemon.cli("status").stdout)
            report = daemon.cli("report", str(jvms[0].pid), "--last", "10m", "--format", "txt", "-o", "-").stdout
            self.assertRegex(report, r"taken = \d+ delivered \+ [1-9]\d* dropped")
            self.assertEqual(daemon.stop(), 0)
            self.clean(jvms)
            for jvm in jvms:
                self.assertEqual(jvm.end(), ("END\n", ""))

    def test_stopped_and_started(self):
        self.there_and_back(False)

    def test_killed_and_started(self):
        self.there_and_back(True)


class Sampled(Case):
    """The file `sampled`: information for the next daemon, here from one that is killed before its first second has
    ended."""

    def line(self, daemon, jvm):
        """The JVM's CPU time and the monotonic time at the last reading, and the gap that is not in the history yet."""
        for line in read(daemon.dir + "/state/sampled").splitlines():
            words = line.split()
            if len(words) == 7 and int(words[1]) == jvm.pid:
                return dict(zip(("cpu_ns", "mono_ns", "owed_ns", "owed_cpu_ns"), map(int, words[3:])))
        return None

    def begin_and_kill(self, daemon, when):
        """A daemon beside the one of class Daemon, which is dead; returns what it left in the file."""
        begin = time.monotonic()
        daemon.process = subprocess.Popen([BUILD + "/bin/kindlingd", "--config", daemon.config], stderr=daemon.log, stdout=daemon.log)
        wait_for("the moment", lambda: daemon.data_pid() != daemon.process.pid and when())
        data = daemon.data_pid()
        daemon.kill()
        print("killed %.2f s after its start" % (time.monotonic() - begin))
        wait_for("its other process to end", lambda: not os.path.exists("/proc/%d" % data))

    def test_killed_in_its_first_second(self):
        with services(1) as (jvm,), Daemon(SETTINGS + TARGETS) as daemon:
            all_sampled(daemon, [jvm])
            wait_for("what is sampled in its file", lambda: self.line(daemon, jvm))
            data = daemon.data_pid()
            daemon.kill()
            wait_for("its other process to end", lambda: not os.path.exists("/proc/%d" % data))
            first = self.line(daemon, jvm)
            # a daemon that has not found the JVM yet
            self.begin_and_kill(daemon, lambda: True)
            last = self.line(daemon, jvm)
            if last["mono_ns"] == first["mono_ns"]:
                self.assertEqual(last, first)
            # a daemon that has just got its first sample: the gap before it is not in any history yet. On a busy
            # machine it is killed too late for that, and there is another try
            for _ in range(5):
                before = last["mono_ns"]
                self.begin_and_kill(daemon, lambda: self.line(daemon, jvm)["mono_ns"] > before)
                last = self.line(daemon, jvm)
                if last["owed_ns"]:
                    break
            self.assertGreater(last["owed_ns"], 0)
            self.assertLessEqual(last["owed_ns"], last["mono_ns"] - first["mono_ns"])
            self.assertLessEqual(last["owed_cpu_ns"], last["cpu_ns"] - first["cpu_ns"])
            daemon.start()
            t = all_sampled(daemon, [jvm])[0]
            self.assertTrue(jvm.alive())
            self.one_agent(jvm, 1)
            accounts_balance(t)
            until_ns = t["gap"]["until_ns"] - time.time_ns() + time.monotonic_ns()
            self.assertAlmostEqual(t["gap"]["ns"], until_ns - last["mono_ns"] + last["owed_ns"], delta=20e6)
            self.assertLessEqual(t["gap"]["ns"], until_ns - first["mono_ns"] + 20e6)
            self.assertGreater(t["gap"]["cpu_ns"], last["owed_cpu_ns"])
            self.assertLessEqual(t["gap"]["cpu_ns"], cpu_ns(jvm.pid) - first["cpu_ns"] + 30e6)  # ticks
            self.assertAlmostEqual(t["samples"]["dropped"]["restart"], t["gap"]["cpu_ns"] / 1e6, delta=1)
            self.assertEqual(daemon.stop(), 0)
            self.clean([jvm])


class Protocols(Case):
    """Follows proto/wire.h: a frame has a header of 16 bytes; START is type 64, HELLO type 1; key 1 of both is the
    protocol version."""

    def pipes(self, jvm):
        found = {}
        for fd in os.listdir("/proc/%d/fd" % jvm.pid):
            with contextlib.suppress(OSError):
                name = os.readlink("/proc/%d/fd/%s" % (jvm.pid, fd))
                for kind in "events", "control":
                    if "/kindling/" in name and "/%s-" % kind in name:
                        found[kind] = "/proc/%d/fd/%s" % (jvm.pid, fd)
        return found["events"], found["control"]

    def test_an_agent_says_which_one_it_has(self):
        timers_only = SETTINGS.replace("interval: 1ms", "interval: 1ms, host_engine: false")
        with services(1) as (jvm,), Daemon(timers_only + TARGETS) as daemon:
            all_sampled(daemon, [jvm])
            events, control = self.pipes(jvm)
            daemon.kill()
            wait_for("the agent to fall silent", lambda: timers(jvm.pid) == 0)
            events = os.open(events, os.O_RDONLY | os.O_NONBLOCK)
            with open(control, "wb", buffering=0) as f:
                wait_for("what nobody read to be gone", lambda: read_some(events) == b"")
                # key, length, value: protocol 99, session 7
                f.write(struct.pack("<IBBHQ", 16 + 6, 64, 0, 0, 1) + bytes((1, 1, 99, 6, 1, 7)))
                hello = wait_for("HELLO", lambda: read_some(events))
            os.close(events)
            self.assertEqual(hello[4], 1)
            self.assertEqual(hello[16:19], bytes((1, 1, wire.PROTOCOL)))
            daemon.start()
            self.assertEqual(all_sampled(daemon, [jvm])[0]["attempts"], 0)  # of ours it is
            self.assertEqual(daemon.stop(), 0)
            self.clean([jvm])


def read_some(fd):
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


class Builds(unittest.TestCase):
    """More upgrades in the life of one JVM than there are signals that a profiler may use."""

    def test_each_takes_over_the_signal_of_the_one_before(self):
        with tempfile.TemporaryDirectory() as directory, Jvm("17", "Pulse", options=SMALL) as jvm:
            os.chmod(directory, 0o755)
            for build in range(6):
                library = "%s/libkindling-%d.so" % (directory, build)
                shutil.copy(BUILD + "/lib/libkindling.so", library)
                with open(library, "ab") as f:
                    f.write(b"x" * build)  # another file is another library for the loader
                with Daemon(SETTINGS + "agent: {library: %s}\n" % library) as daemon:
                    all_sampled(daemon, [jvm])
            with open("/proc/%d/maps" % jvm.pid) as f:
                self.assertEqual(len(set(re.findall(r"libkindling-\w+\.so", f.read()))), 6)
            with open("/proc/%d/status" % jvm.pid) as f:
                caught = int(re.search(r"SigCgt:\s*(\w+)", f.read()).group(1), 16)
            used = [s for s in (signal.SIGPROF, signal.SIGVTALRM, signal.SIGSTKFLT, signal.SIGPWR) if caught >> s - 1 & 1]
            self.assertLessEqual(len(used), 1)


class Leavings(Case):
    def test_files_of_a_newer_version_are_accepted(self):
        with services(1) as (jvm,), Daemon(SETTINGS + TARGETS) as daemon:
            all_sampled(daemon, [jvm])
            # files of an attach that was killed, of a version that is no longer known
            other = "/tmp/kindling/0.0.9"
            os.makedirs(other)
            os.mkfifo(other + "/events-%d-1" % jvm.pid, 0o600)
            open(other + "/libkindling-0.so", "w").close()
            self.assertEqual(daemon.stop(), 0)
            # a history written by a newer version
            segments = glob.glob(daemon.dir + "/state/segments/*.seg")
            self.assertTrue(segments)
            for path in segments:
                with open(path, "r+b") as f:
                    text = f.read()
                    f.seek(0)
                    f.write(text.replace(b"KNDGseg3", b"KNDGseg9"))
            daemon.start()
            all_sampled(daemon, [jvm])
            wait_for("the old files to be gone", lambda: not os.path.exists(other))
            self.assertTrue(all(os.path.exists(path) for path in segments))
            self.assertRegex(daemon.status()["store"]["note"] or "", "another version")
            # data of a daemon's first second is written in the next one, which has to begin
            wait_for("samples in the history", lambda: in_history(daemon, jvm) > 0)
            self.assertEqual(daemon.stop(), 0)
            for path in segments:  # nothing was written into it, and nothing removed
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), text.replace(b"KNDGseg3", b"KNDGseg9"))
            # settings of a newer version: the error names the line and the word
            with open(daemon.config, "a") as f:
                f.write("telepathy:\n  range: 5m\n")
            done = subprocess.run([BUILD + "/bin/kindlingd", "--config", daemon.config], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"kindlingd\.yaml:\d+: telepathy")
            self.clean([jvm])


class Restarts(Case):
    def test_again_and_again(self):
        n, cycles = ARGS.restart_jvms, ARGS.restarts
        with services(n) as jvms, Daemon(SETTINGS + TARGETS) as daemon:
            all_sampled(daemon, jvms)
            first = [Size(jvm.pid) for jvm in jvms]
            streams, lost = [], 0
            for i in range(cycles):
                if i % 3 == 2:
                    daemon.kill()
                else:
                    self.assertEqual(daemon.stop(), 0)
                begin = time.monotonic()
                daemon.start()
                targets = all_sampled(daemon, jvms)
                streams.append(time.monotonic() - begin)
                for jvm, t in zip(jvms, targets):
                    self.assertTrue(jvm.alive())
                    accounts_balance(t)
                    lost += t["samples"]["dropped"]["lost_on_wire"]
            print("%d restarts, %d JVMs: all sampled again after %.2f s (median), %.2f s (longest)" % (
                cycles, n, sorted(streams)[cycles // 2], max(streams)))
            for jvm, size in zip(jvms, first):
                self.one_agent(jvm, 1)
                now = Size(jvm.pid)
                self.assertLessEqual(now.files, size.files, "%s -> %s" % (size, now))
                self.assertLessEqual(now.threads, size.threads + 2, "%s -> %s" % (size, now))  # the JVM's own
            self.assertEqual(lost, 0)
            self.assertEqual(daemon.status()["blocked"], [])
            self.assertEqual(daemon.stop(), 0)
            self.clean(jvms)
            for jvm in jvms:
                self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jvms", type=int, default=4)
    parser.add_argument("--restarts", type=int, default=6)
    parser.add_argument("--restart-jvms", type=int, default=4)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
