"""JVMs in containers of runc: own namespaces, own root, uid 1000. Needs root and runc."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import bundle  # noqa: E402
from kindling import NOT_OTHERS, Daemon, agent_copies, accounts_balance, classes, java_home, skip, timers, wait_for  # noqa: E402

COVER = "attach:\n  tmpfs_over_tmp: true\n"
NOBODY = "targets:\n  rules:\n    - deny: { uid: 0-4294967295 }\n"
CONTAINER = os.path.join(HERE, "..", "..", "deploy", "demo", "container.py")


class Container:
    def __init__(self, major):
        self.name = "kindling-test-%s-%d" % (major, os.getpid())
        self.dir = tempfile.mkdtemp(prefix=self.name)
        done = subprocess.run([sys.executable, CONTAINER, "up", self.name, self.dir, java_home(major) + "/bin/java",
                               classes(), "Lines", "1000"], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        self.pid = int(done.stdout)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        subprocess.run([sys.executable, CONTAINER, "down", self.name, self.dir])

    def tree(self):
        """Files in the container's root that are not mounted from elsewhere (not /usr, not /proc)."""
        found = []
        for base, dirs, files in os.walk(self.dir + "/root"):
            dirs[:] = [d for d in dirs if os.path.join(base, d) not in (self.dir + "/root/usr", self.dir + "/root/proc")]
            found += [os.path.relpath(os.path.join(base, f), self.dir + "/root") for f in dirs + files]
        return sorted(f for f in found if not f.startswith("tmp/hsperfdata") and not f.startswith("tmp/.java_pid"))


def until_mounts_change(pid, seconds):
    with open("/proc/%d/mountinfo" % pid) as f:
        before, end = f.read(), time.monotonic() + seconds
        while time.monotonic() < end:
            f.seek(0)
            if f.read() != before:
                return


class Containers(unittest.TestCase):
    def check(self, major):
        with Daemon() as daemon, Container(major) as c:
            # the daemon may be faster than this line, so files of an attach are left out
            before = [f for f in c.tree() if not f.startswith(("tmp/kindling", "tmp/.attach_pid", "app/.attach_pid"))]
            target = daemon.wait_state(c.pid, "streaming")
            self.assertEqual(target["ns_pid"], 1)
            self.assertEqual(target["uid"], 1000)
            wait_for("samples", lambda: daemon.target(c.pid)["samples"]["delivered"] > 30)
            accounts_balance(daemon.target(c.pid))
            with open("/proc/%d/maps" % c.pid) as f:
                library = {line.split()[5] for line in f if "libkindling" in line}
            self.assertEqual(agent_copies(c.pid), 1)
            self.assertRegex(library.pop(), r"^/tmp/kindling/[0-9.]+/libkindling-[0-9a-f]+\.so$")
            # the names are removed as soon as the agent has opened the files
            self.assertEqual(c.tree(), before)
            wait_for("a report", lambda: "KnownShares.spin" in daemon.cli("report", str(c.pid), "-o", "-", "--format", "collapsed",
                                                                          check=False).stdout)
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(timers(c.pid), 0)
            self.assertEqual(c.tree(), before)
            with open(c.dir + "/err") as f:
                self.assertNotIn("WARNING", f.read())

    def test_numbers_of_threads_are_the_host_s(self):
        """Tids as `top -H` shows them, with the container's own numbers beside them."""
        with Daemon() as daemon, Container("17") as c:
            daemon.wait_state(c.pid, "streaming")

            def named():
                answer = json.loads(daemon.cli("threads", "--json", str(c.pid)).stdout)["targets"][0]["threads"]
                return {t["name"]: t for t in answer if t["name"]}
            threads = wait_for("threads", lambda: named() if "main" in named() else None)
            for name, t in threads.items():
                with open("/proc/%d/task/%d/status" % (c.pid, t["tid"])) as f:
                    numbers = re.search(r"^NSpid:\s+(\d+)\s+(\d+)$", f.read(), re.M)
                self.assertEqual((t["tid"], t["ns_tid"]), tuple(map(int, numbers.groups())), name)
            self.assertRegex(daemon.cli("threads", str(c.pid)).stdout, r"(?m)^ *%d +main " % threads["main"]["tid"])
            line = json.loads(daemon.cli("tail", "--json", "-n", "1", str(c.pid)).stdout)
            self.assertIn((line["tid"], line["ns_tid"]), {(t["tid"], t["ns_tid"]) for t in named().values()})
            wait_for("a report with the thread", lambda: "tid=%d" % line["tid"] in daemon.cli(
                "report", str(c.pid), "-o", "-", "--format", "txt").stdout)

    def check_placement(self, root, placement, settings=""):
        """With a daemon: status shows how the library got in, and the next daemon finds the agent again."""
        with Daemon(settings) as daemon, bundle.Container(bundle.Jdk("17"), root=root) as c:
            self.assertEqual(daemon.wait_state(c.pid, "streaming")["placement"], placement)
            wait_for("samples", lambda: daemon.target(c.pid)["samples"]["delivered"] > 10)
            self.assertFalse(os.path.exists(c.tmp_dir() + "/kindling"))
            daemon.kill()
            daemon.start()
            self.assertIsNone(daemon.wait_state(c.pid, "streaming")["placement"])
            wait_for("samples", lambda: daemon.target(c.pid)["samples"]["delivered"] > 10)
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(timers(c.pid), 0)

    def test_a_noexec_tmp(self):
        self.check_placement("noexec", "mount")

    def test_one_signal_for_any_number_of_attaches(self):
        """Each attach through a mount loads another copy of the library, whose handler stays."""
        def caught():
            with open("/proc/%d/status" % c.pid) as f:
                return re.search(r"^SigCgt:\s+(\w+)$", f.read(), re.M).group(1)
        with Daemon() as daemon, bundle.Container(bundle.Jdk("17"), root="noexec") as c:
            signals = set()
            for _ in range(7):
                daemon.wait_state(c.pid, "streaming")
                begin = daemon.target(c.pid)["samples"]["delivered"]
                wait_for("samples", lambda: daemon.target(c.pid)["samples"]["delivered"] > begin + 10)
                signals.add(caught())
                daemon.cli("detach", str(c.pid))
                daemon.wait_state(c.pid, "detached")
                daemon.cli("attach", str(c.pid))
            self.assertEqual(len(signals), 1, signals)

    def test_a_tmp_that_is_covered_meanwhile(self):
        self.check_placement("covered", "tmpfs", COVER)

    def tree(self, c):
        try:
            return c.tree()
        except FileNotFoundError:  # it changes just now
            return None

    def test_daemon_and_injector_killed_while_it_is_covered(self):
        """The next daemon removes the tmpfs over /tmp: of a JVM that streams, of one that it attaches to, and of one
        that a rule excludes."""
        chance = random.Random(5)
        with bundle.Container(bundle.Jdk("17"), root="covered") as c, Daemon(COVER) as daemon:
            daemon.wait_state(c.pid, "streaming")
            before, kept, covered = c.tree(), c.kept_lines(), 0
            for turn in range(80):
                if turn >= 40 and covered > 2:
                    break
                daemon.cli("detach", str(c.pid))
                daemon.wait_state(c.pid, "detached")
                attach = subprocess.Popen([bundle.BUILD + "/bin/kindling", "--socket", daemon.socket, "attach", str(c.pid)],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                if turn % 4 < 2:
                    time.sleep(chance.uniform(0.005, 0.04))
                else:  # on a slow machine chance hits that moment less often
                    until_mounts_change(c.pid, 0.2)
                daemon.pause()
                subprocess.run(["pkill", "-KILL", "-P", str(daemon.process.pid), "kindling-inject"], stdout=subprocess.DEVNULL)
                daemon.kill()
                attach.wait()
                covered += self.tree(c) != before
                daemon.configure(COVER + (NOBODY if turn % 2 else NOT_OTHERS))
                daemon.start()
                wait_for("its /tmp as before", lambda: self.tree(c) == before)
                if turn % 2:
                    daemon.wait_state(c.pid, "excluded")
                    daemon.stop()
                    daemon.configure(COVER + NOT_OTHERS)
                    daemon.start()
                wait_for("the daemon to find it", lambda: daemon.target(c.pid))
                daemon.cli("attach", str(c.pid), check=False)
                daemon.wait_state(c.pid, "streaming")
                self.assertEqual(c.tree(), before)
            print("covered when the next daemon began: %d of %d" % (covered, turn))
            self.assertGreater(covered, 2)
            c.check_output(kept)

    def test_a_tmp_that_is_a_link(self):
        self.check_placement("symlinks", "copy")

    def test_jdk_17(self):
        self.check("17")

    def test_jdk_25(self):
        self.check("25")

    def test_jdk_11(self):
        self.check("11")

    def test_jdk_21(self):
        self.check("21")


if __name__ == "__main__":
    if not shutil.which("runc"):
        skip("runc is not installed")
    unittest.main(verbosity=2)
