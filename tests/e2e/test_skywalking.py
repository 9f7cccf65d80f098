"""The SkyWalking sink: against an OAP 10.1, and against a strict stub of the task service. Needs root."""
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import ONLY_MINE, Daemon, Jvm, java_home, wait_for  # noqa: E402
import oap as oap_10_1  # noqa: E402
import skywalking_stub  # noqa: E402

MAJOR = "17"


def sink_of(daemon):
    return daemon.status()["sinks"][0]


def events_in(jfr, *names):
    """How many events of @names a JFR has, as JDK 17's own reader counts them."""
    with tempfile.NamedTemporaryFile(suffix=".jfr") as f:
        f.write(jfr)
        f.flush()
        out = subprocess.run([java_home("17") + "/bin/jfr", "summary", f.name], check=True, capture_output=True,
                             text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sum(int(row[1]) for row in rows if len(row) == 3 and row[0] in names)


def service_environment(name):
    return dict(os.environ, SW_AGENT_NAME=name)


class Tasks(unittest.TestCase):
    maxDiff = None

    def test_tasks_of_several_instances(self):
        with skywalking_stub.Oap() as oap, tempfile.NamedTemporaryFile("w", suffix=".token") as token:
            token.write("word\n")
            token.flush()
            settings = "sinks:\n  - {name: sw, type: skywalking, url: %s, bearer_file: %s}\n" % (oap.url, token.name)
            with Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR, env=service_environment("shop")) as one, \
                    Jvm(MAJOR, env=service_environment("shop")) as two:
                try:
                    self.check(oap, daemon, one, two)
                except AssertionError as error:
                    log = "".join(line for line in daemon.read_log().splitlines(True) if "target." not in line)
                    raise AssertionError("%s\n%s\n%s\n%s" % (error, sink_of(daemon), oap.wrong, log))

    def check(self, oap, daemon, one, two):
        created = int(time.time() * 1000)
        # OVERSIZE once: that JVM's comes in two pieces
        oap.oversize["both"] = 1
        oap.tasks += [("both", "shop", 20, "event=cpu,interval=10ms", created),
                      ("none", "shop", 10, "event=page-faults", created + 1),
                      ("other", "another", 10, "event=cpu", created + 2)]
        wait_for("two instances", lambda: len(oap.instances) == 2 and all(oap.instances.values()), 60)
        names = {int(instance.split("@")[0]): instance for service, instance in oap.instances if service == "shop"}
        self.assertEqual(set(names), {one.pid, two.pid})
        self.assertEqual(oap.instances["shop", names[one.pid]]["Process No."], str(one.pid))
        self.assertEqual(oap.instances["shop", names[one.pid]]["language"], "java")
        wait_for("uploads", lambda: len(oap.uploads) == 3, 90)
        self.assertEqual({(task, instance) for task, instance, content in oap.uploads},
                         {("both", instance) for instance in names.values()})
        total = sum(events_in(content, "jdk.ExecutionSample", "jdk.NativeMethodSample")
                    for task, instance, content in oap.uploads)
        wait_for("the ledger", lambda: sink_of(daemon)["delivered"] >= total, 10)
        sink = sink_of(daemon)
        self.assertEqual((sink["taken"], sink["delivered"], sink["dropped"]), (total, total, {}))
        self.assertGreater(total, 200)
        for instance in names.values():
            self.assertRegex(oap.failures["none", instance], "none of the task's events")
        self.assertEqual(oap.wrong, [])
        self.assertEqual(oap.authentication, {"word"})
        self.assertRegex(daemon.cli("sink", "test", "sw").stdout, "^sw: taken")
        self.assertIsNone(sink_of(daemon)["last_error"])
        self.assertNotIn("word", daemon.read_log())


class Registration(unittest.TestCase):
    def test_an_oap_without_tasks_knows_the_jvm(self):
        with oap_10_1.Oap(java_home("17")) as oap:
            settings = "sinks:\n  - {name: sw, type: skywalking, url: %s, instance: \"{service}-{pid}\"}\n" % oap.url
            with Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR, env=service_environment("shop")) as jvm:
                wait_for("the sentence", lambda: "has no async-profiler tasks" in (sink_of(daemon)["last_error"] or ""), 90)
                instances = wait_for("the instance", lambda: self.instances(oap, "shop"), 40)
                self.assertEqual([i["name"] for i in instances], ["shop-%d" % jvm.pid])
                attributes = {a["name"]: a["value"] for a in instances[0]["attributes"]}
                self.assertEqual(attributes.get("Process No."), str(jvm.pid), instances)
                sink = sink_of(daemon)
                self.assertEqual((sink["taken"], sink["dropped"]), (0, {}))
                tested = daemon.cli("sink", "test", "sw", check=False)
                self.assertRegex(tested.stdout, "^sw: not taken: this OAP has no async-profiler tasks")
                # asked once and not again
                self.assertEqual(daemon.read_log().count("has no async-profiler tasks"), 1)

    def instances(self, oap, service):
        """With their properties, as the OAP's own query says."""
        answer = oap.query("query { listServices(layer: \"GENERAL\") { id name } }") or {"listServices": []}
        ids = [s["id"] for s in answer["listServices"] if s["name"] == service]
        if not ids:
            return None
        minute = "%Y-%m-%d %H%M"
        span = "{start: \"%s\", end: \"%s\", step: MINUTE}" % (time.strftime(minute, time.localtime(time.time() - 600)),
                                                             time.strftime(minute, time.localtime(time.time() + 60)))
        answer = oap.query("query { listInstances(serviceId: \"%s\", duration: %s) { name attributes { name value } } }"
                           % (ids[0], span))
        return [i for i in (answer or {}).get("listInstances") or [] if i["attributes"]] or None


if __name__ == "__main__":
    unittest.main(verbosity=2)
