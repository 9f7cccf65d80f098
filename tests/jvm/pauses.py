"""Safepoints and GC pauses compared with the JVM's own log: pauses.py MAJOR [COLLECTOR...]. Needs root. PauseKnown
stops its world by collections and by stack traces, under each collector that the JDK has, and -Xlog prints when,
in the clock of the bands. Each safepoint of the log is a band of `kindling timeline` with the same length at the
same moment, or is counted as missed; there is no band that the log does not have. A band is of a collection if the
log has a pause in it. Each time off the CPU with the reason `safepoint` or `gc` was during one, unless a missed
one lay in it. The concurrent collectors have several short safepoints within milliseconds, of which the JVM keeps
the last: more of them are missed, and are counted."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
from kindling import Daemon, Jvm, java_home, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

ROUNDS = 8  # per group: of a collection and two stack traces
GROUPS = [("G1", "Serial"), ("Parallel", "Shenandoah"), ("Z", "ZGenerational")]  # those in one group run at the same time
FLAGS = {"Z": ["-XX:+UseZGC"], "ZGenerational": ["-XX:+UseZGC", "-XX:+ZGenerational"]}  # on 21 the kind without generations is the default
CONCURRENT = ("Shenandoah", "Z", "ZGenerational")
COLLECTS = re.compile(r"[XZ](Mark|Relocate)|Shenandoah(Init|Final|Degenerated|Full)")  # operations of these
LOG = "-Xlog:safepoint,gc,gc+phases:file=%s:tn"  # ZGC's pauses are phases
MS = 10**6
NEAR = 0.05, MS  # share of the length, or ns, that a band may be off
LOG_LATE = 50 * MS  # a line's time is when it is written; on a busy machine that is later than the safepoint's end
UNSEEN_MAX = 0.05  # share of the safepoints that may be missed; each must be counted as such
ATTEMPTS = 3  # tries, one of which must pass the checks that depend on chance; all others must pass every time
_, AT, LENGTH, STACK, _, REASON, _, LOCK, _, _, _, _, RUNQUEUE = range(13)
SAFEPOINT = re.compile(r'\[(\d+)ns\] Safepoint "(\w+)", Time since last: .* Reaching safepoint: (\d+) ns.* Total: +(\d+) ns')
PAUSE = re.compile(r"\[(\d+)ns\] GC\(\d+\) (?:[OYoy]: )?Pause .* (\d+\.\d+)ms")
SETTINGS = "events: { cpu: { interval: 20ms }, lock: {}, offcpu: {} }\n"


chances = []


def check_chance(ok, text):
    """Like check(), for results that may be wrong on a busy machine: such a run is repeated."""
    print(("  ok     " if ok else "  CHANCE ") + text)
    if not ok:
        chances.append(text)


def realtime():
    """CLOCK_REALTIME less CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def near(a, b):
    return abs(a - b) <= max(NEAR[0] * max(a, b), NEAR[1])


def log_of(path):
    """The log's safepoints [(begin, end, operation, moment the last thread stopped)] and its collections [(begin, end)], CLOCK_MONOTONIC."""
    points, pauses = [], []
    with open(path) as f:
        for line in f:
            m = SAFEPOINT.search(line)
            if m:
                points.append((int(m[1]) - int(m[4]), int(m[1]), m[2], int(m[1]) - int(m[4]) + int(m[3])))
            m = PAUSE.search(line)
            if m:
                pauses.append((int(m[1]) - int(float(m[2]) * MS), int(m[1])))
    return points, pauses


def bands_of(answer):
    """The bands as safepoints: [begin, end, operation, begin of the collection in it or None], CLOCK_MONOTONIC."""
    names, found = answer["reasons"]["band"], []
    offset = realtime()
    for b in sorted(answer["band"], key=lambda b: b[AT]):
        begin = answer["from_ns"] - offset + b[AT]
        operation = answer["locks"][b[LOCK] - 1][0]
        if names[b[REASON]] == "safepoint":
            found.append([begin, begin + b[LENGTH], operation, None])
        else:  # its safepoint lasts from the moment at which the last thread had stopped
            if not found or found[-1][1] > begin + 10 or begin - found[-1][1] > 10:
                found.append([begin, begin, operation, None])
            found[-1][1], found[-1][3] = begin + b[LENGTH], begin
    return found


def judge(collector, points, pauses, bands, unseen):
    first = bands[0][0] if bands else 0
    wanted = [p for p in points if p[0] >= first - MS]
    left, missed, wrong = list(bands), [], []
    for begin, end, operation, reached in wanted:
        hit = [b for b in left if b[2] == operation and (abs(b[0] - begin) <= MS and abs(b[1] - end) <= MS or
                                                         b[1] - b[0] == end - begin and 0 <= end - b[1] <= LOG_LATE)]
        hit.sort(key=lambda b: abs(b[0] - begin))
        if not hit:
            missed.append((begin, end - begin, operation))
            continue
        left.remove(hit[0])
        if not near(hit[0][1] - hit[0][0], end - begin) or hit[0][2] != operation or \
                hit[0][3] and abs(hit[0][3] - hit[0][0] - (reached - begin)) > MS:
            wrong.append((hit[0], begin, end, operation))
    collections_of = {tuple(b): [p for p in pauses if b[0] <= p[0] and p[1] <= b[1]] for b in bands if b[3]}
    lengths = [(b[1] - b[3], sum(p[1] - p[0] for p in inside)) for b, inside in collections_of.items()]
    right = sum(near(band, log) for band, log in lengths)
    with_gc = [b for b in bands if b[3]]
    known = [p for p in pauses if p[0] >= first and not any(m[0] <= p[0] <= m[0] + m[1] for m in missed)]
    print("%s: %d safepoints in the log, %d bands, %d missed (%d reported), %d wrong, %d that the log does not know; "
          "%d collections, %d bands, %d near" % (collector, len(wanted), len(bands), len(missed), unseen, len(wrong),
                                                 len(left), len(known), len(with_gc), right))
    at_most = len(wanted) if collector in CONCURRENT else UNSEEN_MAX * len(wanted)  # safepoints that nobody saw
    check_chance(len(bands) >= (ROUNDS if collector in CONCURRENT else 3 * ROUNDS * (1 - UNSEEN_MAX)), "%d bands" % len(bands))
    check(not wrong, "other lengths than the log's: %s" % wrong)
    check(not left, "bands that the log does not know: %s" % left)
    check(len(missed) <= unseen, "missed: %s, reported: %d" % (missed, unseen))
    check_chance(len(missed) <= at_most, "%d of %d safepoints missed" % (len(missed), len(wanted)))
    if collector in CONCURRENT:  # the log's times are coarser than the gap between two pauses
        other = [b for b in bands if bool(b[3]) != bool(COLLECTS.match(b[2]))]
        check(not other, "bands of another kind than their operations: %s" % other)
        check_chance(len(with_gc) >= ROUNDS, "%d bands of collections" % len(with_gc))
    else:
        check(sum(map(len, collections_of.values())) == len(known), "%d of %d collections lie in bands" % (
            sum(map(len, collections_of.values())), len(known)))
        check(all(collections_of.values()), "bands of collections in which the log has none: %s" % [
            b for b, inside in collections_of.items() if not inside])
    # the log leaves out the JVM's work around a collection, and CPU time that other processes take meanwhile
    check(all(band >= log - 2000 for band, log in lengths), "collections, band and log: %s" % lengths)
    check_chance(right >= 1, "%d of %d collections are as long as in the log" % (right, len(lengths)))
    return missed


def pauses_of(points, pauses, bands):
    """[(begin, end, reason)]: the bands, which agree with the log and are not shifted by a late line of it, and what the
    log has before the first of them."""
    first = bands[0][0] if bands else 0
    before = [(b, e, "gc" if any(b <= p and q <= e for p, q in pauses) else "safepoint") for b, e, _, _ in points if b < first - MS]
    return before + [(b[0], b[1], "gc" if b[3] else "safepoint") for b in bands]


def asks_vm_thread(answer, node):
    """A thread that asks for an operation also waits until the VM thread begins it, and for handshakes."""
    while node:
        if answer["frames"][answer["nodes"][node][1]][0].startswith("VMThread::execute"):
            return True
        node = answer["nodes"][node][0]
    return False


def judge_offcpu(collector, known, answer, since, missed):
    """Threads that were stopped after @since, when the agent began to read safepoints, by the @known pauses. A time
    that overlaps one of the @missed ones has the thread's own reason."""
    names, offset = answer["reasons"]["offcpu"], realtime()
    reasons, wrong = collections.Counter(), []
    for row in answer["offcpu"]:
        reason = names[row[REASON]]
        if reason not in ("safepoint", "gc"):
            continue
        begin = answer["from_ns"] - offset + row[AT]
        end, of = begin + row[LENGTH] - row[RUNQUEUE], collections.Counter()
        if begin < since or (reason == "safepoint" and asks_vm_thread(answer, row[STACK])):
            continue
        for b, e, kind in known:
            of[kind] += max(0, min(e, end) - max(b, begin))
        if any(b - LOG_LATE < end and begin < b + length for b, length, _ in missed):  # it began so much earlier if its line is late
            continue
        reasons[reason] += 1
        if 2 * sum(of.values()) < 0.98 * (end - begin) or of[reason] < max(of.values()):
            wrong.append((reason, row[LENGTH], row[RUNQUEUE], dict(of)))
    print("%s: times off the CPU in pauses: %s, wrong %s" % (collector, dict(reasons), wrong[:3]))
    check(not wrong, "reasons of times off the CPU: %s" % wrong)
    if collector not in CONCURRENT:  # their pauses are too short for an event
        # How many threads a pause stops is chance: the two that work are asleep for most of the time.
        check_chance(reasons["gc"] >= 1 and reasons["safepoint"] >= 1, "threads that stood still: %s" % dict(reasons))


def ask(daemon, pid):
    return json.loads(daemon.cli("timeline", "--last", "60s", "-o", "-", str(pid)).stdout)


def play(daemon, jvms):
    for jvm in jvms.values():
        daemon.wait_state(jvm.pid, "streaming")
    for jvm in jvms.values():
        wait_for("the JVM's safepoints", lambda: ask(daemon, jvm.pid)["pauses"]["known"])
        if not daemon.status().get("offcpu", {}).get("why"):
            wait_for("times off the CPU", lambda: ask(daemon, jvm.pid)["offcpu"])
    since = time.monotonic_ns()
    for jvm in jvms.values():
        jvm.process.stdin.write("\n")
        jvm.process.stdin.flush()
    for jvm in jvms.values():
        assert jvm.process.stdout.readline() == "END\n"
    return since


def judge_all(daemon, collector, jvm, log, since):
    points, pauses = log_of(log)

    def reported():
        bands = bands_of(ask(daemon, jvm.pid))
        return bands and abs(bands[-1][1] - points[-1][1]) <= MS
    try:
        wait_for("the last safepoint", reported, 15 if collector not in CONCURRENT else 5)
    except AssertionError:
        pass  # the checks decide; nothing is waited for
    answer = ask(daemon, jvm.pid)
    bands = bands_of(answer)
    missed = judge(collector, points, pauses, bands, answer["pauses"]["unseen"])
    if answer["offcpu"]:
        judge_offcpu(collector, pauses_of(points, pauses, bands), answer, since, missed)


def flags_of(collector):
    """None = this JDK does not have the collector."""
    flags = FLAGS.get(collector, ["-XX:+Use%sGC" % collector])
    done = subprocess.run([java_home(sys.argv[1]) + "/bin/java", *flags, "-version"], capture_output=True, text=True)
    if done.returncode != 0 or "support was removed" in done.stderr:
        print("%s: not in this JDK" % collector)
        return None
    return flags


def run(daemon, directory, group):
    flags = {c: f for c, f in ((c, flags_of(c)) for c in group) if f}
    logs = {c: os.path.join(directory, c) for c in flags}
    jvms = {c: Jvm(sys.argv[1], "PauseKnown", str(ROUNDS), options=("-Xmx300m", *flags[c], LOG % logs[c])) for c in flags}
    try:
        since = play(daemon, jvms)
        for c, jvm in jvms.items():
            judge_all(daemon, c, jvm, logs[c], since)
    finally:
        for jvm in jvms.values():
            jvm.__exit__()


def main():
    directory = tempfile.mkdtemp(prefix="kindling-pauses-")
    with Daemon(SETTINGS) as daemon:
        for group in GROUPS:
            for _ in range(ATTEMPTS):
                chances.clear()
                run(daemon, directory, [c for c in group if c in (sys.argv[2:] or c)])
                if failures or not chances:
                    break
            failures.extend(chances)
    if failures:
        print("files: " + directory)
    else:
        shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


main()
