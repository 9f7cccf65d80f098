"""A cluster's profiles in ClickHouse: test_clickhouse.py [MAJOR] [CLASS...]. Needs root.

A real history is inserted, twice, as two nodes, into the oldest server and the newest engine; what is asked of them is what
the node itself answers, and the queries of docs/clickhouse.md work on both.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import clickhouse  # noqa: E402
from kindling import BUILD, ONLY_MINE, Daemon, Jvm, skip, wait_for  # noqa: E402

MAJOR = "17"
WINDOW_S = 10
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "clickhouse.md")


def kindling(*words, check=True):
    done = subprocess.run([BUILD + "/bin/kindling", *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CLICKHOUSE_USER": "kindling", "CLICKHOUSE_PASSWORD": clickhouse.PASSWORD})
    if check and done.returncode != 0:
        raise AssertionError("kindling %s: %d\n%s" % (" ".join(words), done.returncode, done.stderr))
    return done


def whole(path):
    with open(path, "rb") as f:
        return f.read()


def upload_pid(daemon):
    return next((int(pid) for pid in children(daemon.process.pid) if exe(pid) == "kindling-upload"), None)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return f.read().split()


def exe(pid):
    try:
        return os.path.basename(os.readlink("/proc/%s/exe" % pid))
    except FileNotFoundError:
        return None


class History:
    """Windows of two real JVMs: reports by the node, rows as two nodes would insert them, and what a sink delivered."""

    def __init__(self):
        self.delivered = clickhouse.Debian()
        secret = tempfile.NamedTemporaryFile("w")
        secret.write(clickhouse.PASSWORD + "\n")
        secret.flush()
        settings = """events: { cpu: {}, lock: { monitors: always } }
sinks:
  - {name: ch, type: clickhouse, url: "http://127.0.0.1:%d", create: true, user: kindling, password_file: %s, interval: %ds}
""" % (self.delivered.port, secret.name, WINDOW_S)
        with secret, Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR) as shop, Jvm(MAJOR, "LockStories", "hog", "now") as hog:
            for jvm in (shop, hog):
                daemon.wait_state(jvm.pid, "streaming")
            self.begin = int(time.time() // WINDOW_S + 1) * WINDOW_S
            self.end = self.begin + WINDOW_S
            daemon.wait_window(self.end)
            self.reports = {words: self.report(daemon, *words) for words in
                            ((), ("--threads",), ("-e", "lock", "--threads"), ("-e", "lock", "--reverse", "--annotate"))}
            self.json = json.loads(daemon.cli("report", "--all", *self.range(), "-f", "json", "-o", "-").stdout)
            self.modules = " ".join(f.get("module", "") for f in self.json["frames"])
            self.test = daemon.cli("sink", "test", "ch", check=False)
            for _ in range(5):  # kill it at any point of its work
                os.kill(wait_for("kindling-upload", lambda: upload_pid(daemon)), signal.SIGKILL)
                time.sleep(random.random())
            self.sink = wait_for("a delivery", lambda: self.is_delivered(daemon))
            self.log = daemon.read_log()
            daemon.stop()
            self.rows = {node: self.rows_of(daemon, node) for node in ("node-a", "node-b")}

    def is_delivered(self, daemon):
        """The ledger, once it equals the rows in the server and includes the windows."""
        sink, = daemon.status()["sinks"]
        try:
            there, = self.delivered.rows("SELECT sum(samples), countIf(time = toDateTime(%d)) FROM kindling.samples FINAL"
                                         " WHERE service != 'kindling-sink-test'" % self.begin)
        except AssertionError:
            return None  # no table yet
        waits = sink["spooled"] + sink["unconfirmed"]
        return sink if int(there[1]) and int(there[0]) == sink["delivered"] and not waits else None

    def range(self):
        return ("--from", "@%d" % self.begin, "--to", "@%d" % self.end)

    def report(self, daemon, *words):
        return daemon.cli("report", "--all", *self.range(), "-f", "collapsed", "-o", "-", *words).stdout

    def rows_of(self, daemon, node):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([BUILD + "/tests/clickhouse_rows", daemon.dir + "/state/segments", node, str(self.begin),
                                   str(self.end), str(WINDOW_S), out], check=True, capture_output=True, text=True)
            self.told = json.loads(done.stdout)
            return {name: whole(out + "/" + name) for name in sorted(os.listdir(out))}


HISTORY = None


def insert(server, node):
    for table, body in HISTORY.rows[node].items():
        columns = re.search(r"TABLE IF NOT EXISTS kindling\.%s(?:_shard)?\n\(\n(.*?)\n\)\n" % table, kindling("clickhouse", "schema").stdout, re.S)
        names = ", ".join(line.split()[0] for line in columns[1].splitlines())
        server.ask("INSERT INTO kindling.%s (%s) FORMAT RowBinary" % (table, names), body, insert_distributed_sync=1)


class Cluster:
    """Queries to a server that has node-a's rows twice and node-b's once."""

    def source(self, command, *words, check=True, server=None):
        return kindling(command, "--source", "clickhouse://127.0.0.1:%d/kindling" % (server or self.server).port, *words, check=check)

    def report(self, *words):
        return self.source("report", *HISTORY.range(), "-f", "collapsed", "-o", "-", *words).stdout

    def test_a_report_is_what_the_node_says(self):
        for words, text in HISTORY.reports.items():
            self.assertTrue(text, words)
            self.assertEqual(self.report("--node", "node-a", *words), text, words)

    def test_the_accounts_are_the_nodes(self):
        here = json.loads(self.source("report", *HISTORY.range(), "-f", "json", "-o", "-", "--node", "node-a").stdout)
        for key in ("view", "losses", "begin_ns", "end_ns", "rate", "absent", "note", "interval_ns"):
            self.assertEqual(here[key], HISTORY.json[key], key)
        by_pid = [sorted(p["processes"], key=lambda q: q["pid"]) for p in (here, HISTORY.json)]
        self.assertEqual(*by_pid)

    def test_two_nodes_are_added_up(self):
        whole = json.loads(self.source("report", *HISTORY.range(), "-f", "json", "-o", "-", "--all").stdout)
        self.assertEqual(len(whole["processes"]), 4)
        self.assertEqual(whole["view"]["samples"], 2 * HISTORY.json["view"]["samples"])
        self.assertEqual(whole["view"]["weight_ns"], 2 * HISTORY.json["view"]["weight_ns"])
        none = json.loads(self.source("report", *HISTORY.range(), "-f", "json", "-o", "-", "--service", "o'ther\\").stdout)
        self.assertEqual(none["view"]["samples"], 0)
        self.assertIn("ClickHouse has no such JVM in this time", self.source("top", *HISTORY.range(), "--service", "other").stderr)

    def test_top_and_locks(self):
        lines = self.source("top", *HISTORY.range(), "-n", "5").stdout.splitlines()
        self.assertIn("4 JVMs", lines[0])
        self.assertIn("%d samples" % (2 * HISTORY.json["view"]["samples"]), lines[0])
        rows = [line.split() for line in self.source("locks", *HISTORY.range()).stdout.splitlines()]
        self.assertEqual(rows[0], ["LOCK", "KIND", "JVMS", "WAITS", "TOTAL"])
        self.assertIn("2", rows[1])
        lock = sum(int(line.rsplit(" ", 1)[1]) for line in HISTORY.reports["-e", "lock", "--threads"].splitlines())
        self.assertAlmostEqual(sum(float(r[-1].rstrip("s")) for r in rows[1:]), 2 * lock / 1e9, delta=0.02)
        self.check_json(2 * lock)

    def check_json(self, lock_ns):
        top = json.loads(self.source("top", "--json", *HISTORY.range(), "-n", "500").stdout)
        self.assertEqual((top["samples"], top["weight"]), (2 * HISTORY.json["view"]["samples"], 2 * HISTORY.json["view"]["weight_ns"]))
        self.assertEqual((top["event"], top["sort"], top["seconds"]), ("cpu", "self", WINDOW_S))
        self.assertAlmostEqual(sum(m["self"] for m in top["methods"]), 1, delta=0.01)
        self.assertEqual(sorted((t["pid"], t["service"]) for t in top["targets"]),
                         sorted(2 * [(q["pid"], q["name"]) for q in HISTORY.json["processes"]]))
        self.assertEqual(sum(t["samples"] for t in top["targets"]), top["samples"])
        locks = json.loads(self.source("locks", "--json", "--by", "class", *HISTORY.range(), "-n", "500").stdout)
        self.assertEqual((locks["total_ns"], sum(c["total_ns"] for c in locks["classes"])), (lock_ns, lock_ns))
        self.assertIn("identities of locks stay on each node", self.source("locks", "--by", "lock", check=False).stderr)

    def test_the_queries_of_the_page(self):
        with open(PAGE) as f:
            queries = re.findall(r"```sql\n(.*?)\n```", f.read(), re.S)
        self.assertEqual(len(queries), 5)
        begin, weight = HISTORY.begin, 2 * HISTORY.json["view"]["weight_ns"] / 1e9
        shop = 2 * sum(q["losses"]["delivered_ns"] for q in HISTORY.json["processes"] if q["name"] == "KnownShares") / 1e9
        for query in queries:
            query = query.replace("'shop'", "'KnownShares'").replace("now()", "toDateTime(%d)" % (begin + 60))
            query = query.replace("LIMIT 20", "LIMIT 10000")  # sums cover all rows
            rows = self.server.rows(query)
            if "version" not in query:
                self.assertTrue(rows, query)
            if "hottest" in query:
                self.assertAlmostEqual(sum(float(r[2]) for r in rows), shop, delta=0.02 * shop)
            if "agents_part" in query:  # both JVMs with all of their CPU time, and the part with the agent's library
                self.assertEqual(sorted(r[0] for r in rows), sorted(q["name"] for q in HISTORY.json["processes"] if q["losses"]["delivered"]))
                self.assertAlmostEqual(sum(float(r[2]) for r in rows), weight, delta=0.01)
                # the other JVM is idle: its few samples are not enough for a share
                self.assertTrue(all(0 <= float(r[1]) <= (0.1 if r[0] == "KnownShares" else 1) for r in rows), rows)
                if "libkindling" in HISTORY.modules:
                    self.assertGreater(max(float(r[1]) for r in rows), 0)
            if "namespace," in query and "cpu_s" in query:
                self.assertAlmostEqual(float(rows[0][1]), weight, delta=0.01)

    def test_changes_between_two_spans(self):
        with tempfile.TemporaryDirectory() as d:
            self.source("report", *HISTORY.range(), "--node", "node-b", "-o", d + "/b.json")
            same = json.loads(self.source("report", *HISTORY.range(), "--node", "node-a", "--baseline", d + "/b.json", "-f", "json", "-o", "-").stdout)
            self.assertEqual(same["diff"]["baseline"]["samples"], HISTORY.json["view"]["samples"])
            self.assertEqual(same["view"]["samples"], HISTORY.json["view"]["samples"])
        span = "@%d/@%d" % (HISTORY.begin, HISTORY.end)
        both = self.source("report", "--diff", span + ".." + span, "--node", "node-a", "-f", "json", "-o", "-").stdout
        self.assertEqual(json.loads(both)["diff"]["baseline"]["weight_ns"], HISTORY.json["view"]["weight_ns"])

    def test_changes_between_two_nodes(self):
        same = json.loads(self.source("report", "--diff", "node=node-a..node=node-b", *HISTORY.range(), "-f", "json", "-o", "-").stdout)
        self.assertEqual(same["view"]["weight_ns"], HISTORY.json["view"]["weight_ns"])
        self.assertEqual(same["diff"]["baseline"]["weight_ns"], HISTORY.json["view"]["weight_ns"])
        for m in same["diff"]["methods"]:
            self.assertEqual(m["self_ns"], m["baseline_self_ns"], m)
        services = json.loads(self.source("report", "--node", "node-a", "--service", "KnownShares", "--baseline", "service=LockStories",
                                          *HISTORY.range(), "-f", "json", "-o", "-").stdout)
        self.assertEqual(services["view"]["samples"] + services["diff"]["baseline"]["samples"], HISTORY.json["view"]["samples"])

    def test_towers_and_one_tower(self):
        merged = self.report("--merge", "--all")
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in merged.splitlines()), 2 * HISTORY.json["view"]["weight_ns"])
        self.assertNotIn("pid=", merged)
        self.assertIn("[KnownShares pid=", self.report("--all"))

    def test_errors_have_the_servers_words(self):
        done = kindling("report", "--source", "clickhouse://127.0.0.1:%d/nowhere" % self.server.port, "--all", "-o", "-", check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("nowhere", done.stderr)
        self.assertIn("kindling clickhouse schema --database nowhere", done.stderr)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.stop()

    @classmethod
    def fill(cls, *schema):
        cls.server = cls.servers[0]
        for server in cls.servers:
            server.run(kindling("clickhouse", "schema", *schema).stdout)
        # a delivery whose confirmation was lost is repeated
        for node, server in (("node-a", cls.servers[0]), ("node-a", cls.servers[-1]), ("node-b", cls.servers[0])):
            insert(server, node)


class OldServer(Cluster, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.servers = [clickhouse.Debian()]
        cls.fill()

    def test_replicated_tables_want_zookeeper_alone(self):
        """ZooKeeper, which is missing here, is the only part of the statements that the server refuses."""
        statements = kindling("clickhouse", "schema", "--replicated").stdout.split(";\n")
        with self.assertRaisesRegex(AssertionError, "(?i)zookeeper"):
            self.server.ask(statements[1].replace("kindling.stacks", "kindling.more_stacks"))

    def test_a_wrong_password_is_refused(self):
        env = dict(os.environ, CLICKHOUSE_USER="kindling", CLICKHOUSE_PASSWORD="wrong")
        done = subprocess.run([BUILD + "/bin/kindling", "top", "--source", "clickhouse://127.0.0.1:%d" % self.server.port],
                              capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "(?i)password")


class Shards(Cluster, unittest.TestCase):
    """The second delivery of node-a goes to the other server."""
    @classmethod
    def setUpClass(cls):
        cls.servers = clickhouse.two_shards()
        cls.fill("--cluster", "both")

    def test_rows_are_on_both(self):
        counts = [int(s.ask("SELECT count() FROM kindling.stacks_shard")) for s in self.servers]
        self.assertTrue(all(counts), counts)


class Replicas(Cluster, unittest.TestCase):
    """Statements for the cluster create the tables on both servers, and all rows are on each."""
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("/usr/share/java/zookeeper.jar"):
            skip("there is no zookeeper")
        cls.zookeeper = clickhouse.ZooKeeper()
        cls.servers = clickhouse.two_replicas(cls.zookeeper)
        cls.fill("--cluster", "both", "--replicated")
        for server in cls.servers:
            for table in ("stacks", "samples", "processes"):
                server.ask("SYSTEM SYNC REPLICA kindling.%s_shard" % table)

    def test_each_has_all_of_it(self):
        for table in ("stacks", "samples", "processes"):
            counts = [int(s.ask("SELECT count() FROM kindling.%s_shard FINAL" % table)) for s in self.servers]
            self.assertEqual(*counts, table)
            self.assertGreater(counts[0], 0, table)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.zookeeper.stop()


class Delivered(unittest.TestCase):
    """Delivered by kindlingd's own sink, which created the tables."""
    def test_rows_agree_with_the_ledger(self):
        server, sink = HISTORY.delivered, HISTORY.sink
        self.assertEqual(sink["taken"], sink["delivered"] + sink["spooled"] + sink["unconfirmed"] + sum(sink["dropped"].values()))
        self.assertEqual(sink["dropped"], {}, HISTORY.log)
        self.assertGreaterEqual(sink["delivered"], HISTORY.json["view"]["samples"])
        self.assertRegex(HISTORY.test.stdout, "^ch: ")
        done = kindling("report", "--source", "clickhouse://127.0.0.1:%d" % server.port, "--all", *HISTORY.range(),
                        "-f", "collapsed", "-o", "-")
        self.assertEqual(done.stdout, HISTORY.reports[()])
        self.assertEqual({r[0] for r in server.rows("SELECT DISTINCT node FROM kindling.samples")}, {os.uname().nodename})

    @classmethod
    def tearDownClass(cls):
        HISTORY.delivered.stop()


class NewEngine(Cluster, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not clickhouse.fetch_chdb():
            skip("there is no chdb")
        cls.servers = [clickhouse.Newest()]
        cls.fill("--ttl", "36500d")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    if os.geteuid() != 0:
        skip("needs root")
    HISTORY = History()
    unittest.main(verbosity=2)
