"""The SkyWalking sink, disturbed: an OAP that is down, resets, reads one byte a second; deaths of kindling-upload and of
kindlingd. Each task ends once, with a profile or a reason, and the ledger adds up. Needs root."""
import contextlib
import glob
import os
import shutil
import signal
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import ONLY_MINE, Daemon, Jvm, wait_for  # noqa: E402
import skywalking_stub  # noqa: E402

# the sink `dir` does not wait for others; an upload that hangs is given up after 5 times the timeout
SETTINGS = """sinks:
  - {name: sw, type: skywalking, url: %s, timeout: 2s}
  - {name: dir, type: files, directory: %s, interval: 10s}
""" + ONLY_MINE
ENVIRONMENT = dict(os.environ, SW_AGENT_NAME="shop")
RECORDS = 1  # SKYWALKING_RECORDS: kindlingd has confirmed the recording


def descendants(pid):
    """Of kindlingd: {name: pid}."""
    found = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/children" % (pid, task)) as f:
            for child in f.read().split():
                with open("/proc/%s/comm" % child) as comm:
                    found[comm.read().strip()] = int(child)
                found.update(descendants(int(child)))
    return found


class Watch(threading.Thread):
    """Reads the sink's ledger all the time and checks that it balances."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.of, self.over, self.wrong, self.looks, self.last = daemon, False, [], 0, {}
        self.start()

    def run(self):
        while not self.over:
            with contextlib.suppress(AssertionError, ValueError):  # the daemon is restarting
                for s in self.of.status().get("sinks", []):
                    if s["taken"] != s["delivered"] + s["spooled"] + s["unconfirmed"] + sum(s["dropped"].values()):
                        self.wrong.append(s)
                    if s["name"] == "sw":
                        self.last = s
                        self.looks += 1
            time.sleep(0.1)

    def end(self):
        self.over = True
        self.join()


class Chaos(unittest.TestCase):
    maxDiff = None

    def test_tasks_end_once(self):
        with skywalking_stub.Oap() as oap, skywalking_stub.Proxy(oap.url) as proxy:
            directory = os.path.join("/tmp", "kindling-sw-%d" % os.getpid())  # kindling-upload makes it
            self.addCleanup(shutil.rmtree, directory, True)
            with Daemon(SETTINGS % (proxy.url, directory)) as daemon, Jvm("17", env=ENVIRONMENT) as jvm:
                self.oap, self.proxy, self.daemon, self.created = oap, proxy, daemon, int(time.time() * 1000)
                watch = Watch(daemon)
                try:
                    self.an_oap_that_is_down_at_first(watch)
                    self.a_reset_in_the_middle()
                    self.one_byte_a_second()
                    self.upload_is_killed_while_the_task_runs()
                    self.upload_is_killed_while_it_sends()
                    self.upload_is_killed_when_all_was_sent(watch)
                    self.kindlingd_is_killed_while_the_task_runs(watch)
                    self.check_all(watch, jvm)
                except AssertionError as error:
                    raise AssertionError("%s\n%s\n%s %s\n%s" % (
                        error, watch.last, oap.wrong, oap.broken, "".join(
                            line for line in daemon.read_log().splitlines(True)
                            if line.startswith(("sink", "upload", "recording")))))
                finally:
                    watch.end()

    def task(self, name, seconds, arguments="event=cpu,alloc,interval=1ms,alloc=4k"):
        self.created += 1
        self.oap.tasks.append((name, "shop", seconds, arguments, self.created))

    def uploads(self, name):
        return [content for task, instance, content in self.oap.uploads if task == name]

    def sink(self):
        return next(s for s in self.daemon.status()["sinks"] if s["name"] == "sw")

    def uploaded(self, name):
        """Waits until the task is done and kindling-upload has received the answer."""
        wait_for("the upload of " + name, lambda: self.uploads(name), 120)
        wait_for("the answer to " + name, lambda: self.sink()["taken"] == self.sink()["delivered"], 120)

    def kill_upload(self):
        """Kills kindling-upload; kindlingd-data restarts it, and it asks for tasks at once."""
        pid = descendants(self.daemon.process.pid)["kindling-upload"]
        os.kill(pid, signal.SIGKILL)
        wait_for("another kindling-upload", lambda: descendants(self.daemon.process.pid).get("kindling-upload", pid) != pid)

    def step(self, name):
        """How far the task is by its file: struct skywalking_saved in daemon/upload/skywalking_saved.h."""
        for path in glob.glob(self.daemon.dir + "/state/spool/**/*.task", recursive=True):
            with open(path, "rb") as f:
                saved = f.read()
            if name.encode() + b"\0" in saved:
                return struct.unpack_from("<I", saved, 12)[0]
        return None

    def running(self, name):
        """Waits until the agent has got the task's settings."""
        wait_for("the begin of " + name, lambda: "alloc" in (self.daemon.status()["targets"][0]["events"] or []), 120)

    def an_oap_that_is_down_at_first(self, watch):
        wait_for("that it is said", lambda: "onnect" in (watch.last.get("last_error") or ""), 120)
        self.task("reset", 1)
        self.proxy.reset_at = 8 << 10  # the metadata, and a part of the content
        self.proxy.up()

    def a_reset_in_the_middle(self):
        self.uploaded("reset")
        self.assertEqual(self.proxy.resets, 1)

    def one_byte_a_second(self):
        # a new kindling-upload asks for tasks at once, later every 20 s
        self.proxy.drip_at, self.proxy.drip_s = 8 << 10, 3
        self.task("drip", 1)
        self.kill_upload()
        self.uploaded("drip")
        self.assertEqual(self.proxy.dripped, 3)

    def upload_is_killed_while_the_task_runs(self):
        self.task("killed", 3)
        self.kill_upload()
        self.running("killed")
        self.kill_upload()
        self.uploaded("killed")

    def upload_is_killed_while_it_sends(self):
        self.oap.silent = "before"
        self.task("sending", 1)
        self.kill_upload()
        wait_for("the upload to begin", lambda: self.oap.waiting, 120)
        self.kill_upload()
        self.oap.silent = None
        self.uploaded("sending")

    def upload_is_killed_when_all_was_sent(self, watch):
        """If it is unknown whether an upload arrived, it is not sent again, because an OAP would count it twice."""
        before = self.sink()["delivered"]
        self.oap.silent = "behind"
        self.task("sent", 1)
        self.kill_upload()
        wait_for("the upload", lambda: self.uploads("sent"), 120)
        self.kill_upload()
        self.oap.silent = None
        wait_for("what is not confirmed", lambda: watch.last["unconfirmed"] > 0 and not watch.last["spooled"])
        self.assertEqual(watch.last["delivered"], before)

    def kindlingd_is_killed_while_the_task_runs(self, watch):
        self.task("restarted", 600)
        self.kill_upload()
        self.running("restarted")
        wait_for("that kindling-upload has been told so", lambda: self.step("restarted") == RECORDS)
        self.daemon.kill()
        self.daemon.start()
        wait_for("the failure", lambda: self.oap.failures, 120)

    def check_all(self, watch, jvm):
        instances = {instance for service, instance in self.oap.instances}
        self.assertEqual(len(instances), 1)
        self.assertEqual(self.oap.failures, {("restarted", i): "kindlingd was restarted while the task ran" for i in instances})
        self.assertEqual(sorted(task for task, instance, content in self.oap.uploads),
                         ["drip", "killed", "reset", "sending", "sent"])
        self.assertEqual(self.oap.wrong, [])
        sink = self.sink()
        self.assertEqual(sink["taken"], sink["delivered"] + sink["unconfirmed"])
        self.assertGreater(sink["unconfirmed"], 0)
        # and the JVM's sampling has not changed
        wait_for("the interval", lambda: self.daemon.target(jvm.pid)["interval_asked_ns"] == 10000000 and
                 set(self.daemon.target(jvm.pid)["events"]) - {"offcpu"} == {"cpu", "lock"})
        self.assertEqual(watch.wrong, [])
        self.assertGreater(watch.looks, 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
