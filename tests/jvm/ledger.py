"""Where each thread's time went, compared with the wall clock and the kernel's own counts, and with what the timeline
shows of the same time, including what has not ended: ledger.py MAJOR. Needs root and a kernel that measures times
off the CPU; exit 77 without."""
import collections
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import Daemon, Jvm, wait_for  # noqa: E402

MAJOR = sys.argv[1]
SECONDS = 8
OTHER_MAX = 0.01  # share of all threads' time: waits for which neither the kernel nor the JVM knows a reason
MS = 10**6


def ask(daemon, pid):
    """Each thread's row, between two moments (CLOCK_MONOTONIC, ns)."""
    before = time.monotonic_ns()
    answer = json.loads(daemon.cli("threads", "--json", "--last", "10m", str(pid)).stdout)["targets"][0]
    return before, time.monotonic_ns(), answer


def cpu_of(pid):
    """The kernel's own counts by thread, in ns: on a CPU, waiting for one."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
            found[int(tid)] = tuple(map(int, f.read().split()[:2]))
    return found


def stolen_ns():
    """Time that the hypervisor has taken from all CPUs. The kernel leaves it out of its counts, kindling does not."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) * 10**9 // os.sysconf("SC_CLK_TCK")


def check_sums(answer):
    for t in [answer["times"]] + answer["threads"]:
        assert t["wall_ns"] == t["cpu_ns"] + t["runqueue_ns"] + sum(t["offcpu_ns"].values()) + t["unseen_ns"], t
    for key in ("wall_ns", "cpu_ns", "runqueue_ns", "unseen_ns"):
        assert answer["times"][key] == sum(t[key] for t in answer["threads"]), key


def by_tid(answer):
    return {t["tid"]: t for t in answer["threads"]}


def judge(daemon, pid):
    kernel, stolen = [cpu_of(pid)], stolen_ns()
    first = ask(daemon, pid)
    time.sleep(SECONDS)  # the time that is checked
    second = ask(daemon, pid)
    kernel.append(cpu_of(pid))
    stolen = stolen_ns() - stolen
    for _, _, answer in (first, second):
        check_sums(answer)
        assert answer["times"]["by"] == "kernel", answer["times"]
    least, most = second[0] - first[1], second[1] - first[0]
    judged = worst = 0
    for tid, now in by_tid(second[2]).items():
        was = by_tid(first[2]).get(tid)
        if not was or now["state"] == "ended" or tid not in kernel[0] or tid not in kernel[1]:
            continue
        wall = now["wall_ns"] - was["wall_ns"]
        off = max(least - wall, wall - most, 0)
        worst = max(worst, off)
        assert off <= max(0.005 * most, 2 * MS), (now["name"], wall, least, most)
        assert now["unseen_ns"] - was["unseen_ns"] <= 0.005 * most, now
        cpu, queue = (kernel[1][tid][k] - kernel[0][tid][k] for k in (0, 1))
        # the kernel's counts were read a moment before and a moment after
        assert -2 * MS - stolen <= cpu - (now["cpu_ns"] - was["cpu_ns"]) <= most - least + max(2 * MS, 0.02 * cpu), (now["name"], cpu, now, was)
        judged += 1
    print("%d threads over %.1f s: at most %.2f ms from the wall clock" % (judged, least / 1e9, worst / MS))
    return judged, first, second


AT, LENGTH, REASON, FLAGS, RUNQUEUE = 1, 2, 5, 6, 12
IDLE, OPEN, SHORT = 1, 4, 0.03  # flags; the share of a thread's time that may be off the CPU in times too short for an event


def shown(daemon, pid, begin, end):
    """The timeline of [begin, end): {tid: {reason: ns}}, and {tid: (name, reason)} of intervals that fill it and have
    not ended."""
    answer = json.loads(daemon.cli("timeline", str(pid), "--from", "@%.3f" % (begin / 1e9), "--to", "@%.3f" % (end / 1e9), "-o", "-").stdout)
    span, names = answer["to_ns"] - answer["from_ns"], answer["reasons"]["offcpu"]
    sums, asleep = collections.defaultdict(collections.Counter), {}
    for row in answer["offcpu"]:
        thread, reason = answer["threads"][row[0] - 1], names[row[REASON]]
        # events of the JVM's own threads that wait for work have no reason of their own
        reason = "idle" if (reason, row[FLAGS] & IDLE) == ("other", IDLE) else reason
        sums[thread["tid"]][reason] += max(0, min(row[AT] + row[LENGTH] - row[RUNQUEUE], span) - max(row[AT], 0))
        if row[FLAGS] & OPEN and row[AT] <= 0:
            asleep[thread["tid"]] = thread["thread"], reason
    opened = [row for row in answer["offcpu"] if row[FLAGS] & OPEN]
    assert all(row[AT] + row[LENGTH] == span for row in opened), opened
    assert answer["open_offcpu"]["events"] == len(opened) and answer["open_offcpu"]["ns"] == sum(row[LENGTH] for row in opened)
    return sums, asleep


def check_timeline(daemon, pid, first, second):
    """Between two answers of `threads` the timeline has the same times as they do: all of the time of threads that
    were off the CPU throughout, and never more than there was. It may be less on a busy machine, where more times
    are too short for an event."""
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    begin, end = ((before + after) // 2 + offset for before, after, _ in (first, second))
    slack = SHORT * (end - begin) + sum(after - before for before, after, _ in (first, second)) / 2

    def compare():
        sums, asleep = shown(daemon, pid, begin, end)
        wrong = []
        for tid, now in by_tid(second[2]).items():
            was = by_tid(first[2]).get(tid)
            for reason in set(now["offcpu_ns"]) | set(sums[tid]) if was and now["state"] != "ended" else ():
                spent = now["offcpu_ns"].get(reason, 0) - was["offcpu_ns"].get(reason, 0)
                if reason != "runqueue" and not (-slack <= spent - sums[tid][reason] <= (slack if tid in asleep else spent)):
                    wrong.append((now["name"], tid, reason, spent, sums[tid][reason]))
        return wrong, asleep
    try:  # an event appears when the agent has sent its part, or after 2 s
        wait_for("what ended before", lambda: not compare()[0], 15)
    except AssertionError:
        pass  # reported below
    wrong, asleep = compare()
    assert not wrong, (wrong, slack)
    assert ("Finalizer", "wait") in asleep.values() and len(asleep) >= 3, asleep
    print("%d threads asleep all the time, as the timeline shows, and its times are those of threads within %.0f ms" % (len(asleep), slack / MS))


def check_idle(daemon, pid):
    """The JVM's own threads are shown as waiting for work, also those that have not run since the attach."""
    def asked():
        answer = ask(daemon, pid)[2]
        return answer if {"VM Thread", "G1 Main Marker", "Signal Dispatcher"} <= {t["name"] for t in answer["threads"]} else None
    answer = wait_for("the names of all threads", asked)
    for t in answer["threads"]:
        if re.match(r"VM Thread|G1 |GC Thread#|C[12] Comp|Signal Dispatcher|Reference Handler", t["name"]):
            off = t["wall_ns"] - t["cpu_ns"] - t["runqueue_ns"] - t["unseen_ns"]
            idle = t["offcpu_ns"].get("idle", 0)
            assert idle + t["offcpu_ns"].get("other", 0) == 0 or idle >= 0.9 * off, t
    other = {t["name"]: round(t["offcpu_ns"]["other"] / 1e6) for t in answer["threads"] if "other" in t["offcpu_ns"]}
    share = answer["times"]["offcpu_ns"].get("other", 0) / answer["times"]["wall_ns"]
    print("other: %.3f %% of all time; ms: %s" % (100 * share, other))
    assert share <= OTHER_MAX, other
    assert answer["times"]["offcpu_ns"]["idle"] > 0.2 * answer["times"]["wall_ns"], answer["times"]


def main():
    with Daemon("events: { cpu: {}, lock: { monitors: always }, offcpu: {} }\n") as daemon, Jvm(MAJOR, "LockStories", "hog") as story:
        daemon.wait_state(story.pid, "streaming")
        times = wait_for("a first count", lambda: ask(daemon, story.pid)[2].get("times"))
        if times["by"] != "kernel":
            times = wait_for("a first count", lambda: (lambda t: t["by"] == "kernel" and t or (t if "yet" not in t["unseen_why"] and "not collected" not in t["unseen_why"] else None))(ask(daemon, story.pid)[2]["times"]))
        if times["by"] != "kernel":
            print("SKIPPED: " + times["unseen_why"])
            return 77
        story.process.stdin.write("go\n")
        story.process.stdin.flush()
        wait_for("waits", lambda: any(t["name"] == "story-hog" and t["offcpu_ns"].get("sleep", 0) > 2e9
                                      for t in ask(daemon, story.pid)[2]["threads"]))
        judged, first, second = judge(daemon, story.pid)
        assert judged >= 15, judged
        check_timeline(daemon, story.pid, first, second)
        check_idle(daemon, story.pid)
        answer = second[2]
        rows = {t["name"]: t for t in answer["threads"]}
        for name, reason in (("story-hog", "sleep"), ("story-starved-1", "lock"), ("story-starved-2", "lock"), ("Finalizer", "wait")):
            row = rows[name]  # time that a busy machine takes from the thread does not count
            share = row["offcpu_ns"].get(reason, 0) / (row["wall_ns"] - row["cpu_ns"] - row["runqueue_ns"])
            print("%s: %s for %.1f %%" % (name, reason, 100 * share))
            assert share > 0.8, rows[name]
        text = daemon.cli("threads", str(story.pid)).stdout
        assert "[not seen]" in text and "WALL" in text and re.search(r"story-starved-\d.* lock \d", text), text
        assert "[not seen]" in daemon.cli("top", "--once", str(story.pid)).stdout
    with Daemon("events: { cpu: {}, lock: { monitors: always } }\n") as daemon, Jvm(MAJOR, "LockStories", "hog") as story:
        daemon.wait_state(story.pid, "streaming")
        story.process.stdin.write("go\n")
        story.process.stdin.flush()

        def waited():
            answer = ask(daemon, story.pid)[2]
            check = {t["name"]: t for t in answer["threads"]}
            return answer if check.get("story-starved-1", {"offcpu_ns": {}})["offcpu_ns"].get("lock", 0) > 1e9 else None
        answer = wait_for("waits as times", waited)
        for t in answer["threads"]:
            assert t["wall_ns"] == t["cpu_ns"] + t["runqueue_ns"] + sum(t["offcpu_ns"].values()) + t["unseen_ns"], t
        assert (answer["times"]["by"], bool(answer["times"]["unseen_why"])) == ("samples", True), answer["times"]
        assert answer["times"]["unseen_ns"] > 0
        assert "[not seen]" in daemon.cli("threads", str(story.pid)).stdout
    return 0


if __name__ == "__main__":
    sys.exit(main())
