"""The bill of materials, CycloneDX 1.5: everything that is linked in or included, with versions, licences and
checksums."""
import hashlib
import json
import os
import time
import uuid

from licences import OURS, expression
from tree import files_of, package_of, run

FIELDS = "${binary:Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}"


class Library:
    """A Debian package from which a part of kindling comes."""

    def __init__(self, package, how):
        words = run("dpkg-query", "--show", "--showformat=" + FIELDS, package).split("\t")
        self.name, self.version, self.source, self.source_version, self.arch = words
        self.name = self.name.split(":")[0]
        self.how = how # how it is used: "shared", "static", "image" (only there) or "data"
        self.files = {} # name in the tree: sha256

    def licence(self):
        return expression(self.source)

    def copyright(self):
        return "/usr/share/doc/%s/copyright" % self.name


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def of_files(found, how):
    """[Library] for {name: path on this machine}."""
    packages = {}
    for name, path in sorted(found.items()):
        package = package_of(path)
        if package not in packages:
            packages[package] = Library(package, how)
        packages[package].files[name] = sha256(path)
    return [packages[p] for p in sorted(packages)]


def static(settings):
    """Libraries that the compiler linked into the programs."""
    found = {}
    for name in ("libstdc++.a", "libgcc.a", "libgcc_eh.a"):
        found[name] = os.path.realpath(run(settings.cc, "-print-file-name=" + name).strip())
    return of_files(found, "static")


def component(library):
    purl = "pkg:deb/debian/%s@%s?arch=%s" % (library.name, library.version.replace("+", "%2B").replace(":", "%3A"),
                                             library.arch)
    return {
        "type": "library",
        "bom-ref": purl,
        "supplier": {"name": "Debian"},
        "name": library.name,
        "version": library.version,
        "licenses": [{"expression": library.licence()}],
        "purl": purl,
        "properties": [
            {"name": "kindling:linked", "value": library.how},
            {"name": "kindling:debian-source", "value": "%s %s" % (library.source, library.source_version)},
        ],
        "components": [{"type": "file", "bom-ref": "%s#%s" % (purl, name), "name": name,
                        "hashes": [{"alg": "SHA-256", "content": digest}]}
                       for name, digest in sorted(library.files.items())],
    }


def own_files(root):
    for name in files_of(root):
        path = os.path.join(root, name)
        if not os.path.islink(path):
            yield {"type": "file", "bom-ref": "file:" + name, "name": name,
                   "hashes": [{"alg": "SHA-256", "content": sha256(path)}]}


def document(settings, root, libraries):
    """@root: kindling's own files, before others are added to them."""
    kindling = {"type": "application", "bom-ref": "kindling", "name": "kindling", "version": settings.version,
                "licenses": [{"expression": OURS}], "components": list(own_files(root))}
    components = [component(library) for library in libraries]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(settings.epoch)),
                     "component": kindling},
        "components": components,
        "dependencies": [{"ref": "kindling", "dependsOn": [c["bom-ref"] for c in components]}],
    }
    # a serial number that is different for each content, and the same for the same content
    bom["serialNumber"] = "urn:uuid:%s" % uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))
    return json.dumps(bom, indent=1) + "\n"
