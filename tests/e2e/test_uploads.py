"""kindling-upload beside a made-up history: limits of the spool, secrets, proxies, servers that accept only bodies up
to a size. All sums equal those of the history, to the sample. test_uploads.py. Needs root."""
import collections
import glob
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import clickhouse  # noqa: E402
from kindling import java_home, wait_for  # noqa: E402
from servers import S3, AwsKeys, OtlpGrpc, Proxy, Pyroscope, Stub, check_otlp  # noqa: E402
from upload import Upload  # noqa: E402


def is_balanced(s):
    return s["taken"] == s["delivered"] + s["spooled"] + s["unconfirmed"] + sum(s["dropped"].values())


def samples_in(directory):
    """Of all events, in files of the format json."""
    total = 0
    for path in glob.glob(directory + "/*.json"):
        with open(path) as f:
            total += json.load(f)["view"]["samples"]
    return total


class Uploads(unittest.TestCase):
    maxDiff = None

    def delivered(self, up, name="x"):
        """Waits until all of the history is delivered."""
        total = sum(up.made.values())
        up.settle_all()
        s = up.until("all delivered", lambda sinks: sinks[name]["delivered"] == total and sinks[name])
        self.assertEqual((s["taken"], s["dropped"], s["spooled"] + s["unconfirmed"]), (total, {}, 0), up.read_log())

    def test_files_hold_the_history_and_keep_the_newest(self):
        sink = "name: x, type: files, directory: %s/%s, format: json, interval: %s, keep: %s"
        with Upload([], windows=12, stacks=400) as up:
            up.directory("out")
            up.settings([sink % (up.dir, "out", "20s", "1GiB")])
            up.start()
            self.delivered(up)
            self.assertEqual(samples_in(up.dir + "/out"), sum(up.made.values()))
            self.assertEqual(len(glob.glob(up.dir + "/out/*.json")), 12 / 2 * 2 * len(up.made))
        with Upload([], windows=40, processes=1, stacks=400) as up:
            with open(up.directory("out") + "/others_2026-01-01.json", "w") as f:
                f.write("not ours" * 100000)
            up.settings([sink % (up.dir, "out", "10s", "1MiB")])
            up.start()
            self.delivered(up)
            names = sorted(os.listdir(up.dir + "/out"))
            self.assertIn("others_2026-01-01.json", names)
            names.remove("others_2026-01-01.json")
            self.assertLessEqual(sum(os.path.getsize(up.dir + "/out/" + n) for n in names), 1.07 * (1 << 20))
            self.assertGreater(len(names), 3)
            last = time.strftime("_%Y-%m-%dT%H-%M-%SZ.", time.gmtime(up.end_s - 10))
            self.assertIn(last, names[-1])

    def test_the_spool_has_a_size_and_an_age(self):
        sinks = ["name: x, type: exec, command: [/bin/false], format: json, interval: 10s, spool_size: 1MiB"]
        with Upload(sinks, windows=30, processes=1, stacks=400) as up:
            up.start().settle_all()
            total = sum(up.made.values())
            s = up.until("all taken", lambda sinks: sinks["x"]["taken"] == total and sinks["x"]["dropped"] and sinks["x"])
            self.assertTrue(is_balanced(s), s)
            self.assertEqual(set(s["dropped"]), {"spool_full"})
            self.assertLessEqual(sum(up.spool("x")), 1 << 20)
            self.assertGreater(sum(up.spool("x")), (1 << 20) * 3 // 4)
            # an hour's worth waits no longer than the rest of that hour
            up.kill()
            up.start()
            again = up.until("accounts", lambda sinks: sinks["x"])
            self.assertEqual((again["taken"], again["dropped"]), (s["taken"], s["dropped"]))
        sinks = ["name: x, type: exec, command: [/bin/false], format: json, interval: 10s, spool_age: 30m"]
        # half of the history is older than half an hour
        with Upload(sinks, windows=20, processes=1, ago=1800 + 100) as up:
            up.start().settle(3600)
            total = sum(up.made.values())
            s = up.until("all taken", lambda sinks: sinks["x"]["taken"] == total and sinks["x"]["dropped"] and sinks["x"])
            self.assertTrue(is_balanced(s), s)
            self.assertEqual(set(s["dropped"]), {"spool_age"})
            self.assertIn(s["dropped"]["spool_age"] * 20 / total, range(8, 18))  # a minute is begun
            self.assertEqual(len(up.spool("x")), (20 - s["dropped"]["spool_age"] * 20 / total) * len(up.made))

    def test_a_history_that_cannot_be_read_is_said_to_be(self):
        with Upload([]) as up:
            up.settings(["name: x, type: files, directory: %s, format: json, interval: 10s" % up.directory("out")])
            paths = glob.glob(up.state + "/segments/*.seg")
            for path in paths:
                os.chmod(path, 0o600)
            up.start().settle_all()
            s = up.until("an error", lambda sinks: sinks["x"]["last_error"] and sinks["x"])
            self.assertEqual((s["last_error"], s["taken"]),
                             ("the history: Permission denied; if its directory was removed, restart kindlingd", 0))
            for path in paths:
                os.chmod(path, 0o640)
            self.delivered(up)

    def test_a_history_that_is_removed_and_made_again_is_read(self):
        with Upload([]) as up:
            up.settings(["name: x, type: files, directory: %s, format: json, interval: 10s" % up.directory("out")])
            up.start().until("its start", lambda sinks: "x" in sinks)
            subprocess.run(["cp", "-a", up.state + "/segments", up.state + "/copy"], check=True)
            shutil.rmtree(up.state + "/segments")
            up.settle_all()
            s = up.until("an error", lambda sinks: sinks["x"]["last_error"] and sinks["x"])
            self.assertEqual((s["last_error"], s["taken"]),
                             ("the history: No such file or directory; if its directory was removed, restart kindlingd", 0))
            os.rename(up.state + "/copy", up.state + "/segments")
            self.delivered(up)

    def test_a_clock_that_is_set_back_stops_no_sink(self):
        with Upload([], windows=60) as up:
            up.settings(["name: x, type: files, directory: %s, format: json, interval: 10s" % up.directory("out")])
            up.start().settle_all()
            first = sum(up.made.values())
            up.until("all of it", lambda sinks: sinks["x"]["delivered"] == first)
            up.end_s = up.settled_s = (int(time.time()) // 60 - 5) * 60
            up.more(6)
            up.until("the present", lambda sinks: sinks["x"]["taken_to_ns"] == up.settled_s * 10 ** 9)
            up.settle_all()
            s = up.until("the rest", lambda sinks: sinks["x"]["taken"] == sum(up.made.values()) and sinks["x"])
            self.assertTrue(is_balanced(s), s)
            self.assertIn("sink.clock_set_back sink=x by_s=", up.read_log())

    def test_a_clock_that_is_set_forward_by_years_takes_no_hours(self):
        with Upload([], ago=600) as up:
            up.settings(["name: x, type: files, directory: %s, format: json, interval: 10s" % up.directory("out")])
            up.begin_ledger("x")
            up.start()
            up.end_s += 20 * 365 * 86400
            up.more(6)
            up.settle_all()
            self.delivered(up)

    def test_a_server_says_when_to_come_again(self):
        for status in (429, 503):
            seen = []

            def answer(handler, body):
                seen.append(time.monotonic())
                return (status, {"Retry-After": "3"}, "later") if len(seen) == 1 else (200, {}, "")
            with Stub(answer) as server:
                sink = "name: x, type: otlp, url: http://127.0.0.1:%d, interval: 60s" % server.port
                with Upload([sink], processes=1) as up:
                    up.start()
                    self.delivered(up)
            self.assertEqual(len(seen), 2)
            self.assertGreaterEqual(seen[1] - seen[0], 3)

    def test_secrets_are_in_files_or_in_the_environment_alone(self):
        seen = []

        def answer(handler, body):
            seen.append((handler.path, handler.headers["Authorization"]))
            return 200, {}, ""
        with Stub(answer) as server:
            url = "type: otlp, url: http://127.0.0.1:%d" % server.port
            sinks = ["name: word, %s/word, bearer_env: WORD" % url, "name: user, %s/user, user: me, password_env: PASS" % url,
                     "name: none, %s, bearer_env: MISSING" % url, "name: lines, %s, bearer_env: LINES" % url]
            with Upload(sinks, env={"WORD": "sesame-1", "PASS": "sword-fish", "LINES": "a\r\nX-Evil: b"}) as up:
                up.start()
                self.assertEqual(up.test("word"), (True, "HTTP 200"))
                self.assertEqual(up.test("user"), (True, "HTTP 200"))
                for name, variable in (("none", "MISSING"), ("lines", "LINES")):
                    self.assertEqual(up.test(name), (False, "bearer_env: %s is not in the environment of kindlingd, or "
                                                            "is too long" % variable))
                self.assertEqual(seen, [("/word", "Bearer sesame-1"), ("/user", "Basic bWU6c3dvcmQtZmlzaA==")])
                self.assertNotRegex(json.dumps(up.status) + up.read_log(), "sesame|sword|Evil")

    def test_a_proxy_is_gone_through(self):
        seen = []

        def answer(handler, body):
            seen.append(len(body))
            return 200, {}, ""
        with Stub(answer) as server, Proxy({"backend.invalid": server.port}) as proxy:
            sink = "name: %s, type: otlp, url: http://backend.invalid:4318, interval: 60s"
            sinks = [sink % "x" + ", proxy: http://127.0.0.1:%d" % proxy.port, sink % "direct"]
            with Upload(sinks) as up:
                up.start()
                self.delivered(up)
                self.assertEqual(len(seen), 2)
                self.assertEqual(set(proxy.seen), {"POST http://backend.invalid:4318/v1development/profiles"})
                s = up.until("an error", lambda sinks: sinks["direct"]["last_error"] and sinks["direct"])
                self.assertRegex(s["last_error"], "Could not resolve host: backend.invalid")
                self.assertEqual((s["spooled"], s["delivered"]), (sum(up.made.values()), 0))

    def s3_server(self, up):
        os.mkdir(up.directory("s3") + "/profiles")
        return S3(up.dir + "/s3")

    def test_zips_are_those_of_async_profilers_agent_in_rust(self):
        """Two JVMs, six windows in two intervals; `jfr` reads the file after Python's zipfile has unpacked it."""
        with Upload([], env={"NODE_NAME": "web_1"}) as up, self.s3_server(up) as s3:
            up.settings(["name: x, type: s3, url: http://127.0.0.1:%d, bucket: profiles, prefix: p, interval: 30s, "
                         "format: jfr.zip, access_key_file: %s, secret_key_file: %s"
                         % (s3.port, up.file("id", "testid"), up.file("secret", "testsecret"))])
            up.start()
            self.delivered(up)
            found = sorted(os.listdir(up.dir + "/s3/profiles/p"))
            times = [time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(up.begin_s + s)) for s in (0, 30)]
            self.assertEqual(found, ["profile_service-%d_unknown_web-1__%d_%s.zip" % (n, 1000 + n, at)
                                     for n in (0, 1) for at in times])
            events = collections.Counter()
            for name in found:
                with zipfile.ZipFile(up.dir + "/s3/profiles/p/" + name) as z:
                    self.assertIsNone(z.testzip())
                    self.assertEqual(z.namelist(), ["async_profiler_dump_0.jfr", "metadata.json"])
                    self.assertEqual({i.compress_type for i in z.infolist()}, {zipfile.ZIP_DEFLATED})
                    said = json.loads(z.read("metadata.json"))
                    jfr = z.extract("async_profiler_dump_0.jfr", up.dir)
                self.assertEqual((said["end"] - said["start"], said["reporting_interval"]), (30000, 30000))
                with open("/proc/uptime") as f:
                    since = time.time() - float(f.read().split()[0]) + 0.77
                self.assertAlmostEqual(said["start"] / 1000 + since, up.begin_s + 30 * times.index(name[-24:-4]), delta=2)
                summary = subprocess.run([java_home("17") + "/bin/jfr", "summary", jfr], capture_output=True, text=True,
                                         check=True).stdout
                for event in ("jdk.ExecutionSample", "jdk.JavaMonitorEnter"):
                    events[event] += int(re.search(r"^ %s +(\d+) " % event, summary, re.M).group(1))
            self.assertGreaterEqual(events["jdk.ExecutionSample"], up.made["cpu"])
            self.assertGreaterEqual(events["jdk.JavaMonitorEnter"], 1)

    def test_keys_of_aws_are_found_as_sdks_find_them(self):
        with Upload([]) as up, self.s3_server(up) as s3:
            sink = "name: x, type: s3, url: http://127.0.0.1:%d, bucket: profiles, interval: 10s, format: json"
            nobody = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}
            up.settings([sink % s3.port])
            up.env.update(nobody)
            up.start()
            self.assertRegex(up.test("x")[1], "^there are no keys: (they are being requested|http://127.0.0.1:1/latest/api/token: )")
            up.kill()
            up.env.update(AWS_ACCESS_KEY_ID="testid", AWS_SECRET_ACCESS_KEY="testsecret")
            up.start()
            self.delivered(up)

    def test_keys_of_the_instance_are_replaced_before_they_end(self):
        seen = []

        def take(handler, body):
            seen.append((re.search(r"Credential=(\w+)/", handler.headers["Authorization"]).group(1),
                         re.search("SignedHeaders=([^,]+)", handler.headers["Authorization"]).group(1),
                         handler.headers["x-amz-security-token"]))
            return (200, {}, "") if seen[-1][2] != "old" else (403, {}, "<Code>ExpiredToken</Code><Message>away</Message>")
        signed = "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
        # the first keys are refused, and expire soon; both services are used, EC2's by one sink and that of EKS by the
        # other
        keys = [("AKID1", "s", "old", 300 + 2), ("AKID2", "s", "new", 7200)]
        with Stub(take) as store, AwsKeys(keys) as ec2, AwsKeys(keys, authorization="Bearer x") as eks:
            sink = "name: x, type: s3, url: http://127.0.0.1:%d, bucket: profiles, interval: 60s" % store.port
            ways = {"ec2": (ec2, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:%d/" % ec2.port}),
                    "eks": (eks, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:%d/ecs" % eks.port})}
            for name, (stub, env) in ways.items():
                with Upload([sink], env=env) as up:
                    up.env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = up.file("token", "Bearer x\n")
                    up.start()
                    self.delivered(up)
                    self.assertEqual(seen[0], ("AKID1", signed, "old"), name)
                    self.assertEqual(seen[-1], ("AKID2", signed, "new"), name)
                    self.assertEqual(stub.given, 2)
                    self.assertNotRegex(json.dumps(up.status) + up.read_log(), "Bearer|AKID")
                seen.clear()

    def test_bodies_too_large_for_a_server_are_split(self):
        """Bodies become as large as a proxy with a limit of 30 kB accepts; nothing is lost, nothing arrives twice,
        and later bodies fit at once."""
        refused, bodies = [], []

        def bounded(take):
            def push(handler, body):
                if len(body) > 30000:
                    refused.append(len(body))
                    return 413, {}, "Request Entity Too Large"
                return take(handler, body)
            return push
        with Upload([], windows=6, processes=1, stacks=400) as up, Pyroscope() as pyro, \
                Stub(bounded(lambda h, body: bodies.append(body) or (200, {}, ""))) as otlp, \
                OtlpGrpc(up.directory("grpc"), 30000) as grpc:
            pyro.answer = bounded(pyro.push)
            up.settings(["name: x, type: pyroscope, url: http://127.0.0.1:%d, interval: 20s" % pyro.port,
                         "name: y, type: otlp, url: http://127.0.0.1:%d, interval: 20s" % otlp.port,
                         "name: z, type: otlp, protocol: grpc, url: http://127.0.0.1:%d, interval: 20s" % grpc.port])
            up.start()
            for name in ("x", "y", "z"):
                self.delivered(up, name)
            self.assertEqual(pyro.samples, up.made["cpu"] + up.made["lock"])
            self.assertEqual(sum(p.totals.get("cpu", 0) for _, p in pyro.series), up.made["cpu"] * 10 ** 7)
            os.mkdir(up.dir + "/http")
            for i, body in enumerate(bodies):
                with open("%s/http/%d.otlp" % (up.dir, i), "wb") as f:
                    f.write(body)
            for directory in ("http", "grpc"):
                total = collections.Counter()
                for path in glob.glob("%s/%s/*.otlp" % (up.dir, directory)):
                    for profile in check_otlp(path):
                        total[profile["type"]] += profile["total"]
                self.assertEqual(total, {"cpu": up.made["cpu"] * 10 ** 7, "delay": up.made["lock"] * 10 ** 7}, directory)
            for name in ("x", "y", "z"):
                self.assertIn("sink.split sink=%s " % name, up.read_log())
            # one more interval, now that the server's limit is known
            before = len(refused)
            up.more(6)
            splits = up.read_log().count("sink.split sink=z ")
            for name in ("x", "y", "z"):
                self.delivered(up, name)
            self.assertEqual(len(refused), before, refused)
            self.assertEqual(up.read_log().count("sink.split sink=z "), splits)

    def test_inserts_are_of_many_jvms_and_split_where_they_are_too_large(self):
        """ClickHouse behind a proxy with TLS that accepts 20 kB at first, and later any size."""
        server, bodies, bound = clickhouse.Debian(), [], [20000]

        def forward(handler, body):
            if len(body) > bound[0]:
                return 413, {}, "Request Entity Too Large"
            request = urllib.request.Request("http://127.0.0.1:%d%s" % (server.port, handler.path), data=body, headers={
                k: v for k, v in handler.headers.items() if k in ("Authorization", "Content-Encoding", "Content-Type")})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    bodies.append((len(body), handler.path))
                    return 200, {}, answer.read().decode()
            except urllib.error.HTTPError as e:
                return e.code, {}, e.read().decode()
        with Upload([], windows=6, processes=20, stacks=40, env={"CH_WORD": clickhouse.PASSWORD}) as up:
            cert, key = up.dir + "/cert", up.dir + "/key"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                            "-subj", "/CN=kindling test", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                           stderr=subprocess.DEVNULL)
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(cert, key)
            with Stub(forward, tls=tls) as proxy:
                up.settings(['name: x, type: clickhouse, url: "https://127.0.0.1:%d", ca_file: %s, user: kindling,'
                             " password_env: CH_WORD, create: true, interval: 60s" % (proxy.port, cert)])
                up.start()
                self.delivered(up)
                self.check_rows(server, up)
                self.assertIn("sink.split sink=x", up.read_log())
                self.assertLess(max(n for n, path in bodies), 20000)
                self.assertTrue(all("decompress=1" in path for n, path in bodies if "INSERT" in path), bodies)
                up.kill()  # the limit that it learnt is lost when it ends
                bound[0] = 1 << 30
                bodies.clear()
                up.more(6)
                up.start()
                self.delivered(up)
                self.check_rows(server, up)
                self.assertEqual(len(bodies), 3, bodies)  # 20 JVMs, one request for each table
                bodies.clear()
                up.more(6)
                self.delivered(up)
                self.check_rows(server, up)
                self.assertEqual(len(bodies), 2, bodies)  # the server has these stacks already
        server.stop()

    def test_a_server_that_does_not_take_zstd_gets_gzip(self):
        """ClickHouse behind a proxy that drops the parameters of its own format, or refuses them: bodies that are in the
        spool are packed anew, and later ones made in gzip."""
        server, forms = clickhouse.Debian(), []
        server.run("CREATE DATABASE kindling")

        def forward(handler, body):
            url = handler.path.replace("decompress=1&", "").replace("http_native_compression_disable_checksumming_on_decompress=1&", "")
            forms.append(handler.headers.get("Content-Encoding", "zstd"))
            if url != handler.path and refuses:
                return refuses, {}, "Code: 452. DB::Exception: Setting http_native_compression... should not be changed."
            request = urllib.request.Request("http://127.0.0.1:%d%s" % (server.port, url), data=body, headers={
                k: v for k, v in handler.headers.items() if k in ("Authorization", "Content-Encoding", "Content-Type")})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return 200, {}, answer.read().decode()
            except urllib.error.HTTPError as e:
                return e.code, {}, e.read().decode("utf-8", "replace")
        for refuses in (None, 400):
            server.run("DROP DATABASE kindling")
            forms.clear()
            with Upload([], windows=6, processes=20, stacks=40, env={"CH_WORD": clickhouse.PASSWORD}) as up, Stub(forward) as proxy:
                up.settings(['name: x, type: clickhouse, url: "http://127.0.0.1:%d", user: kindling,'
                             " password_env: CH_WORD, create: true, interval: 60s" % proxy.port])
                up.start()
                self.delivered(up)
                self.check_rows(server, up)
                self.assertIn("gzip", forms)
                self.assertLessEqual(forms.count("zstd"), 6, forms)  # some are statements
                forms.clear()
                up.more(6)
                self.delivered(up)
                self.check_rows(server, up)
                self.assertEqual(set(forms), {"gzip"})
        server.stop()

    def check_rows(self, server, up):
        """The rows in the server equal the history, with a stack for each sample and all of its processes."""
        wait_for("stacks and processes, which the ledger does not count", lambda: not up.spool("x") or not up.tick())
        (n, without), = server.rows("SELECT sum(samples), countIf(frames = []) FROM (SELECT samples, stack FROM kindling.samples FINAL)"
                                    " ANY LEFT JOIN (SELECT stack, frames FROM kindling.stacks) USING stack")
        self.assertEqual((int(n), int(without)), (sum(up.made.values()), 0))
        self.assertEqual(server.rows("SELECT uniqExact(pid), count() FROM kindling.processes FINAL"),
                         [["20", str(20 * (up.end_s - up.begin_s) // 60)]])

    def test_a_server_that_accepts_nothing_is_given_up(self):
        with Stub(lambda h, body: (413, {}, "no")) as server:
            with Upload(["name: x, type: otlp, url: http://127.0.0.1:%d, interval: 60s" % server.port], processes=1, stacks=200) as up:
                up.start().settle_all()
                total = sum(up.made.values())
                s = up.until("an end", lambda sinks: sinks["x"]["dropped"].get("too_large") == total and sinks["x"])
                self.assertTrue(is_balanced(s), s)
                self.assertRegex(s["last_error"], "^HTTP 413: no")
                self.assertLess(server.requests, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
