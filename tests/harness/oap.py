"""A SkyWalking OAP 10.1 from Maven Central with an H2 in memory. It has instances, but no async-profiler tasks, which
begin with 10.2. As a program: fetches it into the cache (132 MB)."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import maven  # noqa: E402

VERSION = "10.1.0"
SETTINGS = """
cluster: {selector: standalone, standalone: {}}
core:
  selector: default
  default:
    role: Mixed
    restHost: 127.0.0.1
    restPort: %d
    restContextPath: /
    gRPCHost: 127.0.0.1
    gRPCPort: %d
    persistentPeriod: 3
    enableEndpointNameGroupingByOpenapi: false
storage:
  selector: h2
  h2:
    properties: {jdbcUrl: "jdbc:h2:mem:oap;DB_CLOSE_DELAY=-1;DATABASE_TO_UPPER=FALSE", dataSource.user: sa}
    metadataQueryMaxSize: 5000
    maxSizeOfBatchSql: 100
    asyncBatchPersistentPoolSize: 1
ai-pipeline: {selector: default, default: {}}
receiver-register: {selector: default, default: {}}
receiver-profile: {selector: default, default: {}}
receiver-sharing-server: {selector: default, default: {}}
query: {selector: graphql, graphql: {enableLogTestTool: false}}
alarm: {selector: default, default: {}}
telemetry: {selector: none, none: {}}
configuration: {selector: none, none: {}}
"""
LOGGING = """<Configuration status="ERROR"><Appenders><Console name="Console"/></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="Console"/></Root></Loggers></Configuration>"""
FILES = {"endpoint-name-grouping.yml": "grouping: []", "alarm-settings.yml": "rules: {}", "component-libraries.yml": "{}",
         "gateways.yml": "{}", "service-apdex-threshold.yml": "default: 500", "metadata-service-mapping.yaml": "{}",
         "oal/disable.oal": "", "log4j2.xml": LOGGING}


def fetch():
    """The directory of its jars; None if they cannot be fetched."""
    return maven.fetch("oap", "org.apache.skywalking", "server-starter", VERSION)


class Oap:
    def __init__(self, java_home):
        jars = fetch()
        if not jars:
            print("SKIPPED: there is no OAP; tests/run fetches it")
            sys.exit(1 if os.environ.get("CI") else 77)
        self.dir = tempfile.mkdtemp(prefix="kindling-oap-")
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            self.rest, self.grpc = one.getsockname()[1], two.getsockname()[1]
        for name, content in {**FILES, "application.yml": SETTINGS % (self.rest, self.grpc)}.items():
            os.makedirs(os.path.dirname(self.dir + "/" + name), exist_ok=True)
            with open(self.dir + "/" + name, "w") as f:
                f.write(content)
        self.url = "http://127.0.0.1:%d" % self.grpc
        self.log = open(self.dir + "/log", "w+")
        environment = {k: v for k, v in os.environ.items() if k != "KINDLING_TEST"}  # a mark that no test's daemon profiles
        self.process = subprocess.Popen([java_home + "/bin/java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                                         "-cp", self.dir + ":" + jars + "/*", "org.apache.skywalking.oap.server.starter.OAPServerStartUp"],
                                        stdout=self.log, stderr=self.log, env=environment)
        os.setpriority(os.PRIO_PROCESS, self.process.pid, -10)  # seconds of CPU time until it answers when other JVMs are busy

    def query(self, text):
        """The answer to a GraphQL query; None = it does not answer yet."""
        request = urllib.request.Request("http://127.0.0.1:%d/graphql" % self.rest, json.dumps({"query": text}).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir)


if __name__ == "__main__":
    fetch()
