"""The commands as a person types them: each with its output and exit status. Needs root."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, accounts_balance, java_home, timers, wait_for  # noqa: E402
from terminal import Terminal, plain  # noqa: E402

SETTLE_S = 0.7  # so long after its end a second is complete for top


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.jvm = Jvm("17")
        cls.pid = str(cls.jvm.pid)
        cls.daemon.wait_state(cls.jvm.pid, "streaming")
        wait_for("samples", lambda: cls.daemon.target(cls.jvm.pid)["samples"]["delivered"] > 300)

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__()
        cls.daemon.__exit__()

    def path(self, name):
        return os.path.join(self.daemon.dir, name)

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def test_status(self):
        status = self.daemon.status()
        target = self.daemon.target(self.jvm.pid)
        for key in ("pid", "ns_pid", "container_id", "jdk", "name", "state", "reason", "engine", "interval_ns", "samples", "agent"):
            self.assertIn(key, target)
        self.assertIn("version", status)
        self.assertGreater(status["uptime_s"], 0)
        self.assertEqual(target["name"], "KnownShares")
        self.assertRegex(target["jdk"], r"17\.")
        agent = target["agent"]
        self.assertGreater(agent["cpu_ns"], 0)
        self.assertTrue(0 < agent["session_ns"] < status["uptime_s"] * 1e9, agent)
        self.assertAlmostEqual(agent["cpus"], agent["cpu_ns"] / agent["session_ns"])
        self.assertGreater(agent["cpus_last_minute"], 0)
        accounts_balance(target)
        self.assertRegex(self.daemon.cli("status").stdout, r"%s +%s +host .*KnownShares +streaming" % (self.pid, self.pid))

    def test_status_of_some(self):
        with Jvm("17", "Idle") as other:
            self.daemon.wait_state(other.pid, "streaming")
            def pids(*args):
                """Rows of our own JVMs: tests that run at the same time have JVMs with the same names."""
                pids = [t["pid"] for t in json.loads(self.daemon.cli("status", "--json", *args).stdout)["targets"]]
                return [p for p in pids if p in (self.jvm.pid, other.pid, newer)]
            newer = 0
            self.assertEqual(pids(self.pid), [self.jvm.pid])
            self.assertEqual(pids("KnownShares", "Idle"), [self.jvm.pid, other.pid])
            self.assertEqual(pids("--streaming"), [self.jvm.pid, other.pid])
            self.daemon.cli("detach", str(other.pid))
            self.assertEqual(pids("--streaming"), [self.jvm.pid])
            self.assertEqual(pids("--streaming", str(other.pid)), [])
        with Jvm("17", "Idle") as jvm:
            newer = jvm.pid
            self.daemon.wait_state(newer, "streaming")
            self.daemon.wait_state(other.pid, "gone")
            self.assertEqual(pids("Idle"), [newer])  # not the JVM that ended
            self.assertEqual(pids(), [self.jvm.pid, newer, other.pid])  # which is the last
            self.assertEqual(pids(str(other.pid)), [other.pid])
            self.assertRegex(self.daemon.cli("status", str(other.pid)).stdout, r"Idle +ended \d+s ")

    def test_status_on_a_terminal(self):
        command = [BUILD + "/bin/kindling", "--socket", self.daemon.socket, "status"]
        os.environ["TERM"] = "xterm"
        with Terminal(command, 24, 80) as terminal:
            self.assertEqual(terminal.wait(), 0)
            lines = terminal.raw().split("\r\n")
        self.assertLessEqual(max(map(len, map(plain, lines))), 80, lines)
        self.assertIn("AGENT%", lines[0])
        self.assertIn("\033[32mstreaming\033[0m", "".join(lines))
        os.environ["NO_COLOR"] = "1"
        with Terminal(command + ["--wide"], 24, 50) as terminal:
            del os.environ["NO_COLOR"]
            self.assertEqual(terminal.wait(), 0)
            out = terminal.raw()
        self.assertIn("DELIVERED", out)
        self.assertNotIn("\033", out)
        with Terminal(command, 24, 50) as terminal:
            self.assertEqual(terminal.wait(), 0)
            self.assertLessEqual(max(map(len, plain(terminal.raw()).split("\r\n"))), 50)
        with Terminal(command + ["--watch"], 24, 80) as terminal:
            wait_for("the first screen", lambda: "KnownShares" in terminal.text())
            wait_for("the second one", lambda: terminal.raw().count("\033[H") > 1)
            terminal.type("q")
            self.assertEqual(terminal.wait(), 0)
            self.assertTrue(terminal.is_as_it_was())
            self.assertTrue(terminal.raw().endswith("\033[?25h"))

    def test_top(self):
        def top(word, *options):
            """Waits until the report contains @word: the newest samples appear half a second later."""
            return wait_for("%s in top" % word, lambda: (lambda out: out if word in out else None)(
                self.daemon.cli("top", "--once", "-n", "30", *options).stdout))
        out = top("KnownShares.spin", self.pid)
        self.assertRegex(out, r": [0-9.]+ CPUs, [1-9]\d* samples\n +self% +total%  method")
        self.assertIn("sorted by self%", out)
        one = self.daemon.cli("top", "--once", "-n", "30", self.pid).stdout
        by_self = [float(line.split()[0]) for line in one.splitlines() if re.match(r" +[0-9.]+ +[0-9.]+  ", line)]
        self.assertEqual(by_self, sorted(by_self, reverse=True))
        by_total = top("KnownShares.full", "--sort", "total", self.pid)
        totals = [float(line.split()[1]) for line in by_total.splitlines() if re.match(r" +[0-9.]+ +[0-9.]+  ", line)]
        self.assertEqual(totals, sorted(totals, reverse=True))
        self.assertIn("sorted by total%", by_total)
        tenth = top("KnownShares.tenth", "--sort", "total", "--thread", "group-tenth")
        self.assertNotIn("KnownShares.full", tenth)

    def test_top_has_whole_seconds(self):
        """At whatever moment of a second the question comes, the answer is that of the last complete one."""
        answers = {}
        for _ in range(20):
            begin = time.time()
            top = json.loads(self.daemon.cli("top", "--once", "--json", "-s", "1", self.pid).stdout)
            self.assertEqual(top["seconds"], 1)
            second = int(begin - SETTLE_S)
            if second == int(time.time() - SETTLE_S):
                answers.setdefault(second, []).append(top["samples"])
            time.sleep(0.1)
        for samples in answers.values():  # on a busy machine some may be late
            self.assertLessEqual(max(samples), 1.2 * min(samples) + 2, answers)
        self.assertGreater(max(map(len, answers.values())), 1, answers)
        top = json.loads(self.daemon.cli("top", "--once", "--json", "-s", "20", self.pid).stdout)
        self.assertLessEqual(top["seconds"], 30)

    def test_tail(self):
        for line in self.daemon.cli("tail", "--json", "-n", "50", self.pid).stdout.splitlines():
            event = json.loads(line)
            self.assertEqual(event["event"], "cpu")
            self.assertEqual(event["pid"], self.jvm.pid)
            self.assertGreater(event["weight_ns"], 0)
            self.assertTrue(event["stack"])
            for key in ("ts_ns", "tid", "thread"):
                self.assertIn(key, event)
        self.assertRegex(self.daemon.cli("tail", "-n", "1", self.pid).stdout, r"^\d\d:\d\d:\d\d\.\d\d\d %s \d+ \".*\" cpu " % self.pid)

    def test_tail_of_two(self):
        with Jvm("17") as other:
            self.daemon.wait_state(other.pid, "streaming")
            out = self.daemon.cli("tail", "--json", "-n", "400", self.pid, str(other.pid)).stdout
            self.assertEqual({json.loads(line)["pid"] for line in out.splitlines()}, {self.jvm.pid, other.pid})

    def test_top_on_a_terminal(self):
        with Terminal([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "top", self.pid], 20, 100) as terminal:
            wait_for("the first screen", lambda: "the last 5 s" in terminal.text())
            self.assertIn("KnownShares.spin", terminal.text())
            terminal.resize(8, 30)
            wait_for("a cut line", lambda: "…" in terminal.text())
            terminal.resize(20, 100)
            wait_for("the order", lambda: "sorted by self%; s: by total%, q: quit" in terminal.text())
            terminal.type("s")
            wait_for("the other order", lambda: "sorted by total%; s: by self%, q: quit" in terminal.text())
            terminal.resize(8, 30)
            # a line may have been cut before, too
            wait_for("a small screen", lambda: "…" in terminal.text() and terminal.text().count("\r\n") < 8)
            terminal.interrupt()
            self.assertEqual(terminal.wait(), 0)
            self.assertTrue(terminal.is_as_it_was())
            out = terminal.raw()
        self.assertEqual(out.count("\033[2J"), 1)  # the screen is cleared once, and then drawn over
        self.assertTrue(out.startswith("\033[2J\033[?25l\033[H"), out[:40])
        self.assertTrue(out.endswith("\033[J\033[?25h"), out[-40:])
        self.assertEqual(set(re.findall(r"\033\[[?0-9]*[A-Za-z]", out)), {"\033[2J", "\033[?25l", "\033[H", "\033[K", "\033[J", "\033[?25h"})
        lines = plain(out.split("\033[H")[-1]).split("\r\n")
        self.assertLessEqual(len(lines), 8)  # including the empty one after the last newline
        self.assertLessEqual(max(map(len, lines)), 30)

    def test_reports(self):
        for suffix in ("html", "collapsed", "txt", "pb.gz", "json", "jfr"):
            self.daemon.cli("report", self.pid, "--last", "60s", "-o", self.path("r." + suffix))
        weights = sum(int(line.rsplit(" ", 1)[1]) for line in self.read("r.collapsed").splitlines())
        self.assertGreater(weights, 3e9)
        self.assertIn("java.lang.Thread.run;KnownShares", self.read("r.collapsed"))
        self.assertRegex(self.read("r.txt"), r"\d+ taken = \d+ delivered \+ 0 dropped")
        self.assertIn("<canvas", self.read("r.html"))
        profile = json.loads(self.read("r.json"))
        self.assertEqual(profile["processes"][0]["pid"], self.jvm.pid)
        for major in ("17", "25"):
            jfr = java_home(major) + "/bin/jfr"
            if not os.path.exists(jfr):
                continue
            summary = subprocess.run([jfr, "summary", self.path("r.jfr")], capture_output=True, text=True)
            self.assertEqual(summary.returncode, 0, summary.stdout + summary.stderr)
            events = int(re.search(r"jdk.ExecutionSample +(\d+)", summary.stdout).group(1))
            out = subprocess.run([jfr, "print", "--json", "--events", "jdk.ExecutionSample,kindling.CpuTime", self.path("r.jfr")],
                                 capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            read = json.loads(out.stdout)["recording"]["events"]
            rows = [e["values"] for e in read if e["type"] == "kindling.CpuTime"]
            samples = [e["values"] for e in read if e["type"] == "jdk.ExecutionSample"]
            self.assertEqual(len(samples), events)
            self.assertAlmostEqual(sum(r["samples"] for r in rows), events, delta=1)
            full = [r for r in rows if any(f["method"]["type"]["name"] == "KnownShares" and f["method"]["name"] == "full"
                                           for f in r["stackTrace"]["frames"])]
            self.assertGreater(sum(float(r["cpuTime"][2:-1]) for r in full), 1)
            self.assertEqual({r["sampledThread"]["osName"][:10] for r in full}, {"group-full"})
            self.assertIn("JIT compiled", {f["type"] for r in full for f in r["stackTrace"]["frames"]})
        go = "/usr/local/go/bin/go" if os.path.exists("/usr/local/go/bin/go") else "go"
        try:
            top = subprocess.run([go, "tool", "pprof", "-top", self.path("r.pb.gz")], capture_output=True, text=True)
        except FileNotFoundError:
            return  # not every machine has a reader of pprof; unit.test_report checks the bytes
        self.assertRegex(top.stdout, r"Total samples = [0-9.]+m?s")
        self.assertIn("KnownShares.full", top.stdout)
        self.daemon.cli("report", self.pid, "--last", "60s", "--annotate", "-o", self.path("a.pb.gz"))
        top = subprocess.run([go, "tool", "pprof", "-top", self.path("a.pb.gz")], capture_output=True, text=True)
        self.assertRegex(top.stdout, r"KnownShares\.full_\[[ij1]\]")
        tags = subprocess.run([go, "tool", "pprof", "-tags", self.path("a.pb.gz")], capture_output=True, text=True)
        self.assertRegex(tags.stdout, r"(?s)kind: Total.*(c2|inlined)")

    def test_views_of_a_report(self):
        def collapsed(*options):
            return self.daemon.cli("report", self.pid, "--last", "60s", "-o", "-", "-f", "collapsed", *options).stdout.splitlines()
        full = collapsed("--include", r"KnownShares\.full|nothing", "--exclude", "tenth$")
        self.assertTrue(full)
        self.assertTrue(all("KnownShares.full" in line for line in full), full)
        self.assertTrue(all("KnownShares.full" not in line for line in collapsed("--exclude", r"KnownShares\.full")))
        self.assertTrue(any(re.match(r"KnownShares\.(spin|full);.*;java\.lang\.Thread\.run \d+$", line) for line in collapsed("--reverse")))
        self.daemon.cli("report", self.pid, "--exclude", "KnownShares", "-o", self.path("v.txt"))
        left_out = int(re.search(r"(\d+) samples, [0-9.]+ s in all, left out by --include or --exclude", self.read("v.txt")).group(1))
        self.assertGreater(left_out, 50)
        for text, *options in (('--include "a(b" is not a regular expression: Unmatched ( or \\(, at "(b"', "--include", "a(b"),
                               ('--exclude "(a)\\1" has a back-reference', "--exclude", r"(a)\1"),
                               ("txt cannot", "--reverse")):
            done = self.daemon.cli("report", self.pid, *options, "-o", self.path("never.txt"), check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        get = ["curl", "-s", "--unix-socket", self.daemon.socket, "http://x/v1/profile?include=a("]
        self.assertIn("include: ", json.loads(subprocess.run(get, capture_output=True, text=True).stdout)["error"])

    def test_record_through_the_daemon(self):
        # where a tick is dear, the interval is longer than the default: 15 ms and more were seen
        before_ns = self.daemon.target(self.jvm.pid)["interval_ns"]
        self.daemon.cli("record", self.pid, "-d", "2s", "-i", "%dms" % (before_ns // 500000), "-o", self.path("rec.txt"))
        self.assertRegex(self.read("rec.txt"), r"s of CPU, \d+ samples, mean interval \d")
        self.assertIn("budget", self.read("rec.txt"))
        self.assertRegex(self.daemon.cli("record", self.pid, "-d", "1s", "-o", self.path("rec.html")).stderr, r"rec.html: [1-9]\d* samples, 0 dropped")
        wait_for("the old interval", lambda: self.daemon.target(self.jvm.pid)["interval_ns"] < 1.5 * before_ns)

    def test_a_recording_ends_with_its_jvm(self):
        with Jvm("17") as jvm:
            self.daemon.wait_state(jvm.pid, "streaming")
            cli = subprocess.Popen([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "record", str(jvm.pid), "-d", "60s",
                                    "-i", "5ms", "-o", self.path("short.collapsed")], stderr=subprocess.PIPE, text=True)
            wait_for("the recording", lambda: self.daemon.target(jvm.pid)["interval_asked_ns"] == 5000000)
            before = self.daemon.target(jvm.pid)["samples"]["delivered"]
            wait_for("samples in it", lambda: self.daemon.target(jvm.pid)["samples"]["delivered"] > before + 100)
            jvm.end()
            err = cli.communicate(timeout=60)[1]
        self.assertEqual(cli.returncode, 0, err)
        self.assertRegex(err, r"after [0-9.]+ s the JVM ended; the file has what was recorded until then")
        self.assertIn("KnownShares.full", self.read("short.collapsed"))

    def test_losses_of_one_jvm(self):
        with Jvm("17") as other:
            self.daemon.wait_state(other.pid, "streaming")
            def report(who):
                return json.loads(self.daemon.cli("report", who, "-o", "-", "-f", "json").stdout)
            # an agent sends its accounts once in a while, not with every sample
            one = wait_for("accounts", lambda: (lambda p: p if p["losses"]["taken"] > 100 else None)(report(str(other.pid))))
            two, both = report(self.pid), report("--all")
        self.assertEqual(one["losses"], one["processes"][0]["losses"])
        self.assertLess(one["losses"]["taken"], two["losses"]["taken"])
        self.assertGreaterEqual(both["losses"]["taken"], one["losses"]["taken"] + two["losses"]["taken"])

    def test_moments(self):
        now = int(time.time())
        self.daemon.cli("report", self.pid, "--from", "@%d" % (now - 60), "--to", "@%d" % now, "-o", self.path("m.collapsed"))
        self.assertIn("KnownShares.full", self.read("m.collapsed"))
        self.daemon.cli("report", self.pid, "--from", "@%d" % (now - 7200), "--to", "@%d" % (now - 3600), "-o", self.path("m.collapsed"))
        self.assertEqual(self.read("m.collapsed"), "")
        past = ("report", self.pid, "--from", "@%d" % (now - 7200), "--to", "@%d" % (now - 3600))
        self.assertRegex(self.daemon.cli(*past, "-o", "-", "-f", "txt").stdout,
                         r"\Anothing was recorded of these JVMs in that time: .*`kindling status`[^\n]*\n\Z")
        self.assertIn("`kindling status` tells why", self.daemon.cli(*past, "-o", self.path("m.txt")).stderr)
        self.assertEqual(json.loads(self.daemon.cli(*past, "-o", "-", "-f", "json").stdout)["title"], "nothing recorded")

    def test_errors_say_what_to_do(self):
        def fails(status, text, *args):
            done = self.daemon.cli(*args, check=False)
            self.assertEqual(done.returncode, status, done)
            self.assertIn(text, done.stderr)
        fails(1, 'no JVM is called "KnwonShares"; similar names:\n', "report", "KnwonShares", "-o", self.path("x.html"))
        fails(1, "  KnownShares\n", "report", "KnwonShares", "-o", self.path("x.html"))
        fails(1, "KnownShares", "report", "nobody", "-o", self.path("x.html"))
        fails(2, "format", "report", self.pid, "-o", self.path("x.jpeg"))
        fails(2, "TARGET", "report", "-o", self.path("x.html"))
        fails(2, "unknown command frobnicate", "frobnicate")
        self.assertFalse(os.path.exists(self.path("x.html")))
        done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "status"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("kindlingd", done.stderr)

    def test_a_user_without_rights_gets_a_reason(self):
        os.chmod(self.daemon.dir, 0o755)  # the refusal must come from the socket, not from the folder
        done = subprocess.run([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "status"], user=65534, group=65534,
                              extra_groups=[], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("permission denied: you may not use the socket of kindlingd", done.stderr)
        self.assertIn("group kindling", done.stderr)

    def test_help_everywhere(self):
        for args in (["--help"], *([c, "--help"] for c in ("status", "top", "tail", "report", "record", "attach", "detach", "doctor", "config"))):
            self.assertIn("Usage: kindling", self.daemon.cli(*args).stdout)
        for program in ("kindlingd", "kindling-inject"):
            done = subprocess.run([BUILD + "/bin/" + program, "--help"], capture_output=True, text=True)
            self.assertEqual((done.returncode, "Usage: " + program in done.stdout), (0, True))

    def test_metrics_and_health(self):
        def get(path):
            return subprocess.run(["curl", "-s", "--unix-socket", self.daemon.socket, "http://x" + path],
                                  capture_output=True, text=True).stdout
        self.assertEqual(get("/healthz"), "ok\n")
        self.assertRegex(get("/metrics"), r'kindling_targets\{state="streaming"\} [1-9]')
        self.assertRegex(get("/metrics"), r"kindling_samples_taken_total\{pid=\"%s\"" % self.pid)

    def test_a_second_daemon_refuses(self):
        done = subprocess.run([BUILD + "/bin/kindlingd", "--config", self.daemon.config], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another", done.stderr)

    def test_a_wrong_config_names_file_line_and_field(self):
        with open(self.path("wrong.yaml"), "w") as f:
            f.write("socket: /tmp/x\nevents:\n  cpu:\n    intervall: 10ms\n")
        done = self.daemon.cli("config", "check", self.path("wrong.yaml"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"wrong.yaml:4: events.cpu.intervall: ")
        self.assertEqual(self.daemon.cli("config", "check", self.daemon.config).returncode, 0)


    def test_settings_in_force_are_shown(self):
        for args in (("config", "--help"), ("config", "check", "--help"), ("config", "reload", "-h")):
            self.assertIn("Usage: kindling config check FILE", self.daemon.cli(*args).stdout)
        out = self.daemon.cli("config", "check", self.daemon.config).stdout
        self.assertIn("events collected: cpu, lock, offcpu\n", out)
        self.assertRegex(out, r'targets.rules:\n  - allow: { environment: "KINDLING_TEST=[-0-9]+" }\nsinks: none\n$')
        with open(self.path("wrong.yaml"), "w") as f:
            f.write("agent:\n  library: /nowhere/libkindling.so\n")
        done = self.daemon.cli("config", "check", self.path("wrong.yaml"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("wrong.yaml:2: agent.library: /nowhere/libkindling.so cannot be read", done.stderr)

    def test_times_are_checked(self):
        def says(status, text, *args):
            done = self.daemon.cli(*args, check=False)
            self.assertEqual(done.returncode, status, done)
            self.assertIn(text, done.stderr)
        says(2, "1 has no unit: 1ms?", "record", self.pid, "-i", "1", "-d", "1s", "-o", "-", "-f", "txt")
        says(2, "is in the future", "report", self.pid, "--from", "@%d" % (time.time() + 3600), "-o", "-", "-f", "txt")
        says(2, "is not before --to", "report", self.pid, "--from", "@2", "--to", "@1", "-o", "-", "-f", "txt")
        if 60 < time.time() % 86400 < 86000:  # UTC: not if the next minute is in another day
            at = time.strftime("%H:%M", time.gmtime(time.time() + 120))
            os.environ["TZ"] = "UTC"
            says(0, "--from %s is in the future" % at, "report", self.pid, "--from", at, "-o", "-", "-f", "txt")
            del os.environ["TZ"]
        self.assertIn("KnownShares.full", self.daemon.cli("report", self.pid, "--last", "1m 30s", "-o", "-", "-f", "collapsed").stdout)
        self.assertIn("KnownShares.full", self.daemon.cli("report", self.pid, "--last", "0.5h", "-o", "-", "-f", "collapsed").stdout)
        get = ["curl", "-s", "--unix-socket", self.daemon.socket, "http://x/v1/profile?format=collapsed&last=1m30s"]
        self.assertIn("KnownShares.full", subprocess.run(get, capture_output=True, text=True).stdout)

    def test_a_second_recording_is_told_of_the_first(self):
        with Jvm("17") as jvm:
            self.daemon.wait_state(jvm.pid, "streaming")
            first = subprocess.Popen([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "record", str(jvm.pid), "-d", "60s",
                                      "-i", "20ms", "-o", self.path("first.txt")], stderr=subprocess.PIPE, text=True)
            wait_for("the recording", lambda: self.daemon.target(jvm.pid)["interval_ns"] == 20_000_000)
            busy = self.daemon.cli("record", str(jvm.pid), "-d", "10ms", "-o", self.path("second.txt"), check=False)
            self.assertEqual(busy.returncode, 1)
            self.assertRegex(busy.stderr, r"process %d is being recorded by uid 0 until \d\d:\d\d:\d\d, [3-6]\d s more \(cpu at 20ms\)" % jvm.pid)
            self.assertIn("kindling report %d" % jvm.pid, busy.stderr)
            first.send_signal(2)
            first.communicate(timeout=60)
            self.assertEqual(first.returncode, 0)
            post = ["curl", "-s", "-X", "POST", "--unix-socket", self.daemon.socket,
                    "http://x/v1/recordings?target=%d&seconds=1ms" % jvm.pid]
            for _ in range(33):  # recordings that have ended are kept for five minutes, unless room is needed
                wait_for("a recording", lambda: "id" in subprocess.run(post, capture_output=True, text=True).stdout)


class Reload(unittest.TestCase):
    def test_settings_are_read_again(self):
        rules = "targets:\n  mode: opt-in\n  rules:\n    - allow: { environment: \"KINDLING_TEST=%s\" }\n" % os.environ["KINDLING_TEST"]
        with Daemon("events: {cpu: {interval: 20ms}}\n" + rules) as daemon, Jvm("17") as jvm:
            def interval(ns):
                wait_for("the interval", lambda: daemon.target(jvm.pid)["interval_ns"] == ns)
            daemon.wait_state(jvm.pid, "streaming")
            interval(20_000_000)
            self.assertEqual(daemon.cli("config", "reload").stdout, "nothing has changed\n")
            daemon.configure("events: {cpu: {interval: 40ms}, lock: }\nstore: {retention: 2h}\n" + rules)
            out = daemon.cli("config", "reload").stdout
            self.assertIn("events: cpu -> cpu, lock (in force now)\n", out)
            self.assertIn("events.cpu.interval: 20ms -> 40ms (in force now)\n", out)
            self.assertIn("store.retention: 1d -> 2h (NOT in force before kindlingd starts again)\n", out)
            interval(40_000_000)
            daemon.configure("events: {cpu: {interval: 50}}\n" + rules)
            done = daemon.cli("config", "reload", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"kindlingd.yaml:3: events.cpu.interval: must be a duration.*\n.*old settings stay in force")
            daemon.process.send_signal(1)  # SIGHUP: the daemon lives on, and its log has the reason
            with open(daemon.dir + "/log") as log:
                wait_for("the refusals", lambda: log.seek(0) == 0 and log.read().count("settings.refused") == 2)
            self.assertEqual(daemon.target(jvm.pid)["state"], "streaming")
            daemon.configure("events: {cpu: {interval: 30ms}, lock: }\n" + rules)
            daemon.process.send_signal(1)
            interval(30_000_000)
            daemon.configure("targets: {mode: opt-in}\n")
            daemon.cli("config", "reload")
            daemon.wait_state(jvm.pid, "excluded")
            daemon.configure(rules)
            daemon.cli("config", "reload")
            daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_the_hangup_of_its_terminal_ends_it(self):
        with Daemon() as daemon:
            daemon.stop()
            with Terminal([BUILD + "/bin/kindlingd", "--config", daemon.config], 20, 100) as terminal:
                wait_for("the daemon", lambda: daemon.cli("status", check=False).returncode == 0)
                self.assertIn("daemon.ready", terminal.raw())
                self.assertNotIn("<6>", terminal.raw())
                terminal.process.send_signal(1)  # while the daemon has a terminal, SIGHUP means a reload
                wait_for("the reload", lambda: "settings.reload" in terminal.raw())
                os.dup2(os.open("/dev/null", os.O_RDWR), terminal.master)
                self.assertEqual(terminal.wait(), 0)


class Restart(unittest.TestCase):
    def test_the_history_survives_a_restart(self):
        with Daemon() as daemon, Jvm("17") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            daemon.stop()
            daemon.start()
            # a window that ends in the second of the start appears in reports when memory has dropped that second
            wait_for("what was before", lambda: "KnownShares.full" in daemon.cli(
                "report", "--all", "--last", "5m", "-o", "-", "--format", "collapsed", check=False).stdout)


class WithoutDaemon(unittest.TestCase):
    def test_record(self):
        with Jvm("17") as jvm:
            out = "/tmp/kindling-test-%d.collapsed" % os.getpid()
            before = jvm.mark()["full"]
            done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "record", str(jvm.pid), "-d", "2s", "-o", out],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done)
            had = jvm.mark()["full"] - before # in these 2 s, and while the agent was attached and detached
            with open(out) as f:
                weights = [int(line.rsplit(" ", 1)[1]) for line in f if "KnownShares.full" in line]
            self.assertGreater(sum(weights), 0.25 * had)
            os.unlink(out)
            self.assertEqual(timers(jvm.pid), 0)
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
