"""Licences of linked libraries by Debian source package, as SPDX expressions; read in /usr/share/doc/*/copyright. A
library that is missing here stops the build, because somebody has to read its licence first."""

EXPRESSIONS = {
    "brotli": "MIT",
    "ca-certificates": "MPL-2.0",
    "cjson": "MIT",
    "curl": "curl",
    "cyrus-sasl2": "BSD-Attribution-HPND-disclaimer",
    "e2fsprogs": "MIT", # libcom_err
    "elfutils": "GPL-2.0-or-later OR LGPL-3.0-or-later", # libelf
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1", # libstdc++.a, libgcc.a
    "glibc": "LGPL-2.1-or-later",
    "gmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "gnutls28": "LGPL-2.1-or-later", # libgnutls
    "keyutils": "LGPL-2.1-or-later",
    "krb5": "MIT",
    "libbpf": "LGPL-2.1-only OR BSD-2-Clause",
    "libcap2": "BSD-3-Clause OR GPL-2.0-only",
    "libffi": "MIT",
    "libgcrypt20": "LGPL-2.1-or-later",
    "libgpg-error": "LGPL-2.1-or-later",
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libmicrohttpd": "LGPL-2.1-or-later",
    "libpsl": "MIT",
    "libssh2": "BSD-3-Clause",
    "libtasn1-6": "LGPL-2.1-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libyaml": "MIT",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "lz4": "BSD-2-Clause", # liblz4
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "nghttp2": "MIT",
    "openldap": "OLDAP-2.8",
    "openssl": "Apache-2.0",
    "p11-kit": "BSD-3-Clause",
    "protobuf-c": "BSD-2-Clause",
    "rtmpdump": "LGPL-2.1-or-later", # librtmp
    "systemd": "LGPL-2.1-or-later", # libsystemd
    "xz-utils": "LicenseRef-public-domain", # liblzma
    "zlib": "Zlib",
}
OURS = "Apache-2.0"


def expression(source):
    if source not in EXPRESSIONS:
        raise SystemExit("packages: the licence of %s stands not in deploy/packages/licences.py" % source)
    return EXPRESSIONS[source]
