#!/usr/bin/env python3
"""Writes the vectors of test/vectors into the fuzzers' corpora, in the forms that each fuzzer reads."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


def values(file, name):
    """All values called `name` in a vector file, as bytes."""
    with open(os.path.join(HERE, "..", "vectors", file), encoding="ascii") as text:
        content = text.read()
    for match in re.finditer(rf"^{name} = ?((?:[0-9a-f]+|(?:\n    [0-9a-f]+)+))$", content, re.M):
        yield bytes.fromhex("".join(match.group(1).split()))


def write(fuzzer, seeds):
    folder = os.path.join(HERE, "corpus", fuzzer)
    os.makedirs(folder, exist_ok=True)
    for number, seed in enumerate(seeds):
        with open(os.path.join(folder, f"vector-{number:02}"), "wb") as out:
            out.write(seed)


frames = list(values("frames.txt", "frame"))
bodies = list(values("bodies.txt", "body"))
# As they travel; and in the form from which the fuzzer repairs length, checksum and signature.
write("frames", [b"".join(frames)] + [bytes([min(255, len(one) - 76)]) + one for one in frames])
write("record", values("records.txt", "record"))
write("description", values("descriptions.txt", "description"))
write("body", bodies + [one[74:76] + one[:-32] for one in bodies])
