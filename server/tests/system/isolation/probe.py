"""Tries each way past `confine`, and prints a line for each: its name, and `ok` or the name of the error.

Usage: probe.py OPEN_PORT CLOSED_PORT UNIX_SOCKET FILE PROCESS. The first port is allowed. The program needs Linux on x86-64.
"""

import ctypes
import errno
import fcntl
import os
import resource
import socket
import sys

OPEN, CLOSED, UNIX, FILE, PROCESS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
MSG_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_ULP = 0x20000000, 30, 31
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        action()
        print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))


def call(number, *arguments):
    """Makes a system call by its number."""
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *values) < 0:
        raise OSError(ctypes.get_errno(), "")


def connect(port, family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):
    address = ("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", port)
    with socket.socket(family, kind, protocol) as made:
        made.settimeout(2)
        made.connect(address)


def fast_open(port, send):
    with socket.socket() as made:
        made.settimeout(2)
        send(made, ("127.0.0.1", port))


def fast_connect(port):
    with socket.socket() as made:
        made.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
        made.connect(("127.0.0.1", port))
        made.send(b"x")


def pair(kind):
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.connect(UNIX)
    one.send(b"x")


def upper_layer():
    with socket.socket() as made:
        made.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"smc")


def threads():
    import threading

    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


# What is allowed works.
attempt("tcp", lambda: connect(OPEN))
attempt("tcp6", lambda: connect(OPEN, socket.AF_INET6))
attempt("tcp-by-protocol", lambda: connect(OPEN, protocol=socket.IPPROTO_TCP))
attempt("thread", threads)
attempt("child", lambda: os.waitpid(os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]), 0))
attempt("own-limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
attempt("pair", lambda: socket.socketpair())

# Each way to connect.
attempt("tcp-closed", lambda: connect(CLOSED))
attempt("tcp6-closed", lambda: connect(CLOSED, socket.AF_INET6))
for name, protocol in [("mptcp", 262), ("sctp", 132), ("smc", 256), ("dccp", 33)]:
    attempt(name, lambda: connect(CLOSED, protocol=protocol))
    attempt(name + "6", lambda: connect(CLOSED, socket.AF_INET6, protocol=protocol))
attempt("sctp-packets", lambda: connect(CLOSED, kind=socket.SOCK_SEQPACKET, protocol=132))
attempt("dccp-packets", lambda: connect(CLOSED, kind=6, protocol=33))
attempt("udp", lambda: connect(CLOSED, kind=socket.SOCK_DGRAM))
attempt("udp-lite", lambda: connect(CLOSED, kind=socket.SOCK_DGRAM, protocol=136))
attempt("ping", lambda: connect(CLOSED, kind=socket.SOCK_DGRAM, protocol=1))
attempt("raw", lambda: connect(CLOSED, kind=socket.SOCK_RAW, protocol=6))
attempt("packet-by-type", lambda: socket.socket(socket.AF_INET, 10, 3))
attempt("fast-open-sendto", lambda: fast_open(CLOSED, lambda made, to: made.sendto(b"x", MSG_FASTOPEN, to)))
attempt("fast-open-sendmsg", lambda: fast_open(CLOSED, lambda made, to: made.sendmsg([b"x"], [], MSG_FASTOPEN, to)))
attempt("fast-open-connect", lambda: fast_connect(CLOSED))
attempt("fast-open-option", lambda: fast_connect(OPEN))
attempt("upper-layer", upper_layer)
attempt("listen", lambda: socket.socket().listen(1))
attempt("bind", lambda: socket.socket().bind(("127.0.0.1", 0)))
for family in range(1, 46):
    if family not in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        for kind in (1, 2, 3, 5):
            attempt(f"family-{family}-{kind}", lambda: socket.socket(family, kind, 0))
for protocol in range(1, 23):
    attempt(f"netlink-{protocol}", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
attempt("pair-stream", lambda: pair(socket.SOCK_STREAM))
attempt("pair-datagram", lambda: pair(socket.SOCK_DGRAM))
attempt("pair-raw", lambda: pair(socket.SOCK_RAW))

# Calls that lead past Landlock, to other processes, or change the system.
parameters = ctypes.create_string_buffer(256)
text = ctypes.c_char_p(b"tmpfs")
path = ctypes.c_char_p(FILE.encode())
for name, number, arguments in [
    ("io_uring_setup", 425, (8, parameters)),
    ("clone3", 435, (parameters, 88)),
    ("unshare-user", 272, (0x10000000,)),
    ("unshare-time", 272, (0x80,)),
    ("setns", 308, (0, 0)),
    ("clone-namespace", 56, (0x10000000 | 17, 0, 0, 0, 0)),
    ("clone-cgroup", 56, (0x02000000 | 17, 0, 0, 0, 0)),
    ("ptrace", 101, (16, PROCESS, 0, 0)),
    ("mount", 165, (text, text, text, 0, 0)),
    ("fsopen", 430, (text, 0)),
    ("fsconfig", 431, (0, 6, 0, 0, 0)),
    ("fsmount", 432, (0, 0, 0)),
    ("fspick", 433, (-100, path, 0)),
    ("open_tree", 428, (-100, path, 1)),
    ("move_mount", 429, (-100, path, -100, path, 0)),
    ("mount_setattr", 442, (-100, path, 0, parameters, 32)),
    ("kexec_load", 246, (0, 0, 0, 0)),
    ("kexec_file_load", 320, (0, 0, 0, 0, 0)),
    ("clock_settime", 227, (0, parameters)),
    ("clock_adjtime", 305, (0, parameters)),
    ("adjtimex", 159, (parameters,)),
    ("settimeofday", 164, (0, 0)),
    ("bpf", 321, (0, parameters, 72)),
    ("keyctl", 250, (0, -3, 0)),
    ("syslog", 103, (10, 0, 0)),
    ("shmget", 29, (0, 4096, 0o1600)),
    ("mq_open", 240, (text, 0o102, 0o600, 0)),
    ("limit-of-another", 302, (PROCESS, 0, ctypes.create_string_buffer(b"\xff" * 16), 0)),
    ("chmod", 90, (path, 0o777)),
    ("fchmodat2", 452, (-100, path, 0o777, 0)),
    ("utimensat", 280, (-100, path, 0, 0)),
    ("setxattr", 188, (path, ctypes.c_char_p(b"user.x"), text, 1, 0)),
    ("chmod-x32", 90 | 0x40000000, (path, 0o777)),
    ("ptrace-x32", 521 | 0x40000000, (16, PROCESS, 0, 0)),
    ("newest", 9999, ()),
]:
    attempt(name, lambda: call(number, *arguments))
attempt("terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"))
