"""Traces of a real OpenTelemetry SDK through a whole kindlingd: test_traces.py MAJOR. The output of tail, traces and
report --trace is compared with the stacks, which contain the span's method (tests/jvm/traces.py). Needs root."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "jvm")]
import traces  # noqa: E402
from kindling import Daemon, wait_for  # noqa: E402

MAJOR = "17"
LINES = 300
NUMBER = 7  # a span that belongs to work_6


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = traces.program()
        cls.folder = tempfile.mkdtemp(prefix="kindling-traces-")
        cls.jvm = traces.Known(MAJOR, cls.path, cls.folder, ["-XX:+UseG1GC", "-Xmx256m", *traces.APART], 3, 0, 200)
        cls.daemon = Daemon("events: { cpu: {}, lock: { monitors: always } }\n")
        cls.daemon.wait_state(cls.jvm.pid, "streaming")
        wait_for("all traces", lambda: len(cls.traces()["traces"]) == traces.SPANS)

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__(None, None, None)
        cls.daemon.__exit__()
        shutil.rmtree(cls.path[0])
        shutil.rmtree(cls.folder)

    @classmethod
    def traces(cls, *options):
        return json.loads(cls.daemon.cli("traces", str(cls.jvm.pid), "--json", "-n", "100", *options).stdout)

    def tail(self):
        with subprocess.Popen([os.path.join(self.daemon.build, "bin", "kindling"), "--socket", self.daemon.socket, "tail", "--json",
                               "--event", "cpu,lock", str(self.jvm.pid)], stdout=subprocess.PIPE, text=True) as tail:
            lines = [json.loads(tail.stdout.readline()) for _ in range(LINES)]
            tail.terminate()
        return lines

    def test_every_event_has_its_trace_or_null(self):
        lines, right = self.tail(), 0
        for line in lines:
            self.assertIn("trace", line)
            known = traces.truth(" < ".join(name.replace("TraceKnown$$", "") for name in reversed(line["stack"])))
            if known is None or line["trace"] is None:
                continue  # jvm.traces counts samples without ids
            self.assertEqual(line["trace"], {"trace_id": "%032x" % known, "span_id": "%016x" % known}, line["stack"])
            right += 1
        self.assertGreater(right, LINES // 10)

    def test_traces_add_up_to_their_events(self):
        answer = self.traces()
        self.assertEqual((answer["n_traces"], answer["no_room"]), (traces.SPANS, 0))
        self.assertEqual(sorted(t["trace_id"] for t in answer["traces"]), ["%032x" % (i + 1) for i in range(traces.SPANS)])
        for t in answer["traces"]:
            self.assertEqual(t["duration_ns"], t["end_ns"] - t["begin_ns"])
            self.assertEqual(sum(lock["ns"] for lock in t["locks"]), t["lock_ns"])
            self.assertEqual((t["spans"], {thread["thread"] for thread in t["threads"]} - {"known-0", "known-1", "known-2"}), (1, set()))
            self.assertGreater(t["events"], 0)
        durations = [t["duration_ns"] for t in answer["traces"]]
        self.assertEqual(durations, sorted(durations, reverse=True))
        self.assertIn("%032x" % NUMBER, self.daemon.cli("traces", str(self.jvm.pid)).stdout)

    def test_a_report_of_one_trace_has_nothing_else(self):
        # on a busy machine a span may have waited all the time and have no sample yet
        text = wait_for("a sample in the trace", lambda: self.daemon.cli(
            "report", str(self.jvm.pid), "--trace", "%032x" % NUMBER, "-o", "-", "--format", "collapsed", check=False).stdout)
        judged = 0
        for line in text.splitlines():
            frames = [frame.split("(")[0] for frame in line.rpartition(" ")[0].split(";")]
            known = traces.truth(" < ".join(name.replace("TraceKnown$$", "") for name in reversed(frames)))
            self.assertIn(known, (NUMBER, None), line)
            judged += known is not None
        self.assertGreater(judged, 0, text)

    def test_a_timeline_of_one_trace_has_all_that_its_threads_did(self):
        path = os.path.join(self.folder, "t.json")

        def own_and_others():
            self.daemon.cli("timeline", str(self.jvm.pid), "--trace", "%032x" % NUMBER, "--last", "60s", "-o", path)
            with open(path) as f:
                answer = json.load(f)
            own, around, others = 0, set(), 0
            events = [event for kind in ("cpu", "lock") for event in answer[kind] if not event[6:] or not event[6] & 4]  # none in progress
            for event in events:
                if event[4] and answer["traces"][event[4] - 1][0] == "%032x" % NUMBER:
                    own += 1
                    around |= {event[0]} | ({event[8]} if len(event) > 5 else set())
            for event in events:
                self.assertIn(event[0], around)
                others += not event[4] or answer["traces"][event[4] - 1][0] != "%032x" % NUMBER
            return own and others
        wait_for("events in the trace and around it", own_and_others)

    def test_an_unknown_trace_is_an_error(self):
        done = self.daemon.cli("report", str(self.jvm.pid), "--trace", "nobody", "-o", "-", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('no event of this time belongs to the trace "nobody"', done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
