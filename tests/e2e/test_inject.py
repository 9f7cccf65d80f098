"""kindling-inject started by hand: its effects on a JVM, and its errors for invalid arguments. test_inject.py MAJOR.
Needs root."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Jvm, classes, java_home, wait_for  # noqa: E402

MAJOR = "17"


def inject(*words, **how):
    return subprocess.run([BUILD + "/bin/kindling-inject", *map(str, words)], capture_output=True, text=True, timeout=60, **how)


def catches_sigquit(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"^SigCgt:\s*(\w+)", f.read(), re.M).group(1), 16) >> signal.SIGQUIT - 1 & 1


class Asked(unittest.TestCase):
    def test_commands(self):
        with Jvm(MAJOR) as jvm:
            self.assertRegex(inject(jvm.pid, "jcmd", "VM.version").stdout, r"JDK (1\.)?%s" % MAJOR)
            self.assertIn("java.class.path=", inject(jvm.pid, "properties").stdout)
            self.assertIn("Full thread dump", inject(jvm.pid, "threaddump").stdout)
            for words in (("jcmd", "no.such.command"), ("load", "/nowhere.so")):
                done = inject(jvm.pid, *words)
                self.assertEqual(done.returncode, 1, done)
            self.assertEqual(jvm.end(), ("END\n", ""))  # no thread dump, no other output

    def test_a_jvm_that_is_starting_gets_no_signal(self):
        """The JVM catches SIGQUIT early, and would print its threads as soon as it can act on the signal."""
        with tempfile.TemporaryDirectory() as directory:
            held = directory + "/held"
            open(held, "w").close()
            process = subprocess.Popen([java_home(MAJOR) + "/bin/java", "-agentpath:%s/tests/libstarts_late.so=%s" % (BUILD, held), "-cp",
                                        classes(), "KnownShares"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                wait_for("a handler of SIGQUIT", lambda: catches_sigquit(process.pid))
                done = inject("--deadline", "3", process.pid, "jcmd", "VM.version")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("the JVM is still starting: it takes no attach requests yet", done.stderr)
                self.assertFalse(os.path.exists("/tmp/.attach_pid%d" % process.pid))
                os.unlink(held)
                self.assertEqual(process.stdout.readline(), "READY\n")
                self.assertRegex(inject(process.pid, "jcmd", "VM.version").stdout, r"JDK %s" % MAJOR)
                self.assertEqual(process.communicate("end\n", timeout=60), ("END\n", ""))
            finally:
                process.kill()
                process.communicate()

    def test_answers_of_a_jvm_cannot_control_the_terminal(self):
        with Jvm(MAJOR, options=("-Xmx64m", "-Dodd=\x1b]0;owned\x07\u009b31m\u00e4")) as jvm:
            said = inject(jvm.pid, "jcmd", "VM.command_line").stdout
            self.assertIn("-Dodd=\\x1b]0;owned\\x07\\xc2\\x9b31m\u00e4\n", said.replace(" \n", "\n"))
            self.assertFalse([c for c in said if ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0])

    def test_a_long_command_goes_by_protocol_2_or_is_refused_with_the_reason(self):
        with Jvm(MAJOR) as jvm:
            done = inject(jvm.pid, "jcmd", "VM.version", "x" * 20000)
            self.assertEqual(done.returncode, 1)
            if int(MAJOR) >= 24:  # the argument arrived, and is invalid
                self.assertIn("should be empty", done.stdout)
            else:
                self.assertIn("longer than the 1024 bytes that this JVM accepts", done.stderr)
            self.assertIn("longer than", inject(jvm.pid, "jcmd", "x" * 60000).stderr)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_words_that_are_wrong_are_named_and_nothing_is_sent(self):
        with Jvm(MAJOR) as jvm:
            for words, says in ((("abc", "properties"), '"abc" is not a pid'), (("0", "properties"), '"0" is not a pid'),
                                (("-5", "properties"), '"-5" is not a pid'), ((jvm.pid,), "a COMMAND is missing"),
                                ((jvm.pid, "frob"), "frob is not a command"), ((jvm.pid, "load"), "takes a LIBRARY"),
                                ((jvm.pid, "jcmd"), "takes a COMMAND"), ((jvm.pid, "properties", "x"), "takes no argument"),
                                ((jvm.pid, "check", "jsno"), "not know the word jsno"), (("--frob", jvm.pid), "--frob is not an option"),
                                (("--deadline", "0", jvm.pid, "properties"), "takes a number of seconds"), ((), "Usage:")):
                done = inject(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), words)
                self.assertIn(says, done.stderr)
            self.assertFalse(os.path.exists("/tmp/.java_pid%d" % jvm.pid))

    def test_a_process_that_is_no_jvm_gets_no_signal(self):
        with subprocess.Popen(["sleep", "100"]) as sleep:
            done = inject(sleep.pid, "threaddump")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not a JVM", done.stderr)
            self.assertIsNone(sleep.poll())
            sleep.kill()
        self.assertIn("No such process", inject(999999999, "properties").stderr)

    def socket_name(self, jvm):
        name = "/tmp/.java_pid%d" % jvm.pid
        self.addCleanup(lambda: os.path.lexists(name) and os.remove(name))
        return name

    def strangers_socket(self, jvm, uid=2000):
        """A directory like that of a JVM of @uid: closed to all other users."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.lexists(self.socket_name(jvm)):
            os.remove(self.socket_name(jvm))  # left by an earlier process with this pid
        listener.bind(self.socket_name(jvm))
        listener.listen(5)
        os.chmod(self.socket_name(jvm), 0o600)
        os.chown(self.socket_name(jvm), uid, uid)
        return listener

    def test_the_socket_of_a_dead_jvm_of_another_user_is_removed(self):
        """Pids are reused, and in a sticky /tmp nobody can replace another user's file."""
        with Jvm(MAJOR, uid=1234) as jvm:
            self.strangers_socket(jvm).close()
            self.assertIn("java.class.path=", inject(jvm.pid, "properties").stdout)
            self.assertEqual(os.stat(self.socket_name(jvm)).st_uid, 1234)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_the_owner_of_a_taken_socket_name_is_named(self):
        with Jvm(MAJOR, uid=1234) as jvm:
            name = self.socket_name(jvm)
            with self.strangers_socket(jvm) as listener:
                self.assertIn("another process, of uid 2000, uses its attach socket's name, .java_pid%d" % jvm.pid, inject(jvm.pid, "properties").stderr)
                listener.settimeout(10)
                with listener.accept()[0] as client:
                    self.assertEqual(client.recv(1), b"")  # it was asked nothing
            # like an injector that may not become another user
            done = inject(jvm.pid, "properties", user=1234, group=1234, extra_groups=[])
            self.assertIn("%s, the name of its attach socket, belongs to uid 2000: remove it if that process is dead" % name, done.stderr)
            os.remove(name)
            with open(name, "w"):
                os.chown(name, 2000, 2000)
            self.assertIn("%s, where its attach socket belongs, is no socket but a file of uid 2000: remove it" % name,
                          inject(jvm.pid, "properties").stderr)
            os.remove(name)
            self.assertIn("java.class.path=", inject(jvm.pid, "properties").stdout)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_agents_are_forbidden_by_any_source_of_options(self):
        no = "-XX:-EnableDynamicAgentLoading"
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (("args", no), ("flags", no[len("-XX:"):])):
                with open(os.path.join(directory, name), "w") as f:
                    f.write(text + "\n")
            for source, options, variable in (
                    ("the command line", (no,), None), ("JAVA_TOOL_OPTIONS", (), "JAVA_TOOL_OPTIONS"),
                    ("JDK_JAVA_OPTIONS", (), "JDK_JAVA_OPTIONS"), ("a file of arguments", ("@%s/args" % directory,), None),
                    ("a file of flags", ("-XX:Flags=%s/flags" % directory,), None),
                    ("a file of options", ("-XX:VMOptionsFile=%s/args" % directory,), None)):
                with self.subTest(source):
                    os.environ.update({variable: no} if variable else {})
                    try:
                        jvm = Jvm(MAJOR, options=("-Xmx64m", *options))
                    finally:
                        os.environ.pop(variable or "", None)
                    with jvm:
                        done = inject(jvm.pid, "check")
                        self.assertEqual(done.returncode, 1, done)
                        self.assertRegex(done.stdout, "no +owner +its owner forbids agents")
                        self.assertFalse(os.path.exists("/tmp/.java_pid%d" % jvm.pid))

    def test_a_stopped_one_is_refused_at_once(self):
        with Jvm(MAJOR) as jvm:
            os.kill(jvm.pid, signal.SIGSTOP)
            wait_for("it is stopped", lambda: "State:\tT" in open("/proc/%d/status" % jvm.pid).read())
            begun = time.monotonic()
            done = inject(jvm.pid, "threaddump")
            self.assertIn("stopped", done.stderr)
            self.assertLess(time.monotonic() - begun, 5)
            os.kill(jvm.pid, signal.SIGCONT)
            wait_for("it runs", lambda: inject(jvm.pid, "threaddump").returncode == 0)
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
        java_home(MAJOR)
    unittest.main(verbosity=2)
