"""Which thread waits for which, live: test_locks.py MAJOR. Deadlocks, a hog, chains; the commands and their output.
Needs root."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, timed_wait, wait_for  # noqa: E402
from terminal import Terminal  # noqa: E402

MAJOR = "17"


class Story(Jvm):
    def __init__(self, *args):
        super().__init__(MAJOR, "LockStories", *args)

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()


class Locks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("events: { cpu: {}, lock: { monitors: always } }\n")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def streaming(self, story):
        self.daemon.wait_state(story.pid, "streaming")
        wait_for("waits are collected", lambda: self.locks(story, "--idle")["collected"])

    def locks(self, story, *options):
        return json.loads(self.daemon.cli("locks", "--json", *options, str(story.pid)).stdout)["targets"][0]

    def graph(self, story):
        return self.locks(story, "--graph")["graph"]

    def circle(self, story, names, deadlocks=1):
        """The graph, once it shows all of @names in one cycle."""
        def found():
            g = self.graph(story)
            return g if {w["thread"] for w in g["waits"] if w["cycle"] == 1} == names else None
        g, took, late = timed_wait("a circle of %s" % sorted(names), found)
        self.seconds, self.late = took, late
        self.assertEqual(g["cycles"], 1)
        self.assertEqual(g["deadlocks"], deadlocks)
        return {w["thread"]: w for w in g["waits"]}

    def test_a_jvm_that_is_attached_to_while_it_starts_tells_of_monitors(self):
        """The JVM gives out no JVMTI environment until it has started; newer ones accept no agent until then."""
        with tempfile.TemporaryDirectory() as directory:
            held = directory + "/held"
            open(held, "w").close()
            # the daemon has found it and attached to it before it prints READY
            threading.Thread(target=self.let_go, args=(held,)).start()
            with Jvm(MAJOR, "LockStories", "monitors", options=("-agentpath:%s/tests/libstarts_late.so=vmstart:%s" % (BUILD, held),)) as story:
                self.assertIn(self.seen, ("monitors are not collected yet: the JVM is still starting", "the JVM is still starting"))
                self.streaming(story)
                wait_for("monitors", lambda: not [n for n in self.daemon.target(story.pid)["notes"] if n["step"] == "lock"])
                Story.go(story)
                self.circle(story, {"story-left", "story-right"})

    def let_go(self, held):
        def starting():
            for t in self.daemon.status()["targets"]:
                said = [n["what"] for n in t["notes"] if n["step"] == "lock"] + [t["reason"] or ""]
                self.seen = next((what for what in said if "still starting" in what), None)
                if self.seen:
                    return self.seen
            return None
        self.seen = None
        try:
            wait_for("a JVM that is starting", starting)
        finally:
            os.unlink(held)

    def test_a_deadlock_is_seen_within_two_seconds(self):
        for kind, names in (("monitors", {"story-left", "story-right"}),
                            ("mixed", {"story-left", "story-middle", "story-right"})):
            with self.subTest(kind), Story(kind) as story:
                self.streaming(story)
                story.go()
                waits = self.circle(story, names)
                self.assertEqual(self.locks(story)["no_room"], {"open": 0, "threads": 0, "locks": 0})
                print("%s on %s: seen after %.2f s, on a machine %.2f s late" % (kind, MAJOR, self.seconds, self.late))
                self.assertLess(self.seconds - self.late, 2)
                self.assertEqual(waits["story-right"]["kind"], "enter")
                self.assertEqual(waits["story-right"]["lock"]["class"], "LockStories$Left")
                self.assertEqual(waits["story-right"]["owner"]["thread"], "story-left")
                self.assertIn("LockStories.lambda", waits["story-right"]["stack"][-1])
                if kind == "mixed":
                    self.assertEqual(waits["story-left"]["lock"]["class"], "java.util.concurrent.locks.ReentrantLock")
                    self.assertEqual(waits["story-left"]["owner"]["thread"], "story-middle")
                text = self.daemon.cli("locks", "--graph", str(story.pid)).stdout
                self.assertIn("1 DEADLOCK", text)
                self.assertIn("deadlock: each of these waits for the next", text)

    def test_a_deadlock_from_before_the_attach_is_seen(self):
        for kind, names in (("monitors", {"story-left", "story-right"}),
                            ("mixed", {"story-left", "story-middle", "story-right"})):
            with self.subTest(kind), Story(kind, "now") as story:
                self.streaming(story)
                waits = self.circle(story, names)
                self.assertEqual(waits["story-right"]["lock"]["class"], "LockStories$Left")

    def test_a_park_from_before_the_attach_ends(self):
        with Story("held", "now") as story:
            self.streaming(story)
            def waiting(name="story-waiter"):
                return [w for w in self.graph(story)["waits"] if w["thread"] == name]
            wait = wait_for("the wait", waiting)[0]
            phases = [wait_for("a phaser's", lambda: waiting("story-phase-%d" % i))[0]["lock"] for i in (0, 1)]
            self.assertEqual(phases[0]["class"], "java.util.concurrent.Phaser")
            self.assertEqual(phases[0], phases[1])
            latch = wait_for("one that nobody owns", lambda: waiting("story-holder"))[0]
            self.assertEqual((latch["lock"]["class"], latch["owner"]), ("java.util.concurrent.CountDownLatch", None))
            self.assertEqual(wait["owner"]["thread"], "story-holder")
            self.assertEqual(wait["lock"]["class"], "java.util.concurrent.locks.ReentrantLock")
            story.go()
            wait_for("its end", lambda: not waiting() and not waiting("story-holder"))

    def test_nothing_is_printed_into_a_jvm_that_begins(self):
        """The agent defines a class to collect parks; too early, the JVM would report that in the application's
        output."""
        for _ in range(20):
            with Story("hog") as story:  # READY is its first line
                self.assertEqual(story.end(), ("END\n", ""))

    def test_a_circle_with_a_time_limit_is_no_deadlock(self):
        with Story("timed") as story:
            self.streaming(story)
            story.go()
            waits = self.circle(story, {"story-left", "story-middle"}, deadlocks=0)
            self.assertTrue(waits["story-left"]["timed"])
            self.assertIn("time limit", self.daemon.cli("locks", "--graph", str(story.pid)).stdout)

    def test_a_chain_ends_at_who_holds_it_up(self):
        with Story("chain") as story:
            self.streaming(story)
            story.go()
            def found():
                waits = {w["thread"]: w for w in self.graph(story)["waits"]}
                return waits if {"story-second", "story-third", "story-root"} <= set(waits) else None
            waits = wait_for("three waits", found)
            self.assertEqual(waits["story-third"]["owner"]["thread"], "story-second")
            self.assertEqual(waits["story-second"]["owner"]["thread"], "story-root")
            self.assertIsNone(waits["story-root"]["owner"])
            self.assertEqual(waits["story-root"]["behind"], 2)
            self.assertRegex(self.daemon.cli("locks", "--graph", str(story.pid)).stdout,
                             r'(?m)^  "story-root".*\n    "story-second".*\n      "story-third"')

    def test_the_hog_is_the_owner(self):
        with Story("hog") as story:
            self.streaming(story)
            story.go()
            def hogged():
                rows = [r for r in self.locks(story)["locks"] if r["lock"]["class"] == "LockStories$Hogged"]
                return rows[0] if rows and rows[0]["waits"] > 60 else None
            row = wait_for("waits for the hog", hogged)
            self.assertEqual(row["kind"], "enter")
            self.assertEqual(row["owners"][0]["thread"], "story-hog")
            self.assertGreater(row["owners"][0]["ns"], 0.9 * row["total_ns"])
            self.assertLessEqual({w["thread"] for w in row["waiters"]},
                                 {"story-hog"} | {"story-starved-%d" % i for i in (1, 2, 3)})
            self.assertRegex(self.daemon.cli("locks", str(story.pid)).stdout,
                             r"LockStories\$Hogged +[0-9a-f]+ +enter .*story-starved-.*story-hog")
            self.check_table(story)
            self.check_classes(story)
            self.check_tail(story)
            self.check_threads(story)

    def test_where_an_owner_sleeps(self):
        """An owner that sleeps, or reads from a socket, waits for no lock and uses no CPU."""
        methods = {"LockStories$Asleep": "sleepInside", "LockStories$Reading": "readInside",
                   "java.util.concurrent.locks.ReentrantLock": "sleepLocked"}
        with Story("asleep") as story:
            self.streaming(story)
            story.go()
            def waited():
                rows = {r["lock"]["class"]: r for r in self.locks(story)["locks"] if r["lock"]["class"] in methods}
                return rows if len(rows) == 3 and all(r["waits"] > 40 for r in rows.values()) else None
            rows = wait_for("waits for all three", waited)
            for lock, method in methods.items():
                named = {p["frame"]: p["ns"] for p in rows[lock]["owners_at"]}
                share = named.get("LockStories." + method, 0) / rows[lock]["total_ns"]
                print("%s: its owner is in %s for %.1f %% of %d waits" % (lock, method, 100 * share, rows[lock]["waits"]))
                self.assertGreaterEqual(share, 0.95, rows[lock])
            self.assertRegex(self.daemon.cli("locks", str(story.pid)).stdout, r"(?m)^LockStories\$Asleep .*sleepInside")

    def check_table(self, story):
        row, = (r for r in self.locks(story)["locks"] if r["lock"]["class"] == "LockStories$Hogged")
        self.assertRegex(row["waiters_at"][0]["frame"], r"^LockStories\.lambda\$hog")
        with Terminal([BUILD + "/bin/kindling", "--socket", self.daemon.socket, "locks", str(story.pid)], 24, 80) as screen:
            screen.wait()
            text = screen.text().replace("\r", "")
        self.assertRegex(text, r"%d LockStories: last \d+ s: \d+ waits of 1 ms and more" % story.pid)
        self.assertRegex(text, r"Hogged +enter +\d+ +\d+ +[\d.]+s +[\d.]+m?s +\S*lambda\$hog\S*")
        self.assertRegex(text, r"  [0-9a-f]+: story-starved-\d.*; held by story-hog")
        for line in text.splitlines()[1:]:
            self.assertLessEqual(len(line), 80, line)
        path = self.daemon.dir + "/hog.html"
        self.daemon.cli("locks", "-o", path, str(story.pid))
        with open(path) as f:
            page = f.read()
        for word in ("LockStories$Hogged@", "waited at LockStories.lambda$hog", "who kept whom waiting", "story-hog",
                     "java.lang.Thread.run", "Who blocks whom now"):
            self.assertIn(word, page)

    def check_classes(self, story):
        answer = self.locks(story, "--by", "class")
        self.assertEqual(answer["n_classes"], len(answer["classes"]))
        row, = (r for r in answer["classes"] if r["class"] == "LockStories$Hogged")
        self.assertEqual((row["locks"], row["more_locks"], row["kind"], row["other"]), (1, False, "enter", False))
        self.assertGreater(row["waits"], 60)
        self.assertEqual(row["owners"][0]["thread"], "story-hog")
        self.assertEqual(sum(r["waits"] for r in answer["classes"]), answer["waits"])
        self.assertRegex(self.daemon.cli("locks", "--by", "class", str(story.pid)).stdout,
                         r"CLASS +LOCKS(?s:.*)LockStories\$Hogged +1 +enter .*story-starved-.*story-hog")

    def check_tail(self, story):
        out = self.daemon.cli("tail", "--event", "lock", "--json", "-n", "40", str(story.pid)).stdout
        ids = set()
        for line in out.splitlines():
            e = json.loads(line)
            self.assertEqual((e["event"], e["pid"], e["open"]), ("lock", story.pid, False))
            self.assertIn(e["kind"], ("enter", "wait", "park"))
            self.assertGreaterEqual(e["duration_ns"], 1e6)
            for key in ("ts_ns", "tid", "thread", "owner", "stack", "owner_stack"):
                self.assertIn(key, e)
            if e["thread"].startswith("story-starved"):
                ids.add(e["lock"]["id"])
                self.assertEqual(e["lock"]["class"], "LockStories$Hogged")
                self.assertIn("LockStories.lambda", e["stack"][-1])
        self.assertEqual(len(ids), 1)
        self.assertRegex(ids.pop(), "^[0-9a-f]{1,8}$")
        out = self.daemon.cli("tail", "-e", "lock", "--min", "20ms", "--no-stack", "-n", "5", str(story.pid)).stdout
        for line in out.splitlines():
            self.assertRegex(line, r'^\d\d:\d\d:\d\d\.\d{3} %d \d+ ".*" lock [\d.]+m?s enter '
                             r'LockStories\$Hogged@[0-9a-f]+( held by ".*" \(\d+\))?( ended by .*)?$' % story.pid)
        both = self.daemon.cli("tail", "-e", "cpu,lock", "--json", "-n", "20", str(story.pid)).stdout
        self.assertIn("lock", {json.loads(line)["event"] for line in both.splitlines()})
        self.assertEqual(self.daemon.cli("tail", "-e", "nothing", check=False).returncode, 1)
        self.assertEqual(self.daemon.cli("tail", "--min", "x", check=False).returncode, 2)

    def check_threads(self, story):
        answer = json.loads(self.daemon.cli("threads", "--json", str(story.pid)).stdout)["targets"][0]
        threads = {t["name"]: t for t in answer["threads"]}
        for name in ("main", "story-hog", "story-starved-1", "story-starved-2", "story-starved-3"):
            self.assertIn(name, threads)
        starved = sum(threads["story-starved-%d" % i]["wait"] for i in (1, 2, 3))
        self.assertGreater(starved, 0.3)
        self.assertLess(starved, 3.01)
        self.assertEqual(threads["story-starved-1"]["last_lock"]["class"], "LockStories$Hogged")
        text = self.daemon.cli("threads", "--sort", "wait", "-n", "3", str(story.pid)).stdout
        self.assertEqual(len(re.findall(r"(?m)^ *\d+ +story-starved-", text)), 3)  # not those that another one waits for
        self.assertIn("more threads", text)
        self.check_threads_of_a_span(story)

    def check_threads_of_a_span(self, story):
        time.sleep(18)  # so that something is known before the span, in it and after it
        to_s = int(time.time()) - 5
        ask = ("threads", "--from", "@%d" % (to_s - 6), "--to", "@%d" % to_s, str(story.pid))
        answer = json.loads(self.daemon.cli(*ask, "--json").stdout)["targets"][0]
        self.assertTrue(answer["from_ns"] <= (to_s - 6) * 10**9 + 10**7 and to_s * 10**9 <= answer["to_ns"] < time.time_ns(),
                        (answer["from_ns"], to_s, answer["to_ns"]))
        span_ns = answer["to_ns"] - answer["from_ns"]
        self.assertIn(round(span_ns / 1e9), (10, 15) if answer["times"]["by"] == "kernel" else (6,))  # the kernel's are whole slices
        hog = {t["name"]: t for t in answer["threads"]}["story-hog"]
        self.assertTrue(0.9 * span_ns < hog["wall_ns"] <= span_ns + 10**6, hog)
        self.assertEqual(hog["wall_ns"], hog["cpu_ns"] + hog["runqueue_ns"] + sum(hog["offcpu_ns"].values()) + hog["unseen_ns"])
        self.assertRegex(self.daemon.cli(*ask).stdout, r"shares of \d\d:\d\d:\d\d to \d\d:\d\d:\d\d")
        refused = self.daemon.cli("threads", "--from", "@%d" % (to_s - 3600), str(story.pid), check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("10 minutes at most", refused.stderr)

    def test_virtual_threads_have_names_or_ids(self):
        """Virtual threads are shown by their ids, never by the numbers that stand for them on the wire."""
        if int(MAJOR) < 21:
            self.skipTest("no virtual threads in %s" % MAJOR)
        for kind, name in (("virtual", "(owner|waiter)-of-a-thread-whose-name-no-kernel-would-keep-.*"),
                           ("unnamed", r"virtual #\d+")):
            with self.subTest(kind), Jvm(MAJOR, "BriefThreads", kind, "5000", "30") as jvm:
                self.check_virtual(jvm, name)

    def check_virtual(self, jvm, name):
        daemon = self.daemon
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("waits are collected", lambda: json.loads(
            daemon.cli("locks", "--json", str(jvm.pid)).stdout)["targets"][0]["collected"])
        path = daemon.dir + "/tail"
        with open(path, "w") as out:
            tail = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "-e", "lock", "--open", "--json",
                                     str(jvm.pid)], stdout=out)

        def read():
            with open(path) as f:
                events = [json.loads(line) for line in f.readlines() if line.endswith("\n")]
            return [e for e in events if e["lock"]["class"] == "java.lang.Object"]
        jvm.process.stdin.write("go\n")
        jvm.process.stdin.flush()
        wait_for("waits of virtual threads", lambda: sum(e["tid"] is None for e in read()) > 20)
        tail.kill()
        tail.wait()
        waits = read()
        for e in waits:
            for thread in (e, e["owner"]):
                if thread and thread["tid"] is None:
                    self.assertGreater(thread["virtual_id"], 0)
                    self.assertRegex(thread["thread"], "^%s$" % name)
        for words in ("locks", "threads", "locks --graph", "locks --json", "threads --json"):
            self.assertNotRegex(daemon.cli(*words.split(), str(jvm.pid)).stdout, r"\b21474[89]\d{5}\b")
        answer = json.loads(daemon.cli("threads", "--json", str(jvm.pid)).stdout)["targets"][0]
        self.assertEqual("events.offcpu.virtual" in answer["virtual_unseen_why"], answer["times"]["by"] == "kernel", answer)

    def test_waits_for_work_show_when_asked_for(self):
        with Story("pool") as story:
            self.streaming(story)
            story.go()
            def idle():
                rows = [r for r in self.locks(story, "--idle")["locks"] if r["idle"]]
                return rows if sum(r["waits"] for r in rows) > 20 else None
            rows = wait_for("waits for work", idle)
            self.assertIn("story-pool", {w["thread"] for r in rows for w in r["waiters"]})
            for r in self.locks(story)["locks"]:
                self.assertFalse(r["idle"])
                self.assertNotIn("Condition", r["lock"]["class"] or "")
            out = self.daemon.cli("tail", "-e", "lock", "--idle", "--json", "-n", "3", str(story.pid)).stdout
            self.assertIn(True, {json.loads(line)["idle"] for line in out.splitlines()})

    def test_virtual_threads_are_counted(self):
        if int(MAJOR) < 21:
            self.skipTest("no virtual threads in %s" % MAJOR)
        with Story("virtual") as story:
            self.streaming(story)
            story.go()
            def counted():
                t = json.loads(self.daemon.cli("threads", "--json", str(story.pid)).stdout)["targets"][0]
                return t if t["virtual_threads"] == 1000 else None
            answer = wait_for("a thousand", counted)
            self.assertEqual(sum(v["count"] for v in answer["virtual"] if v["state"] == "waiting"), 1000)
            self.assertIn("1000 virtual threads", self.daemon.cli("threads", str(story.pid)).stdout)

    def test_a_page_needs_no_script(self):
        path = self.daemon.dir + "/locks.html"
        with Story("mixed") as story:
            self.streaming(story)
            story.go()
            self.circle(story, {"story-left", "story-middle", "story-right"})
            self.daemon.cli("locks", "-o", path, str(story.pid))
            self.daemon.cli("locks", "-o", self.daemon.dir + "/locks.svg", str(story.pid))
        with open(path) as f:
            page = f.read()
        self.assertNotIn("<script", page)
        self.assertEqual(page.count('class="arc"'), 3)
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not chromium:
            return  # the page's text was checked
        for name in (path, self.daemon.dir + "/locks.svg"):
            run = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu",
                                  "--user-data-dir=" + self.daemon.dir + "/browser", "--dump-dom", "file://" + name],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=90)
            self.assertIn("story-middle", run.stdout)
            self.assertNotIn("parsererror", run.stdout)

    def test_wrong_words_are_refused(self):
        for words in (("locks", "--last", "x"), ("locks", "-o", "x.png"), ("locks", "a", "b"), ("locks", "-n", "0"), ("locks", "--by", "thread"),
                      ("threads", "--sort", "x"), ("threads", "--last", "0")):
            self.assertEqual(self.daemon.cli(*words, check=False).returncode, 2, words)
        self.assertEqual(self.daemon.cli("locks", "--last", "1h", check=False).returncode, 2)
        self.assertEqual(self.daemon.cli("locks", "no-such-jvm", check=False).returncode, 1)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
