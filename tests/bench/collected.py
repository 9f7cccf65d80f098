"""
What it costs the daemon to collect --events rather than --against: collected.py [--jdk 17] [--seconds 150].

Two daemons at once, each with JVMs of its own: a Tomcat that answers --rate requests a second, and --idle JVMs that wait
for a word. So both have the same machine. CPU time and memory of the data process, the history on disk, and the CPU time
of the JVMs, agent included.
"""
import contextlib
import os
import shutil
import tempfile
import threading
import time

import bench
import ledger
from kindling import Daemon, Jvm


class Side:
    """A daemon and its JVMs."""

    def __init__(self, args, events, start):
        self.events, self.jvms = events, []
        mark = "%s-%s" % (os.environ["KINDLING_TEST"], events)
        settings = bench.settings(args, *("  %s: {}" % e for e in events.split(",") if e != "cpu"))
        self.daemon = Daemon(settings + "targets:\n  mode: opt-in\n  attach_rate: 0\n  rules:\n"
                             '    - allow: { environment: "KINDLING_TEST=%s" }\n' % mark)
        mine = os.environ["KINDLING_TEST"]
        os.environ["KINDLING_TEST"] = mark
        try:
            self.tomcat = start()
            self.jvms = [Jvm(args.jdk, "Idle", options=("-Xmx32m", "-XX:+UseSerialGC")) for _ in range(args.idle)]
        finally:
            os.environ["KINDLING_TEST"] = mine
        self.pids = [self.tomcat.pid, *(j.pid for j in self.jvms)]
        for pid in self.pids:
            self.daemon.wait_state(pid, "streaming", bench.FOREVER)

    def memory(self):
        with open("/proc/%d/smaps_rollup" % self.daemon.data_pid()) as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))

    def history(self):
        """Bytes of the segments, as the disk has them."""
        return sum(os.stat(os.path.join(at, name)).st_blocks * 512
                   for at, _, names in os.walk(self.daemon.dir + "/state/segments") for name in names)

    def look(self):
        targets = [self.daemon.target(pid) for pid in self.pids]
        taken = [sum((t.get(kind) or {"taken": 0})["taken"] for kind in ("samples", "lock", "offcpu")) for t in targets]
        return {"wall": time.monotonic_ns(), "daemon": bench.cpu_clock_ns(self.daemon.data_pid()), "history": self.history(),
                "tomcat": bench.cpu_clock_ns(self.tomcat.pid), "idle": sum(bench.cpu_clock_ns(j.pid) for j in self.jvms),
                "tomcat events": taken[0], "idle events": sum(taken[1:])}

    def end(self):
        self.tomcat.end()
        for j in self.jvms:
            j.__exit__()
        self.daemon.__exit__()


def judge(side, first, last, args):
    seconds = (last["wall"] - first["wall"]) / 1e9
    grown = {k: (last[k] - first[k]) / seconds for k in first if k != "wall"}
    return {"daemon_ms_per_s": grown["daemon"] / 1e6, "memory_mib": side.memory() / 2**20,
            "history_kib_per_hour": grown["history"] * 3600 / 1024, "tomcat_ms_per_s": grown["tomcat"] / 1e6,
            "idle_ms_per_s": grown["idle"] / 1e6 / max(1, args.idle), "tomcat_events_per_s": grown["tomcat events"],
            "idle_events_per_s": grown["idle events"] / max(1, args.idle)}


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=int, default=150, help="that are measured (150)")
    p.add_argument("--settle", type=int, default=30, help="seconds before that (30)")
    p.add_argument("--threads", type=int, default=50, help="of each Tomcat (50)")
    p.add_argument("--rate", type=int, default=100, help="requests a second to each (100)")
    p.add_argument("--idle", type=int, default=5, help="idle JVMs on each side (5)")
    p.add_argument("--events", default="cpu,lock,offcpu", metavar="LIST", help="(cpu,lock,offcpu)")
    p.add_argument("--against", default="cpu,lock", metavar="LIST", help="(cpu,lock)")
    args = bench.begin(p)
    folder = tempfile.mkdtemp(prefix="kindling-collected-")
    with contextlib.ExitStack() as all_of_it:
        all_of_it.callback(shutil.rmtree, folder)
        start = ledger.programs(args, folder)["Tomcat"]
        sides = []
        for events in (args.against, args.events):
            sides.append(Side(args, events, start))
            all_of_it.callback(sides[-1].end)
        clients = [threading.Thread(target=ledger.pools.load, args=(args.jdk, int(s.tomcat.said[1]), args.rate, args.settle + args.seconds + 5))
                   for s in sides]
        for c in clients:
            c.start()
        time.sleep(args.settle)
        first = [s.look() for s in sides]
        time.sleep(args.seconds)
        last = [s.look() for s in sides]
        got = {s.events: judge(s, a, b, args) for s, a, b in zip(sides, first, last)}
        for c in clients:
            c.join()
    names = list(next(iter(got.values())))
    bench.table([["", *got]] + [[n.replace("_", " "), *("%.2f" % g[n] for g in got.values())] for n in names])
    bench.finish("collected", args, {"sides": got})


main()
