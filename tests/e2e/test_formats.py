"""Files for other tools, read by those tools: test_formats.py [MAJOR]. Needs root.

speedscope's own page in chromium, the official Go decoder of OTLP, and `kindling convert` there and back: what they
show is what the json file of the same range says. And what changed between two files, as the page shows it.
"""
import functools
import html
import http.server
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, HERE, Daemon, Jvm  # noqa: E402

MAJOR = "17"
WINDOW_S = 10  # of the history
SPEEDSCOPE = "1.25.0"
OTLPCHECK = os.path.join(HERE, "go", "otlpcheck")
WORDS = ("html", "collapsed", "txt", "pb.gz", "json", "jfr", "speedscope", "otlp", "otlp.json")

DIFF = """
<script>
addEventListener("load", () => {
  const seen = {}, tip = n => {
    const box = boxes.find(b => b[0].name === n), r = $("graph").getBoundingClientRect();
    if (!box) return null;
    $("graph").dispatchEvent(new MouseEvent("mousemove", { clientX: r.left + box[1] + 2, clientY: r.top + box[2] + 4, bubbles: true }));
    return { text: $("tip").textContent, colour: change(box[0]), width: Math.round(100 * box[3] / $("stage").clientWidth) };
  };
  const names = ["a.B.run", "a.B.old", "a.B.new", "a.B.same"], all = () => Object.fromEntries(names.map(n => [n, tip(n)]));
  seen.now = all();
  $("wide").click();
  seen.before = all();
  seen.methods = [...$("methods").rows].map(r => [...r.cells].map(c => c.textContent));
  seen.facts = $("facts").textContent;
  seen.legend = $("legend").textContent;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>
"""


def dump(url, folder):
    chromium = shutil.which("chromium")
    if not chromium:
        raise unittest.SkipTest("there is no chromium; tests/run installs it")
    return subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser",
                           "--virtual-time-budget=15000", "--window-size=1200,800", "--dump-dom", url],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=90).stdout


def speedscope_page():
    """The folder with speedscope's standalone page, from npm."""
    folder = os.path.realpath(os.path.join(BUILD, "speedscope-" + SPEEDSCOPE))
    page = os.path.join(folder, "package", "dist", "release")
    if not os.path.exists(page):
        npm = shutil.which("npm")
        if not npm:
            raise unittest.SkipTest("there is no npm to fetch speedscope's page with")
        os.makedirs(folder, exist_ok=True)
        subprocess.run([npm, "pack", "--silent", "speedscope@" + SPEEDSCOPE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(os.path.join(folder, f"speedscope-{SPEEDSCOPE}.tgz")) as tar:
            tar.extractall(folder + ".tmp", filter="data")
        os.rename(os.path.join(folder + ".tmp", "package"), os.path.join(folder, "package"))
    return page


def otlpcheck(path):
    """[profile] of a file, by the official decoder; built once per version of the source."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        raise unittest.SkipTest("there is no Go compiler")
    program = os.path.realpath(os.path.join(BUILD, "otlpcheck-%d" % int(os.path.getmtime(OTLPCHECK + "/main.go"))))
    if not os.path.exists(program):
        subprocess.run([go, "build", "-o", program + ".tmp", "."], cwd=OTLPCHECK, check=True)
        os.rename(program + ".tmp", program)
    done = subprocess.run([program, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("events: { cpu: { max_cpu: 100% }, lock: {} }\n")
        cls.jvm = Jvm(MAJOR)
        cls.daemon.wait_state(cls.jvm.pid, "streaming")
        # two whole windows, requested when both are closed, because an open one is answered second by second
        cls.middle = int(time.time() + 4) // WINDOW_S * WINDOW_S + WINDOW_S
        cls.begin, cls.end = cls.middle - WINDOW_S, cls.middle + WINDOW_S
        cls.range = ("--from", f"@{cls.begin}", "--to", f"@{cls.end}")
        cls.daemon.wait_window(cls.end)
        seen = []
        for _ in range(12):  # until late samples have arrived, and native frames have their names
            seen.append(cls.report("x.collapsed"))
            if len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]:
                break
            time.sleep(2)
        cls.json = cls.report("x.json")

    @classmethod
    def tearDownClass(cls):
        cls.jvm.__exit__()
        cls.daemon.__exit__()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.daemon.dir, name)

    @classmethod
    def report(cls, name, *options):
        cls.daemon.cli("report", str(cls.jvm.pid), *cls.range, "-o", cls.path(name), *options)
        with open(cls.path(name), "rb") as f:
            data = f.read()
        return json.loads(data) if name.endswith(".json") else data

    def convert(self, *args, code=0):
        done = subprocess.run([BUILD + "/bin/kindling", "convert", *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def stacks(self, name, *options):
        self.report(name, *options)
        return dict((stack, int(n)) for stack, n in (line.rsplit(" ", 1) for line in self.read(name).splitlines()))

    def test_otlp_is_what_the_official_decoder_reads(self):
        view, stacks = self.json["view"], self.stacks("o.collapsed")
        for name in ("x.otlp", "x.otlp.json"):
            self.report(name, "--type", "cpu,lock")
            cpu, = [p for p in otlpcheck(self.path(name)) if p["type"] == "cpu"]
            self.assertEqual((cpu["total"], cpu["unit"], cpu["scope"]), (view["weight_ns"], "nanoseconds", "kindling"))
            self.assertEqual(cpu["attributes"]["kindling.samples"], view["samples"])
            self.assertEqual(cpu["attributes"]["kindling.taken"], self.json["losses"]["taken"])
            self.assertEqual({s.replace(";", "\0"): n for s, n in cpu["stacks"].items()},
                             {s.replace(";", "\0"): n for s, n in stacks.items()})
            self.assertEqual(cpu["resource"]["process.pid"], self.jvm.pid)
            self.assertEqual(cpu["resource"]["service.name"], "KnownShares")
            self.assertIn("group-full", " ".join(cpu["threads"]))

    def test_speedscope_shows_our_totals(self):
        page = speedscope_page()
        self.daemon.cli("report", str(self.jvm.pid), *self.range, "-o", os.path.join(self.daemon.dir, "s.speedscope.json"))
        total = {}  # as the page's table counts: a method once for each stack
        for stack, n in self.stacks("s.collapsed").items():
            for name in set(stack.split(";")):
                total[name] = total.get(name, 0) + n
        folder = os.path.join(self.daemon.dir, "page")
        shutil.copytree(page, folder)
        shutil.copy(self.path("s.speedscope.json"), folder)
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *unused: None})
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=folder)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            shown = dump(f"http://127.0.0.1:{server.server_port}/index.html#profileURL=s.speedscope.json&view=sandwich",
                         self.daemon.dir)
            server.shutdown()
        cells = [html.unescape(c) for c in re.sub(r"(<[^>]*>)+", "\n", shown).split("\n") if c]
        rows = {c: cells[i - 2] for i, c in enumerate(cells) if c in total and i >= 2}
        self.assertIn("KnownShares.spin", rows, cells[:60])
        unit = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}
        for name, text in rows.items():
            number, of, percent = re.match(r"([0-9.]+)(m?s|µs|ns) \(<?([0-9.]+)%\)", text).groups()
            self.assertAlmostEqual(float(number) * unit[of], total[name], delta=total[name] * 0.01 + 1e4, msg=name)
            self.assertAlmostEqual(float(percent), 100 * total[name] / self.json["view"]["weight_ns"], delta=0.6, msg=name)
        self.assertGreater(len(rows), 3)

    def test_converting_there_and_back_changes_nothing(self):
        # frames that differ only in details that the file leaves out become one
        self.convert(self.path("x.json"), self.path("y.json"))
        self.convert(self.path("y.json"), self.path("yy.json"))
        self.assertEqual(self.read("y.json"), self.read("yy.json"))
        self.convert(self.path("x.json"), self.path("y.pb.gz"))
        self.convert(self.path("y.pb.gz"), self.path("z.json"))
        other = json.loads(self.read("z.json"))
        for key in ("title", "view", "losses", "processes", "begin_ns", "end_ns", "rate", "absent", "left_out"):
            self.assertEqual(other[key], self.json[key], key)
        for a, b in (("x.json", "1.collapsed"), ("y.json", "0.collapsed"), ("z.json", "2.collapsed"), ("1.collapsed", "3.collapsed")):
            self.convert(self.path(a), self.path(b), "--threads", "--annotate")
        self.assertEqual(self.read("1.collapsed"), self.read("0.collapsed"))
        self.assertEqual(self.read("1.collapsed"), self.read("2.collapsed"))
        self.assertEqual(self.read("1.collapsed"), self.read("3.collapsed"))
        self.assertIn("3.collapsed does not give the number of samples; use --interval",
                      self.convert(self.path("3.collapsed"), self.path("3.json")).stderr)
        # what the daemon writes is what convert makes of its json
        self.report("d.collapsed")
        self.convert(self.path("x.json"), self.path("c.collapsed"))
        self.assertEqual(self.read("c.collapsed"), self.read("d.collapsed"))
        # these formats have one event, pb.gz has both
        self.report("both.pb.gz", "--type", "cpu,lock")
        self.assertIn("choose one with --event", self.convert(self.path("both.pb.gz"), self.path("b.json"), code=2).stderr)
        self.convert(self.path("both.pb.gz"), self.path("b.json"), "--event", "cpu")
        self.assertEqual(json.loads(self.read("b.json"))["view"], self.json["view"])

    def test_devices_and_pipes_are_written_to_and_not_replaced(self):
        null, pipe, link = self.path("null"), self.path("pipe"), self.path("link")
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.mkfifo(pipe)
        os.symlink("/dev/null", link)
        self.convert(self.path("x.json"), null, "--format", "collapsed")
        self.convert(self.path("x.json"), link, "--format", "collapsed")
        self.assertTrue(stat.S_ISCHR(os.lstat(null).st_mode))
        self.assertTrue(stat.S_ISLNK(os.lstat(link).st_mode))
        read = []
        reader = threading.Thread(target=lambda: read.append(self.read("pipe")))
        reader.start()
        self.convert(self.path("x.json"), pipe, "--format", "collapsed")
        reader.join()
        # the shell's own way: /dev/stdout is a link to what the shell has opened
        done = subprocess.run([BUILD + "/bin/kindling", "convert", self.path("x.json"), "/dev/stdout", "--format", "collapsed"],
                              stdout=subprocess.PIPE, text=True)
        self.convert(self.path("x.json"), self.path("p.collapsed"))
        self.assertEqual((read[0], done.stdout), (self.read("p.collapsed"), self.read("p.collapsed")))
        self.assertTrue(stat.S_ISLNK(os.lstat("/dev/stdout").st_mode))

    def test_conversions_that_cannot_work_say_why(self):
        refused = self.convert(self.path("x.json"), self.path("y.flame"), code=2).stderr
        for word in WORDS:
            self.assertIn("." + (word if word != "speedscope" else "speedscope.json"), refused)
        self.assertIn("kindling reads json, pb.gz or collapsed", self.convert("x.jfr", self.path("y.json"), code=2).stderr)
        with open(self.path("bad.json"), "w") as f:
            f.write(self.read("x.json")[:1000])
        self.assertRegex(self.convert(self.path("bad.json"), self.path("y.html"), code=1).stderr, r"bad.json: .* at byte \d+")
        refused = self.daemon.cli("report", str(self.jvm.pid), "-o", self.path("y.flame"), check=False)
        self.assertEqual((refused.returncode, ".speedscope.json" in refused.stderr), (2, True))

    def changes(self, name, *options):
        self.daemon.cli("report", str(self.jvm.pid), "-o", self.path(name), *options)
        changed = json.loads(self.read(name))
        for column, of in ((3, changed["view"]), (5, changed["diff"]["baseline"])):
            self.assertEqual(sum(row[column] for row in changed["rows"]), of["weight_ns"])
        for key in ("self_ns", "baseline_self_ns"):
            weight = (changed["diff"]["baseline"] if key[0] == "b" else changed["view"])["weight_ns"]
            self.assertEqual(sum(m[key] for m in changed["diff"]["methods"]), weight)
        return changed

    def test_two_ranges_are_held_against_each_other(self):
        middle = self.middle
        changed = self.changes("1.json", "--diff", f"@{self.begin}/@{middle}..@{middle}/@{self.end}")
        parts = []
        for a, b in ((self.begin, middle), (middle, self.end)):
            self.daemon.cli("report", str(self.jvm.pid), "--from", f"@{a}", "--to", f"@{b}", "-o", self.path("part.json"))
            parts.append(json.loads(self.read("part.json")))
        before, now = parts
        self.assertEqual(changed["view"], now["view"])
        self.assertEqual(changed["losses"], now["losses"])
        self.assertEqual(changed["diff"]["baseline"]["weight_ns"], before["view"]["weight_ns"])
        lengths = [p["end_ns"] - p["begin_ns"] for p in parts]
        self.assertEqual((changed["diff"]["by"], round(changed["diff"]["factor"], 6)), ("time", round(lengths[1] / lengths[0], 6)))
        # the same with the other options, and for all JVMs
        again = self.changes("2.json", "--from", f"@{middle}", "--to", f"@{self.end}", "--baseline", f"@{self.begin}/@{middle}")
        self.assertEqual(again["diff"], changed["diff"])

    def test_a_file_is_held_against_a_range(self):
        self.report("old.pb.gz")
        same = self.changes("3.json", *self.range, "--baseline", self.path("old.pb.gz"))
        self.assertEqual((same["diff"]["factor"], same["diff"]["by"]), (1, "time"))
        for m in same["diff"]["methods"]:
            self.assertEqual((m["self_ns"], m["total_ns"]), (m["baseline_self_ns"], m["baseline_total_ns"]), m["name"])
        part = self.changes("4.json", *self.range, "--baseline", self.path("old.pb.gz"), "--thread", "group-full", "--by", "total")
        self.assertEqual((part["view"]["weight_ns"], part["diff"]["by"]), (part["diff"]["baseline"]["weight_ns"], "total"))
        for options, words in ((("--diff", "14:00..15:00"), "two ranges"), (("--baseline", "x.jfr"), "kindling reads json, pb.gz or collapsed"),
                               (("--by", "time"), "goes with --diff"), (("--baseline", "x.json", "--format", "jfr"), "jfr cannot")):
            refused = self.daemon.cli("report", str(self.jvm.pid), "-o", self.path("5.html"), *options, check=False)
            self.assertEqual((refused.returncode, words in refused.stderr), (2, True), refused.stderr)

    def test_a_file_without_samples_says_what_left_them_out(self):
        for options in (("--thread", "no such thread"), ("--include", "no.such.method")):
            done = self.daemon.cli("report", str(self.jvm.pid), *self.range, "-o", self.path("none.txt"), *options)
            self.assertRegex(done.stderr, r"0 samples, 0 dropped. [1-9]\d* others were left out by --thread, --include or --exclude")
        done = self.convert(self.path("x.json"), self.path("none.txt"), "--include", "no.such.method")
        self.assertRegex(done.stderr, r"[1-9]\d* others were left out")
        nobody = f"@{self.begin - 100}/@{self.begin - 50}"
        for diff, words in ((f"{nobody}..@{self.begin}/@{self.end}", rf"the baseline \({nobody}\) has no samples, so everything is new"),
                            (f"@{self.begin}/@{self.end}..{nobody}", rf"what is compared \({nobody}\) has no samples, so everything is gone")):
            done = self.daemon.cli("report", str(self.jvm.pid), "--diff", diff, "-o", self.path("none.txt"))
            self.assertRegex(done.stderr, words)
            self.assertNotIn("1970", self.read("none.txt"))

    def test_a_page_shows_what_changed(self):
        for name, lines in (("a", "a.B.run;a.B.old 50\na.B.run;a.B.same 30\n"), ("b", "a.B.run;a.B.new 20\na.B.run;a.B.same 140\n")):
            with open(self.path(name + ".collapsed"), "w") as f:
                f.write(lines)
        self.convert("--interval", "10ms", "--baseline", self.path("a.collapsed"), self.path("b.collapsed"), self.path("d.html"))
        with open(self.path("d.act.html"), "w") as f:
            f.write(self.read("d.html").replace("</body>", DIFF + "</body>"))
        seen = re.search(r'<pre id="seen">(.*?)</pre>', dump("file://" + self.path("d.act.html"), self.daemon.dir), re.S)
        seen = json.loads(html.unescape(seen.group(1)))
        # the file of 0.8 s is compared with one of 1.6 s: the baseline's weights count twice
        now, before = seen["now"], seen["before"]
        self.assertIn("+0.800 s (+133.3%): baseline 0.600 s, 37.50% of all; now 1.400 s, 87.50% of all", now["a.B.same"]["text"])
        self.assertIn("+0.200 s (new): baseline 0.000 s", now["a.B.new"]["text"])
        self.assertIn("-1.000 s (-100.0%): baseline 1.000 s, 62.50% of all; now 0.000 s", before["a.B.old"]["text"])
        self.assertIsNone(now["a.B.old"])
        self.assertIsNone(before["a.B.new"])
        for at, width in ((now["a.B.same"], 87.5), (before["a.B.same"], 37.5), (before["a.B.old"], 62.5)):
            self.assertAlmostEqual(at["width"], width, delta=2)
        hue = {name: int(re.match(r"hsl\((\d+) ", (now[name] or before[name])["colour"]).group(1)) for name in now}
        self.assertEqual((hue["a.B.new"], hue["a.B.same"], hue["a.B.old"]), (4, 4, 215))
        self.assertEqual(seen["methods"][0], ["-1.000 s", "0.000 s", "1.000 s", "-1.000 s", "0.000 s", "1.000 s", "a.B.old"])
        self.assertIn("its numbers × 2: as if of the same total", seen["facts"])
        self.assertIn("more than in the baseline", seen["legend"])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
