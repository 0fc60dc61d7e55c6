"""`course fetch`: bring data into the cache, or remove it."""

import sys
from argparse import ArgumentParser, Namespace

from course_lib.files.errors import CommandError

NAME = "fetch"
WHAT = "download the lessons' data and models"
EXAMPLE = "cmudict"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the items, and whether they come or go."""
    parser.add_argument("items", metavar="ITEM", nargs="*", help="all by default")
    parser.add_argument("--remove", action="store_true", help="free their space instead")


def run(options: Namespace) -> int:
    """Say how many bytes came or went; return 1 if an item did not come."""
    from course_lib.data import store

    names, folder = options.items or None, store.cache_folder()
    try:
        if options.remove:
            print(f"{store.remove(names) / 1e6:.1f} MB freed in {folder}.")
        else:
            print(f"{store.fetch(names) / 1e6:.1f} MB fetched into {folder}.")
    except ValueError as error:
        raise CommandError(str(error)) from None
    except store.FetchError as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0
