"""One JDK end to end: test_jvm.py MAJOR. Needs root."""
import contextlib
import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import (Daemon, Jvm, agent_copies, accounts_balance, cpu_ns, thread_names, timed_wait, timers, wait_for)  # noqa: E402

MAJOR = "17"
METHODS = {"full": "full", "half": "half", "tenth": "tenth", "deep": "deepLeaf", "allocating": "allocating",
           "short": "shortLived"}


def shares_by_thread(collapsed):
    """Weight of each group of threads, from `--threads` output."""
    sums = dict.fromkeys(METHODS, 0)
    for line in collapsed.splitlines():
        stack, weight = line.rsplit(" ", 1)
        name = re.match(r"\[(.*) tid=\d+\]", stack).group(1)
        group = "short" if name.startswith("short-lived") else name.replace("group-", "", 1)
        # the kernel keeps 15 bytes of a name; the full one follows within a second
        for known in METHODS:
            if group and known.startswith(group) and (group == known or len(group) >= 6):
                sums[known] += int(weight)
    return sums


def placed(pid):
    """Files in /tmp/kindling for this JVM, or for no JVM: other daemons of this machine may own the others."""
    files = sorted(os.path.join(base, f) for base, _, files in os.walk("/tmp/kindling") for f in files)
    pids = {f: re.search(r"-(\d+)-[0-9a-f]+$", f) for f in files}
    others = [f for f in files if pids[f] and int(pids[f][1]) != pid]
    return [f for f in files if f not in others and (pids[f] or not others)]


class Shares(unittest.TestCase):
    """Measurements."""

    def test_shares_sums_and_accounts(self):
        with Daemon() as daemon, Jvm(MAJOR, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(3)  # so that names are known and the JIT is quiet
            target = daemon.target(jvm.pid)
            before, cpu0, weight0 = jvm.mark(), cpu_ns(jvm.pid), target["samples"]["delivered_ns"]
            own0 = target["agent"]["cpu_ns"] - target["agent"]["handler_ns"]  # the agent's thread is not sampled
            out = daemon.dir + "/out.collapsed"
            daemon.cli("record", str(jvm.pid), "-d", "20s", "--threads", "-o", out)
            after, cpu1 = jvm.mark(), cpu_ns(jvm.pid)
            target = daemon.target(jvm.pid)
            accounts = accounts_balance(target)

            own1 = target["agent"]["cpu_ns"] - target["agent"]["handler_ns"]
            ratio = (accounts["delivered_ns"] - weight0) / (cpu1 - cpu0 - (own1 - own0))
            print("JDK %s: weights / CPU time = %.4f" % (MAJOR, ratio))
            self.assertAlmostEqual(ratio, 1, delta=0.03)

            with open(out) as f:
                got = shares_by_thread(f.read())
            truth = {g: after[g] - before[g] for g in METHODS}
            for group in METHODS:
                share = 100 * got[group] / sum(got.values())
                true_share = 100 * truth[group] / sum(truth.values())
                print("  %-10s %6.2f %% of samples, %6.2f %% of CPU" % (group, share, true_share))
                self.assertAlmostEqual(share, true_share, delta=2, msg=group)
            print("  agent: %.3f %% of CPU, %d bytes, broken %d of %d" % (
                100 * target["agent"]["cpu_share"], target["agent"]["bytes"], accounts["broken"], accounts["taken"]))
            self.assertEqual(jvm.end(), ("END\n", ""))


class OneJdk(unittest.TestCase):
    """What depends on the JDK."""

    def test_output_is_the_same_with_and_without(self):
        with Jvm(MAJOR, "Lines") as jvm:
            plain = jvm.process.communicate("go\n", timeout=120)
        with Daemon() as daemon, Jvm(MAJOR, "Lines") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual(jvm.process.communicate("go\n", timeout=120), plain)

    @unittest.skipIf(len(sys.argv) > 1 and int(sys.argv[1]) < 21, "no warning before 21")
    def test_the_jvms_own_warning_stays_where_it_is_wanted(self):
        with Daemon("quiet_attach: false\n") as daemon, Jvm(MAJOR, "Lines") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            self.assertIn("WARNING: A JVM TI agent has been loaded dynamically", jvm.process.communicate("go\n", timeout=120)[1])

    def test_nothing_is_left_after_a_clean_stop(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            there = placed(jvm.pid)
            before = len(os.listdir("/proc/%d/task" % jvm.pid)), len(os.listdir("/proc/%d/fd" % jvm.pid))
            daemon.wait_state(jvm.pid, "streaming")
            self.assertIn("kindling", thread_names(jvm.pid))
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            self.assertEqual(daemon.stop(), 0)
            self.assertFalse(os.path.exists(daemon.socket))
            # another daemon's file of an attach at this moment may be removed after the file that shows its owner
            wait_for("its files to be gone", lambda: set(placed(jvm.pid)) <= set(there), 5)
            self.assertEqual(timers(jvm.pid), 0)
            wait_for("the agent's thread, which has said BYE, to be gone", lambda: "kindling" not in thread_names(jvm.pid))
            # the JVM itself keeps its attach listener: a thread and a socket; and the eventfd stays
            after = len(os.listdir("/proc/%d/fd" % jvm.pid))
            self.assertLessEqual(after, before[1] + 3)
            log = daemon.read_log()
            self.assertRegex(log, r"target.accounts pid=%d event=cpu taken=(\d+) delivered=\1 dropped=0 lost=0" % jvm.pid)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_killed_jvm_is_gone_and_its_last_events_are_kept(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            os.kill(jvm.pid, signal.SIGKILL)
            accounts_balance(daemon.wait_state(jvm.pid, "gone"))
            wait_for("its events", lambda: "KnownShares.full" in daemon.cli(
                "report", str(jvm.pid), "-o", "-", "--format", "collapsed").stdout)


# Without a daemon the host's signals end by themselves. With timers it is the agent that must stop.
TIMERS = "events:\n  cpu:\n    host_engine: false\n"


class Losses(unittest.TestCase):
    """How daemon and agent react when the other one is silent."""

    def test_a_killed_daemon_does_no_harm_and_its_successor_goes_on(self):
        with Daemon(TIMERS) as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            self.assertGreater(timers(jvm.pid), 0)
            daemon.kill()
            _, silent_after, late = timed_wait("silence", lambda: timers(jvm.pid) == 0)
            print("JDK %s: agent silent %.2f s after SIGKILL of the daemon, on a machine %.2f s late" % (
                MAJOR, silent_after, late))
            self.assertLess(silent_after - late, 1)
            self.assertTrue(jvm.alive())
            daemon.start()
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples again", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            self.assertEqual(agent_copies(jvm.pid), 1)
            accounts_balance(daemon.target(jvm.pid))
            self.assertIn("target.reattach", daemon.read_log())
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_daemon_that_was_stopped_for_long_begins_again(self):
        with Daemon(TIMERS + "agent:\n  pipe_size: 4KiB\n") as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            daemon.pause()
            wait_for("silence", lambda: timers(jvm.pid) == 0)
            daemon.resume()
            wait_for("samples again", lambda: timers(jvm.pid) > 0)
            taken = daemon.target(jvm.pid)["samples"]["taken"]
            wait_for("another ledger", lambda: daemon.target(jvm.pid)["samples"]["taken"] > taken)
            accounts_balance(daemon.target(jvm.pid))
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_forced_drops_are_counted_exactly(self):
        # a sample takes at least four bytes, so two seconds of CPU time fill the pipe
        with Daemon("agent:\n  ring_size: 16KiB\n  pipe_size: 4KiB\nevents:\n  cpu:\n    interval: 1ms\n    max_cpu: 100%\n") as daemon, \
                Jvm(MAJOR, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            daemon.pause()
            begin = cpu_ns(jvm.pid)
            with contextlib.suppress(AssertionError):  # after 10 s the agent gives the daemon up
                wait_for("CPU time", lambda: cpu_ns(jvm.pid) - begin > 2e9, 8)
            daemon.resume()
            wait_for("drops in the accounts", lambda: daemon.target(jvm.pid)["samples"]["dropped"]["pipe_full"])
            accounts = accounts_balance(daemon.target(jvm.pid))
            print("JDK %s: dropped %s" % (MAJOR, {k: v for k, v in accounts["dropped"].items() if v}))
            self.assertGreater(accounts["delivered"], 50)
            self.assertEqual(daemon.target(jvm.pid)["state"], "streaming")
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
        from kindling import java_home
        java_home(MAJOR)
    unittest.main(verbosity=2)
