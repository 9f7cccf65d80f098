"""How many stacks are whole, and what one costs: stacks.py [--jdk 17] [--seconds 10] [--quick] [--programs [--callers]].

WalkMix in several modes of the compilers and collectors, sampled by our agent (loaded by agent_reader,
no daemon) and by async-profiler 4.6 (cstack=vm, fetched from Maven Central, cached, only here), one after
the other in JVMs of their own. A mode is repeated in new JVMs until there are --enough samples; in
"warm-up" each JVM is sampled from its first line of main on, for a second and a half. A stack is broken when it belongs to a worker thread and has no
Thread.run. The bound is the upper end of the 95 % interval (Wilson). The second table is the time in our
handler by depth of the stack, clock readings included. --programs: instead, ours
alone on programs nobody tuned it on (tests/bench/programs: javac, H2, Tomcat; jars from Maven Central), where
a stack is broken that says so, has an unknown frame, or does not reach a root of a Java or native thread. With
--callers every pair of neighbouring Java frames is looked for in the class files, too (tests/harness/callers.py):
how many are judged, how many are no call of the caller's, how many cannot be judged and why; wrong ones with their
stacks.
The third table: what an attach takes and adds to RssAnon in a JVM with one spinning thread, medians of
--attaches; ours counts until the first sample is decoded here, async-profiler's until its start command returns.
"""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import zipfile

import bench
import callers
import jdks
import kindling

READER = os.path.join(kindling.BUILD, "tests", "agent_reader")
INJECT = os.path.join(kindling.BUILD, "bin", "kindling-inject")
LIBRARY = os.path.join(kindling.BUILD, "lib", "libkindling.so")
MODES = ["-XX:+UseG1GC", "-Xint", "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation", "-XX:+UseParallelGC", "-XX:+UseZGC",
         "-XX:+UseShenandoahGC"]
WARM_UP, WARM_UP_S = "warm-up", 1.5
ROUNDS_MAX = 30
RIVAL = "4.6"
JARS = ["com.h2database:h2:2.3.232", "org.apache.tomcat.embed:tomcat-embed-core:10.1.34",
        "org.apache.tomcat:tomcat-annotations-api:10.1.34"]
PROGRAMS = ["JavacLoop", "DatabaseLoop", "ServletLoop"]
ROOTS = re.compile(r"(java/lang/Thread\.run|jdk/internal/misc/InnocuousThread\.run|[\w/$]+\.main):-?\d+$|/\S+\+0x[0-9a-f]+$|\[(exited|found|no )|java/lang/ref/\S+\.run:")

RUN = "java/lang/Thread.run"
# A thread before its first Java frame and after its last has only native frames, up to libc's first function.
BEGINNING = re.compile(r"(/\S+\+0x[0-9a-f]+ < )*/\S*/(libc\.so\.6|libpthread\S*|ld-musl-\S+|libc\.musl-\S+)\+0x[0-9a-f]+$")
THEIR_BEGINNING = re.compile(r"\[[^\]]*\];(_*clone3?|start_thread|thread_native_entry)(;[^;/]+)*$")


def maven(artifact):
    """The artifact in Maven's own cache, fetched if it is missing."""
    group, name, version = artifact.split(":")
    path = os.path.expanduser("~/.m2/repository/%s/%s/%s/%s-%s.jar" % (group.replace(".", "/"), name, version, name, version))
    if not os.path.exists(path):
        subprocess.run(["mvn", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get", "-Dtransitive=false",
                        "-Dartifact=" + artifact], check=True, timeout=300)
    return path


def rival():
    """async-profiler's library, or None."""
    folder = os.path.join(jdks.cache_dir(), "async-profiler-" + RIVAL)
    library = os.path.join(folder, "linux-x64", "libasyncProfiler.so")
    if not os.path.exists(library):
        try:
            jar = maven("tools.profiler:async-profiler:" + RIVAL)
            with zipfile.ZipFile(jar) as z:
                z.extract("linux-x64/libasyncProfiler.so", folder)
        except (OSError, subprocess.SubprocessError, KeyError) as why:
            print("async-profiler cannot be had: %s" % why)
            return None
    return library


def upper(bad, n):
    """The upper end of the 95 % interval (Wilson) of a share, in percent."""
    if not n:
        return 100.0
    z, p = 1.96, bad / n
    return 100 * (p + z * z / 2 / n + z * ((p * (1 - p) + z * z / 4 / n) / n) ** 0.5) / (1 + z * z / n)


def java(args, flags, *program, path=None):
    process = subprocess.Popen([*jdks.command(kindling.java_home(args.jdk), os.path.realpath(kindling.BUILD)), *flags, "-Xmx300m", "-cp",
                                path or kindling.classes(), *program], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if process.stdout.readline() != "READY\n":
        process.kill()
        process.wait()
        return None
    return process


def memory_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))


def ours(process, seconds, interval_us, rootless=None, stacks=None):
    """(stacks, broken, handler us per sample {p50, p99, mean}, agent's KiB): of WalkMix's workers, or of all threads.
    @stacks: a list to which their frames go, each with its kind."""
    out = subprocess.run([READER, "-v", "-D", "-H", *([] if stacks is None else ["-K"]), "-l", LIBRARY, "-d", str(seconds), "-i", str(interval_us), str(process.pid)],
                         capture_output=True, text=True, errors="replace").stdout
    if not re.search("^handler us", out, re.M):
        raise LookupError("the agent did not come in: %s" % out[-200:])
    names = dict(re.findall(r"^THREAD (\d+) flags [0-6]+ java \d+ (.+)$", out, re.M))
    n = bad = 0
    for tid, stack in re.findall(r"^CPU \S+ tid (\d+) \d+ ns (.*)$", out, re.M):
        if stacks is not None:
            stacks.append(stack.split(" < "))
            stack = " < ".join(callers.plain(stacks[-1]))
        if rootless:
            broken = rootless(tid, stack)
        elif names.get(tid, "").startswith("mix-") and "[exited" not in stack:
            broken = not (RUN in stack or BEGINNING.match(stack))
        else:
            continue
        n += 1
        if broken or "[unknown]" in stack or "[broken:" in stack:
            bad += 1
            print("  broken: %s" % stack)
    agent_bytes = re.search(r"\bagent_bytes=(\d+)", out)
    us = {k: float(v) for k, v in re.findall(r"(p50|p90|p99|mean)=(\S+)", re.search(r"^handler us.*", out, re.M).group(0))}
    return n, bad, us, int(agent_bytes.group(1)) // 1024


def theirs(process, library, seconds, interval_us):
    path = "/tmp/kindling-bench-%d.collapsed" % os.getpid()
    options = "event=cpu,interval=%dus,cstack=vm,threads,collapsed,file=%s" % (interval_us, path)
    before, begin = memory_kib(process.pid), time.monotonic()
    subprocess.run(["jattach", str(process.pid), "load", library, "true", "start," + options], stdout=subprocess.DEVNULL)
    attach_ms = (time.monotonic() - begin) * 1000
    grown = memory_kib(process.pid) - before
    time.sleep(seconds)
    subprocess.run(["jattach", str(process.pid), "load", library, "true", "stop," + options], stdout=subprocess.DEVNULL)
    n = bad = 0
    with open(path, errors="replace") as f:
        for line in f:
            stack, count = line.rsplit(" ", 1)
            if stack.startswith("[mix-"):
                n += int(count)
                bad += int(count) * (not (RUN in stack or THEIR_BEGINNING.match(stack)) or "[unknown" in stack)
    os.unlink(path)
    return n, bad, attach_ms, grown


def rounds(args, mode, sample):
    """[n, broken] of new JVMs one after the other until there are enough samples, and the last JVM's other results;
    None: no JVM starts."""
    n = bad = 0
    rest = ()
    for _ in range(ROUNDS_MAX):
        process = java(args, [] if mode == WARM_UP else [mode], "WalkMix")
        if not process:
            return None
        try:
            m, worse, *rest = sample(process, WARM_UP_S if mode == WARM_UP else args.seconds, args.us)
        except LookupError as why:  # the machine may be too busy for an attach in time
            print("  once more: %s" % why)
            continue
        finally:
            process.kill()
            process.wait()
        n, bad = n + m, bad + worse
        if n >= args.enough:
            break
    return [n, bad, *rest] if n else bench.cannot(mode)


def shares(args, library):
    rows = [["mode", "ours n", "broken", "<= %", "us p50", "p99", "agent KiB", "a-p n", "broken", "%", "<= %"]]
    figures = []
    for mode in args.modes.split(",") if args.modes else MODES[:2] if args.quick else MODES + [WARM_UP]:
        done = rounds(args, mode, ours)
        if not done:
            print("  this JDK does not start with " + mode)
            continue
        n, bad, us, kib = done
        row = [mode, n, bad, "%.3f" % upper(bad, n), "%.1f" % us["p50"], "%.1f" % us["p99"], kib, "-", "-", "-", "-"]
        if library:
            m, worse, _, _ = rounds(args, mode, lambda process, seconds, us: theirs(process, library, seconds, us))
            row[7:] = [m, worse, "%.3f" % (100 * worse / max(1, m)), "%.3f" % upper(worse, m)]
        print("  %s: %d of %d" % (mode, bad, n), flush=True)
        rows.append(row)
        figures.append(dict(zip(("mode", "n", "broken", "upper_percent", "handler_us_p50", "handler_us_p99", "agent_kib", "rival_n", "rival_broken"), row)))
    bench.table(rows)
    n, bad = (sum(row[i] for row in rows[1:]) for i in (1, 2))
    print("all modes: %d of %d broken, at most %.4f %%" % (bad, n, upper(bad, n)))
    return figures


def costs(args):
    rows, figures = [["frames", "us per sample p50", "p90", "p99", "mean"]], []
    for depth in (20, 100, 500):
        process = java(args, [], "Depth", str(depth))
        time.sleep(2)
        _, _, us, _ = ours(process, args.seconds, args.us)
        process.kill()
        process.wait()
        rows.append([depth, *("%.2f" % us[k] for k in ("p50", "p90", "p99", "mean"))])
        figures.append(dict(us, depth=depth))
    bench.table(rows)
    return figures


def attaches(args, library):
    rows, figures = [["attach", "ms p50", "p90", "RssAnon KiB p50", "n"]], {}
    for name in ("kindling", "async-profiler") if library else ("kindling",):
        took, grown = [], []
        for _ in range(args.attaches):
            process = java(args, ["-Xms300m", "-XX:+AlwaysPreTouch"], "Work", "1")
            time.sleep(0.7)
            before = memory_kib(process.pid)
            if name == "kindling":
                reader = subprocess.Popen([READER, "-k", "-l", LIBRARY, "-d", "0.3", "-i", "4000", str(process.pid)],
                                          stdout=subprocess.PIPE, text=True,
                                          env={**os.environ, "KINDLING_INJECT": INJECT})
                took.append(float(re.search(r"first sample after (\S+) ms", reader.communicate()[0]).group(1)))
                grown.append(memory_kib(process.pid) - before)
            else:
                _, _, ms, kib = theirs(process, library, 0.3, args.us)
                took.append(ms)
                grown.append(kib)
            process.kill()
            process.wait()
        figures[name] = {"ms": took, "kib": grown}
        rows.append([name, "%.0f" % bench.quantile(took, 0.5), "%.0f" % bench.quantile(took, 0.9),
                     "%.0f" % bench.quantile(grown, 0.5), len(took)])
    bench.table(rows)
    return figures


def upper_in_a_million(bad, n):
    return "%.2f" % (1e4 * upper(bad, n))


def judged(args, judge, process, label, total):
    """Measures one JVM: the cells of its row, with the check of callers if asked for."""
    stacks = [] if judge else None
    n, bad, us, _ = ours(process, args.seconds, args.us, lambda tid, stack: not ROOTS.search(stack.split(" < ")[-1]), stacks)
    row = [*label, n, bad, "%.3f" % upper(bad, n), "%.1f" % us["mean"]]
    if judge:
        verdict = judge.judge(stacks)
        verdict.show()
        total += verdict
        row += [verdict.judged, sum(verdict.wrong.values()), sum(verdict.unjudged.values())]
    print("  " + " ".join(map(str, row)), flush=True)
    return row


def foreign(args):
    """Runs other projects' programs in every mode: all of their threads, and the JVM's own."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
    sources = [os.path.join(here, name + ".java") for name in PROGRAMS]
    path = [tempfile.mkdtemp(prefix="kindling-programs-"), *map(maven, JARS)]
    home, total = kindling.java_home(args.jdk), callers.Verdict()
    head = ("program", "mode", "n", "broken", "upper_percent", "handler_us", "judged", "wrong", "not_judged")
    rows = [["program", "mode", "n", "broken", "<= %", "us/sample"] + (["callers judged", "wrong", "not judged"] if args.callers else [])]
    subprocess.run([home + "/bin/javac", "-nowarn", "-cp", ":".join(path), "-d", path[0], *sources], check=True,
                   stderr=subprocess.DEVNULL)
    with callers.Judge(home, path) if args.callers else contextlib.nullcontext() as judge:
        for name in args.only.split(",") if args.only else PROGRAMS:
            for flags in args.modes.split(",") if args.modes else MODES[:2] if args.quick else MODES:
                process = java(args, [flags], name, sources[0], path=":".join(path))
                if not process:
                    print("  this JDK does not start with " + flags)
                    continue
                try:
                    rows.append(judged(args, judge, process, (name, flags), total))
                except LookupError as why:
                    print("  not measured: %s" % why)
                finally:
                    process.kill()
                    process.wait()
    shutil.rmtree(path[0])
    bench.table(rows)
    figures = {"programs": [dict(zip(head, row)) for row in rows[1:]]}
    if args.callers:
        wrong = sum(total.wrong.values())
        print("callers: %d of %d impossible, at most %s in a million; not judged: %s" % (
            wrong, total.judged, upper_in_a_million(wrong, total.judged), dict(total.unjudged)))
        figures.update(judged=total.judged, not_judged=total.unjudged,
                       wrong=[dict(pair=pair, n=n, stacks=total.stacks[pair]) for pair, n in total.wrong.items()])
    return figures


def main():
    p = bench.parser(__doc__)
    p.add_argument("--seconds", type=float, default=10, help="per mode and profiler (10)")
    p.add_argument("--us", type=int, default=1000, help="interval in us (1000; of the host engine, else the kernel's tick)")
    p.add_argument("--attaches", type=int, default=20, help="for the third table (20)")
    p.add_argument("--enough", type=int, default=20000, help="samples of a mode (20000)")
    p.add_argument("--modes", help="only these, with commas between them; warm-up is one")
    p.add_argument("--ours", action="store_true", help="only whether our stacks are whole: no async-profiler, no costs")
    p.add_argument("--quick", action="store_true", help="two modes only")
    p.add_argument("--programs", action="store_true", help="programs of others instead")
    p.add_argument("--callers", action="store_true", help="of these: are the callers calls in the class files?")
    p.add_argument("--only", help="only these programs, with commas between them (%s)" % ", ".join(PROGRAMS))
    args = bench.begin(p)
    print("JDK %s, interval %d us:" % (args.jdk, args.us))
    if args.programs:
        bench.finish("programs", args, foreign(args))
        return
    if args.ours:
        bench.finish("stacks", args, {"stacks": shares(args, None)})
        return
    library = rival()
    figures = {"stacks": shares(args, library), "depths": costs(args), "attaches": attaches(args, library)}
    bench.finish("stacks", args, figures)


if __name__ == "__main__":
    main()
