"""The accounts of each view: test_views.py [MAJOR]. Needs root. Whatever a file covers (memory, history, a recording)
and whatever was filtered out, the sum in its header equals that of its body, to the sample and to the ns, in every
format."""
import gzip
import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import jmc  # noqa: E402
from kindling import Daemon, Jvm, accounts_balance, java_home, wait_for  # noqa: E402

MAJOR = "17"
WINDOW_NS = 10 * 10**9
SAYS = re.compile(r"([0-9.]+) s of (?:CPU|waiting), (\d+) (?:samples?|waits?)(?: of [0-9.]+ ms and more)?"
                  r"(?:, mean (?:interval|wait) ([0-9.e+]+) ms)?(?:, coverage ([0-9.]+) % of the ([0-9.]+) s used)?")
ACCOUNTS = re.compile(r"(\d+) (?:samples |waits )?taken = (\d+) delivered \+ (\d+) dropped \(([0-9.]+) s dropped\)")


def ask(daemon, path, method="GET"):
    return daemon.ask(path, method)


def varint(data, at):
    """The number at @at, and the position behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def packed(data):
    at, result = 0, []
    while at < len(data):
        value, at = varint(data, at)
        result.append(value)
    return result


def fields(data):
    """[(field number, value)] of a protobuf message: ints, and bytes for fields with a length."""
    at, result = 0, []
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        result.append((key >> 3, value))
    return result


class Pprof:
    def __init__(self, data):
        self.fields = fields(gzip.decompress(data))
        self.strings = [v.decode() for n, v in self.fields if n == 6]
        rows = [packed(v) for n, sample in self.fields if n == 2 for k, v in fields(sample) if k == 2]
        self.sums = tuple(sum(r[i] for r in rows) for i in (0, 1))
        self.comments = [self.strings[v] for n, data in self.fields if n == 13 for v in packed(data)]

    def string(self, number):
        """The text of a profile's string field."""
        return next((self.strings[v] for n, v in self.fields if n == number), None)


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("events: { cpu: { max_cpu: 100% }, lock: {} }\n")
        cls.jvm = Jvm(MAJOR)
        cls.daemon.wait_state(cls.jvm.pid, "streaming")

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__()
        cls.daemon.__exit__()

    def seconds_of(self, total):
        """As texts show ns."""
        return "%.3f" % (total / 1e9)

    def text_agrees(self, text, json_profile, what):
        """@text: a header, as words."""
        view, losses = json_profile["view"], json_profile["losses"]
        says, accounts = SAYS.search(text), ACCOUNTS.search(text)
        self.assertTrue(says and accounts, (what, text))
        self.assertEqual((says.group(1), int(says.group(2))), (self.seconds_of(view["weight_ns"]), view["samples"]), what)
        self.assertEqual(tuple(int(n) for n in accounts.groups()[:3]), (losses["taken"], losses["delivered"], losses["dropped"]), what)
        if view["samples"]:
            self.assertEqual(float(says.group(3)), float("%.3g" % (view["weight_ns"] / view["samples"] / 1e6)), what)
        if "coverage" in view:
            self.assertEqual(says.group(5), self.seconds_of(view["process_cpu_ns"]), what)
            self.assertEqual(says.group(4), "%.1f" % (100 * losses["delivered_ns"] / view["process_cpu_ns"]), what)

    def left_out(self, profile):
        return sum(int(n) for n in re.findall(r"^(\d+) (?:samples?|waits?) of", profile["absent"], re.M))

    def check(self, path, what):
        """Checks one view in all formats; @path selects what it covers. Returns the json."""
        def fetch(form):
            return ask(self.daemon, path + "&format=" + form)
        p = json.loads(fetch("json"))
        body = tuple(sum(r[i] for r in p["rows"]) for i in (2, 3))
        view, losses = p["view"], p["losses"]
        self.assertEqual((view["samples"], view["weight_ns"]), body, what)
        self.assertEqual(losses["taken"], losses["delivered"] + losses["dropped"], what)
        self.assertEqual(losses["taken_ns"], losses["delivered_ns"] + losses["dropped_ns"], what)
        self.assertEqual(losses["delivered"], body[0] + self.left_out(p), (what, p["absent"]))
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in fetch("collapsed").decode().splitlines()), body[1], what)
        self.text_agrees(fetch("txt").decode(), p, what + " txt")
        page = json.loads(re.search(r'>(\{"title".*\})\s*</script>', fetch("html").decode()).group(1))
        self.assertEqual((page["view"], page["losses"], page["rows"]), (view, losses, p["rows"]), what + " html")
        pprof = Pprof(fetch("pb.gz"))
        self.assertEqual(pprof.sums, body, what + " pprof")
        self.text_agrees(pprof.comments[0], p, what + " pprof")
        if "type=lock" not in path:
            self.jfr_agrees(fetch("jfr"), p, what)
        return p

    def jfr_agrees(self, data, p, what):
        path = os.path.join(self.daemon.dir, "x.jfr")
        with open(path, "wb") as f:
            f.write(data)
        out = subprocess.run([java_home(MAJOR) + "/bin/jfr", "print", "--json", "--events",
                              "jdk.ExecutionSample,kindling.CpuTime,kindling.Accounts", path], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        events = json.loads(out.stdout)["recording"]["events"]
        rows = [e["values"] for e in events if e["type"] == "kindling.CpuTime"]
        accounts = next(e["values"] for e in events if e["type"] == "kindling.Accounts")
        view, losses = p["view"], p["losses"]

        def ns(duration):
            return round(float(re.fullmatch(r"PT(.*)S", duration).group(1)) * 1e9) if "M" not in duration else None
        self.assertEqual(sum(r["samples"] for r in rows), view["samples"], what)
        self.assertEqual(sum(e["type"] == "jdk.ExecutionSample" for e in events), view["samples"], what)
        self.assertEqual(sum(ns(r["cpuTime"]) for r in rows), view["weight_ns"], what)
        self.assertEqual((accounts["samples"], ns(accounts["cpuTime"])), (view["samples"], view["weight_ns"]), what)
        self.assertEqual([accounts[k] for k in ("taken", "delivered", "dropped")], [losses[k] for k in ("taken", "delivered", "dropped")])
        self.assertRegex(accounts["summary"], r"\b%d samples?\b" % view["samples"])

    def mission_control_agrees(self, p):
        """Checks conditions on the file that was read last."""
        got, view = jmc.sums(os.path.join(self.daemon.dir, "x.jfr")), p["view"]
        self.assertEqual(got["COUNT", "jdk.ExecutionSample", ""], view["samples"])
        self.assertEqual((got["SUM", "kindling.CpuTime", "samples"], got["SUM", "kindling.CpuTime", "cpuTime"]),
                         (view["samples"], view["weight_ns"]))
        # the samples of all stacks are whole numbers in proportion to the weights
        share = sum(r[3] for r in p["rows"] if "KnownShares.spin" in self.names(p, r[1])) / view["weight_ns"]
        self.assertAlmostEqual(got["METHOD", "jdk.ExecutionSample", "KnownShares.spin"] / view["samples"], share, delta=0.02)

    def names(self, p, node):
        while node:
            node, frame = p["nodes"][node]
            yield p["frames"][frame]["name"]

    def check_filters(self, path, what):
        """The view @path unfiltered and filtered; the parts must add up to the whole."""
        whole = self.check(path, what)
        self.assertGreater(whole["view"]["samples"], 10)
        parts = [self.check(path + "&thread=" + word, what + " of " + word) for word in ("group-full", "nobody")]
        for part in parts:
            self.assertEqual(part["losses"], whole["losses"])
            self.assertEqual(part["view"].get("process_cpu_ns"), whole["view"].get("process_cpu_ns"))
        self.assertTrue(0 < parts[0]["view"]["samples"] < whole["view"]["samples"])
        self.assertEqual(parts[1]["view"]["samples"], 0)
        self.check(path + "&type=lock", what + " lock")
        self.check(path + "&type=lock&idle=1", what + " lock, idle too")
        return whole

    def test_history_in_memory_and_on_disk(self):
        # the next complete window, once it is closed and nothing is added to it any more
        begin = (time.time_ns() // WINDOW_NS + 1) * WINDOW_NS
        end = begin + WINDOW_NS
        self.daemon.wait_window(end / 1e9)
        path = "/v1/profile?target=%d&from=%d&to=%d" % (self.jvm.pid, begin, end)
        live = self.check_filters(path, "memory")
        self.assertEqual((live["begin_ns"], live["end_ns"]), (begin, end))
        self.assertGreater(live["view"]["process_cpu_ns"], 0)
        self.daemon.stop()
        self.daemon.start()
        self.daemon.wait_state(self.jvm.pid, "streaming")
        stored = self.check_filters(path, "disk")
        for key in ("view", "losses", "begin_ns", "end_ns", "rate", "absent", "note"):
            self.assertEqual(stored[key], live[key], key)

    def test_a_recording(self):
        made = json.loads(ask(self.daemon, "/v1/recordings?target=%d&seconds=60&type=cpu,lock" % self.jvm.pid, "POST"))
        wait_for("samples", lambda: json.loads(ask(self.daemon, "/v1/recordings/%d" % made["id"]))["samples"] > 300)
        done = json.loads(ask(self.daemon, "/v1/recordings/%d" % made["id"], "DELETE"))
        path = "/v1/recordings/%d/profile?type=" % made["id"]
        cpu = self.check(path + "cpu", "recording")
        self.mission_control_agrees(cpu)
        lock = self.check(path + "lock&idle=1", "recording, lock")
        self.assertEqual(done["samples"], cpu["view"]["samples"] + lock["view"]["samples"])
        # the length of a recording is the time that it took, not that from its first sample to its last
        self.assertLess(abs((cpu["end_ns"] - cpu["begin_ns"]) / 1e9 - done["elapsed_s"]), 0.5)
        both = Pprof(ask(self.daemon, path + "cpu,lock&format=pb.gz"))
        self.assertEqual(len(both.comments), 4)  # the sum of each event, in words and as the header of a json file
        # for one thread: the header reports that other threads' samples are left out
        made = json.loads(ask(self.daemon, "/v1/recordings?target=%d&seconds=60&thread=group-full" % self.jvm.pid, "POST"))
        wait_for("samples of the thread", lambda: json.loads(ask(self.daemon, "/v1/recordings/%d" % made["id"]))["samples"] > 50)
        ask(self.daemon, "/v1/recordings/%d" % made["id"], "DELETE")
        one = self.check("/v1/recordings/%d/profile?type=cpu" % made["id"], "recording of one")
        self.assertIn("of other threads", one["absent"])
        self.assertEqual({t["name"][:10] for t in one["threads"]}, {"group-full"})
        # the recording has been fetched and can be deleted
        path = "/v1/recordings/%d" % made["id"]
        self.assertEqual(json.loads(ask(self.daemon, path + "/profile", "DELETE")), {"state": "gone"})
        self.assertIn("there is no recording", json.loads(ask(self.daemon, path))["error"])

    def test_events_that_are_not_collected_are_named(self):
        pid = str(self.jvm.pid)
        for args in (("top", "--once", "-e", "alloc"), ("top", "--once", "--json", "-e", "wall", pid),
                     ("report", pid, "-e", "alloc", "-o", "-"), ("report", pid, "-e", "cpu,wall", "-o", "-", "-f", "pb.gz")):
            done = self.daemon.cli(*args, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), args)
            self.assertRegex(done.stderr, r"(alloc|wall) events are not collected.* add \"\1: \{\}\" to events: .* record TARGET -e \1")
        for args in (("top", "--once", "-e", "lock", pid), ("report", pid, "-e", "lock", "-o", "-")):
            self.assertEqual(self.daemon.cli(*args, check=False).returncode, 0, args)
        with Daemon("events: { cpu: {} }\n") as other:
            done = other.cli("tail", "-e", "cpu,lock", "-n", "1", check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("lock events are not collected", done.stderr)

    def test_pprof_and_jfr_name_the_program_and_its_libraries(self):
        wait_for("samples in profiles", lambda: json.loads(ask(
            self.daemon, "/v1/profile?target=%d&type=cpu" % self.jvm.pid))["view"]["samples"] > 20)
        p = Pprof(ask(self.daemon, "/v1/profile?target=%d&type=cpu,lock&format=pb.gz" % self.jvm.pid))
        self.assertEqual(p.string(14), "cpu")
        mapping = next(dict(fields(v)) for n, v in p.fields if n == 3)
        self.assertEqual(p.strings[mapping[5]], "KnownShares")
        path = os.path.join(self.daemon.dir, "n.jfr")
        with open(path, "wb") as f:
            f.write(ask(self.daemon, "/v1/profile?target=%d&type=cpu&format=jfr" % self.jvm.pid))
        for major in ("17", "25"):
            out = subprocess.run([java_home(major) + "/bin/jfr", "print", "--events", "kindling.CpuTime", "--stack-depth", "64", path],
                                 capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            frames = {f.strip() for f in re.findall(r"^    (.*?)(?: line:.*)?$", out.stdout, re.M)}
            self.assertIn("KnownShares.spin(long)", frames)
            self.assertFalse([f for f in frames - {"..."} if f.startswith(".") or "()()" in f], frames)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.jvm.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def test_status_holds_samples_against_the_kernels_word(self):
        def samples():
            return self.daemon.target(self.jvm.pid)["samples"]
        wait_for("samples", lambda: samples()["delivered"] > 100)
        # the daemon reads the clocks once a second, so the span begins and ends with a reading
        def look():
            before = samples()["process_cpu_ns"]
            wait_for("a look", lambda: samples()["process_cpu_ns"] > before)
            return samples()["process_cpu_ns"] / 1e9, self.cpu_s()
        (a, kernel_a), _, (b, kernel_b) = look(), time.sleep(5), look()
        self.assertAlmostEqual(b - a, kernel_b - kernel_a, delta=0.1 * (kernel_b - kernel_a) + 0.25)
        s = samples()
        accounts_balance(self.daemon.target(self.jvm.pid))
        self.assertAlmostEqual(s["mean_interval_ns"], s["delivered_ns"] / s["delivered"], places=3)
        self.assertAlmostEqual(s["coverage"], s["delivered_ns"] / s["process_cpu_ns"], places=6)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
