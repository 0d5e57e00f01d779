"""Starts a program in a terminal of its own and closes the terminal when the program says READY on stderr.

    python3 terminal.py READY PROGRAM [ARGUMENT...]
"""

import os
import pty
import sys

ready, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
seen = b""
while ready.encode() not in seen:
    seen += os.read(terminal, 4096)
os.close(terminal)
print("closed", flush=True)
os.waitpid(child, 0)
