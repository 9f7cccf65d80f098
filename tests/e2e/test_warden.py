"""The two processes of kindlingd: their rights, and how they end together. test_warden.py MAJOR. Needs root."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, cpu_ns, java_home, wait_for  # noqa: E402

MAJOR = "17"


def status_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return {k: v.split() for k, v in (line.split(":", 1) for line in f)}


def is_gone(pid):
    """In a container without an init nobody may wait for an ended process."""
    try:
        return status_of(pid)["State"][0] == "Z"
    except FileNotFoundError:
        return True


def start_fails(config):
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/kindlingd.yaml"
        with open(path, "w") as f:
            f.write(config.replace("DIR", directory))
        return subprocess.run([BUILD + "/bin/kindlingd", "--config", path], capture_output=True, text=True, timeout=60)


class Warden(unittest.TestCase):
    def test_the_data_process_has_no_rights(self):
        with Jvm(MAJOR) as jvm, Daemon() as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            self.assertEqual(daemon.target(jvm.pid)["engine"], "host")
            data = status_of(daemon.data_pid())
            self.assertNotEqual(daemon.data_pid(), daemon.process.pid)
            self.assertEqual(len(set(data["Uid"] + data["Gid"])), 1)
            self.assertNotEqual(data["Uid"][0], "0")
            self.assertEqual({c: int(data[c][0], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")},
                             {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0})
            self.assertEqual((data["Seccomp"], data["NoNewPrivs"], data["Groups"]), (["2"], ["1"], []))
            self.assertEqual(status_of(daemon.process.pid)["Uid"][0], "0")

    def test_it_may_read_its_settings_again(self):
        with Daemon("log: {level: info}\n") as daemon:
            os.chmod(daemon.config, 0o600)
            daemon.configure("log: {level: debug}\n")
            self.assertIn("log.level: info -> debug", daemon.cli("config", "reload").stdout)

    def test_sigterm_ends_both_and_leaves_no_socket(self):
        with Daemon() as daemon:
            data = daemon.data_pid()
            self.assertEqual(daemon.stop(), 0)
            self.assertTrue(is_gone(data))
            self.assertFalse(os.path.exists(daemon.socket))

    def test_ctrl_c_is_one_signal(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            os.kill(daemon.process.pid, signal.SIGINT)
            self.assertEqual(daemon.process.wait(timeout=60), 0)
            self.assertIn("signal=2", daemon.read_log())

    def test_a_killed_data_process_ends_the_daemon(self):
        with Daemon() as daemon:
            os.kill(daemon.data_pid(), signal.SIGKILL)
            self.assertEqual(daemon.process.wait(timeout=20), 128 + signal.SIGKILL)
            self.assertIn("daemon.died", daemon.read_log())
            self.assertFalse(os.path.exists(daemon.socket))
            daemon.start()

    def test_a_killed_warden_ends_the_data_process_and_the_next_starts_at_once(self):
        with Jvm(MAJOR) as jvm, Daemon() as daemon:
            for _ in range(5):
                daemon.wait_state(jvm.pid, "streaming")
                data = daemon.data_pid()
                daemon.kill()
                begin = time.monotonic()
                daemon.start()
                self.assertLess(time.monotonic() - begin, 5)
                self.assertTrue(is_gone(data))

    def test_the_warden_has_nothing_to_do(self):
        with Jvm(MAJOR) as jvm, Daemon() as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(2)  # what the start costs is over
            before = cpu_ns(daemon.process.pid)
            time.sleep(5)
            self.assertLessEqual(cpu_ns(daemon.process.pid) - before, 20_000_000)

    def test_root_stays_one_process(self):
        with Jvm(MAJOR) as jvm, Daemon("user: root\n") as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual(daemon.data_pid(), daemon.process.pid)
            self.assertEqual(daemon.stop(), 0)

    def test_settings_that_cannot_work_say_why(self):
        done = start_fails("user: nobody-is-called-so\nsocket: DIR/s\nstate_dir: DIR/state\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("user: there is no account named nobody-is-called-so", done.stderr)
        done = start_fails("socket: DIR/s\nstate_dir: DIR/state\n")  # TemporaryDirectory is 0700
        self.assertEqual(done.returncode, 1)
        self.assertIn("every directory above it needs the x bit", done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(77)
    if len(sys.argv) > 1:
        MAJOR = sys.argv.pop(1)
    java_home(MAJOR)
    unittest.main(argv=sys.argv[:1], verbosity=2)
