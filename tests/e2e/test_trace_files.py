"""Trace ids of a real OpenTelemetry SDK in files and uploads: test_trace_files.py MAJOR. In `go tool pprof`, the
official decoder of OTLP, the `jfr` of 17 and 25 and JDK Mission Control's parser the stacks of a span contain that
span's method, and all sums with ids equal those without. Needs root."""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "jvm")]
import jmc  # noqa: E402
import traces  # noqa: E402
from kindling import BUILD, Daemon, java_home, wait_for  # noqa: E402
from servers import OtlpGrpc, Pyroscope, check_otlp  # noqa: E402

MAJOR = "17"
SETTINGS = """
events: { cpu: { max_cpu: 100%% }, lock: { monitors: always } }
trace: { keep: true }
sinks:
  - {name: pyro, type: pyroscope, url: http://127.0.0.1:%d, interval: 10s}
  - {name: otel, type: otlp, url: http://127.0.0.1:%d, protocol: grpc, interval: 10s}
"""


def known_of(frames):
    """The number of the span whose method is on the stack (root first); 0 = none; None = it cannot be decided."""
    return traces.truth(" < ".join(name.split("(")[0].replace("TraceKnown$$", "") for name in reversed(frames)))


def ns_of(duration):
    """Seconds of a duration such as "PT1M2.5S", as `jfr print --json` writes it."""
    h, m, s = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", duration).groups(default="0")
    return round((int(h) * 3600 + int(m) * 60 + float(s)) * 1e9)


def words_of(seen, kind, field):
    """{value: number of events} of a field, by JMC's parser."""
    return {what.split(" ", 1)[1]: n for (of, name, what), n in seen.items()
            if (of, name) == ("VALUE", kind) and what.split(" ", 1)[0] == field}


def counted(times, at):
    """{trace or span id: number of samples}, without those that have no id."""
    found = collections.Counter()
    for pair, n in times.items():
        found[pair[at]] += n
    del found[""]
    return found


class TraceFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = traces.program()
        cls.folder = tempfile.mkdtemp(prefix="kindling-trace-files-")
        os.chmod(cls.folder, 0o755)
        os.mkdir(cls.folder + "/otlp")
        cls.pyro, cls.grpc = Pyroscope(), OtlpGrpc(cls.folder + "/otlp")
        cls.jvm = traces.Known(MAJOR, cls.path, cls.folder, ["-XX:+UseG1GC", "-Xmx256m", *traces.APART], 3, 0, 200)
        cls.daemon = Daemon(SETTINGS % (cls.pyro.port, cls.grpc.port))
        cls.daemon.wait_state(cls.jvm.pid, "streaming")
        wait_for("all traces", lambda: len(cls.traces()) == traces.SPANS)
        cls.daemon.cli("record", str(cls.jvm.pid), "-d", "4s", "-i", "1ms", "--trace-ids", "-e", "cpu,lock", "-o", cls.file("x.pb.gz"))
        cls.daemon.cli("record", str(cls.jvm.pid), "-d", "1s", "-o", cls.file("plain.json"))
        # events whose end falls into it: of threads that are runnable without a CPU, and of a lock
        cls.daemon.cli("record", str(cls.jvm.pid), "-d", "3s", "--trace-ids", "-e", "cpu,offcpu", "-o", cls.file("off.pb.gz"))
        for name, of in (("off.json", ("--type", "offcpu")), ("off.jfr", ())):
            cls.convert("off.pb.gz", name, *of)
        for name, of in (("x.json", ("--type", "cpu")), ("x.collapsed", ("--type", "cpu")), ("x.otlp", ()), ("x.jfr", ())):
            cls.convert("x.pb.gz", name, *of)
        cls.json = cls.read("x.json")
        # the trace with the most samples
        seen = collections.Counter(span for span in cls.json["row_spans"] if span)
        cls.trace, cls.span = cls.json["spans"][seen.most_common(1)[0][0] - 1]

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__(None, None, None)
        cls.daemon.__exit__()
        cls.grpc.__exit__()
        cls.pyro.__exit__()
        shutil.rmtree(cls.path[0])
        shutil.rmtree(cls.folder)

    @classmethod
    def traces(cls):
        return json.loads(cls.daemon.cli("traces", str(cls.jvm.pid), "--json", "-n", "100").stdout)["traces"]

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def read(cls, name):
        with open(cls.file(name)) as f:
            return json.load(f)

    @classmethod
    def convert(cls, a, b, *options):
        subprocess.run([BUILD + "/bin/kindling", "convert", cls.file(a), cls.file(b), *options], check=True, stderr=subprocess.DEVNULL)

    def rows(self, profile):
        """(trace, span, frames from the root, samples, weight) of a json file."""
        frames, nodes = profile["frames"], profile["nodes"]
        for (_, node, samples, weight), span in zip(profile["rows"], profile["row_spans"]):
            stack = []
            while node:
                stack.append(frames[nodes[node][1]]["name"])
                node = nodes[node][0]
            yield (*(profile["spans"][span - 1] if span else ("", "")), stack[::-1], samples, weight)

    def judge(self, stacks, trace, span):
        """Checks the stacks {frames: weight} of one span; returns how many could be decided."""
        judged = 0
        for frames, _ in stacks:
            known = known_of(frames)
            if known is not None:
                self.assertEqual((trace, span), ("%032x" % known, "%016x" % known) if known else ("", ""), frames)
                judged += 1
        return judged

    def test_ids_are_there_only_where_they_were_asked_for(self):
        self.assertNotIn("spans", self.read("plain.json"))
        self.assertGreater(len(self.json["spans"]), traces.SPANS / 2)

    def test_every_row_has_the_ids_of_its_span(self):
        judged = 0
        for trace, span, frames, _, _ in self.rows(self.json):
            if trace:  # jvm.traces counts samples without ids
                judged += self.judge([(frames, 0)], trace, span)
        self.assertGreater(judged, traces.SPANS)

    def test_with_ids_everything_adds_up_to_what_it_is_without(self):
        plain = collections.Counter()
        for _, _, frames, _, weight in self.rows(self.json):
            plain[";".join(frames)] += weight
        with open(self.file("x.collapsed")) as f:
            lines = [line.rsplit(" ", 1) for line in f.read().splitlines()]
        self.assertEqual(len(lines), len({stack for stack, _ in lines}))
        self.assertEqual({stack: int(n) for stack, n in lines}, dict(plain))
        self.assertEqual(sum(plain.values()), self.json["view"]["weight_ns"])
        self.assertEqual(self.json["view"]["samples"], self.json["losses"]["delivered"])

    def test_go_finds_the_samples_of_a_span(self):
        go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
        if not go:
            self.skipTest("there is no Go")
        # pprof accepts a range of numbers only as digits
        text = subprocess.run([go, "tool", "pprof", "-tagfocus", "trace_id=^%s$" % self.trace, "-sample_index=cpu", "-unit=ns", "-traces",
                               self.file("x.pb.gz")], capture_output=True, text=True, check=True).stdout
        total, judged = 0, 0
        for block in re.split(r"-{5,}\+-{5,}\n", text)[1:]:
            labels = dict(re.findall(r"^ *(\w+): *(.*)$", block, re.M))
            frames = [line.split(None, 1) for line in block.splitlines() if line.strip() and not re.match(r"^ *\w+:", line)]
            if not frames:
                continue
            self.assertEqual(labels.get("span_id"), self.span, block)
            total += int(frames[0][0].removesuffix("ns"))
            names = [frames[0][1]] + [" ".join(f) for f in frames[1:]]
            judged += self.judge([(names[::-1], 0)], self.trace, self.span)
        self.assertGreater(judged, 0, text)
        self.assertEqual(total, sum(weight for trace, _, _, _, weight in self.rows(self.json) if trace == self.trace))

    def test_the_official_decoder_follows_the_links(self):
        cpu, = [p for p in check_otlp(self.file("x.otlp")) if p["type"] == "cpu"]
        sums = collections.Counter()
        for trace, span, _, _, weight in self.rows(self.json):
            sums[trace + "/" + span] += weight
        self.assertEqual({link: sum(stacks.values()) for link, stacks in cpu["links"].items()}, dict(sums))
        self.assertGreater(self.judge([(stack.split(";"), 0) for stack in cpu["links"][self.trace + "/" + self.span]], self.trace, self.span), 0)

    def test_jfr_prints_the_ids(self):
        rows = collections.Counter((trace, span) for trace, span, _, _, _ in self.rows(self.json))
        for major in ("17", "25"):
            text = subprocess.run([java_home(major) + "/bin/jfr", "print", "--events", "kindling.CpuTime", self.file("x.jfr")],
                                  capture_output=True, text=True, check=True).stdout
            ids = re.findall(r"traceId = (\S+)\n\s*spanId = (\S+)\n", text)
            self.assertEqual(collections.Counter(tuple("" if i == "N/A" or i == "null" else i.strip('"') for i in pair) for pair in ids), rows)

    def test_times_off_the_cpu_in_jfr_files_have_reasons_and_ids(self):
        """For each row there are as many events as its count; both readers find the same in them as in the json."""
        profile, times, ns = self.read("off.json"), collections.Counter(), 0
        for trace, span, _, n, weight in self.rows(profile):
            times[trace, span] += n
            ns += weight
        self.assertEqual((sum(times.values()), ns), (profile["view"]["samples"], profile["view"]["weight_ns"]))
        self.assertGreater(sum(n for (trace, _), n in times.items() if trace), 0, "no thread was off the CPU in a span")
        for major in ("17", "25"):
            text = subprocess.run([java_home(major) + "/bin/jfr", "print", "--json", "--events", "kindling.OffCpu,kindling.OffCpuTime",
                                   self.file("off.jfr")], capture_output=True, text=True, check=True).stdout
            events = [(e["type"], e["values"]) for e in json.loads(text)["recording"]["events"]]
            each = [v for name, v in events if name == "kindling.OffCpu"]
            self.assertEqual(collections.Counter((v["traceId"] or "", v["spanId"] or "") for v in each), times, major)
            self.assertEqual(sum(v["intervals"] for name, v in events if name == "kindling.OffCpuTime"), sum(times.values()), major)
            self.assertEqual(sum(ns_of(v["offCpuTime"]) for name, v in events if name == "kindling.OffCpuTime"), ns, major)
            self.assertTrue(all(v["reason"] for _, v in events), major)
        seen = jmc.sums(self.file("off.jfr"))
        self.assertEqual((seen["COUNT", "kindling.OffCpu", ""], seen["SUM", "kindling.OffCpuTime", "offCpuTime"]), (sum(times.values()), ns))
        for field, at in (("traceId", 0), ("spanId", 1)):
            self.assertEqual(words_of(seen, "kindling.OffCpu", field), counted(times, at))
        self.assertEqual(words_of(seen, "kindling.OffCpu", "reason"), collections.Counter(v["reason"] for v in each))
        with_ids = collections.Counter((trace, span) for trace, span, _, _, _ in self.rows(self.json))
        self.assertEqual(words_of(jmc.sums(self.file("x.jfr")), "kindling.CpuTime", "traceId"), counted(with_ids, 0))

    def test_uploads_have_the_ids(self):
        def uploaded():
            return {span for labels, profile in self.pyro.series if labels["__name__"] == "process_cpu" for span in profile.values["span_id"]}

        def sent():
            return len(uploaded()) > traces.SPANS / 2 and glob.glob(self.folder + "/otlp/*.otlp")
        wait_for("uploads", sent, 120)
        self.assertEqual({name for _, profile in self.pyro.series for name in profile.labels}, {"span_id"})
        self.assertLessEqual(uploaded(), {"%016x" % (i + 1) for i in range(traces.SPANS)})
        judged = 0
        for path in sent():
            for p in check_otlp(path):
                for link, found in p["links"].items():
                    trace, _, span = link.partition("/")
                    if trace:
                        judged += self.judge([(stack.split(";"), 0) for stack in found], trace, span)
        self.assertGreater(judged, traces.SPANS / 2)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
