"""Reads our recordings by JDK Mission Control's own parser, from Maven Central."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench"))
import stacks  # noqa: E402
from kindling import java_home  # noqa: E402

JARS = ["org.openjdk.jmc:flightrecorder:9.1.2", "org.openjdk.jmc:common:9.1.2", "org.owasp.encoder:encoder:1.2.3",
        "at.yawk.lz4:lz4-java:1.10.2"]


def sums(path):
    """(kind, type, what) -> n: ("COUNT", "jdk.ThreadPark", ""), ("SUM", "jdk.ThreadPark", "duration"), ("METHOD", ...),
    ("VALUE", "kindling.OffCpu", "reason park")."""
    jars = ":".join(stacks.maven(jar) for jar in JARS)
    out = subprocess.run([java_home("17") + "/bin/java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", jars,
                          os.path.join(HERE, "jmc", "JmcSums.java"), path], capture_output=True, text=True)
    if out.returncode:
        raise AssertionError("JMC's parser: " + out.stderr[-2000:])
    result = {}
    for line in out.stdout.splitlines():
        words, n = line.rsplit(" ", 1)
        kind, of, what = (words.split(" ", 2) + [""])[:3]
        result[kind, of, what] = int(n)
    return result
