"""kindling bugreport: its content, and what it must leave out: names and secrets planted wherever it reads. Needs
root."""
import os
import re
import stat
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, ONLY_MINE, Daemon, Jvm, wait_for  # noqa: E402

# each is planted in a different place, and none may be in the archive
PLANTED = {"environment": "Secret-in-environ", "property": "Secret-in-property", "service": "Secret-in-service",
           "label": "Secret-in-label", "rule": "Secret-in-rule", "header": "Secret-in-header", "sink": "secret-in-sink-name",
           "url": "secret-in-url", "file": "Secret-in-keyfile", "argument": "Secret-in-argument", "thread": "Secret-in-thread"}
SETTINGS = """labels:
  set: { team: %(label)s }
events: { cpu: , wall: { threads: %(thread)s } }
sinks:
  - { name: %(sink)s, type: pyroscope, url: "http://127.0.0.1:9/%(url)s", headers: { X-Key: %(header)s }, bearer_file: %%s/key, interval: 10s }
""" % PLANTED + ONLY_MINE.rstrip("\n") + "\n    - deny: { command: \"*%(rule)s*\" }\n" % PLANTED


def journalctl(directory, log):
    """A bugreport with the daemon's log, because there is no journald here."""
    with open(directory + "/journalctl", "w") as f:
        f.write("#!/bin/sh\nexec tail -n 500 %s\n" % log)
    os.chmod(directory + "/journalctl", 0o755)


class BugReport(unittest.TestCase):
    def test_it_has_what_is_needed_and_nothing_that_is_private(self):
        env = {**os.environ, "PASSWORD": PLANTED["environment"], "OTEL_SERVICE_NAME": PLANTED["service"]}
        with Daemon() as daemon:
            with open(daemon.dir + "/key", "w") as f:
                f.write(PLANTED["file"])
            os.chmod(daemon.dir + "/key", 0o600)
            daemon.configure(SETTINGS % daemon.dir)
            daemon.stop()
            daemon.start()
            with Jvm("17", "KnownShares", PLANTED["argument"], options=("-Xmx64m", "-Dkey=" + PLANTED["property"]), env=env) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                with Jvm("17", "KnownShares", PLANTED["rule"], options=("-Xmx64m",), env={**env, "KINDLING_DISABLE": "1"}) as other:
                    daemon.wait_state(other.pid, "excluded")
                    wait_for("the sink's error", lambda: daemon.status()["sinks"][0]["last_error"])
                    journalctl(daemon.dir, daemon.dir + "/log")
                    path = daemon.dir + "/report.tar.gz"
                    done = subprocess.run([BUILD + "/bin/kindling", "--socket", daemon.socket, "bugreport", "-c", daemon.config, "-o", path],
                                          capture_output=True, text=True, env={**os.environ, "PATH": daemon.dir + ":" + os.environ["PATH"]})
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            again = daemon.cli("bugreport", "-o", path, check=False)
            self.assertEqual((again.returncode, "File exists" in again.stderr), (1, True))
            with tarfile.open(path) as tar:
                files = {os.path.basename(m.name): tar.extractfile(m).read().decode() for m in tar.getmembers()}
            with open(daemon.dir + "/log") as f:
                self.assertIn("KnownShares", f.read())  # so the search would have found it
        listed = re.findall(r"^  (\S+) +\S", done.stdout, re.M)
        self.assertEqual(sorted(files), sorted(listed))
        self.assertEqual(sorted(files), ["doctor.json", "log.txt", "metrics.txt", "settings.txt", "status.json", "system.txt", "version.txt"])
        private = {**PLANTED, "class": "KnownShares", "test": os.environ["KINDLING_TEST"], "directory": daemon.dir}
        self.assertEqual([(name, where) for name, text in files.items() for where, secret in private.items()
                          if secret.lower() in text.lower()], [])
        self.assertIn('"state":\t"streaming"', files["status.json"])
        self.assertRegex(files["status.json"], r'"name":\t"name-\d+"')
        self.assertIn("its owner forbids profiling", files["status.json"])
        self.assertIn("events.cpu.interval: 10ms", files["settings.txt"])
        self.assertIn("events.wall.threads: (left out)   # not the default", files["settings.txt"])
        self.assertIn("targets.rules: 2\n", files["settings.txt"])
        self.assertIn("type pyroscope", files["settings.txt"])
        self.assertIn("kindling_samples_taken_total{pid=", files["metrics.txt"])
        self.assertIn("to=streaming", files["log.txt"])
        self.assertIn('"verdict":\t"ok"', files["doctor.json"])
        self.assertIn("Linux", files["system.txt"])

    def test_without_a_daemon(self):
        path = "/tmp/kindling-test-%d.tar.gz" % os.getpid()
        done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "bugreport", "-o", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(path) as tar:
            names = [os.path.basename(m.name) for m in tar.getmembers()]
        os.unlink(path)
        self.assertIn("system.txt", names)
        self.assertNotIn("status.json", names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
