"""JVMs in containers of a rootless podman, a whole user namespace of an account that is not root: each streams, nothing is
left in it, and podman can remove it. The account is made for a mount namespace of the test's own.

Needs root, podman, uidmap (newuidmap) and runc."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from bundle import Jdk, MARK  # noqa: E402
from kindling import ONLY_MINE, Daemon, accounts_balance, classes, skip, thread_names, timers, wait_for  # noqa: E402

UID, FIRST = 4242, 100000
# @1: a directory with account files that only podman sees
OWN_ACCOUNTS = """mount --make-rshared /
mount -t overlay -o "lowerdir=$1/etc:/etc" overlay /etc
echo ready
exec sleep infinity"""
KINDS = {"root": (), "user": ("--user", "1000"), "keep_id": ("--userns=keep-id",), "read_only": ("--read-only", "--cap-drop", "all"),
         "no_new_privileges": ("--security-opt", "no-new-privileges", "--user", "1000", "--tmpfs", "/tmp:mode=1777")}


class Podman:
    """A podman with an account of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="kindling-rootless-")
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir + "/etc")
        for name, line in (("passwd", "rootless:x:%d:%d::%s/home:/bin/sh" % (UID, UID, self.dir)), ("group", "rootless:x:%d:" % UID)):
            with open("/etc/" + name) as f:
                self.write(name, line + "\n" + f.read())
        for name in ("subuid", "subgid"):
            self.write(name, "rootless:%d:65536\n" % FIRST)
        for name in ("home", "run"):
            os.mkdir(self.dir + "/" + name, 0o700)
            os.chown(self.dir + "/" + name, UID, UID)
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-ec", OWN_ACCOUNTS, "sh", self.dir], stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise AssertionError("no mount namespace of its own")

    def write(self, name, text):
        with open(self.dir + "/etc/" + name, "w") as f:
            f.write(text)

    def __call__(self, *words):
        done = subprocess.run(["nsenter", "--mount", "--target", str(self.holder.pid), "setpriv", "--reuid", str(UID), "--regid", str(UID),
                               "--init-groups", "env", "-i", "PATH=" + os.environ["PATH"], "HOME=" + self.dir + "/home",
                               "XDG_RUNTIME_DIR=" + self.dir + "/run", "podman", "--runtime", "runc", *words],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/", timeout=120)
        if done.returncode != 0:
            raise AssertionError("podman %s: %s" % (" ".join(words), done.stderr))
        return done.stdout.strip()

    def root(self, name):
        """An empty root, into which the rest is mounted."""
        root = "%s/root-%s" % (self.dir, name)
        for directory in ("app", "tmp", "etc", "proc", "dev", "sys", "usr", "jdk", "run", "var/tmp"):
            os.makedirs(root + "/" + directory)
        for link in ("bin", "lib", "lib64"):
            os.symlink("usr/" + link, root + "/" + link)
        shutil.copy(classes() + "/Ticks.class", root + "/app")
        os.chmod(root + "/tmp", 0o1777)
        subprocess.run(["chown", "-hR", "%d:%d" % (UID, UID), root], check=True)
        return root

    def run(self, name, *options):
        """Starts a JVM; its pid."""
        jdk = Jdk("17")
        volumes = [(jdk.sysroot + "/usr", "/usr"), ("/etc/ld.so.cache", "/etc/ld.so.cache")]
        volumes += [(m["source"], m["destination"]) for m in jdk.etc()]
        volumes += [(jdk.home, "/jdk")] if jdk.inside == "/jdk" else []
        self("run", "-d", "--name", name, "--network", "none", "--log-driver", "k8s-file", "--ulimit", "nofile=1024:1024",
             "--ulimit", "nproc=1024:1024", "--env", MARK, *[w for a, b in volumes for w in ("-v", "%s:%s:ro" % (a, b))], *options,
             "--rootfs", self.root(name), jdk.inside + "/bin/java", "-Xmx32m", "-XX:+UseSerialGC", "-cp", "/app", "Ticks")
        wait_for("the JVM", lambda: "line 1\n" in self("logs", name))
        return int(self("inspect", "--format", "{{.State.Pid}}", name))

    def end(self):
        try:
            with open(self.dir + "/run/libpod/tmp/pause.pid") as f:
                os.kill(int(f.read()), signal.SIGKILL)  # this process holds the account's user namespace open
        except FileNotFoundError:
            pass
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)


class Rootless(unittest.TestCase):
    def test_each_streams_and_is_left_as_it_was(self):
        podman = Podman()
        self.addCleanup(podman.end)
        pids = {}
        for name, options in KINDS.items():
            pids[name] = podman.run(name, *options)
            self.addCleanup(podman, "rm", "--force", "--time", "0", "--ignore", name)
        with Daemon(ONLY_MINE) as daemon:
            for name, pid in pids.items():
                with open("/proc/%d/uid_map" % pid) as f:
                    self.assertNotEqual(f.read().split(), ["0", "0", "4294967295"])
                daemon.wait_state(pid, "streaming")
                wait_for("samples", lambda: daemon.target(pid)["samples"]["delivered"] > 20)
                accounts_balance(daemon.target(pid))
            print("\n" + daemon.cli("status").stdout)
            self.assertEqual(daemon.stop(), 0)
        for name, pid in pids.items():
            wait_for("no agent", lambda: not any("kindling" in n for n in thread_names(pid)))
            self.assertEqual(timers(pid), 0)
            left = [n for n in os.listdir("/proc/%d/root/tmp" % pid) if not n.startswith(("hsperfdata_", ".java_pid"))]
            self.assertEqual(left, [], name)
            podman("rm", "--force", "--time", "0", name)


if __name__ == "__main__":
    if os.geteuid() != 0 or not all(map(shutil.which, ("podman", "newuidmap", "runc"))):
        skip("needs root, podman, uidmap and runc")
    if not Jdk("17").home:
        skip("there is no JDK 17")
    unittest.main(verbosity=2)
