"""A root without any directory that the JVM may write, and attach.tmpfs_over_tmp: cases that the matrix leaves out.
covered.py [JDK...]     17 and 25 if none is named"""
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import injection
import rows
from bundle import Container, Jdk, shared_end
from kindling import Daemon, classes, skip, wait_for

MAJORS = ["17", "25"]
DUMP = "Full thread dump"


class Covered(unittest.TestCase):
    def each(self):
        for major in MAJORS:
            jdk = Jdk(major)
            if jdk.home:
                with Container(jdk, root="covered") as c:
                    yield c
            else:
                print("SKIPPED: there is no JDK " + major)

    def is_as(self, c, before):
        try:
            return c.tree() == before
        except OSError:  # it changes just now
            return False

    def dumps(self, c):
        return c.raw("out").decode(errors="replace").count(DUMP)

    def test_afterwards_the_jvm_is_as_if_nobody_had_attached(self):
        """The JVM's attach listener is gone, kill -3 prints its threads every time, and another attach works."""
        for c in self.each():
            files = len(os.listdir("/proc/%d/fd" % c.pid))
            before = c.tree()
            for turn in range(3):
                self.assertEqual(rows.attach_once(c), rows.STREAMING)
                self.assertTrue(c.tree() == before, "something was left")
                self.assertEqual(self.dumps(c), 2 * turn)
                for quit in range(2):
                    c.signal(signal.SIGQUIT)
                    wait_for("its threads, printed", lambda: self.dumps(c) == 2 * turn + quit + 1)
            wait_for("its descriptors", lambda: len(os.listdir("/proc/%d/fd" % c.pid)) <= files + 1)
            with open("/proc/%d/net/unix" % c.pid) as f:
                self.assertNotIn(".java_pid", f.read())

    def test_of_many_at_once_each_has_its_turn(self):
        for c in self.each():
            kept, before, outcomes = c.kept_lines(), c.tree(), []
            threads = [threading.Thread(target=lambda: outcomes.append(injection.attach(c))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([r.what for r in outcomes if r.code], [])
            for result in outcomes:
                result.close()
            self.assertTrue(c.tree() == before, "something was left")
            c.check_output(kept)

    def test_one_that_begins_while_another_covers_tmp_does_not_take_the_tmpfs_for_a_tmp_of_its_own(self):
        """It would use it without a lock, and its .attach_pid would go with the tmpfs: the JVM would print its threads."""
        for c in self.each():
            kept, before = c.kept_lines(), c.tree()
            with tempfile.TemporaryDirectory() as where:
                results = {}

                def attach(name, when, call):
                    wait = ": >%s/%s; while [ ! -e %s/go-%s ]; do sleep 0.01; done" % (where, name, where, name)
                    results[name] = injection.attach(c, wrap=(rows.BUILD + "/tests/at_syscall", when, call, wait))

                def begin(*where):
                    thread = threading.Thread(target=attach, args=where)
                    thread.start()
                    return thread

                late = begin("late", "after", rows.SYS_FSTATFS)  # has seen that no tmpfs covers /tmp
                wait_for("the late one", lambda: os.path.exists(where + "/late"))
                first = begin("first", "before", rows.SYS_PIDFD_SEND_SIGNAL)
                end = time.monotonic() + 1  # it may also wait for the late one
                while not os.path.exists(where + "/first") and time.monotonic() < end:
                    time.sleep(0.01)
                for name in ("late", "first"):
                    open("%s/go-%s" % (where, name), "w").close()
                    time.sleep(0.2)
                late.join()
                first.join()
            self.assertEqual([(r.code, r.what, r.strategy) for r in results.values()], [(0, "", "tmpfs")] * 2)
            for result in results.values():
                result.close()
            self.assertTrue(c.tree() == before, "something was left")
            c.check_output(kept)

    def test_a_tmp_that_another_attach_uses_is_not_covered(self):
        """A JVM of another user in the same container may need a tmpfs, where this one writes into /tmp itself."""
        for major in MAJORS:
            jdk = Jdk(major)
            if not jdk.home:
                print("SKIPPED: there is no JDK " + major)
                continue
            with Container(jdk, root="plain") as c:
                tmp = os.open(c.tmp_dir(), os.O_RDONLY)
                try:
                    self.assertFalse(self.is_locked(tmp))
                    result = injection.attach(c, wrap=(rows.BUILD + "/tests/at_syscall", "before", rows.SYS_PIDFD_SEND_SIGNAL,
                                                       "if flock -xn %s true; then touch %s/not-locked; fi" % ((c.tmp_dir(),) * 2)))
                    self.assertEqual((result.code, result.strategy), (0, "copy"))
                    result.close()
                    self.assertFalse(os.path.exists(c.tmp_dir() + "/not-locked"))
                    self.assertFalse(self.is_locked(tmp))
                    fcntl.flock(tmp, fcntl.LOCK_EX)  # whoever holds the lock for long obstructs nothing
                    result = injection.attach(c)
                    self.assertEqual((result.code, result.strategy), (0, "copy"))
                    result.close()
                finally:
                    os.close(tmp)

    def is_locked(self, fd):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False

    def test_a_daemon_without_the_setting_says_what_is_missing(self):
        for c in self.each():
            c.kind = "sealed"
            self.assertRegex(rows.attach_once(c), "no writable /tmp.*attach.tmpfs_over_tmp")

    def test_stopped_with_the_signal_on_its_way_it_stays_covered_until_it_goes_on(self):
        for c in self.each():
            kept, before = c.kept_lines(), c.tree()
            result = injection.attach(c, deadline_ms=1000, wrap=(
                rows.BUILD + "/tests/at_syscall", "before", rows.SYS_PIDFD_SEND_SIGNAL, "kill -STOP %d" % c.pid))
            self.assertRegex(result.what, "did not react to SIGQUIT")
            self.assertTrue(c.tree() != before, "it was uncovered")
            self.assertEqual(injection.cleanup(c), 4)  # the JVM does not act on it yet: the signal is pending
            self.assertEqual(len(rows.attach_files(c)), 1)
            c.signal(signal.SIGCONT)
            wait_for("nothing has to stay", lambda: injection.cleanup(c) == 0)
            self.assertTrue(c.tree() == before, "something was left")
            c.check_output(kept)
            self.assertEqual(rows.attach_once(c), rows.STREAMING)

    def test_stopped_or_frozen_before_it_is_uncovered_the_daemon_uncovers_it_when_it_runs(self):
        """Simulates an agent that streams already, so that the daemon does not attach again."""
        for c in self.each():
            for stop, go in (("kill -STOP %d" % c.pid, lambda: c.signal(signal.SIGCONT)),
                             ("echo FROZEN >%s/freezer.state" % c.cgroup("freezer"), lambda: rows.freezer_v1(c, "THAWED"))):
                kept, before = c.kept_lines(), c.tree()
                with tempfile.TemporaryDirectory() as where, Daemon("targets:\n  mode: opt-in\n") as daemon:
                    looks = where + "/looks"
                    open(looks, "w").close()
                    with open(where + "/inject", "w") as f:  # the third mknod of an attach is the first one after the load request
                        f.write("#!/bin/sh\ncase \"$*\" in\n*' attach '*) exec %s before 259:3 '%s' %s \"$@\" ;;\n"
                                "'--result-fd 3 %d '*) echo >>%s ;;\nesac\nexec %s \"$@\"\n" % (
                                    rows.BUILD + "/tests/at_syscall", stop, injection.INJECT, c.pid, looks, injection.INJECT))
                    os.chmod(where + "/inject", 0o755)
                    daemon.stop()
                    daemon.configure("targets:\n  mode: opt-in\nattach:\n  tmpfs_over_tmp: true\ninjector: %s/inject\n" % where)
                    daemon.start()
                    wait_for("the daemon to find it", lambda: daemon.target(c.pid))
                    daemon.cli("attach", str(c.pid))
                    daemon.wait_state(c.pid, "streaming")
                    self.assertNotEqual(c.tree()["mounts"], before["mounts"], "it was uncovered while it stood still")
                    time.sleep(3)  # nothing is uncovered meanwhile
                    self.assertNotEqual(c.tree()["mounts"], before["mounts"], "it was uncovered while it stood still")
                    seen = os.path.getsize(looks)
                    go()
                    # the daemon's pause between two tries doubles up to 32 s while the JVM stands still
                    wait_for("its /tmp as before", lambda: self.is_as(c, before), 60)
                    # wait for our daemon and not only for another test's, because every daemon that starts cleans up in
                    # all JVMs
                    wait_for("the daemon to look again", lambda: os.path.getsize(looks) > seen, 60)
                    daemon.cli("detach", str(c.pid))
                self.assertTrue(c.tree() == before, "something was left")
                c.check_output(kept)
                quits = self.dumps(c)
                for n in range(2):
                    c.signal(signal.SIGQUIT)
                    wait_for("its threads, printed", lambda: self.dumps(c) == quits + n + 1)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("runc"):
        skip("needs root and runc")
    MAJORS = sys.argv[1:] or MAJORS
    classes()
    try:
        unittest.main(argv=sys.argv[:1], verbosity=2)
    finally:
        shared_end()
