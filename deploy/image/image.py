"""The container image: the tree with its libraries, glibc, and the few files of /etc that these look into; no shell,
no package manager. An archive in the OCI image layout, with the manifest.json that `docker load` wants beside it."""
import glob
import hashlib
import json
import os
import shutil
import time

from archive import add_bytes, add_tree, tar_bytes, zipped
from tree import settle, write

ACCOUNTS = (("root", 0, "/root"), ("kindling", 70707, "/var/lib/kindling"), ("kindling-look", 70708, "/"),
            ("kindling-symbols", 70709, "/"), ("kindling-upload", 70710, "/"), ("kindling-names", 70711, "/"),
            ("nobody", 65534, "/"))
AUTHORITIES = "/usr/share/ca-certificates/mozilla"
NAME = "localhost/kindling"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def authorities():
    """Mozilla's, as the package has them: not what somebody added to the machine that builds."""
    text = []
    for path in sorted(glob.glob(AUTHORITIES + "/*.crt")):
        with open(path) as f:
            text.append(f.read().strip() + "\n")
    if not text:
        raise SystemExit("packages: the image needs the Debian package ca-certificates")
    return "".join(text)


def fill_etc(root):
    write(root + "/etc/passwd", "".join("%s:x:%d:%d::%s:/usr/sbin/nologin\n" % (n, u, u, home)
                                        for n, u, home in ACCOUNTS))
    write(root + "/etc/group", "".join("%s:x:%d:\n" % (n, u) for n, u, _ in ACCOUNTS))
    write(root + "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    write(root + "/etc/ssl/certs/ca-certificates.crt", authorities())


def make_root(tree, glibc, root):
    """@glibc: {name: file}, the loader under its whole path."""
    shutil.copytree(tree, root, symlinks=True)
    fill_etc(root)
    loader = next(name for name in glibc if name.startswith("/"))
    # as Debian's: /lib and /lib64 are links, and the loader looks for libc in the directory of its processor
    for link in ("lib", "lib64", "bin", "sbin"):
        os.makedirs(root + "/usr/" + link, exist_ok=True)
        os.symlink("usr/" + link, root + "/" + link)
    where = root + "/usr/lib/" + os.path.basename(os.path.dirname(glibc["libc.so.6"]))
    os.makedirs(where, exist_ok=True)
    for name, path in glibc.items():
        shutil.copyfile(path, root + name if name == loader else os.path.join(where, name))
    os.chmod(root + loader, 0o755)
    for directory in ("proc", "sys", "dev", "tmp", "run/kindling", "var/lib/kindling"):
        os.makedirs(os.path.join(root, directory))


def config(settings, layer):
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(settings.epoch)),
        "architecture": settings.deb_arch,
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/sbin:/usr/bin"],
            "Entrypoint": ["/usr/sbin/kindlingd"],
            "Cmd": ["--config", "/etc/kindling/kindlingd.yaml"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Volumes": {"/run/kindling": {}, "/var/lib/kindling": {}},
            "Labels": annotations(settings),
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(settings.epoch)),
                     "created_by": "deploy/image/image.py"}],
    }


def annotations(settings):
    return {
        "org.opencontainers.image.title": "kindling",
        "org.opencontainers.image.description": "Continuous profiler for every JVM of a host",
        "org.opencontainers.image.version": settings.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }


def text_of(value):
    return json.dumps(value, sort_keys=True).encode()


def layout(settings, layer):
    """{name in the archive: bytes}"""
    blobs = {}

    def blob(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        blobs["blobs/sha256/" + digest] = content
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(content)}
    of_layer = blob(zipped(layer), LAYER)
    of_config = blob(text_of(config(settings, layer)), CONFIG)
    of_image = blob(text_of({"schemaVersion": 2, "mediaType": MANIFEST, "config": of_config, "layers": [of_layer],
                             "annotations": annotations(settings)}), MANIFEST)
    name = "%s:%s" % (NAME, settings.version)
    of_image["platform"] = {"architecture": settings.deb_arch, "os": "linux"}
    of_image["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": settings.version}
    path = {d["digest"]: "blobs/sha256/" + d["digest"][7:] for d in (of_config, of_layer)}
    return {
        "oci-layout": text_of({"imageLayoutVersion": "1.0.0"}),
        "index.json": text_of({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                               "manifests": [of_image]}),
        "manifest.json": text_of([{"Config": path[of_config["digest"]], "RepoTags": [name],
                                   "Layers": [path[of_layer["digest"]]]}]),
        **blobs,
    }


def build(settings, tree, glibc, work):
    """@tree with the libraries of others. Returns the file's path."""
    root = work + "/image"
    make_root(tree, glibc, root)
    settle(root, settings.epoch)
    os.chmod(root + "/tmp", 0o1777)
    os.chmod(root + "/usr/lib64/" + os.path.basename(next(n for n in glibc if n.startswith("/"))), 0o755)
    layer = tar_bytes(lambda tar: add_tree(tar, root, "", settings.epoch))
    files = layout(settings, layer)
    out = os.path.join(settings.out, "kindling-%s-oci.tar" % settings.version)
    with open(out, "wb") as f:
        f.write(tar_bytes(lambda tar: [add_bytes(tar, name, files[name], settings.epoch) for name in sorted(files)]))
    return out
