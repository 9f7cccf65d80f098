"""Is each caller in a stack possible? Compares pairs of neighbouring Java frames with the class files. CallGraph.java
checks a pair in a JVM that has read the class files of its own JDK and those of the program: can an instruction on
the caller's line lead to the callee (virtual calls by class hierarchy)? Pairs that it cannot decide are counted by
reason."""
import collections
import os
import re
import subprocess
import threading

import jdks
import kindling

# class, method, line and, with agent_reader -K, the kind; hidden classes have no class file and do not match
FRAME = re.compile(r"^([^\[\s][^\s.]*)\.([^\s.:+]+):(-?\d+)(@\w+)?$")
KIND = re.compile(r"@\w+$")
EXAMPLES = 3  # stacks kept of a wrong pair
READ_S = 600  # seconds for all class files, also under emulation

IMPOSSIBLE = ("java/util/HashMap", "putVal", "1", "java/util/TreeMap", "get")
CERTAIN = ("java/util/HashMap", "put", "-1", "java/util/HashMap", "putVal")


def plain(stack):
    """Without the kinds."""
    return [KIND.sub("", frame) for frame in stack]


def pairs(stack):
    """(caller, its method, its line, callee, its method) of neighbours in @stack, a list with the leaf first."""
    split = [FRAME.match(f) for f in stack]
    return [(*caller.groups()[:3], *callee.groups()[:2]) for callee, caller in zip(split, split[1:]) if callee and caller]


class Verdict:
    """The results for the pairs of many stacks."""

    def __init__(self):
        self.judged, self.unjudged = 0, collections.Counter()
        self.wrong = collections.Counter()
        self.stacks = collections.defaultdict(list)  # of wrong pairs

    def __iadd__(self, other):
        self.judged += other.judged
        self.unjudged += other.unjudged
        self.wrong += other.wrong
        self.stacks.update(other.stacks)
        return self

    def show(self):
        """The impossible pairs, each with some of the stacks."""
        for pair, n in self.wrong.most_common():
            print("  WRONG %s.%s:%s -> %s.%s, %d times" % (*pair, n))
            for stack in self.stacks[pair]:
                print("    " + "\n      < ".join(stack))


class Judge:
    """A JVM of @home that has read its own class files and those of @paths, directories or jars."""

    def __init__(self, home, paths):
        places = [os.path.realpath(kindling.BUILD), *{os.path.dirname(os.path.realpath(p)) for p in paths}]
        self.process = subprocess.Popen([*jdks.command(home, *places), "-Xmx700m", "-XX:+UseSerialGC", "-cp", kindling.classes(),
                                         "CallGraph", *map(os.path.realpath, paths)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "KINDLING_DISABLE": "1"})
        self.known = {}
        if self.ask([IMPOSSIBLE, CERTAIN]) != ["WRONG", "ok"]:
            raise RuntimeError("the judge is no judge")

    def ask(self, questions):
        """Returns a verdict for each pair; the JVM reads all of them before it answers."""
        new = list({q: None for q in questions if q not in self.known})
        watchdog = threading.Timer(READ_S, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write("".join("%s %s %s %s %s\n" % q for q in new) + "\n")
            self.process.stdin.flush()
            for question in new:
                answer = self.process.stdout.readline().strip()
                if not answer:
                    raise RuntimeError("the judge is gone")
                self.known[question] = answer
        finally:
            watchdog.cancel()
        return [self.known[q] for q in questions]

    def judge(self, stacks):
        """Lists of frames, leaf first."""
        counts, at = collections.Counter(), collections.defaultdict(list)
        for stack in stacks:
            for pair in pairs(stack):
                counts[pair] += 1
                if len(at[pair]) < EXAMPLES:
                    at[pair].append(stack)
        verdict = Verdict()
        for pair, word in zip(counts, self.ask(list(counts))):
            if word in ("ok", "WRONG"):
                verdict.judged += counts[pair]
            else:
                verdict.unjudged[word] += counts[pair]
            if word == "WRONG":
                verdict.wrong[pair] = counts[pair]
                verdict.stacks[pair] = at[pair]
        return verdict

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()
