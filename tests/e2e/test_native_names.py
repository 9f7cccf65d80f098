"""Names of native frames: test_native_names.py MAJOR. Needs root. A program that reads the clock in a loop and makes garbage."""
import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import Daemon, Jvm, classes, java_home_for_all, wait_for  # noqa: E402

MAJOR = "17"
# a user, and the uid of one of its rootless containers
USER, DELEGATED, SUBUIDS = 4242, 100999, "%d:100000:65536\n"
NAMELESS = re.compile(r"\[[^;]*\.so[^;]*\]|\[vdso\]|\[[^;]*\+0x[0-9a-f]+\]")


def stacks(text):
    return [line.rsplit(" ", 1) for line in text.splitlines()]


def nameless_share(rows):
    """Share of samples that have a frame of libjvm without a function's name."""
    return sum(int(w) for s, w in rows if "[libjvm.so]" in s.split(";")) / max(1, sum(int(w) for _, w in rows))


def wait_names(daemon, jvm):
    """Waits until libjvm's table of functions has been read; frames get their names when a report is made."""
    def named():
        rows = stacks(daemon.cli("report", str(jvm.pid), "--last", "1m", "-f", "collapsed", "-o", "-").stdout)
        return any("start_thread" in s for s, _ in rows) and nameless_share(rows) < 0.02
    daemon.wait_state(jvm.pid, "streaming")
    wait_for("names of native functions", named)


class NativeNames(unittest.TestCase):
    def test_clock_and_native_threads_have_names(self):
        with Daemon() as daemon, Jvm(MAJOR, "NativeNames", options=("-Xmx128m", "-XX:+UseParallelGC")) as jvm:
            wait_names(daemon, jvm)
            out = daemon.dir + "/out.collapsed"
            daemon.cli("record", str(jvm.pid), "-d", "6s", "-i", "1ms", "-o", out)
            with open(out) as f:
                rows = stacks(f.read())
        roots, leaves, nameless = (collections.Counter() for _ in range(3))
        for stack, weight in rows:
            frames = stack.split(";")
            roots[frames[0]] += int(weight)
            leaves[frames[-1]] += int(weight)
            for frame in filter(NAMELESS.fullmatch, frames):
                nameless[frame] += int(weight)
        total = sum(int(weight) for _, weight in rows)
        print("JDK %s: leaves %s\n  roots %s\n  nameless %s" % (
            MAJOR, *({k: round(v / total, 4) for k, v in c.most_common(4)} for c in (leaves, roots, nameless))))
        clock = sum(int(weight) for stack, weight in rows if "NativeNames.clock" in stack.split(";"))
        self.assertGreater(leaves["__vdso_clock_gettime"], 0.3 * clock)
        # stacks that reach the native root; the others begin with Java's run()
        self.assertTrue(any(s.startswith(("clone3;start_thread;", "clone;start_thread;", "__clone;start_thread;")) for s, _ in rows))
        self.assertEqual([k for k in nameless if "+0x" in k or "vdso" in k], [])
        # private functions of libc have names only with its debug file; the first two of a thread always have
        self.assertLess(nameless["[libjvm.so]"], 0.02 * total)
        self.assertEqual([s for s, _ in rows if "[libc.so.6]" in s.split(";")[:2]], [])

    def tenants(self, daemon):
        """Tenants that have tables of functions: a table's name begins with its tenant's."""
        return {name.split("_")[0] for _, _, names in os.walk(daemon.dir + "/state") for name in names if name.startswith("uid-")}

    def test_files_at_one_path_that_differ(self):
        """Two images with other JDKs at the same path: each JVM's frames have the names of its own libjvm. Of both uids one is
        delegated to the other, so all tables are one tenant's."""
        home, other = java_home_for_all(MAJOR), java_home_for_all("25" if MAJOR != "25" else "17")
        options = ("-Xmx128m", "-XX:+UseParallelGC")
        with Delegating(USER) as subuids, Daemon(wrap=subuids.namespace) as daemon, \
                Jvm(MAJOR, "NativeNames", options=options, uid=USER) as one, Overlaid(home, other, options, DELEGATED) as two:
            self.assertEqual([os.stat("/proc/%d" % jvm.pid).st_uid for jvm in (one, two)], [USER, DELEGATED])
            shares = {}
            for jvm in (one, two):
                wait_names(daemon, jvm)
            for jvm in (one, two):
                out = daemon.dir + "/out.collapsed"
                daemon.cli("record", str(jvm.pid), "-d", "4s", "-i", "1ms", "-o", out)
                with open(out) as f:
                    shares[jvm.pid] = nameless_share(stacks(f.read()))
            tenants = self.tenants(daemon)
        print("JDK %s: without libjvm's names %s; tables of %s" % (MAJOR, shares, sorted(tenants)))
        self.assertLess(max(shares.values()), 0.02)
        self.assertEqual(tenants, {"uid-%d" % USER})


class Delegating:
    """A mount namespace in which /etc/subuid delegates uids to @user."""

    def __init__(self, user):
        self.etc = tempfile.TemporaryDirectory(prefix="kindling-etc-")
        os.chmod(self.etc.name, 0o755)
        with open(self.etc.name + "/subuid", "w") as f:
            f.write(SUBUIDS % user)
        mount = "mount -t overlay -o lowerdir=%s:/etc overlay /etc && exec \"$@\"" % self.etc.name
        self.namespace = ["unshare", "--mount", "sh", "-c", mount, "sh"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.etc.cleanup()


class Overlaid(Jvm):
    """A JVM of @uid for which another JDK lies at the path of this one."""

    def __init__(self, home, other, options, uid):
        command = "mount --bind %s %s && exec setpriv --reuid %d --regid %d --clear-groups %s/bin/java %s -cp %s NativeNames" % (
            other, home, uid, uid, home, " ".join(options), classes())
        self.process = subprocess.Popen(["unshare", "-m", "sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "READY\n":
            raise AssertionError(self.process.communicate())


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1) if len(sys.argv) > 1 else MAJOR
    unittest.main()
