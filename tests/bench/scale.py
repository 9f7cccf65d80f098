"""
What 50 and 200 JVMs on one host cost: made-up ones (tests/bench/many_jvms.c), each with --rate samples a second of its own
names and stacks and an owner of its own, through a kindlingd as it is installed: discovery, attach, receivers, history, and
sinks. CPU time is that of all processes of kindlingd between two looks at the accounts, by the kernel's clocks, so other work on
the machine makes it a little larger and no more. Their memory is Pss: what processes share is counted once.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

import bench
import clickhouse
from kindling import BUILD, Daemon, wait_for  # noqa: E402

SINKS = {
    "files": "  - {name: dir, type: files, directory: %(dir)s/out, format: pb.gz, keep: 2GB, interval: %(interval)s}\n",
    "clickhouse": "  - {name: ch, type: clickhouse, url: \"http://127.0.0.1:%(port)d\", create: true, user: kindling,"
                  " password_file: %(secret)s, interval: %(interval)s}\n",
}


class Jvms:
    def __init__(self, number, rate):
        self.number = number
        self.process = subprocess.Popen([BUILD + "/tests/many_jvms", str(number), str(rate)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"READY\n":
            bench.cannot("the made-up JVMs did not start")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.communicate()


def descendants(pid):
    """The pids of all processes of the daemon, including its own."""
    found = [pid]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                for child in map(int, f.read().split()):
                    found += descendants(child)
    return found


def kind_of(pid):
    with open("/proc/%d/cmdline" % pid, "rb") as f:
        words = f.read().split(b"\0")
    with open("/proc/%d/comm" % pid) as f:
        name = f.read().strip()
    if b"receive" in words or b"reattach" in words:
        return "receivers"
    return {"kindlingd": "warden", "kindlingd-data": "kindlingd-data"}.get(name, name[:15])


def reaped_ns(pid):
    """CPU time, in kernel ticks, of ended children for which it has waited."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) * (10 ** 9 // os.sysconf("SC_CLK_TCK"))


def pss_kib(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"^Pss: +(\d+)", f.read(), re.M)[1])


def look(daemon):
    """CPU time and memory by kind of process."""
    cpu, pss, ended = {}, {}, 0
    for pid in descendants(daemon.process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, OSError, TypeError):
            kind, ns, kib = kind_of(pid), bench.cpu_clock_ns(pid), pss_kib(pid)
            cpu[kind] = cpu.get(kind, 0) + ns
            pss[kind] = pss.get(kind, 0) + kib
            ended += reaped_ns(pid)
    cpu["ended"] = ended  # attaches, symbols, answers
    status = daemon.status()
    ours = [t for t in status["targets"] if t["state"] == "streaming"]
    accounts = [t["samples"] for t in ours]
    return {"at": time.monotonic(), "cpu": cpu, "pss": pss, "streaming": len(ours), "status": status,
            "delivered": sum(b["delivered"] for b in accounts),
            "dropped": sum(sum(b["dropped"].values()) for b in accounts)}


def threads_ns(pid):
    """CPU time of the loop and of the worker."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f, open("/proc/%d/task/%s/comm" % (pid, tid)) as name:
            found["loop" if int(tid) == pid else name.read().strip()] = int(f.read().split()[0])
    return found


def size_of(directory):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(directory) for f in files)


def measure(args, number, server, secret):
    words = {"interval": args.sink_interval, "secret": secret, "port": server.port if server else 0,
             "dir": tempfile.mkdtemp(prefix="kindling-scale-")}
    os.chmod(words["dir"], 0o755)
    sinks = "".join(SINKS[s] % words for s in args.sinks)
    settings = "events: { cpu: { host_engine: false } }\n" + ("discovery: { bpf: off }\n" if args.apart else "") + ("sinks:\n" + sinks if sinks else "") + \
        "targets:\n  attach_rate: 0\n  max: 1000\n  mode: opt-in\n  rules:\n    - allow: { environment: \"KINDLING_TEST=%s\" }\n" % (
            os.environ["KINDLING_TEST"])
    with Daemon(settings) as daemon, Jvms(number, args.rate):
        # on a busy machine one attach in a hundred misses its deadline and is tried again later
        wait_for("the streams", lambda: sum(t["state"] == "streaming" for t in daemon.status()["targets"]) >= 0.95 * number,
                 bench.FOREVER)
        time.sleep(args.warmup)
        first, threads = look(daemon), threads_ns(daemon.data_pid())
        disk = size_of(daemon.dir + "/state/segments")
        print("%d JVMs: %d streaming, pids: warden %d, data %d" % (
            number, first["streaming"], daemon.process.pid, daemon.data_pid()), flush=True)
        most = {}
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            time.sleep(min(5, max(0, end - time.monotonic())))
            pss = look(daemon)["pss"]
            if sum(pss.values()) > sum(most.values() or [0]):
                most = pss
        last, threads_last = look(daemon), threads_ns(daemon.data_pid())
        stored = size_of(daemon.dir + "/state/segments") - disk
        counts = {s["name"]: {k: s[k] for k in ("taken", "delivered", "spooled", "unconfirmed", "dropped", "last_error")}
                  for s in last["status"].get("sinks", [])}
        held = [n["what"] for t in last["status"]["targets"] for n in t.get("notes", [])][:1]
        all_of_it = descendants(daemon.process.pid)
        daemon.stop()
        wait_for("the end of kindling-upload", lambda: not any(os.path.exists("/proc/%d" % p) for p in all_of_it[1:]))
    subprocess.run(["rm", "-rf", words["dir"]], check=True)
    n, wall = last["delivered"] - first["delivered"], last["at"] - first["at"]
    cpu = {k: last["cpu"].get(k, 0) - first["cpu"].get(k, 0) for k in last["cpu"]}
    return {"jvms": number, "streaming": last["streaming"], "samples_per_s": n / wall, "dropped": last["dropped"] - first["dropped"],
            "cpu_us": {k: v / n / 1e3 for k, v in cpu.items()}, "percent_per_10000": sum(cpu.values()) / n * 1e4 / 1e7,
            "threads_us": {k: (v - threads.get(k, 0)) / n / 1e3 for k, v in threads_last.items()},
            "pss_kib": last["pss"], "most_pss_kib": most, "stored_bytes_per_sample": stored / n, "sinks": counts, "notes": held}


def show(figures):
    kinds = sorted({k for m in figures for k in m["cpu_us"]})
    print("us of CPU a sample; then % of a CPU for 10,000 samples a second")
    bench.table([["JVMs", "samples/s", "dropped"] + kinds + ["all", "%/10,000"]] + [
        [m["jvms"], "%.0f" % m["samples_per_s"], m["dropped"]] + ["%.2f" % m["cpu_us"].get(k, 0) for k in kinds] +
        ["%.2f" % sum(m["cpu_us"].values()), "%.2f" % m["percent_per_10000"]] for m in figures])
    kinds = sorted({k for m in figures for k in m["most_pss_kib"]})
    print("MiB, Pss, at the moment with most of it; bytes of the history a sample")
    bench.table([["JVMs"] + kinds + ["all", "stored"]] + [
        [m["jvms"]] + ["%.1f" % (m["most_pss_kib"].get(k, 0) / 1024) for k in kinds] +
        ["%.1f" % (sum(m["most_pss_kib"].values()) / 1024), "%.1f" % m["stored_bytes_per_sample"]] for m in figures])
    for m in figures:
        print("%d JVMs: of kindlingd-data %s; sinks %s%s" % (
            m["jvms"], ", ".join("%s %.2f us" % (k, v) for k, v in sorted(m["threads_us"].items())), m["sinks"],
            "; notes: %s" % m["notes"] if m["notes"] else ""))


def main():
    p = bench.parser(__doc__)
    p.add_argument("--jvms", type=int, nargs="+", default=[50, 200], help="how many (50 200)")
    p.add_argument("--rate", type=int, default=100, help="samples a second of each (100)")
    p.add_argument("--seconds", type=float, default=120, help="measured (120)")
    p.add_argument("--warmup", type=float, default=30, help="before (30)")
    p.add_argument("--sinks", nargs="*", default=list(SINKS), choices=list(SINKS), help="deliver to these (all)")
    p.add_argument("--sink-interval", default="60s")
    p.add_argument("--apart", action="store_true",
                   help="in a pid namespace, and without BPF: other processes of the machine are not looked at")
    if "--apart" in sys.argv and os.environ.get("KINDLING_SCALE") != "apart":
        os.environ["KINDLING_SCALE"] = "apart"
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\"$@\" & wait $!", "sh",
                              sys.executable] + sys.argv)  # the shell becomes the parent of processes that are left behind
    args = bench.begin(p)
    server = clickhouse.Debian() if "clickhouse" in args.sinks else None
    with tempfile.NamedTemporaryFile("w") as secret:
        secret.write(clickhouse.PASSWORD + "\n")
        secret.flush()
        figures = [measure(args, n, server, secret.name) for n in args.jvms]
    show(figures)
    bench.finish("scale", args, {"runs": figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
