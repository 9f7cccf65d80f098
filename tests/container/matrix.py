"""Attaches to a JVM in every kind of container and state, and prints a line for each cell. matrix.py [--subset |
--pairs] [--jobs N] [--only COLUMN=VALUE]... [--markdown FILE] --subset: every value of every column, JDK 17 and 25
(label container). --pairs: every pair of values, all JDKs (label matrix). A cell passes if the attach ends as
rows.py says, the container's files and mounts and both outputs of the application are unchanged, and the JVM
lives."""
import argparse
import itertools
import os
import random
import re
import shutil
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import rows
from bundle import Jdk, shared_end
from kindling import classes, skip
from rows import Cell, ROOTS, STATES, STREAMING, USERS

JDKS = ["8", "11", "17", "17-musl", "21", "25"]


# ---- which cells ----------------------------------------------------------------------------------------------


def runtimes():
    return [r for r in ("runc", "crun") if shutil.which(r)]


def subset(jdk_names):
    """All roots with all users, then all states, each in a different kind of container."""
    cells, turn = [], 0
    for jdk in jdk_names:
        pairs = list(itertools.product(ROOTS, USERS))
        for root, user in pairs:
            cell = Cell(jdk, user, root, "normal", runtimes()[turn % len(runtimes())])
            if cell.exists():
                cells.append(cell)
                turn += 1
        for state in STATES:
            if state == "normal":
                continue
            for at in range(len(pairs)):
                root, user = pairs[(turn * 5 + at) % len(pairs)]
                cell = Cell(jdk, user, root, state, runtimes()[turn % len(runtimes())])
                if cell.exists() and (root != "sealed" or STATES[state].first):
                    cells.append(cell)
                    break
            turn += 1
    return cells


def pairs_of(cell):
    return set(itertools.combinations(enumerate(cell.key()), 2))


def pairwise(jdk_names):
    """Cells with every pair of values, chosen greedily, and with every combination of root, user and JDK; the same
    cells in every run."""
    everything = [Cell(*key) for key in itertools.product(jdk_names, USERS, ROOTS, STATES, runtimes())]
    everything = [cell for cell in everything if cell.exists()]
    random.Random(5).shuffle(everything)
    missing = set().union(*(pairs_of(cell) for cell in everything))
    cells = []
    while missing:
        best = max(random.Random(len(missing)).sample(everything, min(400, len(everything))),
                   key=lambda cell: len(pairs_of(cell) & missing))
        if not pairs_of(best) & missing:
            best = max(everything, key=lambda cell: len(pairs_of(cell) & missing))
        missing -= pairs_of(best)
        cells.append(best)
    have = {cell.key()[:4] for cell in cells}
    turn = 0
    for jdk, user, root in itertools.product(jdk_names, USERS, ROOTS):  # and a JVM with default options
        cell = Cell(jdk, user, root, "normal", runtimes()[turn % len(runtimes())])
        if cell.key()[:4] not in have and cell.exists():
            cells.append(cell)
            turn += 1
    return sorted(cells, key=Cell.key)


# ---- one cell -------------------------------------------------------------------------------------------------


def difference(before, after):
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    return ", ".join("%s: %s -> %s" % (k, before.get(k), after.get(k)) for k in sorted(changed))


def check_unchanged(c, before, kept):
    if not c.alive():
        raise AssertionError("the JVM ended: %r" % (c.output()[1][-300:],))
    after = c.tree()
    if after != before:
        raise AssertionError("files changed: " + difference(before, after))
    c.check_output(kept)
    with open("/proc/%d/timers" % c.pid) as f:
        if "ID:" in f.read():
            raise AssertionError("timers are left")


def run_in(cell, c):
    state = STATES[cell.state]
    if cell.root == "small" and c.kind == "small":
        rows.fill_small(c)
    kept = c.kept_lines()
    before = c.tree()
    if state.before:
        state.before(c)
        if cell.state == "libjvm deleted":
            before = c.tree()
    outcome = state.run(c)
    time.sleep(0.1)  # lines that were delayed while it was stopped come now
    check_unchanged(c, before, kept)
    return outcome


def run_once(cell, jdk):
    c = cell.container(jdk)
    try:
        return run_in(cell, c)
    finally:
        c.down()
        if c.tmp:
            shutil.rmtree(c.tmp, ignore_errors=True)


def attempt(cell, jdk):
    try:
        outcome = run_once(cell, jdk)
    except Exception as e:
        if os.environ.get("DEBUG"):
            traceback.print_exc()
        return False, "%s: %s" % (type(e).__name__, e)
    expected = cell.expectation()
    if outcome == STREAMING if expected == STREAMING else re.search(expected, outcome):
        return True, outcome
    return False, "%s (expected: %s)" % (outcome, expected)


def no_daemon(seconds=60.0):
    """Does a daemon on this host attach to our JVMs too? Waits for a while until it is gone; false = there was none."""
    end = time.monotonic() + seconds
    none = True
    while rows.processes_named("kindlingd") and time.monotonic() < end:
        none = False
        time.sleep(0.5)
    return none


def run(cell, jdk):
    """(passed, outcome, seconds)"""
    begun = time.monotonic()
    for _ in range(3):
        alone = not rows.processes_named("kindlingd")
        good, outcome = attempt(cell, jdk)
        if good or (no_daemon() and alone):
            break
    return good, outcome, time.monotonic() - begun


# ---- the page -------------------------------------------------------------------------------------------------


def words_for(results):
    """Summarises many cells for a reader: streaming, the refusal, or which cells get which."""
    if not all(good for _, good, _ in results):
        return "**not as expected** in %d of them" % sum(1 for r in results if not r[1])
    refused = [outcome for _, _, outcome in results if outcome != STREAMING]
    if not refused:
        return STREAMING
    users = sorted({cell.user for cell, _, outcome in results if outcome == STREAMING})
    return "refused: %s%s" % (max(set(refused), key=refused.count), "; streaming as " + ", ".join(users) if users else "")


def table(title, words, results, column):
    lines = ["| %s | JDKs | cells | outcome |" % title, "|---|---|---|---|"]
    for value, text in words.items():
        of = [r for r in results if getattr(r[0], column) == value]
        if column != "state":
            of = [r for r in of if r[0].state in ("normal", "renamed", "embedded")]
        if of:
            lines.append("| %s | %s | %d | %s |" % (text, " ".join(sorted({r[0].jdk for r in of}, key=JDKS.index)),
                                                    len(of), words_for(of)))
    return "\n".join(lines)


def markdown(results):
    users = table("the JVM runs as", USERS, [r for r in results if r[0].root != "sealed"], "user")
    roots = table("its container has", ROOTS, results, "root")
    states = table("its state", {k: v.text for k, v in STATES.items()},
                   [r for r in results if r[0].root != "sealed"], "state")
    good = sum(1 for r in results if r[1])
    return ("<!-- generated by tests/container/matrix.py --markdown: do not edit -->\n\n%d of %d cells as "
            "expected.\n\n%s\n\n%s\n\n%s\n" % (good, len(results), users, roots, states))


def replace_table(path, text):
    with open(path) as f:
        page = f.read()
    head, found, _ = page.partition("<!-- generated")
    if not found:
        sys.exit("%s has no generated part" % path)
    with open(path, "w") as f:
        f.write(head + text)


# ---- together -------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subset", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--markdown")
    parser.add_argument("--quiet", action="store_true", help="only cells that fail")
    args = parser.parse_args()
    if os.geteuid() != 0 or not runtimes():
        skip("needs root and runc")
    names = ["17", "25"] if args.subset else JDKS
    jdks = {name: Jdk(name) for name in names}
    for name in [n for n in names if not jdks[n].home]:
        print("SKIPPED: there is no JDK " + name)
        names.remove(name)
    cells = subset(names) if args.subset else pairwise(names)
    if not args.subset and not args.pairs:
        cells = [Cell(*key) for key in itertools.product(names, USERS, ROOTS, STATES, runtimes())]
        cells = [cell for cell in cells if cell.exists()]
    for rule in args.only:
        column, _, value = rule.partition("=")
        cells = [cell for cell in cells if getattr(cell, column) == value]

    classes()  # compiled before the threads begin, which share the result
    begun, results = time.monotonic(), []
    with ThreadPoolExecutor(args.jobs) as pool:
        for cell, (good, outcome, seconds) in zip(cells, pool.map(lambda c: run(c, jdks[c.jdk]), cells)):
            results.append((cell, good, outcome))
            if not good or not args.quiet:
                print("%s %s %4.1f s  %s" % ("ok  " if good else "FAIL", cell, seconds, outcome), flush=True)
    shared_end()
    failed = sum(1 for r in results if not r[1])
    print("%d cells, %d failed, %.0f s" % (len(results), failed, time.monotonic() - begun))
    if args.markdown:
        replace_table(args.markdown, markdown(results))
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()
