"""Libraries from Maven Central, in the cache."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jdks  # noqa: E402

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>kindling.tests</groupId>
<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies><dependency>
<groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency></dependencies>
</project>"""


def fetch(name, group, artifact, version):
    """The directory of the artifact's jar and of all that it needs; None if they cannot be fetched. @name: of the
    directory in the cache, with the version."""
    target = os.path.join(jdks.cache_dir(), "%s-%s" % (name, version))
    if os.path.exists(target + "/complete"):
        return target + "/jars"
    os.makedirs(target, exist_ok=True)
    with open(target + "/pom.xml", "w") as f:
        f.write(POM % (group, artifact, version))
    done = subprocess.run(["mvn", "-q", "-B", "-f", target + "/pom.xml",
                           "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                           "-DoutputDirectory=" + target + "/jars"], capture_output=True, text=True)
    if done.returncode != 0:
        print("%s could not be fetched: %s" % (name, done.stdout.strip()[-300:]), file=sys.stderr)
        return None
    open(target + "/complete", "w").close()
    return target + "/jars"
