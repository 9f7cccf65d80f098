"""Sinks: what is delivered is what the ledger says, whatever happens on the way. test_sinks.py MAJOR. Needs root."""
import base64
import glob
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, ONLY_MINE, Daemon, Jvm, wait_for  # noqa: E402
from servers import S3, OtlpGrpc, Pyroscope, Stub, check_otlp  # noqa: E402

MAJOR = "17"
TAKE = """#!/bin/sh
cat > "$1/$KINDLING_KEY.tmp" && mv "$1/$KINDLING_KEY.tmp" "$1/$KINDLING_KEY"
"""


def sinks_of(daemon):
    return {s["name"]: s for s in daemon.status()["sinks"]}


def is_balanced(s):
    return s["taken"] == s["delivered"] + s["spooled"] + s["unconfirmed"] + sum(s["dropped"].values())


def samples_of(path):
    with open(path) as f:
        return json.load(f)["view"]["samples"]


def weight_of(path):
    with open(path) as f:
        return json.load(f)["view"]["weight_ns"]


def samples_in(directory):
    """Of all events, in files of the format json."""
    return sum(map(samples_of, glob.glob(directory + "/*.json")))


def upload_pid(daemon):
    with open("/proc/%d/task/%d/children" % (daemon.process.pid, daemon.process.pid)) as f:
        for pid in f.read().split():
            try:
                if os.path.basename(os.readlink("/proc/%s/exe" % pid)) == "kindling-upload":
                    return int(pid)
            except FileNotFoundError:
                pass
    return None


def is_running(pid):
    try:
        return bool(os.readlink("/proc/%d/exe" % pid))  # one that nobody has waited for has none
    except FileNotFoundError:
        return False


class Places:
    """A directory for the output of sinks, and a program for sinks of the type exec."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="kindling-sinks-")
        os.chmod(self.dir, 0o755)

    def program(self, name, text):
        path = self.dir + "/" + name
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def directory(self, name):
        path = self.dir + "/" + name
        os.mkdir(path)
        os.chmod(path, 0o777)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        subprocess.run(["rm", "-rf", self.dir])


class Sinks(unittest.TestCase):
    maxDiff = None

    def settled(self, daemon, names, more=0):
        """Waits until each of @names has delivered more than @more samples and nothing is left in its spool."""
        def there():
            sinks = sinks_of(daemon)
            return sinks if all(sinks[n]["delivered"] > more and not sinks[n]["spooled"] + sinks[n]["unconfirmed"]
                                for n in names) else None
        try:
            return wait_for("delivered", there)
        except AssertionError:
            raise AssertionError("%s\n%s" % (sinks_of(daemon), daemon.read_log()))

    def test_files_and_commands_get_what_the_ledger_says(self):
        with Places() as p:
            taken, out = p.directory("taken"), p.dir + "/made/out"
            settings = """
sinks:
  - {name: dir, type: files, directory: %s, format: json, keep: 2GB, interval: 10s}
  - {name: mine, type: exec, command: [%s, %s], format: json, interval: 10s, events: [cpu]}
  - {name: fails, type: exec, command: [%s], format: collapsed, interval: 10s}
  - {name: never, type: exec, command: [%s], interval: 10s}
  - {name: nobody, type: files, directory: %s, interval: 10s, targets: {pod: other/*}}
""" % (out, p.program("take", TAKE), taken, p.program("fail", "#!/bin/sh\necho the disk is away >&2\nexit 1\n"),
                p.program("refuse", "#!/bin/sh\nexit 65\n"), out)
            with Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                self.settled(daemon, ["dir", "mine"], 150)
                sinks = sinks_of(daemon)
                for s in sinks.values():
                    self.assertTrue(is_balanced(s), s)
                self.assertGreater(sinks["dir"]["delivered"], 100)
                self.assertEqual(sinks["dir"]["dropped"], {})
                self.assertIsNone(sinks["dir"]["last_error"])
                self.assertIsInstance(sinks["dir"]["taken_to_ns"], int)
                self.assertRegex(sinks["fails"]["last_error"], "status 1: the disk is away")
                self.assertEqual((sinks["fails"]["delivered"], sinks["fails"]["dropped"]), (0, {}))
                self.assertGreater(sinks["fails"]["spooled"] + sinks["fails"]["unconfirmed"], 100)
                self.assertGreater(sinks["never"]["dropped"]["refused"], 100)
                self.assertEqual((sinks["nobody"]["taken"], sinks["nobody"]["type"]), (0, "files"))
                self.assertRegex(daemon.cli("status").stdout, r"sink dir \(files\): \d+ taken = \d+ delivered")
                metrics = subprocess.run(["curl", "-s", "--unix-socket", daemon.socket, "http://x/metrics"],
                                         capture_output=True, text=True).stdout
                self.assertRegex(metrics, r'kindling_sink_delivered_total\{sink="dir",type="files"\} [1-9]')
                self.assertRegex(metrics, r'kindling_sink_dropped_total\{sink="never",type="exec",cause="refused"\} [1-9]')
                self.check_tests(daemon)
                self.check_restart(daemon, out, taken)

    def check_tests(self, daemon):
        self.assertRegex(daemon.cli("sink", "test", "dir").stdout, r"^dir: taken \(written: /")
        failed = daemon.cli("sink", "test", "fails", check=False)
        self.assertEqual((failed.returncode, failed.stdout),
                         (1, "fails: not taken: the command ended with status 1: the disk is away\n"))
        self.assertEqual(daemon.cli("sink", "test", "other", check=False).returncode, 1)
        for s in sinks_of(daemon).values():
            self.assertTrue(is_balanced(s), s)

    def check_restart(self, daemon, out, taken):
        """Accounts and spool survive the daemon's end, also by SIGKILL, and nothing is delivered twice."""
        before = sinks_of(daemon)
        os.kill(upload_pid(daemon), signal.SIGKILL)
        wait_for("another kindling-upload", lambda: upload_pid(daemon))
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        sinks = self.settled(daemon, ["dir", "mine"], before["dir"]["delivered"])
        for name, s in sinks.items():
            self.assertTrue(is_balanced(s), s)
            self.assertGreaterEqual(s["taken"], before[name]["taken"])
        for path in glob.glob(out + "/kindling-sink-test*"):  # they are in no sum
            os.unlink(path)
        daemon.stop()
        ledger = ledgers(daemon)
        self.assertEqual(samples_in(out), ledger["dir"])
        self.assertEqual(samples_in(taken), ledger["mine"])
        daemon.start()

    def test_a_state_that_is_removed_is_made_again(self):
        with Places() as p:
            settings = "\nsinks:\n  - {name: dir, type: files, directory: %s, format: json, interval: 10s}\n" % (p.dir + "/out")
            with Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                self.settled(daemon, ["dir"], 20)
                state = daemon.dir + "/state"
                subprocess.run("rm -rf '%s'/*" % state, shell=True, check=True)
                wait_for("a new ledger", lambda: sinks_of(daemon).get("dir", {}).get("delivered") == 0)
                s = self.settled(daemon, ["dir"], 20)["dir"]
                self.assertTrue(is_balanced(s), s)
                self.assertEqual((s["dropped"], s["last_error"]), ({}, None))
                self.assertTrue(glob.glob(state + "/segments/*.seg"))
                self.assertIn("%d" % jvm.pid, daemon.cli("history").stdout)
                self.assertFalse(daemon.status()["store"]["note"], daemon.status()["store"])

    def test_servers_get_what_the_ledger_says(self):
        with Places() as p, S3(p.directory("s3")) as s3, Pyroscope() as pyro, OtlpGrpc(p.directory("grpc")) as grpc, \
                Stub(lambda h, body: self.keep(p, h, body)) as web:
            for name, text in (("id", "testid\n"), ("secret", "testsecret"), ("wrong", "nosecret")):
                with open(p.dir + "/" + name, "w") as f:
                    f.write(text)
                os.chmod(p.dir + "/" + name, 0o600)
            bucket, web_out = p.dir + "/s3/profiles", p.directory("web")
            os.mkdir(bucket)
            lake = "type: s3, url: http://127.0.0.1:%d, bucket: profiles, region: us-east-1, interval: 10s" % s3.port
            settings = """
sinks:
  - {name: lake, %s, prefix: kindling, access_key_file: %s/id, secret_key_file: %s/secret, format: json, events: [cpu]}
  - {name: wrong, %s, access_key_file: %s/id, secret_key_file: %s/wrong}
  - {name: pyro, type: pyroscope, url: http://127.0.0.1:%d, headers: {X-Scope-OrgID: shop}, interval: 10s}
  - {name: otel, type: otlp, url: http://127.0.0.1:%d, protocol: grpc, interval: 10s}
  - {name: web, type: otlp, url: http://127.0.0.1:%d, interval: 10s, bearer_file: %s/secret}
""" % (lake, p.dir, p.dir, lake, p.dir, p.dir, pyro.port, grpc.port, web.port, p.dir)
            with Daemon(settings) as daemon, Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                names = ["lake", "pyro", "otel", "web"]
                self.settled(daemon, names, 100)
                self.assertEqual(daemon.cli("sink", "test", "otel").stdout, "otel: taken (gRPC status 0)\n")
                self.assertRegex(daemon.cli("sink", "test", "wrong", check=False).stdout,
                                 "^wrong: not taken: HTTP 403: SignatureDoesNotMatch: .")
                self.settled(daemon, names, sinks_of(daemon)["lake"]["delivered"])
                self.assertEqual(daemon.stop(), 0)
                # the next one delivers more
                sinks, log = ledgers(daemon), daemon.read_log()
                objects = glob.glob(bucket + "/kindling/*/*.json")
                stored, cpu_ns, pushed = sum(map(samples_of, objects)), sum(map(weight_of, objects)), pyro.samples
                grpc_bodies, web_bodies = glob.glob(p.dir + "/grpc/*.otlp"), glob.glob(web_out + "/*.otlp")
                daemon.start()
                wait_for("the refusal", lambda: "HTTP 403: Signature" in (sinks_of(daemon)["wrong"]["last_error"] or ""))
                self.assertEqual(jvm.end(), ("END\n", ""))
            self.assertNotRegex(log + str(sinks), "testsecret|nosecret")
            self.assertEqual(stored, sinks["lake"])
            self.assertEqual((pushed, pyro.tenants), (sinks["pyro"], {"shop"}))
            self.check_series(pyro)
            self.check_otlp(grpc_bodies, cpu_ns)
            self.check_otlp(web_bodies, cpu_ns)

    def test_a_secret_that_is_replaced_is_read_again(self):
        right = ["Bearer one"]

        def answer(handler, body):
            return (200, {}, "") if handler.headers["Authorization"] == right[0] else (401, {}, "who are you?")
        with Places() as p, Stub(answer) as server:
            for name in ("one", "two"):
                with open(p.dir + "/" + name, "w") as f:
                    f.write(name + "\n")
                os.chmod(p.dir + "/" + name, 0o600)
            os.symlink("one", p.dir + "/secret")
            settings = "\nsinks:\n  - {name: web, type: otlp, url: http://127.0.0.1:%d, interval: 10s, bearer_file: %s/secret}\n" % (
                server.port, p.dir)
            with Daemon(settings + ONLY_MINE) as daemon, Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                self.settled(daemon, ["web"])
                right[0] = "Bearer two"
                wait_for("a refusal", lambda: "401" in (sinks_of(daemon)["web"]["last_error"] or ""))
                # as Kubernetes does: a link to the new file, then the old one is removed
                os.symlink("two", p.dir + "/next")
                os.rename(p.dir + "/next", p.dir + "/secret")
                os.unlink(p.dir + "/one")
                wait_for("the new secret", lambda: not sinks_of(daemon).get("web", {"last_error": "?"})["last_error"])
                s = self.settled(daemon, ["web"])["web"]
                self.assertTrue(is_balanced(s) and not s["dropped"], s)
                self.assertIn("upload.begins_again why=\"a secret's file has changed\"", daemon.read_log())

    def test_a_server_and_a_client_show_certificates(self):
        with Places() as p:
            cert, key, password = p.dir + "/cert", p.dir + "/key", p.dir + "/password"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                            "-subj", "/CN=kindling test", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                           stderr=subprocess.DEVNULL)
            with open(password, "w") as f:
                f.write("swordfish\n")
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(cert, key)
            tls.load_verify_locations(cert)
            tls.verify_mode = ssl.CERT_REQUIRED
            seen = []

            def answer(handler, body):
                seen.append(handler.headers["Authorization"])
                return 200, {}, ""
            with Stub(answer, tls=tls) as server:
                url = "type: otlp, url: https://127.0.0.1:%d" % server.port
                settings = """
sinks:
  - {name: both, %s, ca_file: %s, cert_file: %s, key_file: %s, user: me, password_file: %s}
  - {name: client, %s, ca_file: %s}
  - {name: server, %s, cert_file: %s, key_file: %s}
  - {name: gone, %s, ca_file: /nowhere/ca}
""" % (url, cert, cert, key, password, url, cert, url, cert, key, url)
                with Daemon(settings) as daemon:
                    wait_for("sinks", lambda: "/nowhere/ca" in sinks_of(daemon)["gone"]["last_error"])
                    said = {name: daemon.cli("sink", "test", name, check=False).stdout
                            for name in ("both", "client", "server", "gone")}
            self.assertEqual(said["both"], "both: taken (HTTP 200)\n")
            self.assertEqual(seen, ["Basic " + base64.b64encode(b"me:swordfish").decode()])
            self.assertRegex(said["client"], "^client: not taken: .")  # the alert, or that the server has closed
            self.assertRegex(said["server"], "^server: not taken: SSL certificate problem: self.signed certificate")
            self.assertEqual(said["gone"], "gone: not taken: ca_file: /nowhere/ca: No such file or directory\n")

    def keep(self, p, handler, body):
        if handler.path != "/v1development/profiles" or handler.headers["Authorization"] != "Bearer testsecret":
            return 401, {}, "who are you"
        with open("%s/web/%d.otlp" % (p.dir, time.monotonic_ns()), "wb") as f:
            f.write(body)
        return 200, {}, ""

    def check_series(self, pyro):
        for labels, profile in pyro.series:
            self.assertEqual(labels["service_name"], "KnownShares")
            self.assertIn(labels["__name__"], ("process_cpu", "mutex"))
            self.assertEqual(profile.labels, set())
        self.assertIn(["samples", "cpu"], [profile.types for _, profile in pyro.series])

    def check_otlp(self, paths, cpu_ns):
        found = [x for path in paths for x in check_otlp(path) if x["resource"]["service.name"] == "KnownShares"]
        self.assertEqual(sum(x["total"] for x in found if x["type"] == "cpu"), cpu_ns, {x["type"] for x in found})

    def test_sinks_that_cannot_work_say_why(self):
        with Places() as p:
            os.mkdir(p.dir + "/mine", 0o700)
            settings = """
sinks:
  - {name: dir, type: files, directory: %s/mine}
  - {name: gone, type: exec, command: [/nowhere/x]}
""" % p.dir
            with Daemon(settings) as daemon:
                wait_for("reasons", lambda: all("is not running" not in s["last_error"] for s in sinks_of(daemon).values()))
                sinks = sinks_of(daemon)
                self.assertRegex(sinks["dir"]["last_error"], r"^directory .*/mine: uid \d+ may not write there: Permission")
                self.assertRegex(sinks["gone"]["last_error"], r"^command: uid \d+ cannot run /nowhere/x: No such file")
                # new settings, without a restart
                daemon.configure("sinks:\n  - {name: dir, type: files, directory: %s/new}\ntargets: {mode: opt-in}\n" % p.dir)
                self.assertIn("sinks: 2 of them -> 1 of them (in force now)", daemon.cli("config", "reload").stdout)
                wait_for("the new sink", lambda: sinks_of(daemon)["dir"]["last_error"] is None)
                self.check_ends_with_the_daemon(daemon)

    def check_ends_with_the_daemon(self, daemon):
        """A kindling-upload that cannot end by itself ends with the daemon; and its successor may use the directory,
        however deep it lies in the state directory and whichever user owns the parents that a service manager
        made."""
        state = daemon.dir + "/state"
        daemon.configure("sinks:\n  - {name: dir, type: files, directory: %s/deep/er/out}\ntargets: {mode: opt-in}\n" % state)
        daemon.cli("config", "reload")
        wait_for("a directory", lambda: os.path.exists(state + "/deep/er/out") and sinks_of(daemon)["dir"]["last_error"] is None)
        # the one that the new settings have started, when it is done with what it does first
        wait_for("an answer of kindling-upload", lambda: "taken" in daemon.cli("sink", "test", "dir", check=False).stdout.split())
        pid = upload_pid(daemon)
        os.kill(pid, signal.SIGSTOP)
        self.assertEqual(daemon.stop(), 0)
        wait_for("its end", lambda: not is_running(pid))
        subprocess.run(["chown", "-R", "root:root", state], check=True)
        daemon.start()
        wait_for("the sink", lambda: sinks_of(daemon)["dir"]["last_error"] is None)
        self.assertNotEqual(os.stat(state + "/deep/er/out").st_uid, 0)
        self.assertEqual(os.stat(state + "/deep/er").st_uid, 0)


def ledgers(daemon):
    """{sink: delivered}, read from the ledgers on disk, because the daemon has ended."""
    found = {}
    for path in glob.glob(daemon.dir + "/state/spool/*/ledger"):
        with open(path, "rb") as f:
            data = f.read()
        slots = []
        for at in (0, 512):
            words = [int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little") for i in range(7)]
            slots.append((words[1], words[6]))  # generation, delivered
        found[os.path.basename(os.path.dirname(path))] = max(slots)[1]
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
