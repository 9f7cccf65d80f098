"""Idmapped mounts, as container engines make them for pods with a user namespace: mount_setattr(2)."""
import ctypes
import os
import struct

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 4, 0x100000
CLONE_NEWUSER = 0x10000000
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def user_namespace(first):
    """Returns an fd of a user namespace in which 0 is the host's uid @first."""
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.unshare(CLONE_NEWUSER)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        for name in ("uid_map", "gid_map"):
            with open("/proc/%d/%s" % (pid, name), "w") as f:
                f.write("0 %d 65536" % first)
        return os.open("/proc/%d/ns/user" % pid, os.O_RDONLY)
    finally:
        os.write(go[1], b"x")
        os.waitpid(pid, 0)
        for fd in (*ready, *go):
            os.close(fd)


def mount(source, target, first):
    """Mounts @source on @target; files that belong to 0 on the disk belong to @first there."""
    userns = user_namespace(first)
    tree = call(SYS_OPEN_TREE, AT_FDCWD, source.encode(), OPEN_TREE_CLONE)
    try:
        attr = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, userns)
        call(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attr, len(attr))
        call(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)
        os.close(userns)
