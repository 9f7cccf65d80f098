"""A JVM that sends more than the decoding budget allows: test_held_back.py MAJOR. Needs root."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import Daemon, Jvm, ONLY_MINE, wait_for  # noqa: E402

MAJOR = "17"
LITTLE = "0.5%"  # with a smaller budget the LEDGER that counts the drops takes minutes to arrive
LEASE_S = 10  # after that time an agent gives up a pipe that stays full


def settings(decode_cpu, interval="100us"):
    return """agent:
  pipe_size: 64KiB
events:
  cpu:
    interval: %s
    max_cpu: 100%%
limits:
  decode_cpu: %s
""" % (interval, decode_cpu) + ONLY_MINE


def held(target):
    return [n["what"] for n in target["notes"] if n["step"] == "held back"]


def accounts(daemon, pid):
    """(taken, delivered, dropped by cause), which must always add up."""
    s = daemon.target(pid)["samples"]
    assert s["taken"] == s["delivered"] + sum(s["dropped"].values()), s
    assert s["dropped"]["lost_on_wire"] == 0 and s["dropped"]["implausible"] == 0, s
    return s["taken"], s["delivered"], s["dropped"]


class HeldBack(unittest.TestCase):
    def hold(self, daemon, jvm):
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("quota", lambda: accounts(daemon, jvm.pid)[2]["quota"] > 0 and held(daemon.target(jvm.pid)), 120)

    def test_it_goes_on_slowly_and_as_before_when_it_may(self):
        with Daemon(settings(LITTLE)) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hold(daemon, jvm)
            before = accounts(daemon, jvm.pid)
            time.sleep(LEASE_S + 5)  # its agent does not take the daemon for dead meanwhile
            # if other processes need the CPUs, the JVM has less to send for a while, or its share of the budget is
            # enough
            wait_for("more of it", lambda: accounts(daemon, jvm.pid)[2]["quota"] > before[2]["quota"] and
                     "limits.decode_cpu" in "".join(held(daemon.target(jvm.pid))), 120)
            after, target = accounts(daemon, jvm.pid), daemon.target(jvm.pid)
            print("held back: %s, then %s; %s" % (before, after, held(target)))
            self.assertEqual((target["state"], target["attempts"]), ("streaming", 1), target)
            self.assertGreater(after[1], before[1])
            self.assertIn("held back: decoding its data may take", " ".join(daemon.cli("status").stdout.split()))
            self.assertIn("held back: decoding its data may take",
                          " ".join(daemon.cli("doctor", str(jvm.pid), check=False).stdout.split()))
            # both that the note advises: at 100us a JVM on a busy machine has no more than a part of its own CPU time
            daemon.configure(settings("50%", "1ms"))
            self.assertIn("limits.decode_cpu", daemon.cli("config", "reload").stdout)
            wait_for("the end of it", lambda: not held(daemon.target(jvm.pid)))
            before = accounts(daemon, jvm.pid)
            wait_for("more samples", lambda: accounts(daemon, jvm.pid)[1] > before[1] + 500)
            after = accounts(daemon, jvm.pid)
            print("not held back: %s, then %s" % (before, after))
            self.assertEqual(after[2]["quota"], before[2]["quota"])
            self.assertEqual(daemon.target(jvm.pid)["attempts"], 1)

    def test_it_can_be_detached(self):
        with Daemon(settings(LITTLE)) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hold(daemon, jvm)
            daemon.cli("detach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "detached", 5)
            self.assertNotIn("did not answer", daemon.read_log())
            accounts(daemon, jvm.pid)
            self.assertTrue(jvm.alive())


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1) if len(sys.argv) > 1 else MAJOR
    unittest.main(verbosity=2)
