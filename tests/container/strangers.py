"""An ordinary user of a container attacks kindling in all ways at once, beside a JVM of known load whose stream, shares,
accounts and history are as without: tests/harness/strangers.c, and whoever may ask the daemon does so without manners.
Needs root, runc and BPF."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from bundle import Container, Jdk, shared_end  # noqa: E402
from churns import PSS_MAX, cpu_s  # noqa: E402
from kindling import NOT_OTHERS, Daemon, Jvm, Pace, Tail, Wakes, accounts_balance, skip, wait_for  # noqa: E402
from test_beside_floods import Memory, Questions  # noqa: E402
from test_jvm import METHODS, shares_by_thread  # noqa: E402

MANNERS = "all"
SECONDS = 30
OF_A_CORE = 0.10  # and as much more as this machine needs for the same
DISK_MAX = 96 << 20  # 80 of history and names of functions, a log
SETTINGS = "events: {cpu: {}, lock: {}, alloc: {}, offcpu: {}}\nstore: {max_size: 64MiB}\nsymbols: {max_size: 16MiB}\n" + NOT_OTHERS
ASKS_BADLY = r"""
import os, random, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
words = [b"GET", b"POST", b"/v1/status", b"/v1/top", b"/v1/profile?pid=1", b"/v1/events", b"/v1/threads?pid=-1", b"/v1/locks", b" ",
         b" HTTP/1.1\r\n", b"\r\n", b"Host: x\r\n", b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"\0", b"%00",
         b"?", b"&", b"pid=99999999999999999999", b"../" * 300, b"\xff" * 5000, b"format=", b"pprof", b"from=0", b"to=1e99", b"x: y\r\n" * 500]
kept = []
while True:
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(0.2)
    try:
        s.connect(sys.argv[1])
        s.sendall(b"".join(random.choice(words) for i in range(random.randrange(12))))
        if random.randrange(4) == 0:
            s.recv(100)
    except OSError:
        pass
    kept.append(s)
    if len(kept) > 100:
        kept.pop(random.randrange(100)).close()
"""
jdk = None


def disk_bytes(path):
    total = 0
    for base, dirs, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(base, name)).st_blocks * 512
            except FileNotFoundError:
                pass  # removed meanwhile
    return total


class AsksBadly:
    """A user who may ask: a socket that all may open is an administrator's decision."""

    def __init__(self, daemon):
        os.chmod(daemon.socket, 0o666)
        self.process = subprocess.Popen([sys.executable, "-c", ASKS_BADLY, daemon.socket])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


class Strangers(unittest.TestCase):
    def recorded_beside(self, daemon, jvm, tail, container):
        """What the honest JVM's recording and the daemon were like while they attacked."""
        out = daemon.dir + "/out.collapsed"
        with Memory(daemon) as memory, Wakes() as wakes, Questions(daemon) as questions, Pace() as pace, AsksBadly(daemon):
            before, tail.longest, begin, cpu = jvm.mark(), 0.0, time.monotonic(), cpu_s(daemon)
            open(container.tmp_dir() + "/go", "w").close()
            daemon.cli("record", str(jvm.pid), "-d", "%ds" % SECONDS, "-i", "4ms", "--threads", "-o", out)
            after, gap = jvm.mark(), max(tail.longest, time.monotonic() - tail.last)
            cpu, late = (cpu_s(daemon) - cpu) / (time.monotonic() - begin), wakes.longest()
        with open(out) as f:
            shares = shares_by_thread(f.read())
        states = [t["state"] for t in daemon.status()["targets"] if t["pid"] != jvm.pid]
        print("  longest gap %.2f s, slowest answer %.2f s, who needs as little CPU time waits %.2f s; %.1f %% of a core at a pace of %.2f, "
              "%.0f MiB, disk %.1f MiB; others: %s" % (
                  gap, questions.slowest, late, 100 * cpu, pace.times, memory.most / 2 ** 20, disk_bytes(daemon.dir) / 2 ** 20,
                  {s: states.count(s) for s in sorted(set(states))}), flush=True)
        return gap, questions.slowest, late, cpu / pace.times, memory.most, shares, {g: after[g] - before[g] for g in METHODS}

    def test_one_beside_them_is_as_without(self):
        with Daemon(SETTINGS) as daemon, Jvm("17", options=("-Xmx128m", "-DdividedBy=10")) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            tail = Tail(daemon, jvm.pid)
            wait_for("the tail's first lines", lambda: tail.lines > 10)
            data, first = daemon.data_pid(), daemon.target(jvm.pid)["samples"]["delivered"]
            with Container(jdk, launcher="strangers", main=MANNERS, cpus=1.0, pids=300) as c:
                gap, slowest, late, cpu, memory, shares, truth = self.recorded_beside(daemon, jvm, tail, c)
                c.signal(signal.SIGKILL)
            tail.end()
            self.assertEqual(daemon.data_pid(), data, daemon.read_log()[-3000:])
            # no longer than a row of as many processes that need as much CPU time; twice: container/churns.py
            self.assertLess(gap, 1 + 2 * late)
            self.assertLess(slowest, 1 + 2 * late)
            self.assertLess(memory, PSS_MAX)
            self.assertLess(cpu, OF_A_CORE)
            self.assertLess(disk_bytes(daemon.dir), DISK_MAX)
            accounts = accounts_balance(daemon.target(jvm.pid))
            self.assertEqual({k: n for k, n in accounts["dropped"].items() if n}, {})
            self.assertGreater(accounts["delivered"] - first, 0.3 * sum(truth.values()) / 4e6)
            for group in METHODS:
                share, true_share = 100 * shares[group] / sum(shares.values()), 100 * truth[group] / sum(truth.values())
                self.assertAlmostEqual(share, true_share, delta=3, msg=group)
            report = daemon.cli("report", str(jvm.pid), "--last", "%ds" % SECONDS, "-o", daemon.dir + "/r.collapsed")
            self.assertEqual(report.returncode, 0)
            with open(daemon.dir + "/r.collapsed") as f:
                self.assertNotIn("[profile full]", f.read())
            # what they say reaches nobody's terminal
            self.assertFalse(re.search(r"[\x00-\x08\x0b-\x1f\x7f]", daemon.cli("status").stdout + daemon.read_log()))
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--only":
        MANNERS = sys.argv.pop(2)
        sys.argv.pop(1)
    jdk = Jdk("17")
    if not jdk.home:
        skip("there is no JDK 17")
    try:
        unittest.main(verbosity=2)
    finally:
        shared_end()
