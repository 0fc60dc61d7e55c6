"""How a process gives up what it could do to others: namespaces, limits, Landlock, seccomp.

All of it holds for the process that calls and for its children, and cannot be taken back. Raises
OSError where the kernel refuses. Linux alone; sources: unshare(2), mount(2), prctl(2), seccomp(2),
landlock(7), and the kernel's tables of system calls.

To review the numbers for a newer kernel, have its source at hand and compare:

1. `CALLS` with arch/x86/entry/syscalls/syscall_64.tbl (first number) and scripts/syscall.tbl, which
   aarch64 uses (second). Numbers never change, so read those above the largest one here, and enter
   each call that makes a process, a socket or what outlives a process, acts on another process, or
   administers. Largest now: 448, `process_mrelease`, of Linux 5.15.
2. `read_only` with include/uapi/linux/landlock.h: how many rights to files (LANDLOCK_ACCESS_FS_*),
   to the network, and scopes each version has. A version that is not known here gets the rights of
   the newest that is. Newest now: 6, of Linux 6.12.
3. The flags at the top with include/uapi/linux/{sched,mount,prctl,seccomp}.h.
4. Another kind of processor needs its AUDIT_ARCH_* of include/uapi/linux/audit.h in
   `ARCHITECTURES`, and a column of its own in `CALLS`.

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
THREAD = 0x00010000
PRIVATE, RECURSIVE, READ_ONLY = 0x40000, 0x4000, 0x1
COLLAPSE = 25
SET_DEATH_SIGNAL, SET_SECCOMP, NO_NEW_PRIVILEGES = 1, 22, 38

# number on x86_64, number on aarch64 (the generic table); None where there is no such call
CALLS: dict[str, tuple[int | None, int | None]] = {
    # processes
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # sockets, and what outlives a process
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "memfd_create": (319, 279), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "userfaultfd": (323, 282),
    # the system
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "setns": (308, 268), "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "open_by_handle_at": (304, 265), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171),
}  # fmt: skip
CLONE, CLONE3, KILL, TGKILL, PRLIMIT = (
    (56, 220), (435, 435), (62, 129), (234, 131), (302, 261),
)  # fmt: skip
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
        hide(["/proc", "/dev/shm"])
    if level == "landlock":
        read_only(paths)
    if level != "plain":
        no_system_calls_on_others()


def hide(folders: Iterable[str]) -> None:
    """Put an empty folder, which nobody can write to, over each of these."""
    _checked(_libc.mount(None, b"/", None, PRIVATE | RECURSIVE, None), "mount")
    for folder in folders:
        _checked(_libc.mount(b"none", folder.encode(), b"tmpfs", READ_ONLY, b"size=4k"), "mount")


def limit(seconds: int, memory: int) -> None:
    """Bound CPU time, and memory in bytes beyond what is taken now; no core file, no big file."""
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
        resource.setrlimit(name, (bound, bound))


def die_with_parent() -> None:
    """Be killed when the parent ends, where the system is Linux."""
    if sys.platform == "linux":
        _checked(_libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")


def read_only(paths: Iterable[Path]) -> None:
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


def no_system_calls_on_others() -> None:
    """Refuse new processes, sockets, signals to others, and whatever administers (seccomp)."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column, architecture = ARCHITECTURES[machine]
    pid = os.getpid()
    program = [
        _load(4), _equal(architecture, 1, 0), _END_PROCESS,
        _load(0),
        *([_at_least(X32, 0, 1), _END_PROCESS] if machine == "x86_64" else []),
    ]  # fmt: skip
    for numbers in CALLS.values():
        if (number := numbers[column]) is not None:
            program += [_equal(number, 0, 1), _refuse(errno.EPERM)]
    # glibc falls back on `clone`, whose flags can be seen
    program += [_equal(CLONE3[column], 0, 1), _refuse(errno.ENOSYS)]
    program += [_equal(CLONE[column], 0, 4), _load(16), _has(THREAD, 1, 0)]
    program += [_refuse(errno.EPERM), _load(0)]
    for call, own in ((KILL, pid), (TGKILL, pid), (PRLIMIT, 0)):
        program += [_equal(call[column], 0, 4), _load(16), _equal(own, 1, 0)]
        program += [_refuse(errno.EPERM), _load(0)]
    program.append(_ALLOW)
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
    return _instruction(0x20, 0, 0, offset)  # the call's number at 0, its first argument at 16


def _equal(value: int, yes: int, no: int) -> bytes:
    return _instruction(0x15, yes, no, value)


def _at_least(value: int, yes: int, no: int) -> bytes:
    return _instruction(0x35, yes, no, value)


def _has(bits: int, yes: int, no: int) -> bytes:
    return _instruction(0x45, yes, no, bits)


def _refuse(number: int) -> bytes:
    return _instruction(0x06, 0, 0, 0x00050000 | number)


_ALLOW = _instruction(0x06, 0, 0, 0x7FFF0000)
_END_PROCESS = _instruction(0x06, 0, 0, 0x80000000)
