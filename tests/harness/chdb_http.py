"""ClickHouse's HTTP interface in front of the engine chdb: chdb_http.py CHDB DATA PORT. The query is in the URL or
the body; the body of an INSERT has the rows, compressed if Content-Encoding is gzip or `decompress` is set."""
import gzip
import http.server
import os
import re
import struct
import subprocess
import sys
import urllib.parse

sys.path.insert(0, sys.argv[1])
from chdb import session  # noqa: E402

os.makedirs(sys.argv[2], exist_ok=True)
ENGINE = session.Session(sys.argv[2] + "/engine")


def blocks(body, without_checksums):
    """The rows in the server's own format: blocks of zstd."""
    if not without_checksums:
        raise ValueError("Code: 40. DB::Exception: Checksum doesn't match: corrupted data")
    frames = b""
    while body:
        codec, length, _ = struct.unpack_from("<BII", body, 16)
        assert codec == 0x90 and 9 <= length <= len(body) - 16, (codec, length, len(body))
        frames += body[16 + 9:16 + length]
        body = body[16 + length:]
    return subprocess.run(["zstd", "-dqc"], input=frames, check=True, capture_output=True).stdout


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        url = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if url.get("decompress") == ["1"]:
            body = blocks(body, url.get("http_native_compression_disable_checksumming_on_decompress") == ["1"])
        query = url["query"][0] if "query" in url else body.decode()
        try:
            self.answer(200, self.run(query, body))
        except Exception as e:  # the engine's word
            self.answer(400, str(e).encode())

    def run(self, query, body):
        insert = re.fullmatch(r"INSERT INTO (\S+) \((.*)\) FORMAT RowBinary", query)
        if insert and not body:
            return b""
        if insert:  # the engine takes rows from a file
            path = "%s/body-%d" % (sys.argv[2], os.getpid())
            with open(path, "wb") as f:
                f.write(body)
            names = {n: t for n, t in (line.split("\t")[:2] for line in self.text("DESCRIBE TABLE " + insert[1]).splitlines())}
            form = ", ".join("%s %s" % (n, names[n].replace("\\'", "'")) for n in insert[2].split(", "))
            query = "INSERT INTO %s (%s) SELECT * FROM file('%s', 'RowBinary', '%s')" % (
                insert[1], insert[2], path, form.replace("'", "\\'"))
        form = re.search(r" FORMAT (\w+)$", query)
        return ENGINE.query(query[:form.start()] if form else query, form[1] if form else "TabSeparated").bytes()

    def text(self, query):
        return ENGINE.query(query, "TabSeparated").bytes().decode()

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()
