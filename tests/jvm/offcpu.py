"""Times off the CPU of a program that measures its own: offcpu.py MAJOR [--rounds N] [--option=O]. The threads of OffCpuKnown
leave the CPU for every reason that a thread alone can have (pauses.py tests safepoints and collections), and print
how long each wait took by their own clock. `kindling tail --event offcpu --json` must report each once, with its
reason, duration and whole Java stack, and for a monitor with the lock and its owner. A wait in Java is a little
longer than the time off the CPU, so a duration is right if only a short part is missing; the share of right ones
is checked, because other work on the machine delays single waits."""
import argparse
import bisect
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
import jdks  # noqa: E402
from kindling import BUILD, Daemon, classes, java_home, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

PAUSE_MS = 200  # so that all threads together stay below the budget of signals
REASONS = {"known-sleep": "sleep", "known-park": "park", "known-wait": "wait", "known-lock": "lock",
           "known-pipe": "pipe", "known-socket": "socket", "known-accept": "accept", "known-connect": "connect",
           "known-poll": "poll", "known-file": "file", "known-fsync": "fsync", "known-fault": "fault", "known-disk": "disk",
           "known-other": "other", "known-vpark": "park", "known-vsleep": "sleep", "known-vwait": "wait", "known-vlock": "lock",
           "known-vsocket": "socket", "known-spin": "runqueue", "known-quota": "throttled"}
BESIDE = {"runqueue", "safepoint", "gc", "fault"}  # reasons that any thread may also have
# reasons that a thread may have within its wait: it hands over to another one, or reads the size of the file
OTHERWISE = {"known-socket": {"park"}, "known-pipe": {"park"}, "known-accept": {"park"}, "known-disk": {"file"},
             **{v: {"other"} for v in ("known-vpark", "known-vsleep", "known-vwait", "known-vlock")},  # locks of the JVM
             "known-vsocket": {"park", "other"}}
ALSO_RIGHT = {"known-spin": {"safepoint", "gc"}}
FOUND_MIN = 0.995  # share of the waits that must have the right reason
MISSED_MAX = 0.01  # more may be missing where the kernel does not report every switch, as daemon/bpf counts
UNSIGNALLED_MAX = 0.04  # more may have no Java stack, and so another reason, if signals cost more than their budget
STACK_MIN = 0.999  # of the events
STACKS_OFTEN = {"known-spin", "known-quota"}  # if the signal of a CPU sample is pending, no other one is sent
OFTEN_MIN = 0.5
ATTEMPTS = 3  # tries, one of which must be right: a loaded machine delays threads, and uses up the budget of signals
NEAR = 0.01, 100_000  # share of the wait, or ns, by which the median duration may be wrong
NEAR_MIN = 0.7  # share of all durations: other threads may run between the reading of the clock and the wait
SETTINGS = """events:
  cpu:
    interval: 20ms
  lock:
    min_wait: 1ms
    monitors: always
  offcpu:
    min: 1ms
"""


class Tail:
    def __init__(self, daemon, pid, path):
        self.path = path
        with open(path, "w") as out:
            self.process = subprocess.Popen(
                [BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--event", "offcpu", "--json", "--idle",
                 str(pid)], stdout=out, stderr=subprocess.STDOUT)

    def events(self):
        with open(self.path) as f:
            lines = [line for line in f.read().split("\n")[:-1] if line.startswith("{")]
        return [e for e in map(json.loads, lines) if e["event"] == "offcpu"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Known:
    """OffCpuKnown, and the waits that it printed: {thread: [(begin, end)]}."""

    def __init__(self, home, directory, rounds, options):
        slow, libraries = directory + "/slow", BUILD + "/tests"
        os.mkdir(slow)
        os.mkfifo(directory + "/fifo")
        on_slow = [BUILD + "/tests/slow_fs", slow, str(PAUSE_MS)] if os.path.exists("/dev/fuse") else []
        self.waits = collections.defaultdict(list)
        self.process = subprocess.Popen(
            [*on_slow, *jdks.command(home, BUILD, *([slow] if on_slow else [])), "-Xmx200m", *options,
             "-Djdk.virtualThreadScheduler.parallelism=8",  # several virtual threads are pinned at the same time
             "-cp", classes(), "OffCpuKnown", str(rounds), str(PAUSE_MS), libraries + "/libundisturbed.so", directory + "/fifo", *([slow] if on_slow else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory)
        self.pid = self.process.pid

    def until(self, word):
        """Reads the program's output, while it waits for our next line."""
        for line in self.process.stdout:
            if line == word + "\n":
                return
            words = line.split()
            if words[0] == "FOREVER":
                self.forever_ns = int(words[1])
            elif words[0] != "T":
                check(False, "the program: %s" % line.strip())
            else:
                self.waits[words[1]].append((int(words[2]), int(words[3])))
        raise AssertionError("OffCpuKnown ended before " + word)

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def tid(self, name):
        """A thread gives itself its name in the kernel, a moment after it has begun."""
        def named():
            for tid in os.listdir("/proc/%d/task" % self.pid):
                with open("/proc/%d/task/%s/comm" % (self.pid, tid)) as f:
                    if f.read().strip() == name:
                        return int(tid)
        return wait_for("the thread " + name, named)

    def end(self):
        self.process.kill()
        self.process.wait()


class Rival:
    """A program that computes all the time, on one CPU."""

    def __enter__(self):
        self.cpu = min(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        os.sched_setaffinity(self.process.pid, {self.cpu})
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


class Quota:
    """Limits one process to a fifth of a CPU, where this machine's cgroups can."""
    WAYS = (("/sys/fs/cgroup", (("cpu.max", "20000 100000"), ("cpu.weight", "10000"))),
            ("/sys/fs/cgroup/cpu", (("cpu.cfs_quota_us", "20000"), ("cpu.shares", "200000"))))

    def __init__(self, pid):
        self.pid, self.path = pid, None
        for parent, settings in self.WAYS:
            path = "%s/kindling-test-%d" % (parent, pid)
            try:
                os.mkdir(path)
            except OSError:
                continue
            try:
                for file, text in (*settings, ("cgroup.procs", str(pid))):
                    with open(path + "/" + file, "r+") as f:  # the mode "w" would make a file if there is no cgroup
                        f.write(text)
            except OSError:
                os.rmdir(path)
                continue
            self.path, self.parent = path, parent
            return

    def end(self):
        if self.path:
            wait_for("the cgroup to be empty", self.removed)

    def removed(self):
        try:
            os.rmdir(self.path)
            return True
        except OSError:
            return False


def play(home, daemon, directory, rounds, options):
    """(the program's own waits {thread: [(begin, end)]}, events, its target)"""
    quota = None
    known = Known(home, directory, rounds, options)
    try:
        known.until("READY")
        daemon.wait_state(known.pid, "streaming")
        wait_for("the agent to collect times off the CPU", lambda: "offcpu" in daemon.target(known.pid).get("events", []))
        tail = Tail(daemon, known.pid, directory + "/tail")
        wait_for("an event", tail.events)
        known.go_on()
        known.until("END")
        known.until("VIRTUAL")
        known.go_on()
        known.until("END")
        known.until("SPIN")
        wait_for("the minimum to be what was asked for", lambda: daemon.status()["offcpu"]["min_ns"] == 1_000_000)
        with Rival() as rival:
            os.sched_setaffinity(known.tid("known-spin"), {rival.cpu})
            known.go_on()
            known.until("END")
        known.until("QUOTA")
        quota = Quota(known.pid)
        known.go_on()
        known.until("END")
        judge_endless(daemon, known)
        if not quota.path:
            print("no cgroup with a quota here")
            known.waits.pop("known-quota", None)
        with_deadline(lambda: reported(known.waits, tail.events()))
        tail.stop()
        return known.waits, tail.events(), daemon.target(known.pid)
    finally:
        known.end()
        if quota:
            quota.end()


def judge_endless(daemon, known):
    """A wait that goes on counts up to now, under its reason, without an event. Before it its thread waited for the
    latch, since before kindling came: that counts too, as `other` if the signal for it was over the budget."""
    before = time.monotonic_ns()
    answer = json.loads(daemon.cli("threads", "--json", "--last", "1m", str(known.pid)).stdout)["targets"][0]
    least, most = before - known.forever_ns, time.monotonic_ns() - known.forever_ns
    thread = next(t for t in answer["threads"] if t["name"] == "known-forever")
    off = collections.Counter(thread["offcpu_ns"])
    print("    a wait goes on for %.3f to %.3f s, of its thread's %.3f s: %s" % (least / 1e9, most / 1e9, thread["wall_ns"] / 1e9, dict(off)))
    check(least > 5e9 and 0.99 * least <= off["socket"] <= 1.01 * most, "it counts %.3f s" % (off["socket"] / 1e9))
    rest = thread["wall_ns"] - off["socket"]
    over_budget = daemon.status()["offcpu"]["over_budget"]
    check(off["park"] + off["other"] * (over_budget > 0) >= 0.9 * rest, "the park before it counts %.3f of %.3f s" % (off["park"] / 1e9, rest / 1e9))


def reported(known, events):
    """Is there an event of the last wait of each thread?"""
    last = {}
    for e in events:
        last[e["thread"]] = max(last.get(e["thread"], 0), e["ts_ns"])
    return all(last.get(thread, 0) - clocks() >= waits[-1][0] for thread, waits in known.items())


def with_deadline(condition):
    """Waits for the last events for 2 s at most; if fewer have come by then, the checks decide."""
    try:
        wait_for("the last events", condition, 10)
    except AssertionError:
        pass


def clocks():
    """CLOCK_REALTIME less CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def has_java(e):
    return any("Thread.run" in f for f in e["stack"] or ())


def judge(known, events, offset, untold, unsignalled):
    """@untold: switches that the kernel did not report; @unsignalled: times off the CPU beyond the budget of signals"""
    by_thread = collections.defaultdict(list)
    for e in events:
        by_thread[e["thread"]].append(e)
    n = found = twice = bare_waits = 0
    lacks = []  # shares of the waits checked here
    wrong, stacks = collections.Counter(), [0, 0]
    bare, often = collections.Counter(), collections.defaultdict(list)
    for thread, waits in sorted(known.items()):
        mine = sorted(by_thread[thread], key=lambda e: e["ts_ns"])
        ends = [e["ts_ns"] - offset for e in mine]
        right, missed = 0, []
        for begin, end in waits:
            inside = mine[bisect.bisect_left(ends, begin):bisect.bisect_right(ends, end)]
            hits = [e for e in inside if e["reason"] in {REASONS[thread]} | ALSO_RIGHT.get(thread, set())]
            others = [e["reason"] for e in inside if e["reason"] not in BESIDE | {REASONS[thread]} | OTHERWISE.get(thread, set())]
            wrong.update("%s as %s" % (thread, r) for r in others)
            n += 1
            missed += [] if hits else [(waits.index((begin, end)), [(e["reason"], e["duration_ns"]) for e in inside])]
            right += bool(hits)
            bare_waits += any(not has_java(e) for e in inside if e["reason"] not in BESIDE)
            off = sum(e["duration_ns"] for e in inside)
            if hits:
                lacks.append((end - begin - off) / max(NEAR[0] * (end - begin), NEAR[1]))
            twice += off > end - begin
            for e in hits:
                whole = bool(e["stack"]) and any("Thread.run" in f for f in e["stack"][:5]) and any("OffCpuKnown" in f for f in e["stack"])
                if thread in STACKS_OFTEN:
                    often[thread].append(whole)
                    continue
                stacks[0] += 1
                stacks[1] += whole
                bare[thread] += not whole
        found += right
        if right < len(waits):
            print("    not found: rounds %s" % missed)
        print("%-14s %3d of %3d as %s" % (thread, right, len(waits), REASONS[thread]))
    near = sum(0 <= lack <= 1 for lack in lacks)
    middle = sorted(lacks)[len(lacks) // 2]
    print("found %.2f %%, durations near %.2f %% (%.2f of that in the middle), stacks to the root %.2f %% of %d, wrong %s" % (
        100 * found / n, 100 * near / n, middle, 100 * stacks[1] / max(1, stacks[0]), stacks[0], dict(wrong)))
    spared = min(unsignalled, bare_waits, UNSIGNALLED_MAX * n)
    check(found >= FOUND_MIN * n - min(untold, MISSED_MAX * n) - spared,
          "%d of %d waits are reported with their reason; of %d switches the kernel did not tell, %d of %d times over the budget of signals are these" % (
              found, n, untold, bare_waits, unsignalled))
    check(sum(wrong.values()) <= (1 - FOUND_MIN) * n + spared, "other reasons: %s" % dict(wrong))
    check(0 <= middle <= 0.5, "the middle duration lacks %.2f of what is near" % middle)
    check(near >= NEAR_MIN * n, "%d of %d durations are near" % (near, n))
    check(twice == 0, "%d waits are reported longer than they were" % twice)
    check(stacks[1] >= STACK_MIN * stacks[0] - spared, "%d of %d stacks reach from Thread.run to the program; not those of %s" % (
        stacks[1], stacks[0], dict(+bare)))
    for thread, whole in sorted(often.items()):
        check(sum(whole) >= OFTEN_MIN * len(whole), "%d of %d stacks of %s" % (sum(whole), len(whole), thread))
    calls = {e["syscall"] for e in by_thread["known-other"] if e["reason"] == "other"}
    check(calls == {"semtimedop"} or spared and "semtimedop" in calls, "other waits are reported with their system call: %s" % calls)
    carriers = [e for e in events if e["thread"].startswith("ForkJoinPool-") and e["stack"] and e["reason"] not in BESIDE]
    for e in carriers:
        if not e["idle"]:
            print("    a carrier's wait that is not idle: %s, %s, %d ns, %s" % (e["reason"], e["syscall"], e["duration_ns"], e["stack"][-4:]))
    # a carrier may also wait for the VM, for a class or for the memory of a new thread; it parks when it has no work
    check(all(e["idle"] for e in carriers if e["reason"] == "park"), "%d waits of carriers for work are idle" % len(carriers))
    locks = [e for e in by_thread["known-lock"] if e["reason"] == "lock"]
    both = [e for e in locks if e["lock"] and e["lock"]["class"] == "java.lang.Object"]
    owned = [e for e in both if e["owner"] and e["owner"]["thread"] == "helper-holder"]
    woken = [e for e in locks if e["waker"] and e["waker"].get("thread") == "helper-holder"]
    print("monitor: %d, with the lock %d, its owner %d, woken by it %d" % (len(locks), len(both), len(owned), len(woken)))
    return locks, both, owned


def judge_all(known, events, untold, unsignalled):
    locks, both, owned = judge(known, events, clocks(), untold, unsignalled)
    enough = (0.95 - UNSIGNALLED_MAX * (unsignalled > 0)) * len(locks)
    check(len(both) >= enough, "%d of %d waits for the monitor have their lock" % (len(both), len(locks)))
    check(len(owned) >= enough, "%d of %d have its owner" % (len(owned), len(locks)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("major")
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--option", action="append", default=[], help="one of the JVM's options")
    a = options.parse_args()
    home = java_home(a.major)
    directory = tempfile.mkdtemp(prefix="kindling-offcpu-")
    try:
        with Daemon(SETTINGS) as d:
            why = d.status().get("offcpu", {}).get("why")
            if why:
                skip("no times off the CPU: " + why)
            for attempt in range(ATTEMPTS):
                before = len(failures)
                own = os.path.join(directory, str(attempt))
                os.mkdir(own)
                begin = d.status()["offcpu"]
                known, events, target = play(home, d, own, a.rounds, a.option)
                end = d.status()["offcpu"]
                judge_all(known, events, *(end[key] - begin[key] for key in ("missed_switches", "over_budget")))
                print(json.dumps(target["offcpu"])[:80])
                joins = target["offcpu"]["joins"]
                check(joins["joined"] > 100 and not any(e["by_habit"] for e in events if e["stack"]),
                      "reasons with a stack are never taken from the wait before: %s" % joins)
                if len(failures) == before:
                    failures.clear()
                    break
    finally:
        if failures:
            print("files: " + directory)
        else:
            shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
