"""kindling timeline of a real JVM: test_timeline.py MAJOR. Its content agrees with the accounts; Perfetto's own
classes read the trace. Needs root."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import wheels  # noqa: E402
from kindling import Daemon, Jvm, wait_for  # noqa: E402

wheels.use("protobuf", "perfetto")
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto  # noqa: E402

MAJOR = "17"
THREAD, AT, LENGTH, STACK, TRACE, REASON, FLAGS, LOCK, OWNER, OWNER_STACK, WAKER, COUNT, RUNQUEUE, SYSCALL = range(14)
SLICE_BEGIN, SLICE_END, INSTANT = (perfetto.TrackEvent.TYPE_SLICE_BEGIN, perfetto.TrackEvent.TYPE_SLICE_END,
                                   perfetto.TrackEvent.TYPE_INSTANT)


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("events: { cpu: {}, lock: { monitors: always } }\n")
        cls.story = Jvm(MAJOR, "LockStories", "hog")
        cls.daemon.wait_state(cls.story.pid, "streaming")
        cls.story.process.stdin.write("go\n")
        cls.story.process.stdin.flush()
        wait_for("waits for the hog", lambda: len(cls.ask("--last", "60s")["lock"]) > 90)  # some waits are not over, and some are for other locks

    @classmethod
    def tearDownClass(cls):
        cls.story.__exit__(None, None, None)
        cls.daemon.__exit__()

    @classmethod
    def file(cls, name, *options):
        path = cls.daemon.dir + "/" + name
        said = cls.daemon.cli("timeline", str(cls.story.pid), *options, "-o", path).stderr
        return path, said

    @classmethod
    def ask(cls, *options):
        return json.loads(cls.daemon.cli("timeline", str(cls.story.pid), *options, "-o", "-").stdout)

    def delivered(self):
        events = self.daemon.target(self.story.pid)
        return {kind: (events[key]["delivered"], events[key]["delivered_ns"]) for kind, key in (("cpu", "samples"), ("lock", "lock"))}

    def test_the_timeline_agrees_with_the_accounts(self):
        def quiet():  # nothing arrived between the two requests
            before, answer, after = self.delivered(), self.ask("--last", "5m"), self.delivered()
            return (answer, before) if before == after else None
        answer, accounts = wait_for("a moment without events", quiet)
        for kind in ("cpu", "lock"):
            sums = answer["sums"][kind]
            self.assertEqual((sums["events"], sums["ns"]), accounts[kind], kind)
            self.assertEqual(answer["no_room"][kind]["events"], 0)
            rows = [r for r in answer[kind] if kind == "cpu" or not r[FLAGS] & 4]
            self.assertEqual(sum(r[LENGTH] for r in rows), sums["ns"])
            self.assertEqual(sum(r[COUNT] if kind == "lock" else 1 for r in rows), sums["events"])
        self.assertFalse(answer["forgotten"])

    def test_waits_have_lock_owner_and_stack(self):
        answer = self.ask("--last", "60s")
        names = [""] + [t["thread"] for t in answer["threads"]]
        waits = [w for w in answer["lock"] if w[LOCK] and answer["locks"][w[LOCK] - 1][0] == "LockStories$Hogged" and not w[FLAGS] & 4]
        self.assertGreater(len(waits), 60)
        owned = [w for w in waits if names[w[OWNER]] == "story-hog"]
        self.assertGreater(len(owned), 0.9 * len(waits))
        for w in owned:
            self.assertRegex(names[w[THREAD]], r"^story-starved-[123]$")
            self.assertEqual(answer["reasons"]["lock"][w[REASON]], "enter")
            frames, node = [], w[STACK]
            while node:
                frames.append(answer["frames"][answer["nodes"][node][1]][0])
                node = answer["nodes"][node][0]
            self.assertEqual(frames[-1], "java.lang.Thread.run")
            self.assertIn("LockStories.lambda$hog", "".join(frames))

    def test_a_part_of_it(self):
        """By thread and by time: intervals that overlap the span are included, and what is left out is counted."""
        all_of_it, part = self.ask("--last", "5m"), self.ask("--last", "5m", "--thread", "starved-2")
        self.assertEqual({part["threads"][w[THREAD] - 1]["thread"] for w in part["lock"]}, {"story-starved-2"})
        self.assertGreaterEqual(part["sums"]["lock"]["events"] + part["left_out"]["lock"]["events"],
                                all_of_it["sums"]["lock"]["events"])
        begins = sorted(w[AT] for w in all_of_it["lock"] if not w[FLAGS] & 5)
        begin, end = (all_of_it["from_ns"] / 1e9 + begins[len(begins) * k // 4] / 1e9 for k in (1, 3))
        some = self.ask("--from", "@%.3f" % begin, "--to", "@%.3f" % end)
        length = some["to_ns"] - some["from_ns"]
        self.assertAlmostEqual(length / 1e9, end - begin, delta=0.002)
        self.assertTrue(0 < len(some["lock"]) < len(all_of_it["lock"]))
        for w in some["lock"]:
            self.assertTrue(w[AT] < length and w[AT] + w[LENGTH] > 0, w)

    def test_the_page(self):
        path, said = self.file("t.html", "--last", "60s")
        self.assertRegex(said, r"t\.html: \d+ CPU samples, \d+ waits, \d+ intervals off the CPU.*Open it in a browser")
        with open(path) as f:
            page = f.read()
        self.assertNotIn("@TIMELINE@", page)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
        self.assertIn("story-hog", {t["thread"] for t in data["threads"]})

    def test_perfetto_reads_it(self):
        path, _ = self.file("t.pftrace", "--last", "60s")
        trace = perfetto.Trace()
        with open(path, "rb") as f:
            trace.ParseFromString(f.read())
        tracks, stacks, flows, ends = {}, {}, {}, {}
        begun, length, slices = {}, 0, 0
        for p in trace.packet:
            for s in p.interned_data.debug_annotation_string_values:
                stacks[s.iid] = s.str.decode()
            if p.HasField("track_descriptor"):
                tracks[p.track_descriptor.uuid] = p.track_descriptor
            e = p.track_event
            for flow in e.flow_ids:
                flows[flow] = e.track_uuid
            for flow in e.terminating_flow_ids:
                ends[flow] = e.track_uuid
            if e.type == SLICE_BEGIN and "lock" in e.categories:
                notes = {n.name: n for n in e.debug_annotations}
                begun[e.track_uuid] = (p.timestamp, notes["ns"].uint_value)
                if "stack" in notes:
                    self.assertIn(notes["stack"].string_value_iid, stacks)
            elif e.type == SLICE_END and e.track_uuid in begun:
                begin, ns = begun.pop(e.track_uuid)
                self.assertEqual(p.timestamp - begin, ns)
                length += ns
                slices += 1
        named = {t.thread.thread_name: uuid for uuid, t in tracks.items() if t.HasField("thread")}
        self.assertLessEqual({"story-hog", "story-starved-1", "story-starved-2", "story-starved-3"}, set(named))
        self.assertEqual([t.process.pid for t in tracks.values() if t.HasField("process")], [self.story.pid])
        self.assertGreater(slices, 60)
        self.assertGreater(len(flows), 60)
        self.assertEqual(set(flows), set(ends), "an arrow has both ends")
        to_hog = [f for f, track in ends.items() if track == named["story-hog"]]
        self.assertGreater(len(to_hog), 60)
        self.assertTrue(any("LockStories.lambda$hog" in s and s.endswith("java.lang.Thread.run") for s in stacks.values()))
        print("%d packets, %d slices of waits over %.1f s, %d arrows" % (len(trace.packet), slices, length / 1e9, len(flows)))

    def test_mistakes_are_named(self):
        for words, sentence in ((["timeline"], "name one TARGET"), (["timeline", "1"], "-o FILE is missing"),
                                (["timeline", "1", "-o", "x.png"], r"ends in \.html, \.pftrace or \.json"),
                                (["timeline", "1", "-o", "-", "--last", "1s", "--from", "@1"], "use --last, or")):
            done = self.daemon.cli(*words, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, sentence)
        self.assertRegex(self.daemon.cli("timeline", "no such JVM", "-o", "-", check=False).stderr, "no JVM is called")


class LongWaits(unittest.TestCase):
    """Waits that have not ended are shown with their stacks."""
    WAITS = {"story-waits": "wait", "story-parks": "park", "story-holds": "park", "story-enters": "enter"}
    OFF = {"wait": "wait", "park": "park", "enter": "lock"}  # the same reasons as times off the CPU have them

    def stack(self, answer, node):
        frames = []
        while node:
            frames.append(answer["frames"][answer["nodes"][node][1]][0])
            node = answer["nodes"][node][0]
        return frames[::-1]

    def is_whole(self, frames):
        return bool(frames) and "Thread.run" in "".join(frames[:3]) and sum("LockStories.within" in f for f in frames) == 21

    def open_rows(self, answer, kind):
        """{thread: (reason, the waiter's stack, the owner's stack)} of open intervals of threads called story-..."""
        names = [""] + [t["thread"] for t in answer["threads"]]
        return {names[w[THREAD]]: (answer["reasons"][kind][w[REASON]], self.stack(answer, w[STACK]), self.stack(answer, w[OWNER_STACK]))
                for w in answer[kind] if w[FLAGS] & 4 and names[w[THREAD]] in self.WAITS}

    def test_it_has_its_stack(self):
        with Daemon("events: { cpu: {}, lock: { monitors: always }, offcpu: {} }\n") as daemon, Jvm(MAJOR, "LockStories", "long") as story:
            daemon.wait_state(story.pid, "streaming")
            story.process.stdin.write("go\n")
            story.process.stdin.flush()

            def ask():
                return json.loads(daemon.cli("timeline", str(story.pid), "--last", "2s", "-o", "-").stdout)
            answer = wait_for("all of them", lambda: (lambda a: a if set(self.open_rows(a, "lock")) == set(self.WAITS) else None)(ask()))
            rows = self.open_rows(answer, "lock")
            self.assertEqual({t: r[0] for t, r in rows.items()}, self.WAITS)
            for thread, (_, stack, _) in rows.items():
                self.assertTrue(self.is_whole(stack), (thread, stack))
            self.assertTrue(self.is_whole(rows["story-enters"][2]), "the owner waits, too: %s" % rows["story-enters"][2])
            self.judge_threads(daemon, story)
            why = daemon.status()["offcpu"].get("why")
            if why:
                print("no times off the CPU: " + why)
                return
            answer = wait_for("the kernel's table", lambda: (lambda a: a if set(self.open_rows(a, "offcpu")) == set(self.WAITS) else None)(ask()))
            for thread, (reason, stack, _) in self.open_rows(answer, "offcpu").items():
                self.assertEqual(reason, self.OFF[self.WAITS[thread]], thread)
                self.assertTrue(self.is_whole(stack), (thread, stack))

    def test_an_ended_thread_keeps_its_name(self):
        with Daemon("events: { cpu: {}, offcpu: {} }\n") as daemon, Jvm(MAJOR, "Sleepers", "2", "400", "3") as jvm:
            daemon.wait_state(jvm.pid, "streaming")

            def ended():
                t = json.loads(daemon.cli("threads", "--json", "--last", "1m", str(jvm.pid)).stdout)["targets"][0]
                if t["times"]["by"] != "kernel":
                    self.skipTest("no times off the CPU: %s" % daemon.status()["offcpu"].get("why"))
                names = [thread["name"] for thread in t["threads"] if thread["state"] == "ended"]
                return names if names.count("sleeper") >= 4 else None
            self.assertNotIn("", wait_for("ended threads", ended))

    def judge_threads(self, daemon, story):
        threads = json.loads(daemon.cli("threads", "--json", str(story.pid)).stdout)["targets"][0]["threads"]
        waiting = {t["name"]: t["waiting"]["stack"] for t in threads if t["waiting"] and t["name"] in self.WAITS}
        self.assertEqual(set(waiting), set(self.WAITS))
        for thread, stack in waiting.items():
            self.assertTrue(self.is_whole(stack), (thread, stack))


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else MAJOR
    unittest.main(verbosity=2)
