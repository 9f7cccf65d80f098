"""Processes on file systems that do not answer, beside a JVM whose stream goes on. test_fuse.py MAJOR. Needs root."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, Lateness, Tail, classes, java_home, skip, starts, wait_for  # noqa: E402

MAJOR = "17"
SECONDS = 30
# library: the process cannot even be recognised; root: everything that an attempt accesses hangs
KINDS = ("root", "root", "root", "library", "library", "library")
SETTINGS = "attach:\n  deadline: 2s\ndiscovery:\n  scan_interval: 5s\n"


class Silent:
    """A process, and the file system on which it is."""

    def __init__(self, kind):
        self.kind, self.dir = kind, tempfile.TemporaryDirectory(prefix="kindling-silent-")
        self.server = subprocess.Popen([BUILD + "/tests/silent_fs", self.dir.name, kind], stdout=subprocess.PIPE, text=True)
        words = self.server.stdout.readline().split()
        if not words:
            skip("no file system in user space may be mounted here (FUSE)")
        self.pid = int(words[1])

    def kill_process(self):
        """The file system stays, and so do processes that wait for it."""
        os.kill(self.pid, 9)

    def end(self):
        self.server.kill()
        self.server.communicate()
        self.dir.cleanup()


class Silents:
    def __init__(self, daemon):
        self.daemon, self.all = daemon, []

    def __enter__(self):
        for kind in KINDS:
            one = Silent(kind)
            self.all.append(one)
            if kind == "root":  # later it may be that no process of that user is examined any more
                wait_for("pid %d is found" % one.pid, lambda: self.daemon.target(one.pid))
        return self.all

    def __exit__(self, *unused):
        for s in self.all:
            s.end()


class OnSilent(Jvm):
    """A JVM with a user of its own and a library on a file system that answers until silence()."""

    def __init__(self, major):
        self.dir = tempfile.TemporaryDirectory(prefix="kindling-silent-")
        os.chmod(self.dir.name, 0o755)
        path = shutil.copytree(classes(), self.dir.name + "/classes")
        self.process = subprocess.Popen(
            [BUILD + "/tests/silent_fs", self.dir.name, BUILD + "/tests/libspins.so", java_home(major) + "/bin/java", "-Xmx128m",
             "-agentpath:%s/fs/libonfuse.so" % self.dir.name, "-cp", path, "KnownShares"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        self.pid = self.process.pid
        first = self.process.stdout.readline()
        if not first and self.process.wait() == 77:
            skip("no file system in user space may be mounted here (FUSE)")
        if first != "READY\n":
            raise AssertionError(self.process.communicate())

    def server(self):
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as f:
            return int(f.read())

    def silence(self):
        os.kill(self.server(), signal.SIGUSR1)

    def __exit__(self, *unused):
        os.kill(self.server(), signal.SIGKILL)  # otherwise it outlives the JVM, and a process that waits for it hangs
        super().__exit__()
        self.dir.cleanup()


# starts its arguments and waits, as a test does
STARTER = "import subprocess, sys; subprocess.run(sys.argv[1:])"
READS = "echo $$; read line; exec cat %s/fs/other"


class KilledTest(unittest.TestCase):
    """A test that is killed cleans nothing up, and a process that waits for a file system's answer cannot be killed."""

    def start(self, *words):
        """(the starter, the pid that the program prints)"""
        starter = subprocess.Popen([sys.executable, "-c", STARTER, BUILD + "/tests/silent_fs", *words],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for end in (starter.wait, starter.stdin.close, starter.stdout.close):
            self.addCleanup(end)
        words = starter.stdout.readline().split()
        if not words:
            skip("no file system in user space may be mounted here (FUSE)")
        return starter, int(words[-1])

    def check_gone(self, starter, *pids):
        starter.kill()
        for pid in pids:
            wait_for("the end of pid %d" % pid, lambda: not os.path.exists("/proc/%d/root" % pid))

    def test_the_processes_of_a_silent_file_system_end_with_it(self):
        with tempfile.TemporaryDirectory(prefix="kindling-silent-") as directory:
            starter, pid = self.start(directory, "root")
            with open("/proc/%d/stat" % pid) as f:
                server = int(f.read().rsplit(")", 1)[1].split()[1])
            self.check_gone(starter, server, pid)

    def test_so_does_a_command_that_waits_for_an_answer(self):
        with tempfile.TemporaryDirectory(prefix="kindling-silent-") as directory:
            os.chmod(directory, 0o755)
            starter, pid = self.start(directory, BUILD + "/tests/libspins.so", "/bin/sh", "-c", READS % directory)
            with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                server = int(f.read())
            os.kill(server, signal.SIGUSR1)
            starter.stdin.write("\n")
            starter.stdin.flush()

            def waits():
                with open("/proc/%d/stat" % pid) as f:
                    comm, fields = f.read().rsplit(")", 1)
                return comm.endswith("cat") and fields.split()[0] in "DS"
            wait_for("a wait for an answer", waits)
            self.check_gone(starter, server, pid)


def timed(what):
    begin = time.monotonic()
    what()
    return time.monotonic() - begin


class Fuse(unittest.TestCase):
    def stream_for(self, daemon, tail, seconds):
        """Keeps the slowest answer of the daemon meanwhile."""
        slowest, end = 0.0, time.monotonic() + seconds
        while time.monotonic() < end:
            slowest = max(slowest, timed(daemon.status))
            time.sleep(0.5)
        return slowest

    def states(self, daemon, silents):
        return {s.pid: (s.kind, daemon.target(s.pid)) for s in silents}

    def check_states(self, states):
        for kind, target in states.values():
            if kind == "library":
                self.assertIsNone(target, json.dumps(target))
                continue
            self.assertEqual(target["state"], "failed", json.dumps(target))
            self.assertRegex(json.dumps(target), "does not answer|do not answer|did not end in time|have not ended")

    def injectors(self, silents):
        """Processes that hang in such file systems while they attach to their JVMs or clean up."""
        pids, found = {str(s.pid) for s in silents}, []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid) as f:
                    words = f.read().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if words[0] == BUILD + "/bin/kindling-inject" and not pids.isdisjoint(words):  # other users' tests may be running too
                found.append(" ".join(words[3:6]))
        return found

    def test_others_go_on_and_nothing_waits_for_who_does_not_answer(self):
        with Daemon(SETTINGS) as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            tail = Tail(daemon, jvm.pid)
            wait_for("the tail's first lines", lambda: tail.lines > 10)
            with Silents(daemon) as silents, Lateness() as late:
                tail.longest = 0.0
                slowest = self.stream_for(daemon, tail, SECONDS / 2)
                with Jvm(MAJOR) as newcomer:
                    found = timed(lambda: daemon.wait_state(newcomer.pid, "streaming"))
                    slowest = max(slowest, self.stream_for(daemon, tail, SECONDS / 2))
                    self.assertEqual(newcomer.end(), ("END\n", ""))
                self.check_states(self.states(daemon, silents))
                injectors = self.injectors(silents)
                self.assertLessEqual(len(injectors), 2 * KINDS.count("root"), str(injectors))
                # their working directories are what remains, where a crash would have left its file
                for s in silents:
                    s.kill_process()
                slowest = max(slowest, self.stream_for(daemon, tail, 3))
                tail.end()
                metrics = daemon.metrics()
                print("longest gap %.2f s, slowest answer %.2f s, a newcomer streams after %.1f s, on a machine %.2f s late; %d looks given up" % (
                    tail.longest, slowest, found, late.seconds, metrics["kindling_looks_given_up_total"]))
                self.assertLess(tail.longest, 1 + late.seconds)
                self.assertLess(slowest, 1 + late.seconds)
                self.assertLess(found, 15 + late.seconds)
                self.assertGreater(metrics["kindling_looks_given_up_total"], 0)
                with starts:  # takes the lock of daemons first, so that the measured times do not include waiting for another test
                    killed = timed(daemon.kill)
                    replaced = timed(daemon.start)
                daemon.wait_state(jvm.pid, "streaming")
                stopped = timed(daemon.stop)
                print("killed in %.2f s, its successor answers after %.2f s, and ends in %.2f s" % (killed, replaced, stopped))
                self.assertLess(killed + replaced, 10 + late.seconds)
                self.assertLess(stopped, 10 + late.seconds)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def frames(self, daemon, jvm):
        out = daemon.dir + "/out.collapsed"
        daemon.cli("record", str(jvm.pid), "-d", "2s", "-i", "4ms", "-o", out)
        with open(out) as f:
            return f.read()

    def test_a_library_that_does_not_answer_has_no_names_and_nothing_else_is_lost(self):
        with OnSilent(MAJOR) as there, Jvm(MAJOR) as other:
            there.silence()
            with Daemon(SETTINGS) as daemon, Lateness() as late:
                for jvm in (there, other):
                    daemon.wait_state(jvm.pid, "streaming")
                tails = [Tail(daemon, jvm.pid) for jvm in (there, other)]
                wait_for("the tails' first lines", lambda: all(t.lines > 10 for t in tails))
                for tail in tails:
                    tail.longest = 0.0
                text = self.frames(daemon, there)
                slowest = self.stream_for(daemon, tails[0], 3)
                for tail in tails:
                    tail.end()
                print("longest gaps %.2f and %.2f s, slowest answer %.2f s, on a machine %.2f s late" % (
                    *(t.longest for t in tails), slowest, late.seconds))
                self.assertIn("[libonfuse.so", text)
                self.assertNotIn("spins", text)
                self.assertIn("KnownShares", text)
                self.assertLess(max(t.longest for t in tails), 1 + late.seconds)
                self.assertLess(slowest, 1 + late.seconds)
                with starts:
                    restarted = timed(daemon.kill) + timed(daemon.start)
                for jvm in (there, other):
                    daemon.wait_state(jvm.pid, "streaming")
                    self.assertEqual(daemon.target(jvm.pid)["samples"]["dropped"]["lost_on_wire"], 0)
                print("restarted in %.2f s" % restarted)
                self.assertLess(restarted, 10 + late.seconds)
            self.assertEqual(other.end(), ("END\n", ""))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
