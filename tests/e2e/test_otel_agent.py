"""OpenTelemetry's Java agent on the JDK's HTTP server, which has no tracing of its own: test_otel_agent.py MAJOR. A
request has a trace id, and its path selects the method that handles it: at least 99.9 % of that method's samples
must have the id, and none another one. On 21 and later virtual threads handle the requests. Needs root."""
import collections
import json
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "bench")]
import stacks  # noqa: E402
from kindling import Daemon, Jvm, skip, wait_for  # noqa: E402

MAJOR = "17"
AGENT = "io.opentelemetry.javaagent:opentelemetry-javaagent:2.33.1"
QUIET = ["-Dotel.%s.exporter=none" % signal for signal in ("traces", "metrics", "logs")]
METHODS = 4
RIGHT_MIN = 0.999
ENOUGH = 300


def agent():
    try:
        return stacks.maven(AGENT)
    except (OSError, subprocess.SubprocessError) as why:
        return skip("OpenTelemetry's agent cannot be had: %s" % why)


class OtelAgent(unittest.TestCase):
    def test_samples_of_a_request_have_its_trace(self):
        kind = "virtual" if int(MAJOR) >= 21 else "platform"
        with Daemon("events: { cpu: { max_cpu: 100% } }\n") as daemon, \
                Jvm(MAJOR, "HttpKnown", kind, "3", options=("-Xmx256m", "-javaagent:" + agent(), *QUIET)) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("traces", lambda: json.loads(daemon.cli("traces", str(jvm.pid), "--json").stdout)["n_traces"] == METHODS)
            counts, path = collections.Counter(), os.path.join(daemon.dir, "x.json")

            def judged():
                daemon.cli("record", str(jvm.pid), "-d", "3s", "-i", "1ms", "--trace-ids", "-o", path)
                with open(path) as f:
                    self.judge(json.load(f), counts)
                return counts["right"] + counts["missing"] > ENOUGH
            wait_for("samples", judged)
        print("%s: %s" % (MAJOR, dict(counts)))
        self.assertEqual(counts["wrong"], 0)
        self.assertLessEqual(counts["missing"], max(1, (1 - RIGHT_MIN) * (counts["right"] + counts["missing"])), counts)

    def judge(self, profile, counts):
        for (_, node, samples, _), span in zip(profile["rows"], profile["row_spans"]):
            known = None
            while node and known is None:
                known = re.match(r"HttpKnown\.burn_(\d)", profile["frames"][profile["nodes"][node][1]]["name"])
                node = profile["nodes"][node][0]
            if known:
                trace = profile["spans"][span - 1][0] if span else ""
                right = "%032x" % (int(known.group(1)) + 1)
                counts["right" if trace == right else "wrong" if trace else "missing"] += samples


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
