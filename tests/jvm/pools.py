"""Pools that are idle most of the time must not hide contention: pools.py MAJOR [--seconds N] [--rate N]. PoolLoad
sends 2,000 requests a second from another JVM to the pool of com.sun.net.httpserver and to Tomcat, under a daemon
with default settings. Their threads wait for work thousands of times a second, and for two scripted locks some
dozens of times. The threshold must stay as configured; number and time of the waits for the scripted locks must be
what the waiters measured, within 2 %; seven tenths of that time at the least, and none of it twice, must be times off
the CPU; and idle waits must be counted separately, of which --idle shows those that the threads have reported."""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "bench")]
import stacks  # noqa: E402
from kindling import BUILD, Daemon, classes, java_home, skip, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

LOCKS = {"PoolLoad$Mutex": "park", "PoolLoad$Monitor": "enter"}
SETTINGS = "events: { cpu: {}, lock: { monitors: always }, offcpu: {} }\n"  # on 25 there are none in the first minute by default
OFF_MAX = 0.02
SEEN_MIN = 0.7
ENOUGH, ATTEMPTS = 25, 6  # waits for each lock; a busy machine serves few requests
TELL_S = 3  # sums of idle threads arrive about once a second, with many threads less often
PROGRAMS = os.path.join(HERE, "..", "bench", "programs")


def tomcat():
    """The class path of ServletPool, in a folder of its own."""
    try:
        jars = [stacks.maven(jar) for jar in stacks.JARS if "tomcat" in jar]
    except (OSError, subprocess.SubprocessError) as why:
        skip("Tomcat cannot be had: %s" % why)
    path = [tempfile.mkdtemp(prefix="kindling-pools-"), classes(), *jars]
    subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", path[0],
                    os.path.join(PROGRAMS, "ServletPool.java")], check=True, stderr=subprocess.DEVNULL)
    return path


class Server:
    def __init__(self, major, main, path):
        self.process = subprocess.Popen(
            [java_home(major) + "/bin/java", "-Xmx128m", "-Dsun.net.httpserver.nodelay=true", "-cp", ":".join(path), main],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.process.pid
        self.port = int(self.line("PORT")[0])

    def line(self, word):
        for text in self.process.stdout:
            if text.split()[:1] == [word]:
                return text.split()[1:]
        raise AssertionError("the server ends without %s" % word)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()


def load(major, port, rate, seconds):
    """Requests a second."""
    text = subprocess.run([java_home(major) + "/bin/java", "-Xmx64m", "-cp", classes(), "PoolClient", str(port), str(rate),
                           str(seconds)], capture_output=True, text=True, timeout=60 + 10 * seconds).stdout
    words = text.split()
    if words[:1] != ["DONE"]:
        raise AssertionError("the client says %r" % text)
    return int(words[1]) / (int(words[2]) / 1e9)


def ask(daemon, pid, *options):
    """(output of `kindling locks` for the JVM, its rows by class)."""
    target = json.loads(daemon.cli("locks", str(pid), "--json", "--last", "10m", "-n", "1000", *options).stdout)["targets"][0]
    rows = {}
    for row in target["locks"]:
        of_class = rows.setdefault(row["lock"]["class"] if row["lock"] else "", {"waits": 0, "ns": 0, "kinds": set(), "idle": 0})
        of_class["waits"] += row["waits"]
        of_class["ns"] += row["total_ns"]
        of_class["idle"] += row["waits"] if row["idle"] else 0
        of_class["kinds"].add(row["kind"])
    return target, rows


def near(a, b):
    return abs(a - b) <= OFF_MAX * b


def judge(daemon, server, label, truth, per_s):
    requests, *known = map(int, truth)
    target, rows = ask(daemon, server.pid)
    print("%s: %.0f requests/s, %d of them; %d idle waits in %.1f s, %d short ones, %d rows" % (
        label, per_s, requests, target["idle_waits"], target["idle_waits_ns"] / 1e9, target["short_waits"], len(rows)))
    check(target["min_wait_ns"] == 1_000_000, "waits of 1 ms and more are reported all the while: from %.3f ms" % (target["min_wait_ns"] / 1e6))
    for i, (name, kind) in enumerate(LOCKS.items()):
        waits, ns = known[2 * i:2 * i + 2]
        reported = rows.get(name, {"waits": 0, "ns": 0, "kinds": set()})
        check(waits >= ENOUGH and near(reported["waits"], waits) and near(reported["ns"], ns) and reported["kinds"] == {kind},
              "%s: %d waits, %.1f ms; reported are %d, %.1f ms (%s)" % (
                  name, waits, ns / 1e6, reported["waits"], reported["ns"] / 1e6, ", ".join(reported["kinds"])))
    judge_idle(daemon, server, target)


def judge_idle(daemon, server, before):
    check(before["idle_waits"] > 50, "workers wait for work: %d times" % before["idle_waits"])
    after, rows = ask(daemon, server.pid, "--idle")
    reported, counted = sum(row["idle"] for row in rows.values()), after["idle_waits"]
    # each thread holds those since its last report
    check(0.3 * counted < reported <= counted, "--idle shows %d of %d" % (reported, counted))


@contextlib.contextmanager
def times_off_cpu(daemon, pid):
    """Gives a list that has, at its end, the times off the CPU meanwhile that were no waits for work."""
    events = []
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--event", "offcpu", "--json", str(pid)],
                              stdout=out) as tail:
            yield events
            tail.terminate()
        out.seek(0)
        events += [e for e in map(json.loads, (line for line in out if line.endswith("}\n"))) if e["event"] == "offcpu"]


def judge_off_cpu(daemon, server, events, truth):
    """A pool's threads are spared the records of their waits for work, and of others beside these; those for a lock are
    times off the CPU all the same, each once. Some of the first are lost."""
    state = daemon.status()["offcpu"]
    if state.get("why"):
        print("  no times off the CPU: " + state["why"])
        return
    for name, ns in zip(LOCKS, map(int, truth[2::2])):
        of_lock = [e["duration_ns"] for e in events if e["lock"] and e["lock"]["class"] == name]
        check(SEEN_MIN * ns <= sum(of_lock) <= (1 + OFF_MAX) * ns, "%s: %.1f of %.1f ms are times off the CPU, %d" % (
            name, sum(of_lock) / 1e6, ns / 1e6, len(of_lock)))
    print("  %d were spared, %d have the lock's record only" % (
        state["spared"], daemon.target(server.pid)["offcpu"]["joins"]["lock_only"]))


def play(args, label, main, path):
    with Daemon(SETTINGS) as daemon, Server(args.major, main, path) as server:
        daemon.wait_state(server.pid, "streaming", 60)
        wait_for("lock events", lambda: "lock" in daemon.target(server.pid)["events"])
        for _ in range(ATTEMPTS):
            with times_off_cpu(daemon, server.pid) as events:
                server.say("go")
                per_s = load(args.major, server.port, args.rate, args.seconds)
                server.say("stop")
                truth = server.line("TRUTH")
                time.sleep(TELL_S)
            if min(int(truth[1]), int(truth[3])) >= ENOUGH:
                break
        judge(daemon, server, label, truth, per_s)
        judge_off_cpu(daemon, server, events, truth)
        agent = daemon.target(server.pid)["agent"]
        print("  agent: %s" % json.dumps(agent))
        check(not [n for n in daemon.target(server.pid).get("notes", []) if n["step"] == "budget"], "the budget changes nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=2000)
    args = parser.parse_args()
    play(args, "httpserver", "PoolLoad", [classes()])
    path = tomcat()
    play(args, "Tomcat", "ServletPool", path)
    shutil.rmtree(path[0])
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
