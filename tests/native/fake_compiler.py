"""A compiler that pretends, so that everything around compiling can be tested in no time.

It answers --version as g++ does, writes down when each call starts and ends, and `links` by copying a
library that was really built, with the key of the entry under construction put in place of its own.
FAKE_SLEEP slows each source down, FAKE_FAIL names a source that does not compile, FAKE_BREAK makes the
linked library one that does not load.
"""

import os
import sys
import time


def note(state: str) -> None:
    with open(os.environ["FAKE_CALLS"], "a", encoding="utf-8") as file:
        file.write(f"{time.time():.3f} {state} {os.getpid()} {' '.join(sys.argv[1:])}\n")


def output_name() -> str:
    return sys.argv[sys.argv.index("-o") + 1]


def main() -> int:
    if "--version" in sys.argv:
        note("version")
        print("g++ (Fake) 12.9.1\nCopyright (C) 2022 Free Software Foundation, Inc.")
        return 0
    if "-shared" in sys.argv:
        note("link")
        with open(os.environ["FAKE_LIBRARY"], "rb") as file:
            library = file.read()
        with open("build_key.h", encoding="ascii") as file:
            key = file.read().split('"')[1]
        library = library.replace(os.environ["FAKE_KEY"].encode(), key.encode())
        if os.environ.get("FAKE_BREAK"):
            library = b"no library"
        with open(output_name(), "wb") as file:
            file.write(library)
        return 0
    source = sys.argv[sys.argv.index("-c") + 1]
    note("start")
    if source != "probe.cpp":
        time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
    if source == os.environ.get("FAKE_FAIL"):
        print(f"{source}:7:3: error: 'banana' was not declared in this scope", file=sys.stderr)
        return 1
    with open(output_name(), "wb"):
        pass
    note("end")
    return 0


sys.exit(main())
