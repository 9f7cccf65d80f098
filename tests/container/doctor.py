"""kindling doctor and seccomp filters: it knows a filter without touching the JVM if the container's bundle or
systemd shows it, and reads it in the JVM only if asked to."""
import ctypes
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import injection
import rows
from bundle import BUILD, Container, Jdk, shared_end
from engines import Containerd, Crio, Docker
from kindling import classes, java_home, skip, wait_for

MAJOR = "17"
PTRACE = "101"
NEVER_CALLED = 126
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
UNITS = "/sys/fs/cgroup/pids"
SYSTEMCTL = """#!/bin/sh
[ "$1" = show ] && [ "$4" = %s ] && printf '%s\\n'
"""


def allow_all():
    """A JVM with a filter of its own, as systemd gives a service one."""
    libc = ctypes.CDLL(None)
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000), 8)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)), 16)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError("no filter")


class Doctor(unittest.TestCase):
    def doctor(self, pid, *args, **env):
        done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "doctor", "--json", *args, str(pid)],
                              capture_output=True, text=True, timeout=60, env={**os.environ, **env})
        self.assertEqual(len(done.stdout.splitlines()), 1, done)
        return {c["check"]: c for c in json.loads(done.stdout)["checks"]}["seccomp"]

    def says(self, pid, verdict, pattern, *args, **env):
        said = self.doctor(pid, *args, **env)
        self.assertEqual(said["verdict"], verdict, said)
        self.assertRegex(said["finding"], pattern)
        return said

    def touches(self, c, *words):
        """Does the injector stop a thread of the JVM?"""
        done = subprocess.run([BUILD + "/tests/at_syscall", "before", PTRACE, "true", injection.INJECT, str(c.pid), "check",
                               *words], stdout=subprocess.DEVNULL, timeout=60)
        return done.returncode != NEVER_CALLED

    def test_a_profile_is_known_by_the_bundle(self):
        for how in (dict(runtime="runc"), dict(runtime="crun"), dict(engine=Containerd("a", "b", "c", "d")),
                    dict(engine=Crio("a", "b", "c", "d")), dict(engine=Docker("a", "b", "c", "d"))):
            if not shutil.which(how.get("runtime", "runc")):
                continue
            with Container(Jdk(MAJOR), root="hardened", **how) as c:
                said = self.says(c.pid, "ok", "^the seccomp profile of its container does not kill the JVM for any system call")
                self.assertIsNone(said["change"])
            with Container(Jdk(MAJOR), seccomp=["timer_create"], **how) as c:
                said = self.says(c.pid, "no", r"^the seccomp profile of its container would kill the JVM when the agent calls timer_create\(\)")
                self.assertIn("allow that system call", said["change"])

    def test_nothing_is_touched_unless_asked_for(self):
        with Container(Jdk(MAJOR), root="hardened") as c:
            self.assertFalse(self.touches(c))
            self.assertTrue(self.touches(c, "read-seccomp"))
            self.says(c.pid, "ok", "^no seccomp filter would kill", "--read-seccomp")
        with Container(Jdk(MAJOR), seccomp=["tgkill"]) as c:
            self.says(c.pid, "no", r"its seccomp filter would kill the JVM when the agent calls tgkill\(\)", "--read-seccomp")

    def test_an_unreadable_filter_is_unknown(self):
        with Container(Jdk(MAJOR), root="hardened") as c:
            os.unlink(c.bundle + "/config.json")
            said = self.says(c.pid, "unknown", "did not read; an attach reads it")
            self.assertIn("--read-seccomp", said["change"])

    def test_without_a_filter_there_is_nothing_to_read(self):
        with Container(Jdk(MAJOR)) as c:
            self.says(c.pid, "ok", "^no seccomp filter would kill")
            self.assertFalse(self.touches(c, "read-seccomp"))

    def test_a_service_is_known_by_its_unit(self):
        unit = "kindling-test-%d.service" % os.getpid()
        group = UNITS + "/" + unit
        os.mkdir(group)
        with tempfile.TemporaryDirectory() as bin_dir:
            path = bin_dir + ":" + os.environ["PATH"]
            jvm = subprocess.Popen([java_home(MAJOR) + "/bin/java", "-Xmx32m", "-cp", classes(), "Ticks"], preexec_fn=allow_all,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                with open(group + "/cgroup.procs", "w") as f:
                    f.write(str(jvm.pid))
                jvm.stdout.readline()
                for words, verdict, pattern in (
                        ("SystemCallFilter=~reboot mount", "ok", "^SystemCallFilter= of its systemd unit does not kill the JVM for any system call"),
                        ("SystemCallFilter=~@x tgkill", "no", r"^SystemCallFilter= of its systemd unit would kill the JVM when the agent calls tgkill\(\)"),
                        ("SystemCallFilter=read\\nSystemCallErrorNumber=1", "ok", "^SystemCallFilter="),
                        ("SystemCallFilter=", "unknown", "did not read")):
                    with open(bin_dir + "/systemctl", "w") as f:
                        f.write(SYSTEMCTL % (unit, words))
                    os.chmod(bin_dir + "/systemctl", 0o755)
                    self.says(jvm.pid, verdict, pattern, PATH=path)
            finally:
                jvm.kill()
                jvm.communicate()
                wait_for("an empty cgroup", lambda: not rows.read(group + "/cgroup.procs"))
                os.rmdir(group)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("runc"):
        skip("needs root and runc")
    if not Jdk(MAJOR).home:
        skip("there is no JDK " + MAJOR)
    classes()
    try:
        unittest.main(verbosity=2)
    finally:
        shared_end()
