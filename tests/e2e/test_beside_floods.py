"""A JVM at 1 ms beside agents that flood, under a whole daemon: test_beside_floods.py MAJOR. Needs root and BPF."""
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, Lateness, Tail, accounts_balance, wait_for  # noqa: E402
from test_jvm import METHODS, shares_by_thread  # noqa: E402
from test_rights import children_of, role_of  # noqa: E402

MAJOR = "25"
SETTINGS = "injector: %s/tests/flooding\n" % BUILD
USERS = (4712, 4713)  # each is a tenant
RECORDED_S = 12
PSS_MAX = 256 << 20


class Memory:
    """Memory of all processes of a daemon: the largest sum of Pss, its parts, and the largest Rss of each kind of
    process."""

    def __init__(self, daemon):
        self.daemon, self.most, self.parts, self.rss, self.over = daemon.process.pid, 0, {}, {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def look(self):
        parts = {}
        for pid in [self.daemon, *children_of(self.daemon)]:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                role = role_of(pid, self.daemon)
                with open("/proc/%d/smaps_rollup" % pid) as f:
                    kib = dict(line.split(":", 1) for line in f.read().splitlines()[1:])
                if role:
                    parts[role] = parts.get(role, 0) + int(kib["Pss"].split()[0]) * 1024
                    self.rss[role] = max(self.rss.get(role, 0), int(kib["Rss"].split()[0]) * 1024)
        if sum(parts.values()) > self.most:
            self.most, self.parts = sum(parts.values()), parts

    def run(self):
        while not self.over.wait(0.2):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                self.look()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()

    def __str__(self):
        def text(of):
            return ", ".join("%s %.1f" % (role, n / 2 ** 20) for role, n in sorted(of.items()))
        return "at most %.1f MiB of Pss (%s), of Rss each %s" % (self.most / 2 ** 20, text(self.parts), text(self.rss))


class Flooding:
    """Processes of other users whose agents flood."""

    def __enter__(self):
        self.dirs = [tempfile.TemporaryDirectory(prefix="kindling-flooding-") for _ in USERS]
        self.processes = [subprocess.Popen([BUILD + "/tests/flooding", d.name, str(uid)], stdout=subprocess.PIPE, text=True)
                          for d, uid in zip(self.dirs, USERS)]
        for p in self.processes:
            if p.stdout.readline() != "READY\n":
                raise AssertionError("flooding: %s" % p.wait())
        return self

    def __exit__(self, *unused):
        for p in self.processes:
            p.kill()
            p.communicate()
        for d in self.dirs:
            d.cleanup()


class Questions:
    """Asks a daemon twice a second and keeps the slowest answer."""

    def __init__(self, daemon):
        self.daemon, self.slowest, self.over = daemon, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.over.wait(0.5):
            begin = time.monotonic()
            self.daemon.status()
            self.slowest = max(self.slowest, time.monotonic() - begin)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()


class BesideFloods(unittest.TestCase):
    def skip_if_refused(self, daemon):
        engine = daemon.status()["host_engine"]
        if engine["state"] == "refused":
            (self.fail if os.environ.get("CI") else self.skipTest)(engine["why"])

    def flooded(self, daemon, flooding):
        """The number of samples of the hostile JVMs that were delivered, and of those that were not read."""
        targets = [daemon.target(p.pid) for p in flooding.processes]
        return sum(t["samples"]["delivered"] for t in targets), [t["state"] for t in targets]

    def check_shares(self, got, truth):
        for group in METHODS:
            share, true_share = 100 * got[group] / sum(got.values()), 100 * truth[group] / sum(truth.values())
            print("  %-10s %6.2f %% of samples, %6.2f %% of CPU" % (group, share, true_share))
            self.assertAlmostEqual(share, true_share, delta=2, msg=group)

    def test_its_stream_shares_and_accounts_are_as_without(self):
        with Daemon(SETTINGS) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.skip_if_refused(daemon)
            daemon.wait_state(jvm.pid, "streaming")
            tail = Tail(daemon, jvm.pid)
            wait_for("the tail's first lines", lambda: tail.lines > 10)
            out = daemon.dir + "/out.collapsed"
            with Flooding() as flooding:
                for p in flooding.processes:
                    daemon.wait_state(p.pid, "streaming")
                with Memory(daemon) as memory, Lateness() as late, Questions(daemon) as questions:
                    before, first, tail.longest = jvm.mark(), daemon.target(jvm.pid)["samples"]["taken"], 0.0
                    daemon.cli("record", str(jvm.pid), "-d", "%ds" % RECORDED_S, "-i", "1ms", "--threads", "-o", out)
                    after, longest = jvm.mark(), tail.longest
                accounts = accounts_balance(daemon.target(jvm.pid))
                samples, states = self.flooded(daemon, flooding)
                tail.end()
            taken = accounts["taken"] - first
            print("JDK %s: %d samples in %d s, dropped %s; longest gap %.2f s, slowest answer %.2f s, on a machine %.2f s late; "
                  "of the others %d samples came, they are %s\n%s" % (
                      MAJOR, taken, RECORDED_S, {k: v for k, v in accounts["dropped"].items() if v}, longest, questions.slowest,
                      late.seconds, samples, states, memory))
            truth = {g: after[g] - before[g] for g in METHODS}
            with open(out) as f:
                self.check_shares(shares_by_thread(f.read()), truth)
            self.assertGreater(taken, 0.4 * sum(truth.values()) / 1e6)
            self.assertEqual(accounts["dropped"]["quota"], 0)
            self.assertGreater(samples, 10000)
            self.assertLess(longest, 1 + late.seconds)
            self.assertLess(questions.slowest, 1 + late.seconds)
            self.assertLess(memory.most, PSS_MAX)
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else MAJOR
    unittest.main(verbosity=2)
