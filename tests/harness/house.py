"""Measures how easily one finds one's way in the code: includes that climb the ladder of rooms (folders), circles of
includes, functions that share their name with one in another file, function names of one word, unit tests whose name
leads to no source. house.py prints the figures; house.py --check also fails if one of them is worse than LIMITS, which are the figures that the code has
reached: lower one when the code gets better, never raise it."""
import collections
import glob
import os
import re
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TREES = ("agent", "daemon", "injector", "proto")
# From the ground up: a room includes only its own files and those of rooms before it. A new room needs a line here.
LADDER = [
    "proto",
    "agent/base", "agent/hotspot", "agent/walker/native", "agent/walker/java", "agent/walker/asgct", "agent/walker",
    "agent/trace", "agent/engine", "agent/events", "agent/output", "agent/session",
    "daemon/ground", "injector", "daemon/core", "daemon/bpf", "daemon/discovery", "daemon/names", "daemon/stream", "daemon/locks",
    "daemon/profile", "daemon/timeline", "daemon/symbols", "daemon/store", "daemon/target", "daemon/report", "daemon/clickhouse",
    "daemon/upload", "daemon/host", "daemon/serve", "daemon", "daemon/cli",
]
LIMITS = {"includes that climb": 0, "rooms in a circle": 0, "shared names, %": 1.0, "names of one word, %": 0.5, "tests without a source": 0}

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
# a definition in this code base: the return type begins its line, the body's brace has a line of its own
FUNCTION = re.compile(r"^(?!#|typedef|struct \w+ \{|enum|union)[A-Za-z_][\w\s\*]*?\b(\w+)\([^;{}]*\)\s*\n\{", re.M)
NOT_OURS = {"main", "LLVMFuzzerTestOneInput", "BPF_PROG"}


def sources():
    for tree in TREES:
        for path in sorted(glob.glob(os.path.join(SOURCE, tree, "**", "*.[ch]"), recursive=True)):
            with open(path) as f:
                yield os.path.relpath(path, SOURCE), f.read()


def room_of(path):
    return os.path.dirname(path)


def circles(edges):
    """Groups of rooms each of which reaches all others of its group (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(room):
        index[room] = low[room] = len(index)
        stack.append(room)
        for other in edges[room]:
            if other not in index:
                visit(other)
            if other in stack:
                low[room] = min(low[room], low[other])
        if low[room] == index[room]:
            group = stack[stack.index(room):]
            del stack[stack.index(room):]
            if len(group) > 1:
                found.append(sorted(group))
    for room in sorted(edges):
        if room not in index:
            visit(room)
    return found


def climbs(path, text):
    """The includes of a file that lead to a room above its own, from or to a room that LADDER does not have, or
    between the agent, which lives in a JVM, and the programs on the host."""
    rung = {room: i for i, room in enumerate(LADDER)}
    here, tree = rung.get(room_of(path), -1), path.split("/")[0]

    def is_wrong(name):
        other = name.split("/")[0]
        if other not in TREES:
            return False
        apart = "agent" in (tree, other) and other not in (tree, "proto")
        return apart or here < 0 or rung.get(room_of(name), len(LADDER)) > here
    return ["%s includes %s" % (path, name) for name in INCLUDE.findall(text) if is_wrong(name)]


def subjects():
    """What a unit test may be called after: a source without its ending, with or without its room, or a room."""
    found = set()
    for tree in (*TREES, os.path.join("tests", "harness")):
        for path in glob.glob(os.path.join(SOURCE, tree, "**", "*.[ch]"), recursive=True):
            room = os.path.basename(os.path.dirname(path))
            stem = re.sub(r"(\.bpf|_(x86_64|aarch64)(_sig)?|_sig|_priv)?\.[ch]$", "", os.path.basename(path))
            found |= {stem, room + "_" + stem, room}
    return found


def lost_tests():
    """Unit tests that are not called test_SUBJECT.c or test_SUBJECT_TOPIC.c."""
    known = subjects()

    def leads(name):
        words = name.split("_")
        return any("_".join(words[:n]) in known for n in range(1, len(words) + 1))
    tests = glob.glob(os.path.join(SOURCE, "tests", "unit", "test_*.c"))
    return sorted(os.path.basename(path) for path in tests if not leads(os.path.basename(path)[len("test_"):-len(".c")]))


def measure():
    edges, files_of, climbing = collections.defaultdict(set), collections.defaultdict(set), []
    for path, text in sources():
        here = room_of(path)
        climbing += climbs(path, text)
        edges[here] |= {room_of(name) for name in INCLUDE.findall(text) if name.split("/")[0] in TREES} - {here}
        for name in FUNCTION.findall(text):
            if path.endswith(".c") and name not in NOT_OURS:
                files_of[name].add(path)
    for rooms in list(edges.values()):
        for room in rooms:
            edges[room]
    functions = sum(len(files) for files in files_of.values())
    shared = {name: files for name, files in files_of.items() if len(files) > 1}
    one_word = [name for name in files_of if "_" not in name]
    return {
        "functions": functions,
        "climbing": climbing,
        "circles": circles(edges),
        "shared": shared,
        "one word": one_word,
        "lost": lost_tests(),
        "tests without a source": len(lost_tests()),
        "includes that climb": len(climbing),
        "rooms in a circle": sum(len(c) for c in circles(edges)),
        "shared names, %": 100 * sum(len(files) for files in shared.values()) / functions,
        "names of one word, %": 100 * sum(len(files_of[n]) for n in one_word) / functions,
    }


def main():
    found = measure()
    if found["functions"] < 1000:
        sys.exit("house.py: found only %d functions: it no longer reads this code" % found["functions"])
    print("%d functions" % found["functions"])
    for edge in found["climbing"]:
        print("climbs: %s" % edge)
    for circle in found["circles"]:
        print("a circle of includes: %s" % ", ".join(circle))
    for test in found["lost"]:
        print("leads to no source: tests/unit/%s" % test)
    most = sorted(found["shared"].items(), key=lambda item: -len(item[1]))[:10]
    print("most shared: %s" % ", ".join("%s (%d files)" % (name, len(files)) for name, files in most))
    worse = []
    for figure, limit in LIMITS.items():
        print("%s: %.1f (at most %.1f)" % (figure, found[figure], limit))
        if found[figure] > limit:
            worse.append(figure)
    if "--check" in sys.argv and worse:
        sys.exit("worse than it was: %s" % ", ".join(worse))


if __name__ == "__main__":
    main()
