"""kindling-upload killed at random moments of its work, beside a made-up history: every sample is taken once, arrives
once at sinks that recognise repeated bodies, and the accounts balance. test_uploads_chaos.py [--kills N]. Needs
root."""
import glob
import json
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from servers import S3, Pyroscope  # noqa: E402
from test_uploads import is_balanced, samples_in  # noqa: E402
from upload import WINDOW_S, Upload  # noqa: E402

KILLS = 30
MEMORY_MAX_KB = 64 << 10


class Small(Pyroscope):
    """Accepts only small bodies, and while `moody` is set sometimes does not answer for an accepted one, or answers
    503."""

    moody = True

    def push(self, handler, body):
        with self.lock:
            mood = random.random() if self.moody else 0.5
        if len(body) > 20000:
            return 413, {}, "too large"
        if mood < 0.1:
            return 503, {"Retry-After": "0"}, "busy"
        done = super().push(handler, body)
        return None if mood > 0.9 else done  # None: the connection is closed


class Chaos(unittest.TestCase):
    maxDiff = None

    def peak_kb(self, up):
        try:
            with open("/proc/%d/status" % up.process.pid) as f:
                return max([int(line.split()[1]) for line in f if line.startswith("VmHWM")] or [0])
        except (FileNotFoundError, ProcessLookupError):
            return 0

    def live(self, up, windows_left):
        """One life of kindling-upload: more of the history becomes complete, and SIGKILL comes at a random moment,
        which may be during the start."""
        up.start()
        end, seen, settled = time.monotonic() + random.choice([0.02, 0.3, 0.6]) * random.random(), 0, 0
        while time.monotonic() < end:
            if random.random() < 0.2 and settled < windows_left:
                up.settle(WINDOW_S)
                settled += 1
            for s in up.tick().values():
                self.assertTrue(is_balanced(s), s)
            time.sleep(0.01)
        seen = self.peak_kb(up)
        up.kill()
        return seen, settled

    def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(self):
        seed = int(time.time())
        random.seed(seed)
        peak, left = 0, 60
        with Upload([], windows=60, processes=2, stacks=150) as up, Small() as pyro:
            up.directory("out")
            os.mkdir(up.directory("s3") + "/profiles")
            with S3(up.dir + "/s3") as s3:
                up.settings([
                    "name: dir, type: files, directory: %s/out, format: json, interval: 10s" % up.dir,
                    "name: lake, type: s3, url: http://127.0.0.1:%d, bucket: profiles, format: json, interval: 20s, "
                    "access_key_file: %s, secret_key_file: %s" % (s3.port, up.file("id", "testid"),
                                                                  up.file("secret", "testsecret")),
                    "name: pyro, type: pyroscope, url: http://127.0.0.1:%d, interval: 10s" % pyro.port])
                for _ in range(KILLS):
                    memory, settled = self.live(up, left)
                    peak, left = max(peak, memory), left - settled
                pyro.moody = False
                up.start().settle_all()
                total = sum(up.made.values())
                up.until("all delivered", lambda sinks: all(s["taken"] == total and not s["spooled"] for s in sinks.values()) and
                         all(sinks[n]["delivered"] == total for n in ("dir", "lake")) and
                         sinks["pyro"]["delivered"] + sinks["pyro"]["unconfirmed"] == total, 120)
            self.assertEqual({n: s["dropped"] for n, s in up.status.items()}, {"dir": {}, "lake": {}, "pyro": {}}, seed)
            self.assertEqual(samples_in(up.dir + "/out"), total, seed)
            self.assertEqual(sum(map(samples_in, glob.glob(up.dir + "/s3/profiles/*"))), total, seed)
            self.assertEqual(pyro.samples, total, seed)  # a body that arrived twice has the same id both times
            self.assertLess(peak, MEMORY_MAX_KB)
            print(json.dumps({"kills": KILLS, "seed": seed, "peak_kb": peak, "left": left, "samples": total,
                              "splits": up.read_log().count("sink.split")}))


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
