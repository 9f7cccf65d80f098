"""kindling-upload alone: with a made-up history, and a test that talks to it in place of kindlingd-data. Nothing
depends on real time, so it can be killed a hundred times in a few seconds."""
import contextlib
import json
import os
import pwd
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # noqa: E402
from kindling import BUILD, WAIT_S, wait_for  # noqa: E402

EVENTS = len(wire.EVENTS)
WINDOW_S = 10
TICK, TEST = 0, 1  # enum upload_ask
STATUS, TESTED = 0, 1  # enum upload_say
UPLOAD_FD = 3


def account(name, uid):
    try:
        return pwd.getpwnam(name).pw_uid, pwd.getpwnam(name).pw_gid
    except KeyError:
        return uid, uid


class Upload:
    """@sinks: lines of the settings. The history begins with the next minute, so that a new sink takes all of it, or
    it began @ago seconds ago, and the sinks' ledgers begin then. settle() sets which part of it is complete."""

    def __init__(self, sinks, windows=6, processes=2, stacks=40, more="", env=(), ago=None):
        self.dir = tempfile.mkdtemp(prefix="kindling-upload-")
        os.chmod(self.dir, 0o755)
        self.state, self.config, self.env = self.dir + "/state", self.dir + "/kindlingd.yaml", dict(os.environ, **dict(env))
        self.settings(sinks, more)
        self.log = open(self.dir + "/log", "ab")
        self.process = self.socket = None
        self.status, self.tested, self.lived = {}, {}, 0
        os.mkdir(self.state)
        # the beginning of a minute, with which every interval of the tests begins too
        self.begin_s = (int(time.time()) // 60 + 1 if ago is None else int(time.time() - ago) // 60) * 60
        self.processes, self.stacks, self.end_s, self.made = processes, stacks, self.begin_s, {}
        self.more(windows)
        self.settled_s = self.begin_s
        for name in re.findall(r"name: (\w+)", " ".join(sinks)) if ago is not None else ():
            self.begin_ledger(name)

    def more(self, windows):
        """Appends windows to those that exist."""
        made = subprocess.run([BUILD + "/tests/windows", self.state + "/segments", str(self.end_s), str(windows),
                               str(self.processes), str(self.stacks)], check=True, capture_output=True, text=True).stdout
        for event, samples in json.loads(made).items():
            self.made[event] = self.made.get(event, 0) + samples
        self.end_s += windows * WINDOW_S
        self.give()

    def begin_ledger(self, name):
        """As ledger.c writes it."""
        os.makedirs("%s/spool/%s" % (self.state, name), 0o750)
        slot = struct.pack("<9Q24QI", 0x316764656c444e4b, 1, self.begin_s * 10 ** 9, 1, *[0] * 29, 0)
        with open("%s/spool/%s/ledger" % (self.state, name), "wb") as f:
            f.write((slot + struct.pack("<I", zlib.crc32(slot))).ljust(512, b"\0") * 2)

    def settings(self, sinks, more=""):
        with open(self.config, "w") as f:
            f.write("state_dir: %s\n%ssinks:\n%s" % (self.state, more, "".join("  - {%s}\n" % s for s in sinks)))

    def give(self):
        """As kindlingd does."""
        uid, gid = account("kindling", 70707)[0], account("kindling-upload", 70710)[1]
        os.chmod(self.state, 0o750)
        for path in (self.state, self.state + "/segments"):
            os.chown(path, uid, gid)
            for name in os.listdir(path):
                os.chown(path + "/" + name, uid, gid)

    def start(self):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = its.fileno()
        self.process = subprocess.Popen([BUILD + "/bin/kindling-upload", self.state, self.config], env=self.env,
                                        stdout=self.log, stderr=self.log, pass_fds=(UPLOAD_FD,),
                                        preexec_fn=lambda: os.dup2(keep, UPLOAD_FD))
        its.close()
        self.socket = ours
        self.lived += 1
        return self

    def ask(self, what, name=""):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.send(struct.pack("<IIQ%dQ48s" % EVENTS, what, 0, self.settled_s * 10 ** 9, *[0] * EVENTS,
                                         name.encode()))

    def listen(self):
        """Its output so far."""
        while True:
            try:
                data = self.socket.recv(1 << 17, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionResetError):
                return
            if not data:
                return
            say, ok, length, _ = struct.unpack_from("<IIII", data)
            name, text = data[16:64].split(b"\0")[0].decode(), data[64:64 + length].decode()
            if say == STATUS:
                self.status = {s["name"]: s for s in json.loads(text)}
            else:
                self.tested[name] = (bool(ok), text)

    def tick(self):
        """Plays one second of the daemon, as often as wanted; returns the status."""
        self.ask(TICK)
        self.listen()
        return self.status

    def settle(self, seconds):
        """Declares that much more of the history complete."""
        self.settled_s += seconds
        return self

    def settle_all(self):
        """Declares the whole history complete, so that all intervals of a minute or less are over."""
        self.settled_s = (self.end_s + 59) // 60 * 60
        return self

    def until(self, what, condition, seconds=WAIT_S):
        """Plays the daemon's seconds until @condition(status) is true."""
        try:
            return wait_for(what, lambda: self.alive() and self.tick() and condition(self.status), seconds)
        except AssertionError as e:
            raise AssertionError("%s\n%s\n%s" % (e, json.dumps(self.status, indent=1), self.read_log()))

    def test(self, name):
        """Runs `kindling sink test`: (accepted, the server's message)."""
        self.tested.pop(name, None)
        self.ask(TEST, name)
        self.until("an answer to the test", lambda unused: name in self.tested)
        return self.tested[name]

    def alive(self):
        if self.process.poll() is not None:
            raise AssertionError("kindling-upload has ended: %d\n%s" % (self.process.returncode, self.read_log()))
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()

    def stop(self):
        """As when kindlingd ends."""
        self.socket.close()
        return self.process.wait(timeout=60)

    def read_log(self):
        with open(self.dir + "/log") as f:
            return f.read()

    def spool(self, sink):
        """Sizes of the bodies in the spool, from which one may be taken meanwhile."""
        sizes = []
        with os.scandir("%s/spool/%s" % (self.state, sink)) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    if file.name.endswith(".up"):
                        sizes.append(file.stat().st_size)
        return sizes

    def directory(self, name):
        """A directory for the output of a sink or a server."""
        path = self.dir + "/" + name
        os.mkdir(path)
        os.chmod(path, 0o777)
        return path

    def file(self, name, text):
        with open(self.dir + "/" + name, "w") as f:
            f.write(text)
        os.chmod(self.dir + "/" + name, 0o600)
        return self.dir + "/" + name

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process and self.process.poll() is None:
            self.kill()
        self.log.close()
        shutil.rmtree(self.dir)
