"""A folder as a site: modules and weights are not loaded from files."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Quiet(SimpleHTTPRequestHandler):
    """A handler that says nothing of what it is asked for."""

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def served(folder):
    """Serve a folder inside the block; return its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
