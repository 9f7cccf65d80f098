"""Seconds for the five queries of docs/clickhouse.md, for a report, and for three ways to count a row once that came twice, over
ten minutes of 1,000 nodes: real rows of one minute of three JVMs, which the server multiplies. On Debian's 18.16 and the
newest engine.

clickhouse.py [--jdk MAJOR] [--nodes N] [--minutes N]"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import clickhouse  # noqa: E402
from kindling import BUILD, Daemon, Jvm  # noqa: E402

MINUTE = 60
GIVE_UP_S = 30
KEY = "namespace, service, event, time, node, pid, start_time, tid, thread, wait, idle, stack"
WAYS = (("plain sum, wrong", "SELECT namespace, sum(weight) FROM kindling.samples GROUP BY namespace"),
        ("FINAL", "SELECT namespace, sum(weight) FROM kindling.samples FINAL GROUP BY namespace"),
        ("GROUP BY the key", "SELECT namespace, sum(w) FROM (SELECT %s, any(weight) AS w FROM kindling.samples GROUP BY %s)"
                             " GROUP BY namespace" % (KEY, KEY)))


def columns(table):
    schema = subprocess.run([BUILD + "/bin/kindling", "clickhouse", "schema"], check=True, capture_output=True, text=True).stdout
    body = re.search(r"EXISTS kindling\.%s\n\(\n(.*?)\n\)" % table, schema, re.S)[1]
    return [line.split()[0] for line in body.splitlines()], schema


def real_rows(major):
    """{table: RowBinary} of a minute, the time at which it begins, and the sink's accounts."""
    with Daemon("events: { cpu: {}, lock: { monitors: always } }\n") as daemon, Jvm(major, full=True) as shop, \
            Jvm(major, "LockStories", "hog", "now") as hog, Jvm(major, "MixedRuns", "random") as mixed:
        for jvm in (shop, hog, mixed):
            daemon.wait_state(jvm.pid, "streaming")
        begin = int(time.time() // 10 + 1) * 10
        time.sleep(begin + MINUTE - time.time() + 4)
        daemon.stop()
        with tempfile.TemporaryDirectory() as out:
            told = subprocess.run([BUILD + "/tests/clickhouse_rows", daemon.dir + "/state/segments", "node", str(begin),
                                   str(begin + MINUTE), str(MINUTE), out], check=True, capture_output=True, text=True).stdout
            rows = {}
            for name in os.listdir(out):
                with open(out + "/" + name, "rb") as f:
                    rows[name] = f.read()
            return rows, begin, told.strip()


def multiply(server, table, nodes, minutes):
    names, _ = columns(table)
    words = {"node": "concat('node-', toString(arrayJoin(range(%d))))" % nodes, "time": "time + 60 * m", "until": "until + 60 * m"}
    for m in range(minutes):
        chosen = ", ".join(words.get(n, n).replace(" m", " %d" % m) for n in names)
        server.ask("INSERT INTO kindling.%s (%s) SELECT %s FROM kindling.one_%s" % (table, ", ".join(names), chosen, table))


def fill(server, rows, nodes, minutes):
    server.run(columns("stacks")[1])
    for table, body in rows.items():
        names, _ = columns(table)
        if table != "stacks":
            server.ask("CREATE TABLE kindling.one_%s AS kindling.%s" % (table, table))
        server.ask("INSERT INTO kindling.%s (%s) FORMAT RowBinary" % ("stacks" if table == "stacks" else "one_" + table, ", ".join(names)), body)
    for table in ("samples", "processes"):
        multiply(server, table, nodes, minutes)


def seconds(action, times=3):
    took = []
    for _ in range(times):
        begin = time.monotonic()
        action()
        took.append(time.monotonic() - begin)
    return sorted(took)[len(took) // 2]


def questions(begin):
    with open(os.path.join(HERE, "..", "..", "docs", "clickhouse.md")) as f:
        for query in re.findall(r"```sql\n(.*?)\n```", f.read(), re.S):
            yield query.replace("'shop'", "'KnownShares'").replace("now()", "toDateTime(%d)" % (begin + 3000))


def report(server, begin, minutes, *words):
    subprocess.run([BUILD + "/bin/kindling", "report", "--source", "clickhouse://127.0.0.1:%d" % server.port, "-f", "collapsed",
                    "-o", "-", "--from", "@%d" % begin, "--to",
                    "@%d" % (begin + 60 * minutes), *words], check=True, capture_output=True,
                   env={**os.environ, "CLICKHOUSE_USER": "kindling", "CLICKHOUSE_PASSWORD": clickhouse.PASSWORD})


def measure(what, server, rows, begin, a):
    fill(server, rows, a.nodes, a.minutes)
    n, samples = server.rows("SELECT count(), sum(samples) FROM kindling.samples")[0]
    print("%s: %s rows, %s samples" % (what, n, samples))
    try:
        print("  bytes on disk: %s" % server.ask("SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'kindling'"
                                                 " GROUP BY table").replace("\n", " ").replace("\t", " "))
    except AssertionError as e:
        print("  bytes on disk: %.100s" % e)
    for query in questions(begin):
        print("  %6.2f s  %s" % (seconds(lambda: server.ask(query)), " ".join(query.split())[:90]))
    for way, query in WAYS:
        try:
            print("  %6.2f s  once: %s" % (seconds(lambda: server.ask(query, max_execution_time=GIVE_UP_S), 1), way))
        except AssertionError:
            print("  more than %d s, or than its memory  once: %s" % (GIVE_UP_S, way))
    print("  %6.2f s  report --node node-1" % seconds(lambda: report(server, begin, a.minutes, "--node", "node-1")))
    print("  %6.2f s  report --service KnownShares, all nodes" % seconds(lambda: report(server, begin, a.minutes, "--service", "KnownShares"), 1))
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--jdk", default="17")
    p.add_argument("--nodes", type=int, default=1000)
    p.add_argument("--minutes", type=int, default=10)
    a = p.parse_args()
    rows, begin, told = real_rows(a.jdk)
    print("a minute of three JVMs: %s, %s bytes" % (told, {k: len(v) for k, v in rows.items()}))
    for what, make in (("18.16", clickhouse.Debian), ("26.9", clickhouse.Newest)):
        server = make()
        try:
            measure(what, server, rows, begin, a)
        finally:
            server.stop()
    print("load %.1f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()
