"""Trace ids compared with the spans on the stacks: traces.py MAJOR [--all | --mdcs] [--seconds N] [--virtual N] [--tracer
NAME], or traces.py --fetch: only fetches the jars for JDK 11 and later. The threads of TraceKnown enter and leave spans of the real OpenTelemetry SDK, of Brave, or of an MDC of
each logging framework; Vert.x and Quarkus keep them in their own way; a method on the stack marks the current span. The same holds for contexts that they publish in thread-local
storage, by Elastic's library, or by tests/harness/publishes.c, copies of which are loaded and unloaded meanwhile.
A sample is right if it has the span's trace and span id, or none outside of spans. At least 99.9 % of the CPU
samples in spans must be right, and at most one in 100,000 of all samples may have another span's ids, while a
collector that moves objects runs every few ms. Samples before the tracer's classes are known are left out, as are
those of native code during a collection: there must be few. --all: every collector of that JDK, and virtual
threads."""
import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "bench")]
import jdks  # noqa: E402
import maven  # noqa: E402
import stacks  # noqa: E402
from kindling import BUILD, java_home, skip, wait_for  # noqa: E402
from locks import LIBRARY, Jvm  # noqa: E402
from session import Session, methods  # noqa: E402
from walker import check, failures  # noqa: E402

VERSION = "1.45.0"
JARS = ["io.opentelemetry:opentelemetry-%s:%s" % (part, VERSION) for part in ("api", "context", "sdk-common", "sdk-trace")]
JARS += ["io.opentelemetry:opentelemetry-api-incubator:%s-alpha" % VERSION, "io.zipkin.brave:brave:6.0.3",
         "co.elastic.otel:jvmti-access:0.3.1", "org.slf4j:slf4j-api:2.0.16", "ch.qos.reload4j:reload4j:1.2.25", "org.jboss.logmanager:jboss-logmanager:2.1.19.Final"]
LOG4J = ["org.apache.logging.log4j:log4j-%s:2.%s" % (part, "%s") for part in ("api", "core")]
LOGBACK = ["ch.qos.logback:logback-%s:%s" % (part, "%s") for part in ("classic", "core")]
LOGBACK_VERSION = "1.5.12"
OWN_JARS = {"log4j": [jar % "25.2" for jar in LOG4J], "log4j_sorted": [jar % "17.2" for jar in LOG4J], "log4j_wrapped": [jar % "17.2" for jar in LOG4J],
            "log4j_in_place": [jar % "25.2" for jar in LOG4J],
            "jul": ["org.slf4j:slf4j-jdk14:2.0.16"]}
# Vert.x keeps what belongs to a Context in a map, since 4.5.2 in an array with that map, since 5 in the array alone
VERTX = {"vertx_map": "4.4.9", "vertx_array": "4.5.27", "vertx": "5.0.4"}
QUARKUS = ["io.quarkus:quarkus-opentelemetry:3.33.2", "io.quarkus:quarkus-vertx:3.33.2", "io.smallrye.common:smallrye-common-vertx-context:2.16.0", "io.smallrye.common:smallrye-common-constraint:2.16.0",
           "org.jboss.logging:jboss-logging:3.6.2.Final", "org.jboss.logmanager:jboss-logmanager:3.2.1.Final"]
QUARKUS_VERTX = "vertx_array"
MDCS = ["mdc", "jul", "log4j1", "log4j", "log4j_sorted", "log4j_wrapped", "log4j_in_place", "jboss", "brave_inherited"]
OPTIONS = {"quarkus": ["-Dio.opentelemetry.context.contextStorageProvider=io.quarkus.opentelemetry.runtime.OpenTelemetryContextStorageProvider"],
           "log4j_wrapped": ["-Dlog4j2.is.webapp=true"], "log4j_in_place": ["-Dlog4j2.garbagefreeThreadContextMap=true"]}
SKYWALKING = "org.apache.skywalking:apm-agent:9.3.0"
MODES = {"17": [("G1", "otel"), ("Uncompressed", "otel"), ("Shenandoah", "otel"), ("Parallel", "mdc"), ("Parallel", "log4j"), ("G1", "log4j1"), ("Parallel", "published"), ("G1", "elastic"), ("Parallel", "vertx_map"), ("G1", "quarkus")],
         "25": [("G1", "otel"), ("Wide", "otel"), ("Z", "otel"), ("Z", "brave"), ("Z", "log4j_in_place"), ("G1", "published"), ("Z", "vertx"), ("G1", "quarkus_mdc")]}
PUBLISHES = os.path.join(BUILD, "tests", "libpublishes_%s.so")
# how the variable is accessed in the library that stays, and in those that are unloaded
WAYS = {"17": ("descriptor", "gnu"), "25": ("gnu", "descriptor")}
DROPPED = 3  # libraries that were unloaded while a thread had a context in them
ALL = ["G1", "Uncompressed", "Wide", "Parallel", "Serial", "Shenandoah", "Z"]
ONLY = {"21": ["ZGenerational"]}  # the only ZGC since 24, which no flag chooses
NOT = {"8": ["Wide", "Shenandoah", "Z"], "11": ["Z"]}  # of ZGC on 11, which was experimental, many reads give no ids
FLAGS = {"Wide": ["-XX:+UseG1GC", "-XX:-CompactStrings"],  # texts of 16-bit characters alone
         "Uncompressed": ["-XX:+UseG1GC", "-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],  # the heap may exceed 32 GB
         "Z": ["-XX:+UseZGC"], "ZGenerational": ["-XX:+UseZGC", "-XX:+ZGenerational"]}
APART = ["-XX:CompileCommand=quiet"] + ["-XX:CompileCommand=dontinline,TraceKnown." + m for m in ("work_*", "change", "outside", "some")]
NUMBER = re.compile(r"^[0-9a-f]{32}\.\d+\.\d+-")  # ids of SkyWalking's span: its segment's id, and its number in that
RIGHT_MIN, WRONG_MAX = 0.999, 1e-5
HIDDEN_MAX = 0.1  # share of CPU samples that must be right, with a full collection every few ms
FIRST_S_MAX = 3  # until the tracer's classes are known; on a busy machine the agent's thread waits for a CPU
CLASSES = 3  # kinds of spans
ENOUGH = 500  # samples with ids, of all kinds of events
SPANS = 16  # of TraceKnown
GC_MS = 20
SAMPLE = re.compile(r"(?:WALL|LOCK|ALLOC) (\S+) .*?(?: trace (\S*)/(\S*))? stack (.*?)(?: owner_stack .*)?$")
CPU = re.compile(r"CPU (\S+) tid \d+ \d+ ns(?: trace (\S*)/(\S*))? (\S.*)$")


def skywalking(folder):
    """The option that loads SkyWalking's agent, from a folder with the files that it needs."""
    try:
        jar = stacks.maven(SKYWALKING)
    except (OSError, subprocess.SubprocessError) as why:
        skip("SkyWalking's agent cannot be had: %s" % why)
    home = os.path.join(folder, "skywalking")
    for part in ("config", "plugins", "activations"):
        os.makedirs(os.path.join(home, part))
    with open(os.path.join(home, "config", "agent.config"), "w") as f:
        f.write("agent.service_name=known\nagent.keep_tracing=true\ncollector.backend_service=127.0.0.1:9\nlogging.level=OFF\n")
    return shutil.copy(jar, os.path.join(home, "skywalking-agent.jar"))


def modes(major):
    return [mode for mode in ALL + ONLY.get(major, []) if mode not in NOT.get(major, [])]


def fetch():
    """Fetches what tests need, because Maven takes seconds for each jar, and minutes for all on a busy machine."""
    for jar in [*JARS, *(jar for jars in OWN_JARS.values() for jar in jars), *(jar % LOGBACK_VERSION for jar in LOGBACK), SKYWALKING, *QUARKUS]:
        stacks.maven(jar)
    for version in VERTX.values():
        vertx(version)


def vertx(version):
    """The jars of Vert.x and of what it needs. OpenTelemetry's are there too, of another version than those of JARS."""
    folder = maven.fetch("vertx-opentelemetry", "io.vertx", "vertx-opentelemetry", version)
    if not folder:
        skip("Vert.x cannot be had")
    return glob.glob(folder + "/*.jar")


def own_jars(major, tracer):
    if tracer in VERTX:
        return vertx(VERTX[tracer])
    if tracer.startswith("quarkus"):
        return [*map(stacks.maven, QUARKUS), *vertx(VERTX[QUARKUS_VERTX])]
    logback = [jar % ("1.3.14" if major == "8" else LOGBACK_VERSION) for jar in LOGBACK]
    return [stacks.maven(jar) for jar in OWN_JARS.get(tracer, logback)]


def program():
    """The class path of TraceKnown without a tracer's own jars, in a folder of its own."""
    try:
        jars = [stacks.maven(jar) for jar in JARS]
        others = [stacks.maven(jar) for jar in (OWN_JARS["log4j"][0], *QUARKUS)] + vertx(VERTX["vertx_map"])
    except (OSError, subprocess.SubprocessError) as why:
        skip("OpenTelemetry cannot be had: %s" % why)
    path = [tempfile.mkdtemp(prefix="kindling-traces-"), *jars]
    subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "--release", "8", "-Xlint:-options", "-cp",
                    ":".join([*path, *others, skywalking(path[0])]), "-d", path[0],
                    *(os.path.join(HERE, "programs", name + ".java") for name in ("TraceKnown", "TracePublished"))], check=True)
    return path


def truth(stack):
    """The number of the span that TraceKnown's innermost mark names; 0 = none; None = it is changing, or unknown. At
    its first and last instructions a method may be wrong: compiled code has exact information only at calls."""
    inner = ""
    for frame in methods(stack):
        name = frame.rpartition("TraceKnown.")[2] if "TraceKnown." in frame else ""
        if name.startswith("work_"):
            return int(name[5:]) + 1 if inner == "inside" else None
        if name in ("change", "work"):
            return None
        if name == "outside":
            return 0 if inner == "some" else None
        inner = name or inner
    return None


class Known(Jvm):
    def __init__(self, major, path, directory, flags, *args, tracer="otel"):
        self.out, self.err = os.path.join(directory, "out"), os.path.join(directory, "err")
        with open(self.out, "w") as out, open(self.err, "w") as err:
            java = jdks.command(java_home(major), os.path.dirname(LIBRARY), os.path.join(BUILD, "tests"), os.path.expanduser("~/.m2"), jdks.cache_dir())
            self.process = subprocess.Popen([*java, *flags, "-cp", ":".join([*path, *own_jars(major, tracer)]), "TraceKnown", tracer, *map(str, args)],
                                            stdin=subprocess.PIPE, stdout=out, stderr=err)
        self.pid = self.process.pid
        self.wait_line("READY", 60)


def ids(tracer, n):
    if tracer in ("otel", "published", "elastic", "quarkus", *VERTX):
        return "%032x" % n, "%016x" % n
    if tracer.startswith("brave"):
        return ("%016x" % n) * (1 + n % 2), "%016x" % n
    if tracer == "skywalking":
        return "known.trace.%d" % n, "0"
    return "%032x" % n, ""


class Verdict:
    def __init__(self, tracer):
        self.tracer = tracer
        self.counts = collections.Counter()
        # samples in spans until there was a span of each class; times of the first sample in a span and of the last of those
        self.first = 0
        self.begin = self.known = None
        self.classes = set()
        self.wrong = []

    def judge(self, at, trace, span, stack):
        known = truth(stack)
        seconds = float(at) if "." in at else int(at) / 1e9
        if known is None:
            return
        if known:
            self.begin = min(self.begin or seconds, seconds)
        want = ids(self.tracer, known) if known else (None, None)
        if trace and known:
            self.classes.add({2: "from elsewhere", 3: "not sampled"}.get((known - 1) % 4, "of the SDK"))
        if len(self.classes) < CLASSES and known and trace is None:
            self.first += 1
            self.known = max(self.known or seconds, seconds)
        elif (trace, span and NUMBER.sub("", span)) == want:
            self.counts["right, in a span" if known else "rightly none"] += 1
        elif trace is None and stack.startswith("/"):
            self.counts["hidden"] += 1  # in native code, where a collection does not wait for the thread
        elif trace is None:
            self.counts["missing"] += 1
        else:
            self.counts["wrong"] += 1
            self.wrong.append("%s/%s in %s" % (trace, span, stack[:300]))


def judged(text, tracer):
    cpu, wall = Verdict(tracer), Verdict(tracer)
    for line in text.splitlines():
        match = CPU.match(line)
        if match:
            cpu.judge(*match.groups())
        elif line.startswith(("WALL ", "LOCK ", "ALLOC ")):
            match = SAMPLE.match(line)
            if match:
                wall.judge(*match.groups())
    return cpu, wall


def wait_for_ids(session):
    try:
        wait_for("samples with ids", lambda: session.read().count(" trace ") > ENOUGH)
    except AssertionError as late:
        lines = [line for line in session.read().splitlines() if line.startswith(("CPU ", "WALL ", "LOCK "))]
        raise AssertionError("%s: %d of %d; the last is %s" % (
            late, sum(" trace " in line for line in lines), len(lines), lines[-1:]))


def run(major, path, mode, seconds, virtual, tracer="otel"):
    directory = tempfile.mkdtemp(prefix="kindling-traces-")
    flags = ["-XX:+UnlockExperimentalVMOptions"] * (major == "11") + FLAGS.get(mode, ["-XX:+Use%sGC" % mode]) + ["-Xmx256m", *APART, *OPTIONS.get(tracer, [])]
    if tracer == "skywalking":
        flags.append("-javaagent:" + os.path.join(path[0], "skywalking", "skywalking-agent.jar"))
    least_dropped = 0
    if tracer == "published":
        stays, goes = WAYS.get(major, WAYS["17"])
        flags += ["-Dpublishes=" + PUBLISHES % stays, "-Ddropped=" + PUBLISHES % goes]
        least_dropped = DROPPED
    try:
        with Known(major, path, directory, flags, 0 if virtual else 3, virtual, GC_MS, tracer=tracer) as jvm:
            session = Session(jvm.pid, directory, "cpu,wall,lock", "-v", "-i", "1000", "-W", "20000")
            time.sleep(seconds)
            wait_for_ids(session)
            wait_for("unloaded libraries", lambda: jvm.read(jvm.out).count("DROPPED ") >= least_dropped)
            session.end()
            check(jvm.process.poll() is None, "%s %s, %s: the JVM goes on" % (major, mode, tracer))
    finally:
        shutil.rmtree(directory)
    label = "%s %s, %s%s" % (major, mode, tracer, ", virtual threads" if virtual else "")
    cpu, others = judged(session.text, tracer)
    for name, verdict, least in (("CPU", cpu, RIGHT_MIN), ("other", others, 0.5)):
        c = verdict.counts
        first_s = verdict.known - verdict.begin if verdict.first else 0
        inside = c["right, in a span"] + c["missing"] + c["wrong"]
        n = inside + c["rightly none"]
        # published contexts can be read at any time
        hidden_max = 0 if tracer in ("published", "elastic") else HIDDEN_MAX * (inside + c["hidden"])
        check(inside > ENOUGH / 20 and c["missing"] <= max(1, (1 - least) * inside) and c["wrong"] <= WRONG_MAX * n
              and first_s <= FIRST_S_MAX and (name != "CPU" or c["hidden"] <= hidden_max),
              "%s: %s samples: %d right in spans, %d rightly none, %d missing, %d hidden by a collection, %d wrong, %d before the classes were known, %.2f s" % (
                  label, name, c["right, in a span"], c["rightly none"], c["missing"], c["hidden"], c["wrong"], verdict.first, first_s))
        for text in verdict.wrong[:5]:
            print("         " + text)
    check(not session.wrong, "%s: %s" % (label, session.wrong[:3] or "what was sent is whole"))


def run_on_carriers(major, path):
    """Virtual threads that publish in their carriers' storage: it is unknown whose context that is."""
    directory = tempfile.mkdtemp(prefix="kindling-traces-")
    flags = ["-Xmx256m", *APART, "-Dpublishes=" + PUBLISHES % "descriptor"]
    try:
        with Known(major, path, directory, flags, 0, 4, 0, tracer="published") as jvm:
            session = Session(jvm.pid, directory, "cpu,lock", "-v", "-i", "1000")
            wait_for("samples", lambda: len(re.findall("TraceKnown.work_", session.read())) > ENOUGH)
            session.end()
    finally:
        shutil.rmtree(directory)
    check(" trace " not in session.text, "%s: what virtual threads publish on their carriers is not read" % major)


def main():
    if sys.argv[1:] == ["--fetch"]:
        return fetch()
    parser = argparse.ArgumentParser()
    parser.add_argument("major")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--mdcs", action="store_true", help="the MDC of each logging framework, and Brave's inheritable context")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--mode", action="append")
    parser.add_argument("--virtual", type=int, default=0)
    parser.add_argument("--tracer", action="append")
    args = parser.parse_args()
    path = program()
    try:
        chosen = [(mode, tracer) for mode in args.mode or modes(args.major) for tracer in (MDCS if args.mdcs else args.tracer or ["otel"])]
        if not (args.mode or args.tracer or args.all):
            chosen = MODES.get(args.major, [("G1", "otel")])
        for mode, tracer in chosen:
            run(args.major, path, mode, args.seconds, args.virtual, tracer)
            if tracer == "published" and int(args.major) >= 21:
                run_on_carriers(args.major, path)
            elif args.all and int(args.major) >= 21:
                run(args.major, path, mode, args.seconds, 6, tracer)
    finally:
        shutil.rmtree(path[0])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
