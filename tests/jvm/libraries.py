"""The walker on other people's code: libraries.py MAJOR [--seconds N]. Libraries works with one library after the
other: parsers, a database, a search engine, scripts, a compiler. Their stacks must reach their threads' roots, also
with a frame pointer in every compiled frame, with one compiler, and with the debugger's agent."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]
import maven  # noqa: E402
from kindling import java_home, skip  # noqa: E402
from walker import DEBUGGED, Run, check, failures, has_debugger  # noqa: E402

LIBRARIES = [("com.fasterxml.jackson.core", "jackson-databind", "2.21.3"), ("com.h2database", "h2", "2.3.230"),
             ("org.apache.lucene", "lucene-core", "9.12.3"), ("org.jruby", "jruby-complete", "9.4.12.0"),
             ("org.apache.groovy", "groovy", "4.0.33"), ("org.jetbrains.kotlin", "kotlin-compiler-embeddable", "2.2.0"),
             ("net.sf.saxon", "Saxon-HE", "12.5")]
NAMES = ["json", "sql", "search", "ruby", "groovy", "kotlin", "xml"]
MODES = [[], ["-XX:+PreserveFramePointer"], ["-XX:-TieredCompilation", "-XX:+UseSerialGC"]]
# The compiler has so many methods in its deep stacks that agent_reader, which cannot make the interval longer as
# kindlingd does, falls behind every millisecond.
INTERVAL_US = {"kotlin": 5000}
BROKEN_MAX = 2e-5


def class_path(directory):
    folders = [maven.fetch("java-" + artifact, group, artifact, version) for group, artifact, version in LIBRARIES]
    if None in folders:
        skip("the libraries come from Maven Central")
    jars = [os.path.join(folder, jar) for folder in folders for jar in sorted(os.listdir(folder))]
    subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "-proc:none", "-cp", ":".join(jars), "-d", directory,
                    os.path.join(HERE, "..", "bench", "programs", "Libraries.java")], check=True)
    return ":".join([directory, *jars])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("major")
    parser.add_argument("--seconds", type=float, default=6)
    args = parser.parse_args()
    home = java_home(args.major)
    directory = tempfile.mkdtemp(prefix="kindling-libraries-")
    broken = samples = 0
    try:
        path = class_path(directory)
        for flags in MODES + ([DEBUGGED] if has_debugger(home) else []):
            for name in NAMES:
                run = Run(home, directory, [*flags, "-Djava.io.tmpdir=" + directory], "-cp", args.seconds,
                          INTERVAL_US.get(name, 1000), [path, "Libraries", name])
                bad, n = run.check_roots(" ".join([name, *flags[:1]]))
                broken, samples = broken + bad, samples + n
        check(broken <= max(3, BROKEN_MAX * samples), "in all: %d of %d without root" % (broken, samples))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
