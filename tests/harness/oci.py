"""Images for tests: an archive in the OCI layout with one layer, in the form that `ctr images import` reads."""
import hashlib
import io
import json
import tarfile


def archive(path, name, root, entrypoint=(), env=("PATH=/usr/sbin:/usr/bin",)):
    """@root: a directory, which becomes the image's /; everything in it is root's."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(root, arcname=".", filter=of_root)
    blobs, content = {}, layer.getvalue()
    digest = add(blobs, content)
    config = add(blobs, json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": list(entrypoint), "Env": list(env)},
        "rootfs": {"type": "layers", "diff_ids": [digest]}}).encode())
    kind = "application/vnd.oci.image."
    manifest = add(blobs, json.dumps({
        "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
        "config": {"mediaType": kind + "config.v1+json", "digest": config, "size": len(blobs[config])},
        "layers": [{"mediaType": kind + "layer.v1.tar", "digest": digest, "size": len(content)}]}).encode())
    index = {"schemaVersion": 2, "manifests": [{
        "mediaType": kind + "manifest.v1+json", "digest": manifest, "size": len(blobs[manifest]),
        "platform": {"architecture": "amd64", "os": "linux"},
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}]}
    with tarfile.open(path, "w") as tar:
        put(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        put(tar, "index.json", json.dumps(index).encode())
        for digest, content in blobs.items():
            put(tar, "blobs/" + digest.replace(":", "/"), content)


def of_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def add(blobs, content):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return digest


def put(tar, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
