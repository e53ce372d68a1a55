"""A web process for every line on standard input, forked after the imports, so that each starts in no time.

Prints the port they share, then the process id of each. All of them end with standard input.
"""

import os
import signal
import socket
import sys

from gapwatch.logs import configure_logs
from gapwatch.settings import Settings
from gapwatch.web import run_web

if __name__ == "__main__":
    settings = Settings()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            configure_logs(settings)
            run_web(settings, listener.fileno())
            os._exit(0)
        print(child, flush=True)
    os.killpg(0, signal.SIGKILL)
