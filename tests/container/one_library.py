"""One libkindling.so for every libc: a daemon attaches to the JVM in a root without glibc (musl), to one with glibc
2.31 (Debian 11) and to one with the newest (Debian unstable). Needs root and mmdebstrap; a root that cannot be
made is reported as skipped."""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import jdks  # noqa: E402
from kindling import Daemon, agent_copies, accounts_balance, classes, wait_for  # noqa: E402

MUSL = "/usr/lib/x86_64-linux-musl/libc.so"
mapped = {}  # the mapped file of the agent in each JVM


def musl_root():
    """A root whose only libc is musl, like Alpine's."""
    home, root = jdks.musl(), os.path.join(jdks.cache_dir(), "root-musl")
    if not home or not os.path.exists(MUSL):
        return None
    if not os.path.exists(root + "/complete"):
        shutil.rmtree(root, ignore_errors=True)
        for directory in ("lib", "proc", "tmp", "dev"):
            os.makedirs(os.path.join(root, directory))
        shutil.copy(MUSL, root + "/lib/ld-musl-x86_64.so.1")
        shutil.copytree(home, root + "/usr/lib/jvm/jre17-musl", symlinks=True)
        open(root + "/complete", "w").close()
    return root + "/usr/lib/jvm/jre17-musl"


def bullseye():
    root = jdks.make_root("root-bullseye", "Debian 11", "--include=base-files,openjdk-17-jre-headless", "bullseye")
    return root + "/usr/lib/jvm/java-17-openjdk-amd64" if root else None


class Jvm:
    """A JVM in a root of its own; mounts into the root end with its mount namespace."""

    def __init__(self, home):
        self.process = subprocess.Popen([*jdks.command(home, classes()), "-Xmx64m", "-cp", classes(), "KnownShares"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        first = self.process.stdout.readline()
        if first != "READY\n":
            raise AssertionError("%r instead of READY\n%s" % (first, self.process.communicate()))

    def maps(self, word):
        with open("/proc/%d/maps" % self.pid) as f:
            return {line.split()[5] for line in f if word in line}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()


def glibc_of(home):
    root = jdks.root_of(home)
    said = subprocess.run(["chroot", root, glob.glob(root + "/lib*/x86_64-linux-gnu/libc.so.6")[0][len(root):]],
                          capture_output=True, text=True).stdout
    return tuple(int(n) for n in re.search(r"GLIBC (\d+)\.(\d+)", said).groups())


class OneLibrary(unittest.TestCase):
    def streams(self, home, libc):
        with Jvm(home) as jvm, Daemon() as daemon:
            self.assertTrue(jvm.maps(libc), "no %s in it" % libc)
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            t = daemon.target(jvm.pid)
            self.assertEqual(t["walker"], "hotspot")
            accounts_balance(t)
            self.assertEqual(agent_copies(jvm.pid), 1)
            library = jvm.maps("libkindling").pop()
            self.assertIn("KnownShares.spin", daemon.cli("report", str(jvm.pid), "-o", "-", "--format", "collapsed").stdout)
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(jvm.process.communicate("end\n", timeout=20), ("END\n", ""))
        print("\n  %s, %s: %d samples of %s" % (t["jdk"], libc, t["samples"]["delivered"], library))
        mapped[libc] = os.path.basename(library)
        self.assertEqual(len(set(mapped.values())), 1, mapped)

    def need(self, home, what):
        if not home:
            if os.environ.get("CI"):
                self.fail(what + " cannot be had")
            self.skipTest(what + " cannot be had")
        return home

    def test_musl_in_a_root_without_glibc(self):
        home = musl_root()
        if not home:
            self.skipTest("there is no JVM for musl ($KINDLING_MUSL_JRE), or no musl")
        self.assertEqual(glob.glob(jdks.root_of(home) + "/lib*/**/libc.so.6", recursive=True), [])
        self.streams(home, "ld-musl-x86_64.so.1")

    def test_glibc_2_31(self):
        home = self.need(bullseye(), "Debian 11")
        self.assertEqual(glibc_of(home), (2, 31))
        self.streams(home, "libc-2.31.so")

    def test_the_newest_glibc(self):
        home = self.need(jdks.fetch_root("28"), "JDK 28")
        self.assertGreaterEqual(glibc_of(home), (2, 41))
        self.streams(home, "libc.so.6")


if __name__ == "__main__":
    unittest.main(verbosity=2)
