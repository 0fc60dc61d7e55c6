import os

# students' code runs in forked processes, which Windows does not have
collect_ignore_glob = [] if os.name == "posix" else ["test_[!r]*.py"]
