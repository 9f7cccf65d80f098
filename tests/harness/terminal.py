"""Runs a program on a terminal of its own."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


def plain(out):
    """The text without escape sequences that move the cursor and clear."""
    return re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", out)


class Terminal:
    def __init__(self, command, rows, columns):
        self.master, slave = pty.openpty()
        self.bytes = b""
        self.size(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def is_as_it_was(self):
        """The program has restored the terminal's modes. (PENDIN is left out, because it is the kernel's.)"""
        now = termios.tcgetattr(self.master)
        now[3] &= ~0o040000
        return now == self.before

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        """Resizes the terminal; the kernel sends the program SIGWINCH."""
        self.size(rows, columns)

    def interrupt(self):
        os.write(self.master, b"\x03")

    def wait(self, timeout=60):
        """The exit status of the program. Reads meanwhile, because a full terminal would hold it up."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < deadline:
            self.raw()
        return self.process.wait(timeout=0)

    def raw(self):
        """All output so far."""
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                more = os.read(self.master, 65536)
            except OSError:  # EIO: nobody has the other end open
                break
            if not more:
                break
            self.bytes += more
        return self.bytes.decode(errors="replace")

    def text(self):
        """The last screen: the output since the cursor last went to the top left."""
        return plain(self.raw().split("\033[H")[-1])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
