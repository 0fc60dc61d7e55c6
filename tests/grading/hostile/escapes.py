# ruff: noqa
"""Ways out of the sandbox. `won()` says whether one led anywhere; the answer is right if it did.

COURSE, SUBMISSIONS and OUT are folders, CANARY is a process outside, PORT, PATH and ABSTRACT are
where somebody outside listens. Nothing here destroys what is not the test's own.
"""


# %% the submissions of others are read
def won():
    return open(SUBMISSIONS + "/honest_0.ipynb").read()


# %% what has been graded is read
def won():
    return open(OUT + "/unfinished.jsonl").read()


# %% the reference is read from the disk
def won():
    return open(COURSE + "/course_lib/attention.py").read()


# %% the reference is imported
from course_lib.attention import dot_scores as found


def won():
    return found


# %% the exercise is imported
import course_lib.exercises.attention.dot_scores as found


def won():
    return found


# %% the judge is imported
from course_lib.grading.judging.judge import Judge as found


def won():
    return found


# %% the checks are imported
from course_lib.checking.verdict import judge as found


def won():
    return found


# %% what notebooks import as check and verdict is the judge's
from course_lib.exercises import check, verdict, solution


def won():
    return check("attention/dot_scores", None) or verdict("a", None) or solution("a")


# %% a later lesson is asked for by mine
from course_lib.exercises import mine


def won():
    return mine("attention/dot_scores")


# %% packages of the grader are imported
def won():
    import psutil

    return psutil


# %% passwords and keys
import os


def won():
    return [x for x in ("/etc/passwd", "/etc/hostname", "/root/.profile") if os.path.exists(x)]


# %% any notebook on the disk
import functools, os


@functools.cache
def won():
    return [x for x, _, files in os.walk("/") if any(f.endswith(".ipynb") for f in files)]


# %% the grader's environment
import os


def won():
    return (
        "HOSTILE_SECRET" in os.environ or b"HOSTILE_SECRET" in open("/proc/1/environ", "rb").read()
    )


# %% processes are listed
import os


def won():
    return os.listdir("/proc")


# %% frames are searched for the judge
import sys


def won():
    frame = sys._getframe()
    while frame:
        names = {
            type(value).__name__ for value in (*frame.f_locals.values(), *frame.f_globals.values())
        }
        if names & {"Judge", "Exercise", "Case", "Question", "Trial", "Draw"}:
            return True
        frame = frame.f_back


# %% the garbage collector is searched for the judge
import gc


def won():
    names = {"Judge", "Exercise", "Case", "Question", "Trial", "Draw", "Mistake"}
    return [x for x in gc.get_objects() if type(x).__name__ in names]


# %% modules are searched for one that decides
import sys


def won():
    return [
        name for name in sys.modules if "judge" in name or "verdict" in name or "catalogue" in name
    ]


# %% more files are open than the socket
import os


def won():
    found = []
    for descriptor in range(5, 256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        found.append(descriptor)
    return found


# %% a process outside is killed
import os


def won():
    os.kill(CANARY, 9)
    return True


# %% the fork server is killed
import os


def won():
    os.kill(os.getppid(), 9)
    return True


# %% any other process takes a signal
import os


def won():
    found = []
    for pid in (-1, 0, *range(2, 5000)):
        try:
            pid == os.getpid() or os.kill(pid, 0) or found.append(pid)
        except OSError:
            continue
    return found


# %% a process outside is traced
import ctypes


def won():
    return ctypes.CDLL(None).ptrace(16, CANARY, 0, 0) == 0


# %% the memory of a process outside is read or written
import ctypes


def won():
    libc = ctypes.CDLL(None)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    there = (ctypes.c_void_p * 2)(0x400000, 8)
    calls = (libc.process_vm_readv, libc.process_vm_writev)
    ctypes.set_errno(0)
    return any(call(CANARY, here, 1, there, 1, 0) >= 0 for call in calls) or open(
        f"/proc/{CANARY}/mem"
    )


# %% a descriptor of a process outside
import os


def won():
    return os.pidfd_open(CANARY) >= 0


# %% the limits of a process outside
import resource


def won():
    return resource.prlimit(CANARY, resource.RLIMIT_NOFILE, (16, 16)) or True


# %% the priority of a process outside
import os


def won():
    return os.setpriority(os.PRIO_PROCESS, CANARY, 19) or True


# %% its own limits are lifted
import resource


def won():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True


# %% a fork
import os


def won():
    return os.fork() or os._exit(0)


# %% a daemon
import os, time


def won():
    if os.fork() == 0:
        os.setsid()
        os.fork() and os._exit(0)
        time.sleep(30)
        os._exit(0)
    return True


# %% a clone by its bare number
import ctypes, os


def won():
    libc = ctypes.CDLL(None)
    found = [libc.syscall(number, 17, 0, 0, 0, 0) for number in (56, 57, 58, 220)]
    0 in found and os._exit(0)
    return max(found) > 0


# %% another program
import subprocess


def won():
    return subprocess.run(["/bin/true"])


# %% a Python of its own
import os, sys


def won():
    return os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], {})


# %% processes of multiprocessing
import multiprocessing


def won():
    return multiprocessing.get_context("fork").Pool(2).map(abs, [1])


# %% namespaces, mounts and roots
import ctypes


def won():
    libc = ctypes.CDLL(None)
    calls = [
        libc.unshare(0x10000000),
        libc.unshare(0x00020000),
        libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None),
        libc.umount2(b"/proc", 2),
        libc.chroot(b"/"),
        libc.setns(0, 0),
    ]
    return 0 in calls


# %% a TCP connection to this machine
import socket


def won():
    return socket.create_connection(("127.0.0.1", PORT), 1)


# %% a name is looked up
import socket


def won():
    return socket.getaddrinfo("localhost", PORT) and socket.socket(type=socket.SOCK_DGRAM)


# %% a server is opened
import socket


def won():
    return socket.create_server(("127.0.0.1", 0))


# %% a socket with a path
import socket


def won():
    return socket.socket(socket.AF_UNIX).connect(PATH) or True


# %% a socket with a name alone
import socket


def won():
    return socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT) or True


# %% files are written wherever there may be room
import os, tempfile


def won():
    for folder in (
        ".",
        "/",
        "/dev",
        os.path.dirname(os.__file__) + "/site-packages",
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        SUBMISSIONS,
        OUT,
        COURSE,
        tempfile.gettempdir(),
    ):
        try:
            open(folder + "/hostile", "w").close()
        except OSError:
            continue
        return True


# %% a message is left where another found room
import os


def won():
    for folder, _, _ in os.walk("/"):
        try:
            open(folder + "/hostile", "x").close()
        except OSError:
            continue
        return True


# %% the rights, owner, time and attributes of another's submission
import os


def won():
    path, found = SUBMISSIONS + "/honest_0.ipynb", []
    for change in (
        lambda: os.chmod(path, 0o777),
        lambda: os.chown(path, -1, os.getgid()),
        lambda: os.utime(path, (0, 0)),
        lambda: os.setxattr(path, "user.hostile", b"1"),
    ):
        try:
            change()
        except OSError:
            continue
        found.append(change)
    return found


# %% whom a socket signals
import fcntl


def won():
    return fcntl.fcntl(3, fcntl.F_SETOWN, CANARY) == 0 and fcntl.fcntl(3, fcntl.F_SETFL, 0x2000)


# %% another's submission is cut off
import os


def won():
    os.truncate(SUBMISSIONS + "/honest_0.ipynb", 0)
    return True


# %% the grades are written
def won():
    return open(OUT + "/results.json", "w").write("{}")


# %% links are made
import os


def won():
    found = []
    for make in (os.symlink, os.link):
        for folder in (".", "/tmp", "/dev/shm", SUBMISSIONS):
            try:
                make(SUBMISSIONS + "/honest_0.ipynb", folder + "/link")
            except OSError:
                continue
            found.append(folder)
    return found


# %% torch is changed on the disk
import torch


def won():
    return open(torch.__file__, "a")


# %% memory that outlives the process
import ctypes


def won():
    return ctypes.CDLL(None).shmget(0x5EED, 4096, 0o1600) >= 0


# %% a file without a folder
import os


def won():
    return os.memfd_create("hostile") >= 0


# %% shared memory by name
from multiprocessing import shared_memory


def won():
    return shared_memory.SharedMemory("hostile", create=True, size=16)


# %% a ring of system calls
import ctypes


def won():
    return ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) >= 0
