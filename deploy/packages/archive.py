"""Makes archives that are the same bytes for the same tree: sorted, owned by root, with one date."""
import gzip
import io
import os
import tarfile


def add_tree(tar, top, prefix, epoch):
    """Everything below @top, a directory before its content; names begin with @prefix."""
    def plain(info):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = epoch
        return info

    def add(directory, name):
        for entry in sorted(os.listdir(directory)):
            path, inside = os.path.join(directory, entry), os.path.join(name, entry)
            tar.add(path, inside, recursive=False, filter=plain)
            if os.path.isdir(path) and not os.path.islink(path):
                add(path, inside)
    add(top, prefix)


def tar_bytes(fill):
    """The bytes of the tar that fill(tarfile) writes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        fill(tar)
    return out.getvalue()


def add_bytes(tar, name, content, epoch):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(content), epoch, 0o644
    tar.addfile(info, io.BytesIO(content))


def zipped(content):
    """gzip -n6"""
    return gzip.compress(content, 6, mtime=0)
