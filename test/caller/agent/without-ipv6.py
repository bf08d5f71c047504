"""Runs a command as on a kernel without IPv6 (`ipv6.disable=1`): socket(AF_INET6) ends with EAFNOSUPPORT. By seccomp(2)."""
import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, ERROR = 0x7FFF0000, 0x00050000
AF_INET6, EAFNOSUPPORT = 10, 97
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]

instructions = [
    (LOAD_WORD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 3, SOCKET),
    (LOAD_WORD, 0, 0, FIRST_ARGUMENT),
    (JUMP_IF_EQUAL, 0, 1, AF_INET6),
    (RETURN, 0, 0, ERROR | EAFNOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


program = Program(len(instructions), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)]:
    if libc.prctl(*arguments) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
