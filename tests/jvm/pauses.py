"""Safepoints and GC pauses compared with the JVM's own log: pauses.py MAJOR [COLLECTOR...]. Needs root. PauseKnown
stops its world by collections and by stack traces, under each collector that the JDK has, and -Xlog prints when,
in the clock of the bands. Each safepoint of the log is a band of `kindling timeline` with the same length at the
same moment, or is counted as missed; there is no band that the log does not have. A band is of a collection if the
log has a pause in it. The program tells when it asked for each, and when it had it, in its own clock: a band lies
between. JDK 8 and 11 record less (no operations; on 8 the log's moments are whole milliseconds). Each time off the CPU with the reason `safepoint` or `gc` was during one, unless a missed
one lay in it. The concurrent collectors have several short safepoints within milliseconds, of which the JVM keeps
the last: more of them are missed, and are counted."""
import calendar
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
import jdks  # noqa: E402
from kindling import Daemon, Jvm, java_home, wait_for  # noqa: E402
from walker import check, failures  # noqa: E402

ROUNDS = 8  # per group: of a collection and two stack traces
MAJOR = int(sys.argv[1].split("-")[0])
OLD = MAJOR < 17  # the JVM records no operations
GROUPS = [("G1", "Serial"), ("Parallel", "Shenandoah"), ("Z", "ZGenerational")]  # those in one group run at the same time
if OLD:
    GROUPS.append(("ConcMarkSweep",))
FLAGS = {"Z": ["-XX:+UseZGC"], "ZGenerational": ["-XX:+UseZGC", "-XX:+ZGenerational"]}  # on 21 the kind without generations is the default
CONCURRENT = ("Shenandoah", "Z", "ZGenerational")
UNTOLD = ("Z", "Shenandoah") if OLD else ()  # collectors whose collections the JVM does not record: their safepoints are only that
LOGS_LESS = UNTOLD + (("Serial", "ConcMarkSweep") if MAJOR == 8 else ())  # their log leaves out milliseconds of a collection
COLLECTS = re.compile(r"[XZ](Mark|Relocate)|Shenandoah(Init|Final|Degenerated|Full)")  # operations of these
LOG = ["-Xlog:safepoint,gc,gc+phases:file=%s:tn"]  # ZGC's pauses are phases
if MAJOR == 8:
    LOG = ["-Xloggc:%s", "-XX:+PrintGC", "-XX:+PrintGCDateStamps", "-XX:+PrintGCApplicationStoppedTime"]
MS = 10**6
COARSE = MS if MAJOR == 8 else 0  # what the log's moments may be off
NEAR = 0.05, MS  # share of the length, or ns, that a band may be off
FOREVER = 1 << 62
BRIEF = MS // 2
ASKS = {"safepoint": "VMThread::execute",
        "gc": ("ShenandoahControlThread::request_gc", "ShenandoahGenerationalControlThread::request_gc", "ZDriverPort::send_sync",
               "ShenandoahPacer::", "ShenandoahControlThread::handle_alloc", "ShenandoahController::handle_alloc", "ZPageAllocator::", "XPageAllocator::",
               "ZRelocateQueue::", "ZForwarding::", "XForwarding::")}
LOG_LATE = 50 * MS  # a line's time is when it is written; on a busy machine that is later than the safepoint's end
UNSEEN_MAX = 0.05  # share of the safepoints that may be missed; each must be counted as such
HELD_MIN = 4  # times off the CPU of each reason: two threads that work and sleep in turn meet 24 safepoints
ATTEMPTS = 3  # tries, one of which must pass the checks that depend on chance; all others must pass every time
_, AT, LENGTH, STACK, _, REASON, _, LOCK, _, _, _, _, RUNQUEUE = range(13)
SAFEPOINT = re.compile(r'\[(\d+)ns\] Safepoint "(\w+)", Time since last: .* Reaching safepoint: (\d+) ns.* Total: +(\d+) ns')
PAUSE = re.compile(r"\[(\d+)ns\] GC\(\d+\) (?:[OYoy]: )?Pause .* (\d+\.\d+)ms")
# JDK 11 writes a line before it notes the begin, one after that, and one before it notes the end
APPLICATION = re.compile(r"\[(\d+)ns\] Application time")
ENTERING = re.compile(r"\[(\d+)ns\] Entering safepoint")
STOPPED = re.compile(r"\[(\d+)ns\] Total time for which application threads were stopped: (\S+) s\S+ Stopping threads took: (\S+) s")  # 11
STOPPED_8 = re.compile(r"^(\S+): (?:\S+: )?Total time for which application threads were stopped: (\S+) s\S+ Stopping threads took: (\S+) s", re.M)
PAUSE_8 = re.compile(r"^(\S+): (?:\S+: )?\[(?:Full )?GC.* (\d+\.\d+) secs\]", re.M)
SETTINGS = "events: { cpu: { interval: 20ms }, lock: {}, offcpu: {} }\n"


chances = []


def check_chance(ok, text):
    """Like check(), for results that may be wrong on a busy machine: such a run is repeated."""
    print(("  ok     " if ok else "  CHANCE ") + text)
    if not ok:
        chances.append(text)


def realtime():
    """CLOCK_REALTIME less CLOCK_MONOTONIC: of several looks that with the least time between both clocks."""
    looks = []
    for _ in range(5):
        before, real, after = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        looks.append((after - before, real - before))
    return min(looks)[1]


def near(a, b):
    return abs(a - b) <= max(NEAR[0] * max(a, b), NEAR[1])


def at_date(text):
    """CLOCK_MONOTONIC of a date in the log of JDK 8."""
    seconds, rest = text.split(".")
    sign, hours, minutes = rest[3], int(rest[4:6]), int(rest[6:8])
    real = calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) - (1 if sign == "+" else -1) * (60 * hours + minutes) * 60
    return real * 1000 * MS + int(rest[:3]) * MS - realtime()


def ns(seconds):
    return int(float(seconds) * 1e9)


def log_of_8(path):
    with open(path) as f:
        text = f.read()
    points = [(at_date(m[1]) - ns(m[2]), at_date(m[1]), "", at_date(m[1]) - ns(m[2]) + ns(m[3]), None) for m in STOPPED_8.finditer(text)]
    return points, [(at_date(m[1]), at_date(m[1]) + ns(m[2])) for m in PAUSE_8.finditer(text)]


def log_of(path):
    """The log's safepoints [(begin, end, operation, moment the last thread stopped, on 11 the
    earliest and latest begin and end)] and its collections [(begin, end)], CLOCK_MONOTONIC."""
    points, pauses, early, late = [], [], 0, 0
    if MAJOR == 8:
        return log_of_8(path)
    with open(path) as f:
        for line in f:
            m = SAFEPOINT.search(line)
            if m:
                points.append((int(m[1]) - int(m[4]), int(m[1]), m[2], int(m[1]) - int(m[4]) + int(m[3]), None))
            m = APPLICATION.search(line)
            if m:
                early = int(m[1])
                if points and points[-1][4]:
                    points[-1][4][3] = early
            m = ENTERING.search(line)
            late = int(m[1]) if m else late
            m = STOPPED.search(line)
            if m:
                points.append((early, int(m[1]), "", early + ns(m[3]), [early, late, int(m[1]), FOREVER]))
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
        operation = answer["locks"][b[LOCK] - 1][0] if b[LOCK] else ""
        if names[b[REASON]] == "safepoint":
            found.append([begin, begin + b[LENGTH], operation, None])
        else:  # its safepoint lasts from the moment at which the last thread had stopped
            if not found or found[-1][1] > begin + 10 or begin - found[-1][1] > 10:
                found.append([begin, begin, operation, None])
            found[-1][1], found[-1][3] = begin + b[LENGTH], begin
    return found


def is_in_log_of_8(b, begin, end):
    """Its moments are whole milliseconds, and its line is written before the end is noted, maybe long after its times
    were taken."""
    return (abs(b[0] - begin) <= MS + COARSE and -MS - COARSE <= b[1] - end <= LOG_LATE or
            abs(b[1] - b[0] - (end - begin)) <= MS // 10 and -COARSE <= end - b[1] <= LOG_LATE)


def judge(collector, points, pauses, bands, unseen):
    first = bands[0][0] if bands else 0
    wanted = [p for p in points if p[0] >= first - MS - COARSE]
    left, missed, wrong, longer = list(bands), [], [], []
    for begin, end, operation, reached, bounds in wanted:
        if bounds:
            hit = [b for b in left if bounds[0] <= b[0] <= bounds[1] and bounds[2] <= b[1] <= bounds[3]]
        elif MAJOR == 8:
            hit = [b for b in left if is_in_log_of_8(b, begin, end)]
        else:
            hit = [b for b in left if b[2] == operation and (abs(b[0] - begin) <= MS and abs(b[1] - end) <= MS or
                                                             b[1] - b[0] == end - begin and 0 <= end - b[1] <= LOG_LATE)]
        hit.sort(key=lambda b: abs(b[0] - begin))
        if not hit:
            if begin >= first:  # earlier ones may be from before the agent began to read
                missed.append((begin, end - begin, operation))
            continue
        left.remove(hit[0])
        fits = bounds or near(hit[0][1] - hit[0][0], end - begin)
        if MAJOR == 8 and hit[0][1] - hit[0][0] - (end - begin) > MS:
            longer.append((hit[0], begin, end))
        elif not fits or bool(hit[0][2]) != bool(hit[0][3] or not OLD) or \
                hit[0][3] and abs(hit[0][3] - hit[0][0] - (reached - begin)) > MS:
            wrong.append((hit[0], begin, end, operation))
    collections_of = {tuple(b): [p for p in pauses if b[0] - COARSE <= p[0] and p[1] <= b[1] + COARSE] for b in bands if b[3]}
    lengths = [(b[1] - b[3], sum(p[1] - p[0] for p in inside)) for b, inside in collections_of.items()]
    right = sum(near(band, log) for band, log in lengths)
    with_gc = [b for b in bands if b[3]]
    known = [p for p in pauses if p[0] >= first - COARSE and not any(m[0] <= p[0] <= m[0] + m[1] for m in missed)]
    print("%s: %d safepoints in the log, %d bands, %d missed (%d reported), %d wrong, %d that the log does not know; "
          "%d collections, %d bands, %d near" % (collector, len(wanted), len(bands), len(missed), unseen, len(wrong),
                                                 len(left), len(known), len(with_gc), right))
    at_most = len(wanted) if collector in CONCURRENT else UNSEEN_MAX * len(wanted)  # safepoints that nobody saw
    if OLD:  # a lock's bias is revoked at a safepoint of some microseconds, of many threads' locks one after the other
        at_most += sum(length < BRIEF for _, length, _ in missed)
    check_chance(len(bands) >= (ROUNDS if collector in CONCURRENT else 3 * ROUNDS * (1 - UNSEEN_MAX)), "%d bands" % len(bands))
    # JDK 8 and 11: after a missed one, when the last thread had stopped is known only by when the collector began, which
    # is later if the VM thread loses its CPU in between
    late = check_chance if OLD else check
    late(not wrong, "other lengths than the log's: %s" % wrong)
    check_chance(len(longer) <= 2, "bands that end later than in the log: %s" % longer)
    check(not left, "bands that the log does not know: %s" % left)
    check(len(missed) <= unseen, "missed: %s, reported: %d" % (missed, unseen))
    check_chance(len(missed) <= at_most, "%d of %d safepoints missed" % (len(missed), len(wanted)))
    if collector in CONCURRENT:  # the log's times are coarser than the gap between two pauses
        other = [b for b in bands if not OLD and bool(b[3]) != bool(COLLECTS.match(b[2]))]
        check(not other, "bands of another kind than their operations: %s" % other)
        if collector in UNTOLD:
            check(not with_gc, "bands of collections that the JVM does not record: %s" % with_gc)
        else:
            check_chance(len(with_gc) >= ROUNDS, "%d bands of collections" % len(with_gc))
    else:
        check(sum(map(len, collections_of.values())) == len(known), "%d of %d collections lie in bands" % (
            sum(map(len, collections_of.values())), len(known)))
        check(all(collections_of.values()), "bands of collections in which the log has none: %s" % [
            b for b, inside in collections_of.items() if not inside])
    # the log leaves out the JVM's work around a collection, and CPU time that other processes take meanwhile
    less = MS if OLD else 2000
    late(all(band >= log - less for band, log in lengths), "collections, band and log: %s" % lengths)
    check_chance(right >= 1 or collector in LOGS_LESS, "%d of %d collections are as long as in the log" % (right, len(lengths)))
    return missed


def judge_program(collector, asked, bands, unseen):
    """Each safepoint that the program @asked for lies between its own two looks at the clock."""
    without = []
    for kind, before, after in asked:
        within = [b for b in bands if before <= b[0] and b[1] <= after + LOG_LATE]
        if not any((kind == "gc") == bool(b[3]) for b in within):
            without.append((kind, before, after, within))
    if collector in UNTOLD:
        without = [w for w in without if w[0] != "gc"]
    print("%s: the program asked for %d, %d without a band" % (collector, len(asked), len(without)))
    check(len(without) <= unseen, "asked for by the program, without a band: %s" % without)


def pauses_of(points, pauses, bands):
    """[(begin, end, reason)]: the bands, which agree with the log and are not shifted by a late line of it, and what the
    log has before the first of them."""
    first = bands[0][0] if bands else 0
    before = [(b, e, "gc" if any(b <= p and q <= e for p, q in pauses) else "safepoint") for b, e, *_ in points if b < first - MS]
    return before + [(b[0], b[1], "gc" if b[3] else "safepoint") for b in bands]


def asks(answer, node, reason):
    """A thread that asks for an operation also waits until the VM thread begins it, and for handshakes; one that asks a
    concurrent collector for a collection waits for all of it, and an allocation for a part of one."""
    while node:
        if answer["frames"][answer["nodes"][node][1]][0].startswith(ASKS[reason]):
            return True
        node = answer["nodes"][node][0]
    return False


def in_gap(begin, end, known, missed):
    """Is one of the @missed between the same two pauses as that time? Nobody knows where it was there."""
    low = max((e for b, e, _ in known if e <= begin), default=0)
    high = min((b for b, e, _ in known if b >= end), default=end)
    return any(low - LOG_LATE <= b <= high for b, _, _ in missed)


def judge_offcpu(collector, known, answer, since, missed):
    """Threads that were stopped after @since, when the agent began to read safepoints, by the @known pauses. A time
    near one of the @missed ones has the thread's own reason."""
    names, offset = answer["reasons"]["offcpu"], realtime()
    reasons, wrong = collections.Counter(), []
    for row in answer["offcpu"]:
        reason = names[row[REASON]]
        if reason not in ("safepoint", "gc"):
            continue
        begin = answer["from_ns"] - offset + row[AT]
        end, of = begin + row[LENGTH] - row[RUNQUEUE], collections.Counter()
        if begin < since or asks(answer, row[STACK], reason):
            continue
        for b, e, kind in known:
            of[kind] += max(0, min(e, end) - max(b, begin))
        if in_gap(begin, end, known, missed):
            continue
        reasons[reason] += 1
        if any(b <= begin <= e + MS for b, e, _ in known) and OLD:
            continue  # the threads are let go one by one, some long after the end
        if 2 * sum(of.values()) < 0.98 * (end - begin) or of[reason] < max(of.values()):
            wrong.append((reason, row[LENGTH], row[RUNQUEUE], dict(of)))
    print("%s: times off the CPU in pauses: %s, wrong %s" % (collector, dict(reasons), wrong[:3]))
    check(not wrong, "reasons of times off the CPU: %s" % wrong)
    if collector not in CONCURRENT:  # their pauses are too short for an event
        # How many threads a pause stops is chance: the two that work are asleep for most of the time.
        check_chance(min(reasons["gc"], reasons["safepoint"]) >= HELD_MIN, "threads that stood still: %s" % dict(reasons))


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
        jvm.asked = []
        for line in iter(jvm.process.stdout.readline, "END\n"):
            _, kind, before, after = line.split()
            jvm.asked.append((kind, int(before), int(after)))
    return since


def judge_all(daemon, collector, jvm, log, since):
    points, pauses = log_of(log)

    def reported():
        bands = bands_of(ask(daemon, jvm.pid))
        if MAJOR == 8:  # the end of its log comes when it ends
            return bands and bands[-1][1] > jvm.asked[-1][1]
        return bands and abs(bands[-1][1] - points[-1][1]) <= MS
    try:
        wait_for("the last safepoint", reported, 15 if collector not in CONCURRENT else 5)
    except AssertionError:
        pass  # the checks decide; nothing is waited for
    answer = ask(daemon, jvm.pid)
    if MAJOR == 8:
        jvm.end()
    points, pauses = log_of(log)
    points = [p for p in points if p[0] + realtime() < answer["to_ns"]]
    bands = bands_of(answer)
    missed = judge(collector, points, pauses, bands, answer["pauses"]["unseen"])
    judge_program(collector, jvm.asked, bands, answer["pauses"]["unseen"])
    if answer["offcpu"]:
        judge_offcpu(collector, pauses_of(points, pauses, bands), answer, since, missed)


def flags_of(collector):
    """None = this JDK does not have the collector."""
    flags = FLAGS.get(collector, ["-XX:+Use%sGC" % collector])
    if OLD:
        flags = ["-XX:+UnlockExperimentalVMOptions", *flags]
    if OLD and collector == "Parallel":  # the counters are in other memory, which goes when the JVM ends
        flags = ["-XX:+PerfDisableSharedMem", *flags]
    done = subprocess.run([*jdks.command(java_home(sys.argv[1])), *flags, "-version"], capture_output=True, text=True)
    if done.returncode != 0 or "support was removed" in done.stderr:
        print("%s: not in this JDK" % collector)
        return None
    return flags


def run(daemon, directory, group):
    flags = {c: f for c, f in ((c, flags_of(c)) for c in group) if f}
    logs = {c: os.path.join(directory, c) for c in flags}
    jvms = {c: Jvm(sys.argv[1], "PauseKnown", str(ROUNDS), options=(
        "-Xmx300m", *flags[c], LOG[0] % logs[c], *LOG[1:])) for c in flags}
    try:
        since = play(daemon, jvms)
        for c, jvm in jvms.items():
            judge_all(daemon, c, jvm, logs[c], since)
    finally:
        for jvm in jvms.values():
            jvm.__exit__()


def run_without_counters(daemon):
    """JDK 8 and 11 without their performance counters: nothing is told, and that is said."""
    with Jvm(sys.argv[1], "PauseKnown", "1", options=("-Xmx300m", "-XX:-UsePerfData")) as jvm:
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("samples", lambda: sum(len(ask(daemon, jvm.pid)[kind]) for kind in ("cpu", "offcpu")) >= 10)
        jvm.process.stdin.write("\n")
        jvm.process.stdin.flush()
        while jvm.process.stdout.readline() != "END\n":
            pass
        answer = ask(daemon, jvm.pid)
        check(not answer["pauses"]["known"] and not answer["band"], "-XX:-UsePerfData: %s" % answer["pauses"])


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
        if OLD:
            run_without_counters(daemon)
    if failures:
        print("files: " + directory)
    else:
        shutil.rmtree(directory)
    sys.exit(1 if failures else 0)


main()
