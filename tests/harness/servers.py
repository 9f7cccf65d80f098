"""Servers to which sinks deliver: real ones, or strict stubs for those that cannot be had."""
import collections
import contextlib
import gzip
import hashlib
import http.client
import http.server
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kindling import HERE, skip, wait_for  # noqa: E402

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def go_program(name, build):
    """Builds a Go program once per machine and version of its source: build(go, path) makes it."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        skip("there is no Go compiler; tests/run installs one")
    base = os.environ.get("KINDLING_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "kindling")
    out = os.path.join(base, "go", name)
    if not os.path.exists(out):
        temp = out + ".%d" % os.getpid()
        os.makedirs(os.path.dirname(out), exist_ok=True)
        build(go, temp)
        os.rename(temp, out)
    return out


def go_source(directory):
    """The program of tests/harness/go/DIRECTORY."""
    path = os.path.join(HERE, "go", directory)
    text = hashlib.sha256()
    for file in sorted(os.listdir(path)):
        with open(os.path.join(path, file), "rb") as f:
            text.update(f.read())
    return go_program("%s-%s" % (directory, text.hexdigest()[:12]),
                      lambda go, out: subprocess.run([go, "build", "-o", out, "."], cwd=path, check=True))


class Process:
    def __init__(self, command, port, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.port = port

        def answers():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
        wait_for("%s on port %d" % (command[0], port), answers)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


class S3(Process):
    """versitygw: buckets are directories."""

    def __init__(self, directory, access="testid", secret="testsecret", port=None):
        def install(go, out):
            os.makedirs(out + ".d", exist_ok=True)
            subprocess.run([go, "install", VERSITYGW], check=True, env=dict(os.environ, GOBIN=out + ".d"))
            os.rename(out + ".d/versitygw", out)
            os.rmdir(out + ".d")
        program = go_program("versitygw-" + VERSITYGW.split("@")[1], install)
        port = port or free_port()
        super().__init__([program, "--port", "127.0.0.1:%d" % port, "--region", "us-east-1", "posix", directory], port,
                         env=dict(os.environ, ROOT_ACCESS_KEY=access, ROOT_SECRET_KEY=secret))


class OtlpGrpc(Process):
    """An OTLP receiver that uses the official decoder and accepts messages up to @most bytes; its directory has the
    requests."""

    def __init__(self, directory, most=4 << 20):
        port = free_port()
        super().__init__([go_source("otlpreceive"), str(port), directory, str(most)], port)


def check_otlp(path):
    """Decodes a request by the official decoder and checks every index."""
    done = subprocess.run([go_source("otlpcheck"), path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


# ---- the parts of protobuf that the stubs need

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{field number: [values]}; malformed data raises an exception."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            n, at = varint(data, at)
            value = data[at:at + n]
            at += n
            if len(value) != n:
                raise ValueError("cut short")
        else:
            raise ValueError("wire type %d" % (tag & 7))
        found[tag >> 3].append(value)
    return found


def packed(values):
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            n, at = varint(value, at)
            numbers.append(n)
    return numbers


class Pprof:
    """Checks a pprof file as Pyroscope does: sums of its sample types, labels of its samples."""

    def __init__(self, data):
        p = fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        strings = [s.decode() for s in p[6]]
        if strings[0] != "":
            raise ValueError("the first string is not empty")
        types = [fields(t) for t in p[1]]
        self.types = [strings[t[1][0]] for t in types]
        if any("-" in t for t in self.types):
            raise ValueError("a sample type with -")
        locations = {fields(x)[1][0] for x in p[4]}
        functions = {fields(x)[1][0] for x in p[5]}
        if 0 in locations or 0 in functions:
            raise ValueError("id 0")
        self.totals, self.labels, self.samples = dict.fromkeys(self.types, 0), set(), len(p[2])
        self.values = collections.defaultdict(set)  # by label
        for s in map(fields, p[2]):
            values = packed(s[2])
            if len(values) != len(self.types) or not set(packed(s[1])) <= locations:
                raise ValueError("a sample of %d values" % len(values))
            for name, value in zip(self.types, values):
                self.totals[name] += value
            for key, text in ((strings[x[1][0]], strings[x[2][0]] if x[2] else "") for x in map(fields, s[3])):
                self.labels.add(key)
                self.values[key].add(text)


# ---- stubs

class Stub:
    """An HTTP server with a thread for each request. @answer(handler, body) returns (status, headers, text), or None
    if it has sent everything itself."""

    def __init__(self, answer, port=0, tls=None):
        """@tls: an ssl.SSLContext."""
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with stub.lock:
                    stub.requests += 1
                done = stub.answer(self, body)
                if done is None:
                    self.close_connection = True
                    return
                status, headers, text = done
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST

            def log_message(self, *unused):
                pass

        self.lock, self.requests, self.answer = threading.Lock(), 0, answer
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.handle_error = lambda *unused: None  # clients that break off do so on purpose
        self.port = self.server.server_address[1]
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()


class Proxy(Stub):
    """An HTTP proxy: a request for http://NAME:PORT/ goes to 127.0.0.1:@hosts[NAME]. CONNECT is tunnelled."""

    def __init__(self, hosts):
        self.hosts, self.seen = hosts, []
        super().__init__(self.forward)
        self.server.RequestHandlerClass.do_CONNECT = lambda handler: self.tunnel(handler)

    def forward(self, handler, body):
        self.seen.append("%s %s" % (handler.command, handler.path))
        url = urllib.parse.urlsplit(handler.path)
        connection = http.client.HTTPConnection("127.0.0.1", self.hosts[url.hostname], timeout=30)
        with contextlib.closing(connection):
            connection.request(handler.command, url.path, body, dict(handler.headers))
            answer = connection.getresponse()
            return answer.status, {}, answer.read().decode()

    def tunnel(self, handler):
        self.seen.append("CONNECT " + handler.path)
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        with socket.create_connection(("127.0.0.1", self.hosts[handler.path.split(":")[0]])) as there:
            here = handler.connection
            while True:
                for s in select.select([here, there], [], [], 30)[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    (there if s is here else here).sendall(data)


class AwsKeys(Stub):
    """A stub of EC2's metadata service (version 2) and of that of ECS and EKS. @keys: the answers one after the
    other, the last of them from then on; each is (access key, secret, token, seconds of validity)."""

    TOKEN, ROLE = "AQAEAL==", "profiles-writer"

    def __init__(self, keys, authorization=None):
        self.keys, self.authorization, self.given = list(keys), authorization, 0
        super().__init__(self.tell)

    def tell(self, handler, body):
        ec2 = "/latest/meta-data/iam/security-credentials/"
        if (handler.command, handler.path) == ("PUT", "/latest/api/token"):
            return 200, {}, self.TOKEN
        if handler.command != "GET":
            return 405, {}, ""
        if handler.path == "/ecs":
            return self.give() if handler.headers["Authorization"] == self.authorization else (401, {}, "")
        if handler.headers["X-aws-ec2-metadata-token"] != self.TOKEN:
            return 401, {}, ""
        return (200, {}, self.ROLE) if handler.path == ec2 else self.give() if handler.path == ec2 + self.ROLE else (404, {}, "")

    def give(self):
        with self.lock:
            access, secret, token, seconds = self.keys[min(self.given, len(self.keys) - 1)]
            self.given += 1
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return 200, {}, json.dumps({"Code": "Success", "AccessKeyId": access, "SecretAccessKey": secret, "Token": token,
                                    "Expiration": end})


class Pyroscope(Stub):
    """A stub of Pyroscope's Push API, with the checks that the real server makes."""

    def __init__(self, port=0):
        self.ids, self.samples, self.series, self.tenants = set(), 0, [], set()
        super().__init__(self.push, port)

    def refuse(self, message):
        return 400, {"Content-Type": "application/json"}, '{"code":"invalid_argument","message":"%s"}' % message

    def push(self, handler, body):
        if handler.path != "/push.v1.PusherService/Push" or handler.headers["Content-Type"] != "application/proto":
            return 415, {}, ""
        try:
            for s in map(fields, fields(body)[1]):
                labels = {f[1][0].decode(): f[2][0].decode() for f in map(fields, s[1])}
                if not labels.get("service_name"):
                    return self.refuse("service name is not provided")
                if "__name__" not in labels or len(labels) > 30:
                    return self.refuse("labels")
                for sample in map(fields, s[2]):
                    profile = Pprof(sample[1][0])
                    if profile.samples > 16000:
                        return self.refuse("too many samples")
                    with self.lock:
                        self.tenants.add(handler.headers["X-Scope-OrgID"])
                        if sample[2][0] not in self.ids:  # the same body twice, because its answer was lost
                            self.samples += profile.totals[profile.types[0]]
                        self.ids.add(sample[2][0])
                        self.series.append((labels, profile))
        except (ValueError, IndexError, UnicodeDecodeError) as e:
            return self.refuse(str(e))
        return 200, {}, ""


def slowly(handler, text, seconds):
    """Sends an answer of one byte a second."""
    with contextlib.suppress(OSError):
        for c in text[:seconds]:
            handler.wfile.write(c.encode())
            handler.wfile.flush()
            time.sleep(1)
