"""An S3 server on loopback whose answers can be spoilt, and a plain web server for files.

The S3 server is moto's. What it cannot show: it knows no permissions (refusals are spoilt answers here), its
conditional puts are decided in one process, and a list always sees what was put.
"""

import contextlib
import http.server
import logging
import os
import threading
import time
import urllib.request


class Spoilt:
    """The application, and what is to go wrong with it."""

    def __init__(self, app):
        self.app, self.rules, self.seen = app, [], []

    def __call__(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.seen.append((method, path))
        for rule in self.rules:
            answer = rule(method, path)
            if isinstance(answer, float):
                time.sleep(answer)
            elif answer is not None:
                status, code = answer
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                body = f"<Error><Code>{code}</Code><Message>spoilt</Message></Error>".encode()
                start_response(f"{status} {code}", [("Content-Length", str(len(body)))])
                return [body]
        return self.app(environ, start_response)

    @contextlib.contextmanager
    def spoilt(self, status, code, *, methods=("GET", "PUT", "HEAD", "POST", "DELETE"), within="", times=None):
        """Answer some requests so, all of them or the first few."""
        left = [times]

        def rule(method, path):
            if method not in methods or within not in path or left[0] == 0:
                return None
            left[0] = None if left[0] is None else left[0] - 1
            return status, code

        self.rules.append(rule)
        try:
            yield
        finally:
            self.rules.remove(rule)


class Server:
    """A server that runs in a thread."""

    def __init__(self, server, app=None):
        self.server, self.app = server, app
        self.address = f"http://127.0.0.1:{server.server_port}"
        self.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def make(self, bucket):
        """Make a bucket."""
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/{bucket}", method="PUT")).close()

    def stop(self):
        """Stop it and free its port."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Google:
    """What Google's storage says otherwise than Amazon's: generations instead of ETags in its conditions."""

    def __init__(self, app):
        self.app, self.tags = app, {}

    def __call__(self, environ, start_response):
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS4"):
            scope = "Credential=tester/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
            environ["HTTP_AUTHORIZATION"] = f"AWS4-HMAC-SHA256 {scope}"
        wanted = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        source = environ.pop("HTTP_X_GOOG_COPY_SOURCE", None)
        if wanted is not None:
            environ |= {"HTTP_IF_NONE_MATCH": "*"} if wanted == "0" else {"HTTP_IF_MATCH": self.tags.get(wanted, "-")}
        if source is not None:
            environ["HTTP_X_AMZ_COPY_SOURCE"] = source

        def answer(status, headers, *more):
            tag = {name.lower(): value for name, value in headers}.get("etag")
            if tag is not None:
                generation = str(int(tag.strip('"')[:12], 16))
                self.tags[generation] = tag
                headers = [*headers, ("x-goog-generation", generation)]
            return start_response(status, headers, *more)

        return self.app(environ, answer)


def s3_server():
    """Start moto's S3."""
    from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415 - slow
    from werkzeug.serving import make_server  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = Spoilt(Google(DomainDispatcherApplication(create_backend_app)))
    return Server(make_server("127.0.0.1", 0, app, threaded=True), app)


class _Files(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, which may ask for a password, break off, or give no range."""

    password = None
    breaks = 0

    def log_message(self, *words):
        """Say nothing."""

    def do_GET(self):
        """Give a file."""
        if self.password is not None and self.headers.get("Authorization") != self.password:
            self.send_error(401)
            return
        if type(self).breaks and "Range" not in self.headers:
            type(self).breaks -= 1
            with open(self.translate_path(self.path), "rb") as file:
                content = file.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            changed = os.path.getmtime(self.translate_path(self.path))
            self.send_header("Last-Modified", self.date_time_string(changed))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            return
        super().do_GET()


def web_server(folder, **options):
    """Start a web server over a folder."""
    kind = type("Files", (_Files,), options)
    return Server(http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: kind(*words, directory=str(folder))))
