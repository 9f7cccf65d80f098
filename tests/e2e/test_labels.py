"""Labels of a profile: from the options and environment of real JVMs, from the settings, and in the history.
test_labels.py MAJOR. Needs root."""
import glob
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import ONLY_MINE, Daemon, Jvm, java_home, wait_for  # noqa: E402

MAJOR = "17"
ATTRIBUTES = "service.name=by%20attribute,service.version=1.2,service.namespace=eu,deployment.environment.name=prod"


def skywalking_agent(directory):
    """A jar with that name that does nothing."""
    with open(directory + "/Nothing.java", "w") as f:
        f.write("public class Nothing { public static void premain(String words) {} }\n")
    subprocess.run([java_home(MAJOR) + "/bin/javac", "-d", directory, directory + "/Nothing.java"], check=True)
    path = directory + "/skywalking-agent.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: Nothing\n")
        jar.write(directory + "/Nothing.class", "Nothing.class")
    return path


class Metadata(http.server.BaseHTTPRequestHandler):
    """EC2's service, version 2."""

    def answer(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.answer("token-1")

    def do_GET(self):
        if self.headers["X-aws-ec2-metadata-token"] != "token-1":
            return self.send_error(401)
        self.answer(json.dumps({"instanceId": "i-1", "region": "eu-west-1", "availabilityZone": "eu-west-1b"}))

    def log_message(self, *unused):
        pass


class Labels(unittest.TestCase):
    def start(self, main="Idle", options=(), **env):
        jvm = Jvm(MAJOR, main, options=("-Xmx64m", *options), env=dict(os.environ, **env))
        self.addCleanup(jvm.__exit__)
        return jvm

    def labels(self, daemon, jvm):
        return daemon.wait_state(jvm.pid, "streaming")["labels"]

    def reported(self, daemon, word, last="10m"):
        """Labels of the processes in the history."""
        report = json.loads(daemon.cli("report", word, "--last", last, "-f", "json", "-o", "-").stdout)
        return [p["labels"] for p in report["processes"]]

    def test_each_source_of_the_service(self):
        with tempfile.TemporaryDirectory() as directory:
            agent = "-javaagent:%s=agent.service_name=" % skywalking_agent(directory)
            cases = [
                ("by option", dict(options=["-Dotel.service.name=by option"], OTEL_SERVICE_NAME="x")),
                ("by variable", dict(OTEL_SERVICE_NAME="by variable", OTEL_RESOURCE_ATTRIBUTES=ATTRIBUTES)),
                ("by attribute", dict(OTEL_RESOURCE_ATTRIBUTES=ATTRIBUTES, SW_AGENT_NAME="x")),
                ("by-tool-options", dict(JDK_JAVA_OPTIONS="-Dotel.service.name=by-tool-options")),
                ("by-agent", dict(options=[agent + "by-agent", "-Dskywalking.agent.service_name=x"])),
                ("by-property", dict(options=["-Dskywalking.agent.service_name=by-property"], SW_AGENT_NAME="x")),
                ("by-sw", dict(SW_AGENT_NAME="by-sw")),
                ("by-tracer", dict(DD_SERVICE="by-tracer", SPRING_APPLICATION_NAME="x")),
                ("by-framework", dict(options=["-Dquarkus.application.name=by-framework"])),
                ("Idle", {}),
                ("Idle", dict(OTEL_SERVICE_NAME="\x1b[2Jevil")),
                ("x" * 127, dict(OTEL_SERVICE_NAME="x" * 100000)),
            ]
            jvms = [self.start(**more) for _, more in cases]
            with Daemon() as daemon:
                for (service, _), jvm in zip(cases, jvms):
                    self.assertEqual(self.labels(daemon, jvm)["service"], service)
                host = os.uname().nodename
                self.assertEqual(self.labels(daemon, jvms[1]), {
                    "service": "by variable", "version": "1.2", "namespace": "eu", "environment": "prod",
                    "host": host, "node": os.environ.get("NODE_NAME", host)})
                # TARGET may be a service
                daemon.cli("detach", "by-sw")
                daemon.wait_state(jvms[6].pid, "detached")
                self.assertEqual(daemon.target(jvms[5].pid)["state"], "streaming")

    def test_settings_change_labels_at_once_and_the_history_has_them(self):
        jvm = self.start("KnownShares", OTEL_SERVICE_NAME="shop-7-blue")
        with Daemon("labels: { set: { team: a } }\n" + ONLY_MINE) as daemon:
            self.assertEqual(self.labels(daemon, jvm)["team"], "a")
            wait_for("samples", lambda: [x["service"] for x in self.reported(daemon, "shop-7-blue")] == ["shop-7-blue"])
            recording = daemon.dir + "/shop.jfr"
            daemon.cli("report", "shop-7-blue", "-o", recording)
            settings = subprocess.run([java_home(MAJOR) + "/bin/jfr", "print", "--events", "jdk.ActiveSetting", recording],
                                      capture_output=True, text=True, check=True).stdout
            self.assertRegex(settings, r'name = "label.service"\s+value = "shop-7-blue"')
            daemon.configure("""labels:
  set: { team: b, cluster: c1 }
  rules:
    - replace: { label: service, regex: "-[0-9]+-(blue|green)$", with: "" }
    - { drop: host, where: { service: shop } }
    - { set: { team: nobody }, where: { name: "Idle*" } }
""" + ONLY_MINE)
            out = daemon.cli("config", "reload").stdout
            self.assertIn("labels.set: 1 of them -> 2 of them (in force now)\n", out)
            self.assertIn("labels.rules: 0 of them -> 3 of them (in force now)\n", out)
            wait_for("new labels", lambda: self.labels(daemon, jvm)["service"] == "shop")
            found = self.labels(daemon, jvm)
            self.assertEqual((found["team"], found["cluster"], found.get("host")), ("b", "c1", None))
            wait_for("them in the history", lambda: "b" in [x["team"] for x in self.reported(daemon, "shop", "2s")])
            daemon.stop()
            daemon.start()
            self.assertEqual(self.labels(daemon, jvm)["cluster"], "c1")
            # a process whose labels changed is listed with those of one of its windows; its service finds the history
            wait_for("what was before", lambda: [x["service"] for x in self.reported(daemon, "shop")] in (["shop"], ["shop-7-blue"]))

    def test_two_versions_and_two_pods_are_compared(self):
        old, new = (self.start("KnownShares", OTEL_SERVICE_NAME="shop", OTEL_RESOURCE_ATTRIBUTES="service.version=" + version)
                    for version in ("1.4", "1.5"))
        with Daemon(ONLY_MINE) as daemon:
            for jvm in (old, new):
                self.assertEqual(self.labels(daemon, jvm)["service"], "shop")
            begin = int(time.time()) + 1
            span = ("--from", "@%d" % begin, "--to", "@%d" % (begin + 5))
            time.sleep(begin + 5 - time.time())
            for jvm in (old, new):
                daemon.wait_arrived(jvm.pid)

            def report(*words):
                return json.loads(daemon.cli("report", *words, *span, "-f", "json", "-o", "-").stdout)
            before, now = report("--version", "1.4"), report("--service", "shop", "--version", "1.5")
            self.assertEqual([[p["pid"] for p in x["processes"]] for x in (before, now)], [[old.pid], [new.pid]])
            self.assertGreater(now["view"]["samples"], 50)
            for words in (("--diff", "version=1.4..version=1.5"), ("--service", "shop", "--diff", "version=1.4..version=1.5"),
                          ("--service", "shop", "--version", "1.5", "--baseline", "version=1.4"), ("--all", "--diff", "version=1.4..version=1.5")):
                changed = report(*words)
                self.assertEqual((changed["view"]["weight_ns"], changed["diff"]["baseline"]["weight_ns"]),
                                 (now["view"]["weight_ns"], before["view"]["weight_ns"]), words)
            self.refuses(daemon, span)

    def refuses(self, daemon, span):
        for words, code, why in (
                (("--diff", "version=1.4..version=9"), 1, 'no JVM of that time has the version "9"'),
                (("--all", "--diff", "color=red..color=blue"), 2, "KEY=VALUE is one of service= namespace= version= image= pod= container="),
                (("--all", "--diff", "version=1..14:00/14:10"), 2, "two ranges, 14:00/14:10..15:00/15:10, or two values"),
                (("--all", "--baseline", "red"), 2, "--baseline takes a range"),
                (("--version", "1.4", "--all"), 2, "name a TARGET")):
            refused = daemon.cli("report", *words, *span, "-f", "json", "-o", "-", check=False)
            self.assertEqual((refused.returncode, why in refused.stderr), (code, True), refused.stderr)

    def test_uploads_have_the_labels_of_the_cloud_and_no_names_of_threads(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        jvm = self.start("KnownShares", OTEL_SERVICE_NAME="shop")
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.dict(
                os.environ, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:%d/" % server.server_port}):
            os.chmod(directory, 0o777)
            with Daemon("""labels: { cloud: auto, threads: false, set: { zone: mine } }
sinks:
  - {name: dir, type: files, directory: %s, format: json, interval: 10s}
""" % directory + ONLY_MINE) as daemon:
                daemon.wait_state(jvm.pid, "streaming")
                path = wait_for("a file", lambda: glob.glob(directory + "/*cpu*.json"))[0]
                with open(path) as f:
                    upload = json.load(f)
                labels = upload["processes"][0]["labels"]
                self.assertEqual({k: labels.get(k) for k in ("service", "cloud", "region", "instance", "zone")}, {
                    "service": "shop", "cloud": "aws", "region": "eu-west-1", "instance": "i-1", "zone": "mine"})
                self.assertEqual({t["name"] for t in upload["threads"]}, {""})
                self.assertNotIn("region", self.labels(daemon, jvm))  # only uploads have them


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
