"""/metrics for Prometheus, and its use in deploy/monitoring: promtool and a parser accept both formats, every metric
that an alert or a panel of the dashboard uses exists, and alerts fire when they should. Needs root."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, HERE, Daemon, Jvm, wait_for  # noqa: E402

MONITORING = os.path.join(HERE, "..", "..", "deploy", "monitoring")
RULES = os.path.join(MONITORING, "kindling.rules.yaml")
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# metrics of node_exporter and of Prometheus itself
OTHERS = {"up", "node_textfile_mtime_seconds", "kindling"}


def promtool(*words, text=None):
    return subprocess.run(["promtool", *words], input=text, capture_output=True, text=True)


def families(text):
    """{family: [type, unit, {names of its samples}]}, as OpenMetrics defines them; also checks their order."""
    found, last = {}, None
    for line in text.splitlines():
        word = line.split(" ")
        if line == "# EOF":
            continue
        if line.startswith("#"):
            last = word[2]
            family = found.setdefault(last, ["", "", set()])
            if word[1] != "HELP":
                family[0 if word[1] == "TYPE" else 1] = word[3]
        else:
            name = re.match(r"\w+", line).group()
            assert name.removesuffix({"counter": "_total", "info": "_info"}.get(found[last][0], "")) == last, line
            float(word[-1])
            found[last][2].add(name)
    return found


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = tempfile.mkdtemp(prefix="kindling-test-")
        os.chmod(cls.out, 0o777)
        cls.daemon = Daemon("sinks: [{name: there, type: files, directory: %s, format: txt}]\n" % cls.out)
        cls.jvm = Jvm("17")
        cls.daemon.wait_state(cls.jvm.pid, "streaming")

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__()
        cls.daemon.__exit__()
        subprocess.run(["rm", "-r", cls.out], check=True)

    def get(self, accept=None):
        words = ["curl", "-si", "--unix-socket", self.daemon.socket, "http://x/metrics"] + (["-H", "Accept: " + accept] if accept else [])
        head, body = subprocess.run(words, capture_output=True, text=True, check=True).stdout.replace("\r", "").split("\n\n", 1)
        return re.search(r"^Content-Type: (.*)$", head, re.M | re.I).group(1), body

    def test_promtool_has_nothing_to_say_of_the_text(self):
        kind, text = self.get()
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        done = promtool("check", "metrics", text=text)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertIn("# TYPE kindling_samples_taken_total counter\n", text)
        self.assertRegex(text, r"\nkindling_processes_examined_total [1-9]")

    def test_openmetrics(self):
        kind, text = self.get("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
        self.assertEqual(kind, OPEN)
        self.assertTrue(text.endswith("\n# EOF\n"))
        self.assertEqual(text.count("# EOF"), 1)
        found = families(text)
        self.assertGreater(len(found), 30)
        for family, (kind, unit, _) in found.items():
            self.assertIn(kind, ("counter", "gauge", "info"), family)
            self.assertTrue(family.endswith("_" + unit) if unit else not re.search("_(seconds|bytes)$", family), family)
            self.assertFalse(family.endswith("_total"))
        self.assertEqual(found["kindling_agent_cpu_seconds"][1], "seconds")
        plain = {line.split(" ")[0] for line in self.get()[1].splitlines() if line[0] != "#"}
        self.assertEqual(plain, {line.split(" ")[0] for line in text.splitlines() if line[0] != "#"})

    def test_alerts_and_dashboard_ask_for_what_is_there(self):
        there = {name for family in families(self.get(OPEN)[1]).values() for name in family[2]}
        # a cause has no series until something was lost by it
        there |= {"kindling_sink_dropped_total"}
        with open(RULES) as f:
            exprs = re.findall(r"expr: (?:\|\n((?:          .*\n)+)|(.*)\n)", f.read())
        with open(os.path.join(MONITORING, "grafana-dashboard.json")) as f:
            panels = json.load(f)["panels"]
        for text in ["".join(e) for e in exprs] + [t["expr"] for p in panels for t in p["targets"]]:
            names = set(re.findall(r"\b(?:kindling\w*|up|node_\w+)\b", re.sub(r'"[^"]*"', "", text)))
            self.assertTrue(names, text)
            self.assertLessEqual(names - OTHERS, there, text)
        self.assertEqual(len({p["id"] for p in panels}), len(panels))
        rules = [{"record": "x:%d" % n, "expr": t["expr"]} for n, t in enumerate(t for p in panels for t in p["targets"])]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, f)  # which is YAML, too
            f.flush()
            done = promtool("check", "rules", f.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_alerts_come_when_they_should(self):
        done = promtool("check", "rules", RULES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            with open(os.path.join(HERE, "..", "e2e", "kindling.rules.test.yaml")) as cases:
                f.write(cases.read().replace("[RULES]", "[%s]" % os.path.abspath(RULES)))
            f.flush()
            done = promtool("test", "rules", f.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_is_explained(self):
        with open(RULES) as f:
            alerts = re.findall(r"alert: (\w+)", f.read())
        with open(os.path.join(HERE, "..", "..", "docs", "operations.md")) as f:
            page = f.read()
        self.assertEqual([a for a in alerts if "| %s |" % a not in page], [])

    def test_as_a_file_for_node_exporter(self):
        path = self.daemon.dir + "/kindling.prom"
        self.daemon.cli("metrics", "-o", path)
        with open(path) as f:
            self.assertEqual(promtool("check", "metrics", text=f.read()).returncode, 0)
        self.assertTrue(self.daemon.cli("metrics", "--openmetrics").stdout.endswith("# EOF\n"))

    def test_over_tcp_there_are_metrics_and_nothing_else(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        url = "http://127.0.0.1:%d" % port
        done = self.daemon.cli("metrics", "--listen", "nowhere", check=False)
        self.assertEqual((done.returncode, "HOST:PORT" in done.stderr), (2, True))
        with subprocess.Popen([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "metrics", "--listen", "127.0.0.1:%d" % port]) as server:
            def answer(path, method="GET", **headers):
                try:
                    with urllib.request.urlopen(urllib.request.Request(url + path, method=method, headers=headers), timeout=60) as r:
                        return r.status, r.headers["Content-Type"], r.read().decode()
                except urllib.error.HTTPError as e:
                    return e.code, "", ""
                except urllib.error.URLError:
                    return None
            wait_for("the server", lambda: answer("/healthz") == (200, "text/plain; version=0.0.4; charset=utf-8", "ok\n"))
            self.assertIn("kindling_targets{", answer("/metrics")[2])
            self.assertEqual(answer("/metrics", Accept=OPEN)[1], OPEN)
            for path in ("/v1/status", "/v1/profile", "/", "//metrics", "/metrics/../v1/status"):
                self.assertEqual(answer(path)[0], 404, path)
            self.assertEqual(answer("/metrics", "POST")[0], 405)
            self.assertEqual(answer("/v1/settings/reload", "POST")[0], 405)
            server.terminate()
            self.assertEqual(server.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
