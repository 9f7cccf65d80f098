"""The SkyWalking sink: tasks of a strict stub of the task service, and an OAP 10.1 which has none. Needs root."""
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, ONLY_MINE, Daemon, Jvm, java_home, wait_for  # noqa: E402
import oap as oap_10_1  # noqa: E402
import skywalking_stub  # noqa: E402

SETTINGS = """sinks:
  - {name: sw, type: skywalking, url: %s, bearer_file: %s}
  - {name: old, type: skywalking, url: %s, instance: "{service}-{pid}"}
""" + ONLY_MINE
ENVIRONMENT = dict(os.environ, SW_AGENT_NAME="shop")
NOT_FOUND = {k: v for k, v in os.environ.items() if k != "KINDLING_TEST"}  # readers of JFR are JVMs too
SECONDS = 3
CPU = ("jdk.ExecutionSample", "jdk.NativeMethodSample")
ALLOC = ("jdk.ObjectAllocationSample",)
OURS = CPU + ALLOC + ("jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark")


def sink_of(daemon, name="sw"):
    return next(s for s in daemon.status()["sinks"] if s["name"] == name)


def summary(jfr, major):
    """(seconds, {event: count}) of a JFR file, by the JDK's own reader."""
    with tempfile.NamedTemporaryFile(suffix=".jfr") as f:
        f.write(jfr)
        f.flush()
        out = subprocess.run([java_home(major) + "/bin/jfr", "summary", f.name], check=True, capture_output=True,
                             text=True, env=NOT_FOUND).stdout
    rows = [line.split() for line in out.splitlines()]
    return int(re.search(r"Duration: (\d+) s", out).group(1)), {row[0]: int(row[1]) for row in rows
                                                               if len(row) == 3 and row[0] in OURS}


class Seen(threading.Thread):
    """Collects what the agent of a JVM is asked for while the test runs: [(events, interval in ns)] without
    repetitions."""

    def __init__(self, daemon, pid):
        super().__init__(daemon=True)
        self.of, self.pid, self.seen, self.over = daemon, pid, [], False
        self.start()

    def run(self):
        while not self.over:
            try:
                target = self.of.target(self.pid) or {}
            except (AssertionError, subprocess.SubprocessError):  # on a busy machine the answer comes with the next request
                continue
            now = tuple(sorted(set(target.get("events") or []) - {"offcpu"})), target.get("interval_asked_ns")
            if not self.seen or self.seen[-1] != now:
                self.seen.append(now)
            time.sleep(0.2)

    def end(self):
        self.over = True
        self.join()
        return self.seen


class SkyWalking(unittest.TestCase):
    maxDiff = None

    def test_tasks_and_registration(self):
        with oap_10_1.Oap(java_home("17")) as old, skywalking_stub.Oap() as oap, \
                tempfile.NamedTemporaryFile("w", suffix=".token") as token:
            token.write("word\n")
            token.flush()
            taken = "-agentpath:%s/tests/libtakes_allocs.so" % BUILD
            with Daemon(SETTINGS % (oap.url, token.name, old.url)) as daemon, Jvm("17", env=ENVIRONMENT) as one, \
                    Jvm("17", env=ENVIRONMENT, options=("-Xmx128m", taken)) as two:
                try:
                    seen = Seen(daemon, one.pid)
                    self.check_tasks(oap, daemon, one, two)
                    self.check_raised(seen.end())
                    self.check_old(old, daemon, one)
                except AssertionError as error:
                    log = "".join(line for line in daemon.read_log().splitlines(True) if "target." not in line)
                    raise AssertionError("%s\n%s\n%s %s\n%s" % (error, daemon.status()["sinks"], oap.wrong, oap.instances, log))

    def check_tasks(self, oap, daemon, one, two):
        created = int(time.time() * 1000)
        oap.most = 100 << 10  # less than a JFR of all samples would have
        oap.tasks += [("both", "shop", SECONDS, "event=cpu,alloc,interval=5ms,alloc=16k", created),
                      ("none", "shop", 10, "event=page-faults", created + 1),
                      ("other", "another", 10, "event=cpu", created + 2)]
        wait_for("two instances", lambda: len(oap.instances) == 2 and all(oap.instances.values()), 120)
        names = {int(instance.split("@")[0]): instance for service, instance in oap.instances if service == "shop"}
        self.assertEqual(set(names), {one.pid, two.pid})
        self.assertEqual(oap.instances["shop", names[one.pid]]["Process No."], str(one.pid))
        self.assertEqual(oap.instances["shop", names[one.pid]]["language"], "java")
        wait_for("uploads", lambda: len(oap.uploads) == 2 and len(oap.failures) == 3, 120)
        self.check_profiles(oap, names, one, two)
        for instance in names.values():
            self.assertRegex(oap.failures["none", instance], "none of the task's events")
        # an event that one JVM cannot provide is reported for that JVM
        self.assertRegex(oap.failures["both", names[two.pid]], "cannot collect alloc in this JVM: alloc: ")
        self.assertEqual(oap.wrong, [])
        self.assertEqual(oap.authentication, {"word"})
        self.assertRegex(daemon.cli("sink", "test", "sw").stdout, "^sw: taken")
        self.assertIsNone(sink_of(daemon)["last_error"])
        self.assertNotIn("word", daemon.read_log())

    def check_profiles(self, oap, names, one, two):
        found = {instance: content for task, instance, content in oap.uploads if task == "both"}
        self.assertEqual(set(found), set(names.values()))
        counts = {}
        for pid, instance in names.items():
            seconds, counts[pid] = summary(found[instance], "17")
            self.assertEqual(summary(found[instance], "25"), (seconds, counts[pid]))
            self.assertEqual(seconds, SECONDS)
            self.assertGreater(sum(counts[pid].get(e, 0) for e in CPU), 5)
            self.assertLessEqual(len(found[instance]), oap.most)
        self.assertGreater(counts[one.pid].get(*ALLOC, 0), 100)
        self.assertEqual(counts[two.pid].get(*ALLOC, 0), 0)
        self.assertEqual({(task, instance) for task, instance, size in oap.oversize}, {("both", names[one.pid])})
        self.counts = counts

    def check_raised(self, seen):
        """Only samples from the time of the task, and none from later."""
        self.assertIn((("alloc", "cpu", "lock"), 5000000), seen)
        self.assertEqual(seen[-1], (("cpu", "lock"), 10000000), seen)

    def check_old(self, old, daemon, jvm):
        wait_for("the sentence", lambda: "has no async-profiler tasks" in (sink_of(daemon, "old")["last_error"] or ""), 200)
        instances = wait_for("the instance", lambda: self.instances(old, "shop", jvm.pid), 40)
        attributes = {a["name"]: a["value"] for a in instances[0]["attributes"]}
        self.assertEqual(attributes.get("Process No."), str(jvm.pid), instances)
        sink = sink_of(daemon, "old")
        self.assertEqual((sink["taken"], sink["dropped"]), (0, {}))
        tested = daemon.cli("sink", "test", "old", check=False)
        self.assertRegex(tested.stdout, "^old: not taken: this OAP is older than 10.2 and has no async-profiler tasks")
        # it is asked once and never again
        self.assertEqual(daemon.read_log().count("has no async-profiler tasks"), 1)
        # the ledger of the other sink: it names what is left out of a JFR that was too large
        sink = sink_of(daemon)
        shown = sum(self.counts[pid].get(event, 0) for pid in self.counts for event in OURS)
        self.assertEqual(sink["delivered"], shown)
        self.assertGreater(sink["dropped"]["thinned"], 0)
        self.assertEqual(sink["taken"], sink["delivered"] + sink["dropped"]["thinned"])

    def instances(self, oap, service, pid):
        """The instances have their properties, by the OAP's own query."""
        answer = oap.query("query { listServices(layer: \"GENERAL\") { id name } }") or {"listServices": []}
        ids = [s["id"] for s in answer["listServices"] if s["name"] == service]
        if not ids:
            return None
        minute = "%Y-%m-%d %H%M"
        span = "{start: \"%s\", end: \"%s\", step: MINUTE}" % (time.strftime(minute, time.localtime(time.time() - 600)),
                                                             time.strftime(minute, time.localtime(time.time() + 60)))
        answer = oap.query("query { listInstances(serviceId: \"%s\", duration: %s) { name attributes { name value } } }"
                           % (ids[0], span))
        return [i for i in (answer or {}).get("listInstances") or []
                if i["attributes"] and i["name"] == "%s-%d" % (service, pid)] or None


if __name__ == "__main__":
    unittest.main(verbosity=2)
