"""kindling-upload beside a made-up history: bounds of the spool, secrets, proxies, servers that take so much and no more.
Sums are those of the history, to the sample. test_uploads.py. Needs root."""
import glob
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from servers import Proxy, Stub  # noqa: E402
from upload import Upload  # noqa: E402


def is_balanced(s):
    return s["taken"] == s["delivered"] + s["spooled"] + s["unconfirmed"] + sum(s["dropped"].values())


def samples_in(directory):
    """Of all events, in files of the format json."""
    total = 0
    for path in glob.glob(directory + "/*.json"):
        with open(path) as f:
            total += json.load(f)["view"]["samples"]
    return total


class Uploads(unittest.TestCase):
    maxDiff = None

    def delivered(self, up, name="x"):
        """Until all of the history is."""
        total = sum(up.made.values())
        up.settle()
        s = up.until("all delivered", lambda sinks: sinks[name]["delivered"] == total and sinks[name])
        self.assertEqual((s["taken"], s["dropped"], s["spooled"] + s["unconfirmed"]), (total, {}, 0), up.read_log())

    def test_files_hold_the_history_and_keep_the_newest(self):
        sink = "name: x, type: files, directory: %s/%s, format: json, interval: %s, keep: %s"
        with Upload([], windows=12, stacks=400) as up:
            up.directory("out")
            up.settings([sink % (up.dir, "out", "20s", "1GiB")])
            up.start()
            self.delivered(up)
            self.assertEqual(samples_in(up.dir + "/out"), sum(up.made.values()))
            self.assertEqual(len(glob.glob(up.dir + "/out/*.json")), 12 / 2 * 2 * len(up.made))
        with Upload([], windows=40, processes=1, stacks=400) as up:
            with open(up.directory("out") + "/others_2026-01-01.json", "w") as f:
                f.write("not ours" * 100000)
            up.settings([sink % (up.dir, "out", "10s", "1MiB")])
            up.start()
            self.delivered(up)
            names = sorted(os.listdir(up.dir + "/out"))
            self.assertIn("others_2026-01-01.json", names)
            names.remove("others_2026-01-01.json")
            self.assertLessEqual(sum(os.path.getsize(up.dir + "/out/" + n) for n in names), 1.07 * (1 << 20))
            self.assertGreater(len(names), 3)
            last = time.strftime("_%Y-%m-%dT%H-%M-%SZ.", time.gmtime(up.end_s - 10))
            self.assertIn(last, names[-1])

    def test_the_spool_has_a_size_and_an_age(self):
        sinks = ["name: x, type: exec, command: [/bin/false], format: json, interval: 10s, spool_size: 1MiB"]
        with Upload(sinks, windows=30, processes=1, stacks=400) as up:
            up.start().settle()
            total = sum(up.made.values())
            s = up.until("all taken", lambda sinks: sinks["x"]["taken"] == total and sinks["x"]["dropped"] and sinks["x"])
            self.assertTrue(is_balanced(s), s)
            self.assertEqual(set(s["dropped"]), {"spool_full"})
            self.assertLessEqual(sum(up.spool("x")), 1 << 20)
            self.assertGreater(sum(up.spool("x")), (1 << 20) * 3 // 4)
            # an hour of it waits no longer than what is left
            up.kill()
            up.start()
            again = up.until("books", lambda sinks: sinks["x"])
            self.assertEqual((again["taken"], again["dropped"]), (s["taken"], s["dropped"]))
        sinks = ["name: x, type: exec, command: [/bin/false], format: json, interval: 10s, spool_age: 30m"]
        # half of it is older than half an hour
        with Upload(sinks, windows=20, processes=1, ago=1800 + 100) as up:
            up.start().settle(3600)
            total = sum(up.made.values())
            s = up.until("all taken", lambda sinks: sinks["x"]["taken"] == total and sinks["x"]["dropped"] and sinks["x"])
            self.assertTrue(is_balanced(s), s)
            self.assertEqual(set(s["dropped"]), {"spool_age"})
            self.assertIn(s["dropped"]["spool_age"] * 20 / total, range(8, 18))  # a minute is begun
            self.assertEqual(len(up.spool("x")), (20 - s["dropped"]["spool_age"] * 20 / total) * len(up.made))

    def test_secrets_are_in_files_or_in_the_environment_alone(self):
        seen = []

        def answer(handler, body):
            seen.append((handler.path, handler.headers["Authorization"]))
            return 200, {}, ""
        with Stub(answer) as server:
            url = "type: otlp, url: http://127.0.0.1:%d" % server.port
            sinks = ["name: word, %s/word, bearer_env: WORD" % url, "name: user, %s/user, user: me, password_env: PASS" % url,
                     "name: none, %s, bearer_env: MISSING" % url, "name: lines, %s, bearer_env: LINES" % url]
            with Upload(sinks, env={"WORD": "sesame-1", "PASS": "sword-fish", "LINES": "a\r\nX-Evil: b"}) as up:
                up.start()
                self.assertEqual(up.test("word"), (True, "HTTP 200"))
                self.assertEqual(up.test("user"), (True, "HTTP 200"))
                for name, variable in (("none", "MISSING"), ("lines", "LINES")):
                    self.assertEqual(up.test(name), (False, "bearer_env: %s is not in the environment of kindlingd, or "
                                                            "is too long" % variable))
                self.assertEqual(seen, [("/word", "Bearer sesame-1"), ("/user", "Basic bWU6c3dvcmQtZmlzaA==")])
                self.assertNotRegex(json.dumps(up.status) + up.read_log(), "sesame|sword|Evil")

    def test_a_proxy_is_gone_through(self):
        seen = []

        def answer(handler, body):
            seen.append(len(body))
            return 200, {}, ""
        with Stub(answer) as server, Proxy({"backend.invalid": server.port}) as proxy:
            sink = "name: %s, type: otlp, url: http://backend.invalid:4318, interval: 60s"
            sinks = [sink % "x" + ", proxy: http://127.0.0.1:%d" % proxy.port, sink % "direct"]
            with Upload(sinks) as up:
                up.start()
                self.delivered(up)
                self.assertEqual(len(seen), 2)
                self.assertEqual(set(proxy.seen), {"POST http://backend.invalid:4318/v1development/profiles"})
                s = up.until("an error", lambda sinks: sinks["direct"]["last_error"] and sinks["direct"])
                self.assertRegex(s["last_error"], "Could not resolve host: backend.invalid")
                self.assertEqual((s["spooled"], s["delivered"]), (sum(up.made.values()), 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
