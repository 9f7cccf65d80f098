"""A container whose JVM keeps the kernel busy with threads, processes and mappings, beside a JVM whose stream goes on:
tests/harness/churns.c in each of its manners. Needs root, runc and BPF."""
import os
import signal
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from bundle import Container, Jdk, shared_end  # noqa: E402
from kindling import ONLY_MINE, Daemon, Jvm, Tail, Wakes, accounts_balance, skip, wait_for  # noqa: E402
from test_beside_floods import Memory, Questions  # noqa: E402
from test_rights import children_of  # noqa: E402

MANNERS = ("churn", "attached", "switch", "blocked", "sleepers", "forks", "execs", "names", "maps")
# Without max_cpu, because beside such a container an agent needs more CPU time for a sample, and keeps to 1 % by fewer samples:
# then gaps tell of it, and not of what is on a sample's way.
SETTINGS = "events: {cpu: {max_cpu: 100%}, lock: {}, alloc: {}, offcpu: {}}\n" + ONLY_MINE
SECONDS = 6
MANY_SWITCHES = ("switch", "blocked")  # so many that time off the CPU may have to rest for all
CPUS = 1.0
TASKS = 8000
GAP_MAX = 1.0  # s
OF_A_CORE = 0.1
PSS_MAX = 256 << 20
TICKS = os.sysconf("SC_CLK_TCK")
jdk = None


def cpu_s(daemon):
    """CPU time of all the daemon's processes, including those that have ended."""
    ticks = 0
    for pid in (daemon.process.pid, *children_of(daemon.process.pid)):
        try:
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended meanwhile: its CPU time is part of its parent's
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


class Churns(unittest.TestCase):
    def beside(self, daemon, jvm, manner):
        tail = Tail(daemon, jvm.pid)
        wait_for("the tail's first lines", lambda: tail.lines > 10)
        with Container(jdk, launcher="churns", main=manner, cpus=CPUS, pids=TASKS) as c:
            daemon.wait_state(c.pid, "streaming")
            with Memory(daemon) as memory, Wakes() as wakes, Questions(daemon) as questions:
                rests = daemon.status()["offcpu"]["rests"]
                tail.longest, tail.latest, begin, cpu = 0.0, 0.0, time.monotonic(), cpu_s(daemon)
                open(c.tmp_dir() + "/go", "w").close()
                time.sleep(SECONDS)
                seconds, gap = time.monotonic() - begin, max(tail.longest, time.monotonic() - tail.last)
                cpu, late = cpu_s(daemon) - cpu, wakes.longest()
            rests = daemon.status()["offcpu"]["rests"] - rests
            c.signal(signal.SIGKILL)
        tail.end()
        print("  %-9s longest gap %.2f s, latest sample %.2f s, slowest answer %.2f s, %.1f %% of a core, %.0f MiB; who needs as "
              "little CPU time waits %.2f s" % (manner, gap, tail.latest, questions.slowest, 100 * cpu / seconds,
                                                memory.most / 2 ** 20, late), flush=True)
        # On a machine that does other work everybody waits, and kindling no longer than a row of as many processes that need as much
        # CPU time: twice, because the JVM waits as well before it has a sample.
        self.assertLess(gap, GAP_MAX + 2 * late)
        self.assertLess(tail.latest, GAP_MAX + 2 * late)
        self.assertLess(questions.slowest, 1 + 2 * late)
        # only the times off the CPU of who switches too often rest, not those of others
        self.assertTrue(rests == 0 or manner in MANY_SWITCHES, rests)
        self.assertLess(cpu, OF_A_CORE * seconds)
        self.assertLess(memory.most, PSS_MAX)

    def test_the_stream_of_another_jvm_goes_on(self):
        with Daemon(SETTINGS) as daemon, Jvm("17", options=("-Xmx128m", "-DdividedBy=10")) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            for manner in MANNERS:
                with self.subTest(manner):
                    self.beside(daemon, jvm, manner)
            self.assertEqual(accounts_balance(daemon.target(jvm.pid))["dropped"]["quota"], 0)
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    jdk = Jdk("17")
    if not jdk.home:
        skip("there is no JDK 17")
    try:
        unittest.main(verbosity=2)
    finally:
        shared_end()
