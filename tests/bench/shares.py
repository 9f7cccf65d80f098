"""Are short and long runs given their shares? shares.py [--jdk 17] [--seconds 60] [--load N] [--only NAMES] [--programs].

MixedRuns mixes runs of 0.2, 0.5, 2, 6 and 20 ms in a thread ("periodic", and "random" order and lengths), and tells
the CPU time of each kind by the thread's clock. Beside it, one after the other in the same JVM: kindling by default,
at 1 ms, with CPU timers instead of the host engine; async-profiler 4.6 with event=cpu; JFR's execution samples with
settings=profile. The table has, for each, how many points the share of each kind is off, the worst of them, one standard
deviation of a fifth of so many samples, the sum of the runs' weights against their clock, and that of the whole thread,
its sleep between the runs included, against its own. --load: so many spinning processes beside it. --programs: H2 and
Tomcat (tests/bench/programs) instead: the share of some methods by each.
"""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time

import bench
import kindling
import stacks

RUNS = ["run200us", "run500us", "run2ms", "run6ms", "run20ms"]
THREADS = ["periodic", "random"]
TIMERS = "    host_engine: false"
METHODS = {"DatabaseLoop": ["executeQuery", "executeBatch", "executeUpdate"],
           "ServletLoop": ["doGet", "ServletLoop.client", "SocketProcessorBase.run", "NioEndpoint$Poller.run"]}


def rows_of_collapsed(text):
    """(thread, stack, weight)"""
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        thread, _, stack = stack.partition(";")
        yield thread, stack.replace("/", "."), int(weight)


def rows_of_jfr(text):
    for event in text.split("jdk.ExecutionSample {")[1:]:
        thread = re.search(r'sampledThread = "([^"]*)"', event)
        frames = re.findall(r"^\s+([\w.$]+)\(", event, re.M)
        yield thread.group(1) if thread else "", ";".join(reversed(frames)), 1


def kindling_says(config, *options):
    @contextlib.contextmanager
    def sampler(args, jvm):
        daemon = kindling.Daemon(bench.settings(args, *([config] if config else [])))
        with daemon:
            daemon.wait_state(jvm.pid, "streaming", bench.FOREVER)
            time.sleep(2)
            before = daemon.target(jvm.pid)["samples"]["taken"]

            def finish():
                out = daemon.dir + "/out.collapsed"
                daemon.cli("record", str(jvm.pid), "-d", "%ds" % args.seconds, "--threads", "-o", out, *options,
                           timeout=args.seconds + 120)
                with open(out) as f:
                    rows = list(rows_of_collapsed(f.read()))
                engine = daemon.target(jvm.pid)["engine"]
                return rows, daemon.target(jvm.pid)["samples"]["taken"] - before, engine
            yield finish
    return sampler


@contextlib.contextmanager
def rival(args, jvm):
    library = stacks.rival()
    path = "/tmp/kindling-shares-%d.collapsed" % os.getpid()
    options = "event=cpu,interval=%s,threads,collapsed,total,file=%s" % (args.interval, path)

    def command(what):
        subprocess.run(["jattach", str(jvm.pid), "load", library, "true", what + "," + options],
                       stdout=subprocess.DEVNULL, check=True)

    def finish():
        command("start")
        time.sleep(args.seconds)
        command("stop")
        with open(path, errors="replace") as f:
            rows = [(t.strip("[]"), s, w) for t, s, w in rows_of_collapsed(f.read())]
        os.unlink(path)
        each = {"ms": 1e6, "us": 1e3}[args.interval[-2:]] * float(args.interval[:-2])
        return rows, sum(w for _, _, w in rows) / each, ""
    yield finish


@contextlib.contextmanager
def jfr(args, jvm):
    path = "/tmp/kindling-shares-%d.jfr" % os.getpid()
    home = kindling.java_home(args.jdk)

    def finish():
        subprocess.run([home + "/bin/jcmd", str(jvm.pid), "JFR.start", "name=shares", "settings=profile"],
                       stdout=subprocess.DEVNULL, check=True)
        time.sleep(args.seconds)
        subprocess.run([home + "/bin/jcmd", str(jvm.pid), "JFR.stop", "name=shares", "filename=" + path],
                       stdout=subprocess.DEVNULL, check=True)
        text = subprocess.run([home + "/bin/jfr", "print", "--events", "jdk.ExecutionSample", "--stack-depth", "64", path],
                              capture_output=True, text=True, check=True).stdout
        os.unlink(path)
        rows = list(rows_of_jfr(text))
        return rows, len(rows), ""
    yield finish


SAMPLERS = {"kindling": kindling_says(None), "kindling-1ms": kindling_says(None, "-i", "1ms"),
            "kindling-timers": kindling_says(TIMERS), "async-profiler": rival, "jfr": jfr}


def judge(name, done, truth):
    rows, taken, engine = done
    got, whole = {}, dict.fromkeys(THREADS, 0)
    for thread, stack, weight in rows:
        for t in THREADS:
            whole[t] += weight if t in thread else 0
        run = re.search(r"MixedRuns\.(run\w+)", stack)
        if run and run.group(1) in RUNS:
            for t in THREADS:
                if t in thread:
                    got[t, run.group(1)] = got.get((t, run.group(1)), 0) + weight
    all_of = sum(w for _, _, w in rows)
    figures = []
    for t in THREADS:
        true_sum = sum(truth[t + "/" + r] for r in RUNS)
        got_sum = sum(got.get((t, r), 0) for r in RUNS)
        if not got_sum:
            continue
        n = taken * got_sum / all_of
        off = [100 * (got.get((t, r), 0) / got_sum - truth[t + "/" + r] / true_sum) for r in RUNS]
        figures.append({"sampler": name, "engine": engine, "thread": t, "samples": n, "off": off,
                        "worst": max(map(abs, off)), "deviation": 40 / n ** 0.5,
                        "true": [100 * truth[t + "/" + r] / true_sum for r in RUNS], "weights": got_sum / true_sum,
                        "whole": whole[t] / truth[t]})
    return figures


def thread_clocks(pid):
    """{name: CPU ns} of the threads that mix runs."""
    found = {}
    for task in os.scandir("/proc/%d/task" % pid):
        with open(task.path + "/comm") as comm, open(task.path + "/schedstat") as clock:
            name = comm.read().strip()
            if name in THREADS:
                found[name] = int(clock.read().split()[0])
    return found


def mark(jvm):
    """CPU ns so far; skips lines that other profilers write into the JVM's output."""
    jvm.process.stdin.write("mark\n")
    jvm.process.stdin.flush()
    for line in jvm.process.stdout:
        if line.startswith("MARK "):
            runs = {k: int(v) for k, v in (x.split("=") for x in line.split()[1:])}
            return runs | thread_clocks(jvm.pid)
    raise AssertionError("the JVM has ended")


def mixed(args, names):
    figures = []
    with kindling.Jvm(args.jdk, "MixedRuns") as jvm:
        time.sleep(5)  # compiled
        for name in names:
            with SAMPLERS[name](args, jvm) as finish:
                before = mark(jvm)
                done = finish()
                after = mark(jvm)
            for f in judge(name, done, {k: after[k] - before[k] for k in after}):
                figures.append(f)
                print("  %s, %s: worst %.1f" % (name, f["thread"], f["worst"]), flush=True)
    bench.table([["sampler", "thread", "n", "true"] + RUNS + ["worst", "1 sd", "runs/clock", "thread/clock"]] +
                [[f["sampler"], f["thread"], "%.0f" % f["samples"], " ".join("%.0f" % x for x in f["true"])] +
                 ["%+.1f" % x for x in f["off"]] +
                 ["%.1f" % f["worst"], "%.1f" % f["deviation"]] +
                 ["%.3f" % f[k] if f["weights"] > 0.1 else "-" for k in ("weights", "whole")]
                 for f in figures])
    return figures


def programs(args, names):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
    path = [tempfile.mkdtemp(prefix="kindling-shares-"), *map(stacks.maven, stacks.JARS)]
    subprocess.run([kindling.java_home(args.jdk) + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", path[0],
                    *(os.path.join(here, p + ".java") for p in METHODS)], check=True, stderr=subprocess.DEVNULL)
    figures = []
    for program, methods in METHODS.items():
        process = stacks.java(args, [], program, path=":".join(path))
        if not process:
            bench.cannot(program)
        time.sleep(10)
        for name in names:
            with SAMPLERS[name](args, process) as finish:
                rows, taken, _ = finish()
            java = sum(w for _, s, w in rows if ".run" in s or ".main" in s)
            shares = {m: 100 * sum(w for _, s, w in rows if m in s) / java for m in methods}
            figures.append({"program": program, "sampler": name, "samples": taken, "shares": shares})
            print("  %s, %s: %.0f samples; of Java threads: %s" % (
                program, name, taken, "  ".join("%s %.1f %%" % s for s in shares.items())), flush=True)
        process.kill()
        process.wait()
    shutil.rmtree(path[0])
    return figures


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=int, default=60, help="per sampler (60)")
    p.add_argument("--load", type=int, default=0, help="spinning processes beside it (0)")
    p.add_argument("--only", help="samplers, with commas: " + ",".join(SAMPLERS))
    p.add_argument("--programs", action="store_true", help="H2 and Tomcat instead")
    args = bench.begin(p)
    names = [n for n in (args.only.split(",") if args.only else SAMPLERS) if n != "async-profiler" or stacks.rival()]
    with contextlib.ExitStack() as stack:
        for _ in range(args.load):
            spin = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            stack.callback(spin.wait)
            stack.callback(spin.kill)
        figures = (programs if args.programs else mixed)(args, names)
    bench.finish("shares-programs" if args.programs else "shares", args, {"load": args.load, "rows": figures})


if __name__ == "__main__":
    main()
