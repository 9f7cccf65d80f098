"""GraalVM's compiler from Maven Central, in place of C2 in a JDK that has the JVM's compiler interface (JVMCI). GraalVM
itself is not there. Its compiler is Java code here, so compiler threads have Java frames."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import maven  # noqa: E402

VERSIONS = {"17": "22.3.5", "25": "25.0.2"}


def options(major):
    """The options with which a JVM compiles with it; None if it cannot be fetched."""
    jars = maven.fetch("graal", "org.graalvm.compiler", "compiler", VERSIONS[major])
    # the JDK's own interface may be older or newer than the one that the compiler was built for
    os.environ["JVMCI_VERSION_CHECK"] = "ignore"
    return jars and ["-XX:+UnlockExperimentalVMOptions", "-XX:+EnableJVMCI", "-XX:+UseJVMCICompiler",
                     "--module-path=" + jars, "--upgrade-module-path=" + jars]
