"""Plays the daemon in one attach: starts kindling-inject as kindlingd does and reads the agent's frames."""
import os
import re
import select
import socket
import struct
import subprocess
import time

from bundle import BUILD
import wire  # noqa: E402
from kindling import Lateness  # noqa: E402

RESULT_SIZE = 128 + 4 + 4 + 124
STRATEGIES = ["not placed", "copy", "mount", "tmpfs"]
HELLO, CPU, LEDGER, FAULT, BYE, START, DETACH = 1, 8, 13, 14, 15, 64, 66
AGENT = BUILD + "/lib/libkindling.so"
INJECT = BUILD + "/bin/kindling-inject"


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def frame(kind, body=b""):
    return struct.pack("<IBBHQ", 16 + len(body), kind, 0, 0, 0) + body


def record(key, value):
    value = varint(value)
    return varint(key) + varint(len(value)) + value


def start_frame():
    # protocol, interval, flags (no budget), session
    return frame(START, record(1, wire.PROTOCOL) + record(2, 5_000_000) + record(3, 1) + record(6, 4711))


class Result:
    """The result: code 0 = streaming; what = the sentence of a refusal."""

    def __init__(self, message, fds):
        if message:
            self.code, step, self.flags = struct.unpack_from("<iHH", message)
            self.what = message[8:128].split(b"\0")[0].decode(errors="replace")
            self.strategy = STRATEGIES[struct.unpack_from("<I", message, 128)[0]]
            self.left = struct.unpack_from("<I", message, 132)[0]
            self.library = message[136:].split(b"\0")[0].decode(errors="replace")
        else:
            self.code, self.flags, self.what = -1, 0, "the program that attaches (kindling-inject) died without an answer"
            self.library, self.strategy, self.left = "", STRATEGIES[0], 0
        self.events, self.control = fds if fds else (-1, -1)
        self.frames = []
        self.buffer = b""

    def read(self, until, seconds=5.0):
        """Reads frames until one of type @until, which is returned; None if none comes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while len(self.buffer) >= 16:
                size, kind = struct.unpack_from("<IB", self.buffer)
                if len(self.buffer) < size:
                    break
                body, self.buffer = self.buffer[16:size], self.buffer[size:]
                self.frames.append((kind, body))
                if kind in until:
                    return kind, body
            if select.select([self.events], [], [], 0.1)[0]:
                data = os.read(self.events, 65536)
                if not data:
                    time.sleep(0.01)
                self.buffer += data
        return None

    def fault_text(self, body):
        return re.sub(r"[^ -~]+", " ", body.decode(errors="replace"))

    def detach(self):
        os.write(self.control, frame(DETACH))
        said = self.read({BYE})
        self.close()
        return said is not None

    def close(self):
        for fd in (self.events, self.control):
            if fd >= 0:
                os.close(fd)
        self.events = self.control = -1


def command(fd, pid, start_time, *words):
    return [INJECT, "--result-fd", str(fd), str(pid), str(start_time), *words]


def attach(c, **more):
    """Waits for the result; its seconds do not include those in which this machine did not let us run."""
    with Lateness() as late:
        begun = time.monotonic()
        result = attach_now(c, **more)
        result.seconds = time.monotonic() - begun
    result.seconds -= late.seconds
    return result


def attach_now(c, deadline_ms=6000, wrap=(), agent=AGENT, more=()):
    """@wrap: words in front of the injector's own, such as those of at_syscall."""
    more = [*more, "over_tmp=1"] if c.kind == "covered" else more
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    start, write_end = os.pipe()
    os.write(write_end, start_frame())
    os.close(write_end)
    with subprocess.Popen([*wrap, *command(theirs.fileno(), c.pid, c.start_time, "attach", agent,
                                           "deadline_ms=%d" % deadline_ms, *more)],
                          stdin=start, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        os.close(start)
        ours.settimeout(deadline_ms / 1000 + 10)
        try:
            message, fds, _, _ = socket.recv_fds(ours, 4096, 2)
        except socket.timeout:
            process.kill()
            message, fds = b"", []
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    ours.close()
    result = Result(message if len(message) == RESULT_SIZE else b"", fds)
    result.status, result.max_kb = process.returncode, usage.ru_maxrss
    return result


def cleanup(c):
    """Cleans up; returns the exit status: 0, or 4 if something has to stay."""
    return subprocess.run(command(3, c.pid, c.start_time, "cleanup"), check=False, timeout=30).returncode


def jcmd(c, *words):
    return subprocess.run([INJECT, str(c.pid), "jcmd", *words], capture_output=True, text=True, timeout=30)
