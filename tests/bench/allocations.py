"""What allocation samples cost: CPU time of a program that does nothing but allocate (AllocKnown), in blocks of one
JVM: without, with ours, without, with async-profiler's, both at 512 KiB. The agent is alone, without a daemon.
A block's CPU time is that of the whole process, collector included; each is compared with the block before it.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "jvm"), HERE, os.path.join(HERE, "..", "harness")]
import bench  # noqa: E402
import stacks  # noqa: E402
from kindling import classes, java_home, wait_for  # noqa: E402
from locks import Jvm  # noqa: E402
from session import Session  # noqa: E402


class Program(Jvm):
    played = 0

    def play(self):
        """CPU seconds."""
        before = self.cpu()
        self.say(b"\n")
        self.played += 1
        wait_for("END", lambda: self.read(self.out).count("\nEND\n") >= self.played, 300)
        return self.cpu() - before

    def cpu(self):
        with open("/proc/%d/stat" % self.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def rival(self, library, words):
        subprocess.run(["jattach", str(self.pid), "load", library, "true", words], check=True, stdout=subprocess.DEVNULL)


def main():
    p = bench.parser(__doc__)
    p.add_argument("--pairs", type=int, default=10)
    p.add_argument("--megabytes", type=int, default=1500, help="a thread and a block (1500)")
    args = bench.begin(p)
    library = stacks.rival()
    directory = tempfile.mkdtemp(prefix="kindling-bench-")
    shutil.copytree(classes(), directory, dirs_exist_ok=True)
    ratios = {"the same twice": [], "ours": [], "async-profiler": []}
    try:
        with Program(java_home(args.jdk), directory, ["-XX:+UseParallelGC"], "AllocKnown", args.megabytes) as jvm:
            jvm.play()
            jvm.play()  # warm
            for _ in range(args.pairs):
                base = jvm.play()
                ratios["the same twice"].append(jvm.play() / base - 1)
                base = jvm.play()
                session = Session(jvm.pid, directory, "alloc")
                ratios["ours"].append(jvm.play() / base - 1)
                session.end()
                if library:
                    base = jvm.play()
                    jvm.rival(library, "start,event=alloc,alloc=512k")
                    time.sleep(0.5)
                    ratios["async-profiler"].append(jvm.play() / base - 1)
                    jvm.rival(library, "stop")
    finally:
        shutil.rmtree(directory)
    print("JDK %s, %d blocks of %d MiB; CPU time more than without, median (quartiles)" % (args.jdk, args.pairs, 4 * args.megabytes))
    for name, values in ratios.items():
        if values:
            print("  %-16s %+6.2f %% (%+.2f to %+.2f)" % (name, *(100 * bench.quantile(values, q) for q in (0.5, 0.25, 0.75))))
    print("load %.1f before, %.1f after" % (args.load_before[0], os.getloadavg()[0]))


if __name__ == "__main__":
    main()
