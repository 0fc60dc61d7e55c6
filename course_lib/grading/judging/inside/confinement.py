"""How a process gives up what it could do to others: namespaces, limits, Landlock, seccomp.

All of it holds for the process that calls and for its children, and cannot be taken back. Raises
OSError where the kernel refuses. Linux alone; sources: unshare(2), mount(2), prctl(2), seccomp(2),
landlock(7), and the kernel's tables of system calls.

System calls are allowed by a list, so a newer kernel's calls are refused until somebody adds them.
The list was made by tracing what answers to every exercise need (`strace -ff`), with sleep and
random numbers, and what older and newer C libraries call for the same. To review it:

1. Numbers are those of arch/x86/entry/syscalls/syscall_64.tbl (first), and of scripts/syscall.tbl,
   which aarch64 uses (second); they never change. `NEWEST` is the largest that was reviewed: the
   C library takes ENOSYS for what is beyond it as "try the older way".
2. `only_these_files` with include/uapi/linux/landlock.h: how many rights to files
   (LANDLOCK_ACCESS_FS_*), to the network, and scopes each version has. A version that is not known
   here gets the rights of the newest that is. Newest now: 6, of Linux 6.12.
3. The flags at the top with include/uapi/linux/{sched,mount,prctl,seccomp}.h.
4. Another kind of processor needs its AUDIT_ARCH_* of include/uapi/linux/audit.h in
   `ARCHITECTURES`, and a column of its own in `ALLOWED` and below it.

Then run tests/grading/test_isolation.py and test_hostile.py on that kernel, at both levels.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

MEGABYTE = 2**20

NEW_USER, NEW_PID, NEW_NET, NEW_MOUNT, NEW_IPC, NEW_HOST = (
    0x10000000, 0x20000000, 0x40000000, 0x00020000, 0x08000000, 0x04000000,
)  # fmt: skip
PRIVATE, RECURSIVE, READ_ONLY = 0x40000, 0x4000, 0x1
COLLAPSE = 25
SET_DEATH_SIGNAL, SET_SECCOMP, NO_NEW_PRIVILEGES = 1, 22, 38

# number on x86_64, number on aarch64 (the generic table); None where there is no such call
ALLOWED: dict[str, tuple[int, int | None]] = {
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "brk": (12, 214), "membarrier": (324, 283),
    # files, as far as they can be opened
    "read": (0, 63), "readv": (19, 65), "pread64": (17, 67), "write": (1, 64), "writev": (20, 66),
    "lseek": (8, 62), "open": (2, None), "openat": (257, 56), "close": (3, 57),
    "close_range": (436, 436), "stat": (4, None), "lstat": (6, None), "fstat": (5, 80),
    "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "getcwd": (79, 17), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24),
    # locks, and the end: no thread is started, since what watches an answer sees its own alone
    "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293),
    "set_tid_address": (218, 96), "gettid": (186, 178), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "getcpu": (309, 168), "exit": (60, 93),
    "exit_group": (231, 94),
    # signals to itself
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "sigaltstack": (131, 132), "restart_syscall": (219, 128),
    # time and chance
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "getrandom": (318, 278),
    # who and where it is
    "getpid": (39, 172), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "uname": (63, 160), "sysinfo": (99, 179),
    "getrusage": (98, 165), "getrlimit": (97, 163),
}  # fmt: skip
# allowed with some arguments only
ONLY_WITH = {
    "kill": (62, 129), "tgkill": (234, 131), "ioctl": (16, 29), "fcntl": (72, 25),
    "prctl": (157, 167), "prlimit64": (302, 261), "madvise": (28, 233),
}  # fmt: skip
NEWEST = 462  # mseal, of Linux 6.10
CLONE = (56, 220)
# is it a terminal, and how wide; whether a descriptor outlives `exec`
TCGETS, TIOCGWINSZ, FIONCLEX, FIOCLEX = 0x5401, 0x5413, 0x5450, 0x5451
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC = 0, 1, 2, 3, 1030
SET_NAME, GET_NAME = 15, 16
# when pages are wanted, or no longer; with others, root can take memory out of use
ADVICE = [0, 1, 2, 3, 4, 8, 14, 15, 16, 17]
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000

# a library of Python's own kind keeps the interpreter's lock, so that a clone has it too
_libc = ctypes.PyDLL(None, use_errno=True)


def fork(level: str) -> int:
    """Fork; with bubblewrap the child is the first process of new namespaces.

    These are for users, processes, network, mounts, IPC and host name. One call of clone(2) makes
    both, where `os.fork` and unshare(2) take two forks of a large process; no other thread may run.
    """
    if level != "bubblewrap":
        return os.fork()
    flags = NEW_USER | NEW_PID | NEW_NET | NEW_MOUNT | NEW_IPC | NEW_HOST | signal.SIGCHLD
    number = CLONE[ARCHITECTURES[platform.machine()][0]]
    return _checked(_system_call(number, flags, 0, 0, 0, 0), "clone")


def gather_pages() -> None:
    """Have this process in pages of 2 MiB, so that a fork copies a table a hundredth as long.

    A kernel that cannot (MADV_COLLAPSE, Linux 6.1) leaves it as it is.
    """
    if not (maps := Path("/proc/self/maps")).exists():
        return
    for line in maps.read_text().splitlines():
        addresses, rights, _, _, inode, *_ = line.split()
        if rights == "rw-p" and inode == "0":
            start, end = (int(address, 16) for address in addresses.split("-"))
            _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), COLLAPSE)


def confine(level: str, seconds: int, memory: int, paths: Iterable[Path]) -> None:
    """Give up all that a level takes, in a child that `fork` has made."""
    limit(seconds, memory)
    die_with_parent()
    if level == "bubblewrap":
        hide_processes()
    if level == "landlock":
        only_these_files(paths)
    if level != "plain":
        few_system_calls()


def hide_processes() -> None:
    """Put an empty folder, which nobody can write to, over /proc."""
    _checked(_libc.mount(None, b"/", None, PRIVATE | RECURSIVE, None), "mount")
    _checked(_libc.mount(b"none", b"/proc", b"tmpfs", READ_ONLY, b"size=4k"), "mount")


def limit(seconds: int, memory: int) -> None:
    """Bound CPU time, and memory in bytes beyond what is taken now; no core file, no big file.

    Raises OSError where the system's own limit is lower: an honest answer would meet it too.
    """
    bounds = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 16 * MEGABYTE,
        resource.RLIMIT_NOFILE: 64,
    }
    if (size := Path("/proc/self/statm")).exists():
        pages = int(size.read_text().split()[0])
        bounds[resource.RLIMIT_AS] = pages * resource.getpagesize() + memory
    for name, bound in bounds.items():
        _, most = resource.getrlimit(name)
        if resource.RLIM_INFINITY != most < bound:
            letter = {resource.RLIMIT_CPU: "t", resource.RLIMIT_NOFILE: "n"}.get(name, "a")
            raise OSError(errno.EPERM, f"`ulimit -{letter}` is {most}, and {bound} is needed")
        resource.setrlimit(name, (bound, bound))


def die_with_parent() -> None:
    """Be killed when the parent ends, where the system is Linux."""
    if sys.platform == "linux":
        _checked(_libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")


def only_these_files(paths: Iterable[Path]) -> None:
    """See these files and folders alone, and write nowhere; reach no network (Landlock)."""
    version = _system_call(444, None, 0, 1)
    _checked(version, "Landlock")
    # every right that this kernel knows is refused; two are given back below
    count = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    network, scopes = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    rules = struct.pack("QQQ", (1 << count) - 1, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(_system_call(444, rules, size, 0), "Landlock")
    execute, read_file, read_folder = 1 << 0, 1 << 2, 1 << 3
    for path in paths:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = execute | read_file | (read_folder if path.is_dir() else 0)
        rule = struct.pack("=Qi", rights, opened)
        _checked(_system_call(445, ruleset, 1, rule, 0), f"Landlock, {path}")
        os.close(opened)
    _no_new_privileges()
    _checked(_system_call(446, ruleset, 0), "Landlock")
    os.close(ruleset)


def few_system_calls() -> None:
    """Allow the system calls that an answer needs, and refuse every other (seccomp).

    There is no new process, thread, socket or file among them, no right, owner or time of a file is
    changed, and signals reach this process alone.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column, architecture = ARCHITECTURES[machine]
    own = os.getpid()
    program = [
        _load(4), _equal(architecture, 1, 0), _END_PROCESS,
        _load(0),
        *([_at_least(X32, 0, 1), _END_PROCESS] if machine == "x86_64" else []),
    ]  # fmt: skip
    for numbers in ALLOWED.values():
        if (number := numbers[column]) is not None:
            program += [_equal(number, 0, 1), _ALLOW]
    words_of_arguments = {
        "kill": {0: [own]},
        "tgkill": {0: [own]},
        "ioctl": {2: [TCGETS, TIOCGWINSZ, FIONCLEX, FIOCLEX]},
        "fcntl": {2: [F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC]},
        "prctl": {0: [SET_NAME, GET_NAME]},
        "madvise": {4: ADVICE},
        # its own limits are read, and none is set: that would be a pointer, of two words
        "prlimit64": {0: [0], 4: [0], 5: [0]},
    }
    for name, words in words_of_arguments.items():
        program += _only_with(ONLY_WITH[name][column], words)
    program += [
        _at_least(NEWEST + 1, 0, 1), _refuse(errno.ENOSYS), _refuse(errno.EPERM),
    ]  # fmt: skip
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    _no_new_privileges()
    _checked(_libc.prctl(SET_SECCOMP, 2, header, 0, 0), "seccomp")


def _system_call(number: int, *arguments: bytes | int | None) -> int:
    wide = [ctypes.c_long(x) if isinstance(x, int) else x for x in arguments]
    return _libc.syscall(ctypes.c_long(number), *wide)


def _no_new_privileges() -> None:
    _checked(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


# instructions of the kernel's filter machine: what to do, jump if so, jump if not, a number
def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    # the call's number is at 0, its arguments are from 16 on, of two words each
    return _instruction(0x20, 0, 0, offset)


def _equal(value: int, yes: int, no: int) -> bytes:
    return _instruction(0x15, yes, no, value)


def _at_least(value: int, yes: int, no: int) -> bytes:
    return _instruction(0x35, yes, no, value)


def _only_with(number: int, words: dict[int, list[int]]) -> list[bytes]:
    """Allow a call where these words of its arguments have one of these values."""
    checks = []
    for word, values in words.items():
        checks.append(_load(16 + 4 * word))
        checks += [_equal(value, len(values) - i, 0) for i, value in enumerate(values)]
        checks.append(_refuse(errno.EPERM))
    return [_equal(number, 0, len(checks) + 1), *checks, _ALLOW]


def _refuse(number: int) -> bytes:
    return _instruction(0x06, 0, 0, 0x00050000 | number)


_ALLOW = _instruction(0x06, 0, 0, 0x7FFF0000)
_END_PROCESS = _instruction(0x06, 0, 0, 0x80000000)
