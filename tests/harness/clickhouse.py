"""ClickHouse for tests: Debian's server 18.16, the oldest version in use, and the newest engine, chdb (pinned, from
PyPI, cached), behind those parts of the HTTP interface that kindling uses. As a program: fetches chdb."""
import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import jdks

CHDB = ("chdb==4.4.0", "chdb-core==26.9.0")
HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = """<yandex>
<logger><level>warning</level><log>{dir}/log</log><errorlog>{dir}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{inter}</interserver_http_port>
<path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><user_files_path>{dir}/files/</user_files_path>
<format_schema_path>{dir}/schemas/</format_schema_path><mark_cache_size>67108864</mark_cache_size>
<users_config>{dir}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database>
<macros><shard>1</shard><replica>{replica}</replica></macros>
<remote_servers><both>{shards}</both></remote_servers>{zookeeper}
</yandex>"""
REPLICA = "<replica><host>127.0.0.1</host><port>%d</port><user>kindling</user><password>%s</password></replica>"
SHARD = "<shard>" + REPLICA + "</shard>"
ZOOKEEPER = """<interserver_http_host>127.0.0.1</interserver_http_host>
<zookeeper><node><host>127.0.0.1</host><port>%d</port></node></zookeeper>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>"""
PASSWORD = "a 'quoted' pass"
USERS = """<yandex><profiles><default/></profiles><quotas><default/></quotas><users><kindling>
<password>%s</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
</kindling></users></yandex>"""


def ports(n):
    taken = [socket.socket() for _ in range(n)]
    for s in taken:
        s.bind(("127.0.0.1", 0))
    numbers = [s.getsockname()[1] for s in taken]
    for s in taken:
        s.close()
    return numbers


class Server:
    """A server that listens for HTTP on self.port."""

    def __init__(self, directory, words):
        self.dir = directory
        with open(directory + "/out", "wb") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=out)
        atexit.register(self.stop)
        end = time.monotonic() + 60
        while True:
            try:
                self.ask("SELECT 1")
                return
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(directory + "/out") as out:
                        raise AssertionError("no ClickHouse: %s" % out.read()[-2000:])
                time.sleep(0.1)

    def ask(self, sql, body=b"", **settings):
        """Returns the answer as text; @body: the rows of an INSERT."""
        url = "http://127.0.0.1:%d/?%s" % (self.port, urllib.parse.urlencode({"query": sql, **settings}))
        request = urllib.request.Request(url, data=body, headers={"X-ClickHouse-User": "kindling", "X-ClickHouse-Key": PASSWORD})
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as e:
            raise AssertionError("HTTP %d: %s\n%s" % (e.code, e.read().decode("utf-8", "replace")[:600], sql[:2000]))

    def run(self, statements):
        for statement in filter(str.strip, statements.split(";\n")):
            self.ask(statement)

    def rows(self, sql, **settings):
        return [line.split("\t") for line in self.ask(sql, **settings).splitlines()]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)  # its data is not kept
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Debian(Server):
    def __init__(self, numbers=None, shards=(), replica="a", cluster=None, zookeeper=None):
        """@shards: the tcp ports, one server each; or @cluster: the text of the cluster's settings."""
        directory = tempfile.mkdtemp(prefix="kindling-clickhouse-")
        self.port, self.tcp, inter = numbers or ports(3)
        with open(directory + "/users.xml", "w") as f:
            f.write(USERS % PASSWORD)
        with open(directory + "/settings.xml", "w") as f:
            f.write(SETTINGS.format(dir=directory, http=self.port, tcp=self.tcp, inter=inter,
                                    replica=replica, zookeeper=ZOOKEEPER % zookeeper.port if zookeeper else "",
                                    shards=cluster or "".join(SHARD % (tcp, PASSWORD) for tcp in shards or [self.tcp])))
        super().__init__(directory, ["clickhouse-server", "--config-file=" + directory + "/settings.xml"])


def two_shards():
    numbers = [ports(3) for _ in range(2)]
    return [Debian(n, [n[1] for n in numbers]) for n in numbers]


class ZooKeeper:
    """Debian's, on self.port."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="kindling-zookeeper-")
        self.port, = ports(1)
        with open(self.dir + "/out", "wb") as out:
            self.process = subprocess.Popen([jdks.find()["17"] + "/bin/java", "-Xmx64m", "-Dzookeeper.admin.enableServer=false", "-cp",
                                             "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.ZooKeeperServerMain",
                                             str(self.port), self.dir + "/data"], stdout=out, stderr=out, cwd=self.dir)
        atexit.register(self.stop)
        end = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.dir + "/out") as out:
                    raise AssertionError("no ZooKeeper: %s" % out.read()[-2000:])
            time.sleep(0.1)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as s:
                s.sendall(b"srvr")
                return s.recv(100).startswith(b"Zookeeper version")
        except OSError:
            return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def two_replicas(zookeeper):
    """One shard with two servers, both of which have all rows."""
    numbers = [ports(3) for _ in range(2)]
    cluster = "<shard><internal_replication>true</internal_replication>%s</shard>" % "".join(
        REPLICA % (n[1], PASSWORD) for n in numbers)
    return [Debian(n, replica=name, cluster=cluster, zookeeper=zookeeper) for n, name in zip(numbers, "ab")]


def fetch_chdb():
    """The directory to import chdb from; None if it cannot be fetched."""
    target = os.path.join(jdks.cache_dir(), CHDB[0].replace("==", "-"))
    if os.path.exists(target + "/complete"):
        return target
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--upgrade",
                           "--target", target, *CHDB], capture_output=True, text=True)
    if done.returncode != 0:
        print("chdb could not be fetched: %s" % done.stderr.strip()[-300:], file=sys.stderr)
        return None
    open(target + "/complete", "w").close()
    return target


class Newest(Server):
    def __init__(self):
        directory = tempfile.mkdtemp(prefix="kindling-chdb-")
        self.port, = ports(1)
        super().__init__(directory, [sys.executable, HERE + "/chdb_http.py", fetch_chdb(), directory + "/data", str(self.port)])


if __name__ == "__main__":
    sys.exit(0 if fetch_chdb() else 1)
