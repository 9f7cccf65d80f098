"""Attaches to JVMs in their first moments: an injector runs against each as soon as the process exists, again and
again until it streams. No JVM may end, print a thread dump or keep a file. born.py [--launches N] JDK..."""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import bundle  # noqa: F401  the harness's path
import injection
import jdks
import rows
from kindling import classes, skip

GIVE_UP_S = 10.0


class Newborn:
    kind = "plain"

    def __init__(self, jdk, directory):
        self.dir = directory
        with open(directory + "/out", "wb") as out, open(directory + "/err", "wb") as err:
            self.process = subprocess.Popen([*jdks.command(jdk, classes()), "-Xmx32m", "-XX:+UseSerialGC", "-cp", classes(),
                                             "Ticks"], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.pid = self.process.pid
        with open("/proc/%d/stat" % self.pid) as f:
            self.start_time = int(f.read().rsplit(")", 1)[1].split()[19])

    def strange_lines(self):
        found = []
        for name, pattern in (("out", r"READY|line \d+"), ("err", r"error line \d+")):
            with open(self.dir + "/" + name, errors="replace") as f:
                lines = f.read().split("\n")[:-1]
            found += [line for line in lines if not re.fullmatch(pattern, line)]
        return found


def attach_until_it_streams(jvm):
    """(outcome, attempts)"""
    attempts, end = 0, time.monotonic() + GIVE_UP_S
    while True:
        attempts += 1
        outcome = rows.see_through(jvm, injection.attach(jvm))
        if outcome == rows.STREAMING or time.monotonic() > end or jvm.process.poll() is not None:
            return outcome, attempts
        time.sleep(0.002)


def launch(jdk, wait_s):
    with tempfile.TemporaryDirectory(prefix="kindling-born-") as directory:
        jvm = Newborn(jdk, directory)
        try:
            time.sleep(wait_s)
            outcome, attempts = attach_until_it_streams(jvm)
            time.sleep(0.1)
            if jvm.process.poll() is not None:
                outcome = "ended: %s" % jvm.process.returncode
            strange = jvm.strange_lines()
            if strange:
                outcome = "printed %r" % strange[:2]
            return outcome, attempts
        finally:
            jvm.process.kill()
            jvm.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("jdks", nargs="+")
    args = parser.parse_args()
    failed = 0
    if os.geteuid() != 0:
        skip("needs root")
    classes()
    for name in args.jdks:
        home = jdks.home_of(name)
        if not home:
            print("SKIPPED: there is no JDK " + name)
            continue
        chance = random.Random(11)
        waits = [chance.uniform(0, 0.06) for _ in range(args.launches)]
        with ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(lambda wait: launch(home, wait), waits))
        bad = [outcome for outcome, _ in results if outcome != rows.STREAMING]
        tries = sorted(attempts for _, attempts in results)
        print("JDK %s: %d launches, %d not streaming; attempts each: median %d, most %d" % (
            name, len(results), len(bad), tries[len(tries) // 2], tries[-1]), flush=True)
        for outcome in bad[:10]:
            print("  " + outcome)
        failed += len(bad)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
