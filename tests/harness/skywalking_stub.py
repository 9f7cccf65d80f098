"""A stub of the SkyWalking OAP's gRPC services, including the task service, which the available OAP is too old for.
It is strict: unknown fields, content before it is asked for, or content of another size than announced are errors."""
import concurrent.futures
import contextlib
import socket
import struct
import threading
import time

import wheels

wheels.use("grpcio")
import grpc  # noqa: E402


def fields(message):
    """{number: [value, ...]} of a protobuf message: ints and bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        elif tag & 7 == 2:
            size = varint()
            value, at = message[at:at + size], at + size
        else:
            raise ValueError("wire type %d" % (tag & 7))
        found.setdefault(tag >> 3, []).append(value)
    if at != len(message):
        raise ValueError("a field that is cut")
    return found


def one(found, number, default=b""):
    return found.get(number, [default])[-1]


def text(number, value):
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def pair(key, value):
    return text(2, text(1, key) + text(2, value))


class Oap(grpc.GenericRpcHandler):
    """Registered instances, tasks to hand out, and the uploads for them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.instances = {}  # (service, instance): properties, None = only a ping
        self.tasks = []  # (id, service, seconds, arguments, created ms)
        self.uploads = []  # (task, instance, bytes)
        self.failures = {}  # (task, instance): message
        self.most = 30 << 20  # its jfrMaxSize
        self.oversize = []  # (task, instance, bytes) of uploads that it refused
        self.silent = None  # where it hangs: "before" its answer to the metadata, or "behind" the end of the content
        self.waiting = []  # (task, instance) of uploads that it made wait
        self.broken = []  # (task, instance, bytes received) of streams that ended early
        self.wrong = []
        self.polls = 0
        self.authentication = set()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[self])
        self.url = "http://127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.stop(0)

    def service(self, details):
        unary = {"/skywalking.v3.ManagementService/keepAlive": self.keep_alive,
                 "/skywalking.v3.ManagementService/reportInstanceProperties": self.properties,
                 "/skywalking.v10.AsyncProfilerTask/getAsyncProfilerTaskCommands": self.commands}
        self.authentication.add(dict(details.invocation_metadata).get("authentication"))
        if details.method in unary:
            return grpc.unary_unary_rpc_method_handler(unary[details.method])
        if details.method == "/skywalking.v10.AsyncProfilerTask/collect":
            return grpc.stream_stream_rpc_method_handler(self.collect)
        self.wrong.append(details.method)
        return None

    def parse(self, message, known):
        found = fields(message)
        if not set(found) <= known:
            self.wrong.append("fields %s" % sorted(set(found) - known))
        return found

    def keep_alive(self, request, context):
        found = self.parse(request, {1, 2, 3})
        with self.lock:
            self.instances.setdefault((one(found, 1).decode(), one(found, 2).decode()), None)
        return b""

    def properties(self, request, context):
        found = self.parse(request, {1, 2, 3, 4})
        pairs = [fields(p) for p in found.get(3, [])]
        key = one(found, 1).decode(), one(found, 2).decode()
        with self.lock:
            if key not in self.instances:
                self.wrong.append("properties of an instance that nobody pinged")
            self.instances[key] = {one(p, 1).decode(): one(p, 2).decode() for p in pairs}
        return b""

    def commands(self, request, context):
        found = self.parse(request, {1, 2, 3})
        key, last = (one(found, 1).decode(), one(found, 2).decode()), one(found, 3, 0)
        last -= (last >> 63) << 64
        with self.lock:
            self.polls += 1
            if key not in self.instances:
                return b""
            return b"".join(text(1, text(1, "AsyncProfilerTaskQuery") + pair("SerialNumber", "s-" + i) + pair("TaskId", i) +
                                 pair("Duration", str(seconds)) + pair("ExecArgs", arguments) +
                                 pair("CreateTime", str(created)))
                            for i, service, seconds, arguments, created in self.tasks
                            if service == key[0] and created > last)

    def collect(self, requests, context):
        first = self.parse(next(requests), {1, 2, 3})
        meta = self.parse(one(first, 1), {1, 2, 3, 4, 5})
        task, instance, size = one(meta, 3).decode(), one(meta, 2).decode(), one(meta, 5, 0)
        if one(meta, 4, 0) == 1:
            self.failures[task, instance] = one(first, 2).decode()
            self.wrong += ["more after a failure" for m in requests]
            return
        if 2 in first or 3 in first or size <= 0:
            self.wrong.append("metadata with more, or of %d bytes" % size)
        if size > self.most:
            self.oversize.append((task, instance, size))
            yield b"\x08\x02"
            self.wrong += ["content that nobody wanted" for m in requests]
            return
        self.be_silent("before", task, instance)
        yield b""
        yield from self.take(task, instance, size, requests, context)

    def take(self, task, instance, size, requests, context):
        """Receives the content; like a real OAP it keeps nothing of a stream that its client did not end properly."""
        content = b""
        try:
            for message in requests:
                found = self.parse(message, {1, 3})
                if len(one(found, 3)) > 1 << 20:
                    self.wrong.append("a message of %d bytes" % len(one(found, 3)))
                content += one(found, 3)
        except grpc.RpcError:
            self.broken.append((task, instance, len(content)))
            return
        # a call that breaks before its first message ends the loop in the same way as the client's end does, and on a busy
        # machine it becomes inactive a moment later
        until = time.monotonic() + 5
        while len(content) != size and context.is_active() and time.monotonic() < until:
            time.sleep(0.05)
        if len(content) != size and not context.is_active():
            self.broken.append((task, instance, len(content)))
            return
        if len(content) != size:
            self.wrong.append("%d bytes instead of %d" % (len(content), size))
        with self.lock:
            self.uploads.append((task, instance, content))
        self.be_silent("behind", task, instance)
        yield from ()

    def be_silent(self, where, task, instance):
        if self.silent == where:
            self.waiting.append((task, instance))
        while self.silent == where:
            time.sleep(0.05)


class Proxy:
    """A proxy in front of a server on 127.0.0.1 that forwards everything until a test changes that. down: it accepts
    no connection."""

    def __init__(self, url):
        self.to = int(url.rsplit(":", 1)[1])
        self.listener = None
        self.connections = []
        self.reset_at = None  # bytes after which a connection is reset; once
        self.drip_at = None  # bytes after which a connection gets one byte a second, for drip_s
        self.drip_s = 0
        self.resets = self.dripped = 0
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port

    def up(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self

    def down(self):
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        self.listener = None
        for s in self.connections:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                client = listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.connections += [client, server]
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, a, b, upwards):
        passed = 0
        with contextlib.suppress(OSError):
            while True:
                data = a.recv(4096)
                if not data:
                    break
                passed += len(data)
                if upwards and self.reset_at is not None and passed > self.reset_at:
                    self.reset_at = None
                    self.resets += 1
                    a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if upwards and self.drip_at is not None and passed > self.drip_at:
                    self.drip_at = None
                    for i in range(self.drip_s):
                        b.sendall(data[i:i + 1])
                        self.dripped += 1
                        time.sleep(1)
                    data = data[self.drip_s:]
                b.sendall(data)
        for s in a, b:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.down()
