"""Hostile containers: objects that they put in the way of an attach, and processes that only look like a JVM. Nothing
outside the container is written or read, nothing waits beyond its deadline, and memory is bounded."""
import ctypes
import fcntl
import glob
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import injection
import rows
from bundle import BUILD, Container, Jdk, shared_end
from kindling import classes, skip

DEADLINE_MS = 1500
SLACK_S = 3.5  # seconds after the deadline: a process that hangs is ended in steps
MEMORY_KB = 64 << 10
AT_SYSCALL = BUILD + "/tests/at_syscall"
# in the order of an attach: a JVM that got the signal once is listening, and gets no other
SYSCALLS = {"pidfd_send_signal": "424", "mkdirat": "258", "renameat": "264", "mknodat": "259", "move_mount": "429",
            "openat2": "437", "umount2": "166"}
RENAME_EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)
jdk = None


def version():
    done = subprocess.run([injection.INJECT, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def hash_of(path):
    h = 0xcbf29ce484222325
    with open(path, "rb") as f:
        while word := f.read(8):
            h = ((h ^ int.from_bytes(word, "little")) * 0x100000001b3) & (1 << 64) - 1
            h ^= h >> 32
    return "%016x" % h


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.version = version()
        cls.library = "libkindling-%s.so" % hash_of(injection.AGENT)

    def setUp(self):
        self.victim = tempfile.mkdtemp(prefix="kindling-victim-")  # a directory of the host
        self.addCleanup(shutil.rmtree, self.victim)
        os.chmod(self.victim, 0o755)  # a harmless file or directory in the same place
        with open(self.victim + "/secret", "w") as f:
            f.write("secret")
        self.untouched = os.stat(self.victim).st_mtime_ns

    def tearDown(self):
        self.assertEqual(os.listdir(self.victim), ["secret"], "the host was written to")
        self.assertEqual(os.stat(self.victim).st_mtime_ns, self.untouched, "the host was written to, and tidied up")
        self.assertFalse(os.path.exists("/etc/" + self.version))

    def attach(self, c, **more):
        result = injection.attach(c, deadline_ms=DEADLINE_MS, **more)
        self.assertLess(result.seconds, DEADLINE_MS / 1000 + SLACK_S)
        self.assertLess(result.max_kb, MEMORY_KB)
        return result

    def refused(self, c, pattern, **more):
        result = self.attach(c, **more)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.what, pattern)
        return result

    def streams(self, c):
        self.assertEqual(rows.see_through(c, self.attach(c)), rows.STREAMING)

    def kindling_dir(self, c, path=""):
        """With the same mode and owner as ours: sticky, of the container's root."""
        where = c.tmp_dir()
        for name in ("kindling", path):
            where = os.path.join(where, name)
            if name and not os.path.isdir(where):
                os.mkdir(where)
                os.chmod(where, 0o1777)
        return where

    # ---- objects in the way of an attach --------------------------------------------------------------------

    def test_a_link_to_a_directory_of_the_host(self):
        for where in ("/etc", self.victim, "../../../../../../../../" + self.victim):
            with self.subTest(where), Container(jdk) as c:
                os.symlink(where, c.tmp_dir() + "/kindling")
                self.streams_and_leaves_nothing(c)
                os.unlink(c.tmp_dir() + "/kindling")
                os.symlink(where, os.path.join(self.kindling_dir(c), self.version))
                self.streams_and_leaves_nothing(c)

    def streams_and_leaves_nothing(self, c):
        kept, before = c.kept_lines(), c.tree()
        self.streams(c)
        self.assertEqual(c.tree(), before)
        c.check_output(kept)
        self.assertTrue(c.alive())

    def strangers_dir(self, path, uid=4000):
        """Makes a directory; with a file in it if @path ends in a slash."""
        os.mkdir(path)
        if path.endswith("/"):
            with open(path + "theirs", "w") as f:
                f.write("theirs")
        os.chown(path, uid, uid)

    def test_a_stranger_who_makes_or_locks_our_directory_keeps_nobody_out(self):
        """In a shared /tmp any user may make such a directory. It must stay as it is, even if it is empty and has the
        name that we use."""
        with Container(jdk) as c:
            ours = os.path.join(c.tmp_dir(), "kindling")
            self.strangers_dir(ours)
            self.streams_and_leaves_nothing(c)
            self.strangers_dir(os.path.join(ours, self.version))
            self.streams_and_leaves_nothing(c)
            with open(os.path.join(ours, self.version, "theirs"), "w") as f:
                f.write("theirs")
            self.streams_and_leaves_nothing(c)
            shutil.rmtree(ours)
            self.strangers_dir(os.path.join(self.kindling_dir(c), self.version))
            self.streams_and_leaves_nothing(c)
            shutil.rmtree(ours)
            with open(os.path.join(self.kindling_dir(c, self.version), "theirs"), "w"):
                lock = os.open(os.path.join(ours, self.version), os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.streams_and_leaves_nothing(c)
            os.close(lock)
            with open("/proc/%d/maps" % c.pid) as f:
                copies = [line for line in f if " r-xp " in line and "/libkindling-" in line]
            self.assertEqual(len(copies), 1, copies)  # each time from a directory with the same name

    def test_in_a_tmp_where_all_can_rename_a_directory_of_others_is_a_reason(self):
        with Container(jdk) as c:
            self.strangers_dir(os.path.join(c.tmp_dir(), "kindling"))
            os.chmod(c.tmp_dir(), 0o777)
            before = c.tree()
            self.refused(c, "other users can change /tmp/kindling")
            self.assertEqual(c.tree(), before)

    def test_tmp_is_a_link_that_wants_to_leave(self):
        os.chmod(self.victim, 0o1777)  # otherwise the target's own ids would already prevent it
        for where in ("/../../../.." + self.victim, "/proc/1/root" + self.victim, "/proc/self/cwd"):
            with self.subTest(where), Container(jdk) as c:
                shutil.rmtree(c.inside("/tmp"))
                os.symlink(where, c.inside("/tmp"))
                result = self.attach(c)
                self.assertNotEqual(result.code, 0, result.what)
                self.assertTrue(c.alive())

    def in_the_librarys_place(self, make):
        with Container(jdk) as c:
            path = os.path.join(self.kindling_dir(c, self.version), self.library)
            make(path)
            self.streams(c)  # it was replaced, and the JVM loaded ours
            self.assertFalse(os.path.lexists(path))

    def test_a_fifo_in_the_librarys_place(self):
        self.in_the_librarys_place(lambda path: os.mkfifo(path, 0o666))

    def test_a_device_in_the_librarys_place(self):
        self.in_the_librarys_place(lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5)))

    def test_a_link_in_the_librarys_place(self):
        self.in_the_librarys_place(lambda path: os.symlink(self.victim + "/secret", path))

    def test_a_sparse_file_in_the_librarys_place(self):
        def make(path):
            with open(path, "wb") as f:
                f.truncate(10 << 30)
        self.in_the_librarys_place(make)

    def test_another_library_in_its_place(self):
        def make(path):
            with open(path, "wb") as f:
                f.write(b"x" * os.path.getsize(injection.AGENT))
        self.in_the_librarys_place(make)

    def test_odd_things_in_the_attach_files_place(self):
        for make in (lambda path: os.mkfifo(path), lambda path: os.symlink(self.victim + "/made", path),
                     lambda path: os.mkdir(path), lambda path: os.mknod(path, stat.S_IFCHR, os.makedev(1, 5))):
            with Container(jdk) as c:
                make(c.inside("/app/.attach_pid1"))
                kept = c.kept_lines()
                result = self.attach(c)
                result.close()
                c.check_output(kept)
                self.assertTrue(c.alive())

    # ---- changes between a check and the action that relies on it ---------------------------------------------

    def test_a_directory_is_swapped_at_every_step(self):
        for call in ("mkdirat", "openat2", "mknodat", "renameat"):
            for word in ("before", "after"):
                with self.subTest(call + " " + word), Container(jdk) as c:
                    hook = "cd '%s' && mv kindling moved 2>/dev/null; ln -sfn '%s' kindling" % (c.tmp_dir(), self.victim)
                    result = self.attach(c, wrap=(AT_SYSCALL, word, SYSCALLS[call], hook + "; true"))
                    result.close()
                    self.assertTrue(c.alive())

    def kindling_mounts(self, pid):
        with open("/proc/%s/mountinfo" % pid) as f:
            return f.read().count(" kindling ")

    def test_a_mount_point_is_swapped(self):
        with Container(jdk, root="noexec") as c:
            hook = "cd '%s' && mv kindling moved && ln -sfn '%s' kindling" % (c.tmp_dir(), self.victim)
            mounts = self.kindling_mounts("self")
            result = self.attach(c, wrap=(AT_SYSCALL, "before", SYSCALLS["move_mount"], hook + "; true"))
            result.close()
            self.assertEqual(self.kindling_mounts("self"), mounts)
            self.assertEqual(self.kindling_mounts(c.pid), 0)
            self.assertTrue(c.alive())

    def test_a_directory_that_is_swapped_all_the_time(self):
        with Container(jdk) as c:
            os.symlink(self.victim, c.tmp_dir() + "/other")
            going = True
            names = [os.fsencode(c.tmp_dir() + "/" + n) for n in ("kindling", "other")]

            def swap():
                while going:
                    libc.renameat2(-100, names[0], -100, names[1], RENAME_EXCHANGE)
            thread = threading.Thread(target=swap)
            thread.start()
            try:
                for _ in range(40):
                    self.attach(c).close()
            finally:
                going = False
                thread.join()
            self.assertTrue(c.alive())

    # ---- who answers ------------------------------------------------------------------------------------------

    def test_processes_that_only_look_like_a_jvm(self):
        expected = {"silent": "read the JVM's answer", "endless": "was not|did not load|no answer|not load",
                    "drip": "read the JVM's answer", "deaf": "attach socket|send the attach command", "closes": "without an answer|Broken pipe|reset by peer",
                    "lies": "did not answer", "child": "another process", "orphan": "another process"}
        for mode, pattern in expected.items():
            with self.subTest(mode), Container(jdk, launcher="fake_jvm", main=mode) as c:
                self.refused(c, pattern)
                self.assertTrue(c.alive())
                self.assertFalse(os.path.exists(c.tmp_dir() + "/kindling"))
                self.assertEqual(rows.attach_files(c), [])

    def test_a_socket_of_a_stranger_gets_no_word(self):
        with Container(jdk) as c, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
            dir_fd = os.open(c.tmp_dir(), os.O_RDONLY)
            stranger.bind("/proc/self/fd/%d/.java_pid1" % dir_fd)
            os.chown(".java_pid1", 1000, 1000, dir_fd=dir_fd)
            stranger.listen(5)
            stranger.settimeout(1)
            kept = c.kept_lines()
            outcome = rows.see_through(c, self.attach(c))
            said = b""
            try:
                while True:
                    client = stranger.accept()[0]
                    client.settimeout(1)
                    said += client.recv(4096)
                    client.close()
            except socket.timeout:
                pass
            self.assertEqual(said, b"")
            self.assertEqual(outcome, rows.STREAMING)  # the JVM has removed the name again
            c.check_output(kept)
            os.close(dir_fd)

    # ---- another process under the same pid ---------------------------------------------------------------------

    def test_files_of_another_version_are_removed_unless_it_is_attaching(self):
        with Container(jdk) as c:
            before = c.tree()
            for moment in (("after", SYSCALLS["renameat"]), ("after", SYSCALLS["mknodat"]), ("before", rows.SYS_SENDTO)):
                injection.attach(c, deadline_ms=DEADLINE_MS, wrap=(AT_SYSCALL, *moment, "kill -9 $PPID")).close()
                other = c.tmp_dir() + "/kindling/0.0.9"
                os.rename(c.tmp_dir() + "/kindling/" + self.version, other)
                with_it = c.tree()
                lock = os.open(other, os.O_RDONLY)
                fcntl.flock(lock, fcntl.LOCK_SH)
                injection.cleanup(c)
                left = {p.rsplit("/", 1)[1].split("-")[0] for p in with_it if "/0.0.9/" in p} - {"events", "control"}
                found = {p.rsplit("/", 1)[1].split("-")[0] for p in c.tree() if "/0.0.9/" in p}
                self.assertTrue(left <= found, (left, found))  # the JVM lives, so its library stays
                os.close(lock)
                self.clean_after_kill(c, c.kept_lines(), before)

    def test_another_process_of_the_same_number_is_not_touched(self):
        with Container(jdk) as c:
            kept, tree, c.start_time = c.kept_lines(), c.tree(), c.start_time + 1
            self.refused(c, "another process now")
            c.check_output(kept)
            self.assertEqual(c.tree(), tree)

    def test_a_jvm_that_ends_at_any_step_is_just_gone(self):
        for call in ("mkdirat", "renameat", "mknodat", "pidfd_send_signal"):
            with self.subTest(call), Container(jdk) as c:
                result = self.attach(c, wrap=(AT_SYSCALL, "before", SYSCALLS[call], "kill -9 %d" % c.pid))
                self.assertNotEqual(result.code, 0)

    # ---- an injector that is killed ---------------------------------------------------------------------------

    def clean_after_kill(self, c, kept, before):
        for _ in range(100):  # a pending SIGQUIT, a busy mount
            injection.cleanup(c)
            if c.tree() == before:
                break
            time.sleep(0.05)
        self.assertEqual(c.tree(), before)
        c.check_output(kept)
        self.assertTrue(c.alive())

    def test_thousands_of_names_of_a_stranger_hide_none_of_ours(self):
        with Container(jdk) as c:
            kept, where = c.kept_lines(), self.kindling_dir(c, self.version)

            def fill(names):
                for i in names:
                    path = "%s/%d" % (where, i)
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
                    os.chown(path, 4000, 4000)

            def ours():
                return [n for n in os.listdir(where) if not n.isdigit()]

            fill(range(3000))
            self.streams(c)
            self.assertEqual(ours(), [])
            injection.attach(c, deadline_ms=DEADLINE_MS, wrap=(AT_SYSCALL, "before", rows.SYS_SENDTO, "kill -9 $PPID")).close()
            self.assertNotEqual(ours(), [])
            fill(range(3000, 6000))  # a tmpfs lists the newest names first
            for _ in range(100):
                injection.cleanup(c)
                if not ours():
                    break
                time.sleep(0.05)
            self.assertEqual(ours(), [])
            self.assertEqual(len(os.listdir(where)), 6000)
            c.check_output(kept)
            self.assertTrue(c.alive())

    def test_killed_at_every_step_it_leaves_nothing(self):
        for kind, taken in (("plain", False), ("noexec", False), ("covered", False), ("plain", True)):
            with Container(jdk, root=kind) as c:
                if taken:
                    self.strangers_dir(c.tmp_dir() + "/kindling/")
                kept, before = c.kept_lines(), c.tree()
                for call, number in SYSCALLS.items():
                    for word in ("before", "after"):
                        with self.subTest("%s %s %s" % (kind, word, call)):
                            # if the tracer ends, the traced process ends too
                            injection.attach(c, deadline_ms=DEADLINE_MS,
                                             wrap=(AT_SYSCALL, word, number, "kill -9 $PPID")).close()
                            self.clean_after_kill(c, kept, before)

    def test_killed_at_random_moments_it_leaves_nothing(self):
        chance = random.Random(7)
        for kind, taken in (("plain", False), ("noexec", False), ("covered", False), ("plain", True)):
            with Container(jdk, root=kind) as c:
                if taken:
                    self.strangers_dir(c.tmp_dir() + "/kindling/")
                kept, before = c.kept_lines(), c.tree()
                for _ in range(25):
                    read_end, write_end = os.pipe()
                    os.write(write_end, injection.start_frame())
                    process = subprocess.Popen(injection.command(9, c.pid, c.start_time, "attach", injection.AGENT),
                                               stdin=read_end)
                    time.sleep(chance.uniform(0, 0.03))
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    os.close(read_end)
                    os.close(write_end)
                    self.clean_after_kill(c, kept, before)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("runc"):
        skip("needs root and runc")
    jdk = Jdk("17")
    if not jdk.home:
        skip("there is no JDK 17")
    classes()
    try:
        unittest.main(verbosity=2)
    finally:
        shared_end()
        for left in glob.glob("/tmp/kindling-victim-*"):
            print("left: " + left, file=sys.stderr)
