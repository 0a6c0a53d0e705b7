#!/usr/bin/env python3
"""Writes the test vectors that docs/protocol/wire.md cites, into the folder of this script.

A second implementation of docs/protocol/wire.md's encodings on purpose, and in another language: the unit tests hold the C++
one against it. Vectors are changed only together with the protocol's version; `git diff` must be empty after a run.
"""

import hashlib
import hmac
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
REMOTE = bytes.fromhex("a1b2c3d4e5f60718293a4b5c6d7e8f90")
CENTRAL = bytes.fromhex("0f1e2d3c4b5a69788796a5b4c3d2e1f0")
UNKNOWN = bytes(16)
SECRET = b"correct horse battery staple"
WHOLE = (0, 0xFFFFFFFF)


def counted(value):
    return struct.pack(">I", len(value)) + value


# ---------------------------------------------------------------- records


def values(row):
    out = struct.pack(">H", len(row))
    for kind, value in row:
        out += kind.encode()
        if kind in "tb":
            out += counted(value)
    return out


def record(operation, description=0, old_key=None, row=None, table=b"", cascade=False, restart=False, large=False):
    if operation == "S":
        return b"S\0"
    flags = 0
    if operation == "U" and old_key is not None:
        flags |= 1
    if cascade:
        flags |= 2
    if restart:
        flags |= 4
    if large:
        flags |= 8
    out = operation.encode() + bytes([flags]) + struct.pack(">Q", description)
    if old_key is not None:
        out += values(old_key)
    if row is not None:
        out += values(row)
    return out + table


def chunk(description_id, refresh, flags=0, order="", key_from=(), key_to=(), rows=()):
    def key(bounds):
        return struct.pack(">H", len(bounds)) + b"".join(counted(bound) for bound in bounds)

    out = b"C" + bytes([flags]) + struct.pack(">QQ", description_id, refresh)
    out += struct.pack(">H", len(order)) + order.encode() + key(key_from) + key(key_to)
    return out + struct.pack(">I", len(rows)) + b"".join(values(row) for row in rows)


def statement(description_id, flags, search_path, sql, settings=()):
    out = b"X" + bytes([flags]) + struct.pack(">Q", description_id) + counted(b"UTF8") + counted(search_path)
    out += struct.pack(">H", len(settings)) + b"".join(counted(name) + counted(value) for name, value in settings)
    return out + counted(sql)


def sequences(states, flags=0):
    out = b"Q" + bytes([flags]) + bytes(8) + counted(b"UTF8") + struct.pack(">I", len(states))
    for schema, name, last_value, is_called in states:
        out += counted(schema.encode()) + counted(name.encode()) + struct.pack(">qB", last_value, is_called)
    return out


PARTITION_FIELDS = ("partition_schema", "partition_name", "partition_condition")


def description(table):
    out = struct.pack(">Q", table["id"])
    for name in ("schema", "name", "encoding"):
        out += counted(table[name].encode())
    out += struct.pack(">H", len(table["columns"]))
    for name, type_schema, type_name, typmod, key_position, generated in table["columns"]:
        out += counted(name.encode()) + counted(type_schema.encode()) + counted(type_name.encode())
        out += struct.pack(">iHB", typmod, key_position, generated)
    for name in PARTITION_FIELDS:
        out += counted(table.get(name, "").encode())
    return out


# ---------------------------------------------------------------- frames


def frame(kind, n=0, data=b"", flags=0, part=0, parts=1, remote=REMOTE, central=CENTRAL):
    def whole(checksum):
        return (
            b"ORPF"
            + struct.pack(">BBH", 1, kind, flags)
            + checksum
            + remote
            + central
            + struct.pack(">QIII", n, part, parts, len(data))
            + data
        )

    return whole(hashlib.md5(whole(bytes(16))).digest())


def range_list(ranges):
    return struct.pack(">I", len(ranges)) + b"".join(struct.pack(">QQ", *one) for one in ranges)


def missing_list(items):
    return struct.pack(">I", len(items)) + b"".join(
        struct.pack(">QQII", first, last, *parts) for first, last, parts in items
    )


# ---------------------------------------------------------------- history and bodies


def identity(batch, n):
    if n == batch["first"] - 1:
        return batch["before"]
    return hashlib.sha256(batch["before"] + batch["random"] + struct.pack(">Q", n)).digest()[:16]


def remote_header(process, heard, start, start_identity, confirmed, last, sent, blocked_at, oldest, age, paused, stop, batches):
    out = process + struct.pack(">QQ", heard, start) + start_identity
    out += struct.pack(">QQQQQQBBI", confirmed, last, sent, blocked_at, oldest, age, paused, stop, len(batches))
    for batch in batches:
        out += struct.pack(">QQ", batch["first"], batch["last"]) + batch["before"] + batch["random"]
    return out


def central_header(started, taken, flow, stop, hearing, written, identity_there, held, room, failed_at):
    return (
        struct.pack(">BBBQQ", started | taken << 1, flow, stop, hearing, written)
        + identity_there
        + struct.pack(">QQQ", held, room, failed_at)
    )


def key(direction):
    signer = (b"remote", b"central")[direction]
    return hashlib.sha256(b"onerepl 1 " + signer + b"\n" + SECRET).digest()


def body(direction, header, frames, nonce, reply_to=bytes(16), central=CENTRAL, flags=0):
    out = b"ORPB" + struct.pack(">BBH", 1, direction, flags) + REMOTE + central + nonce + reply_to
    out += struct.pack(">II", len(header), len(frames)) + header + frames
    return out + hmac.new(key(direction), out, hashlib.sha256).digest()


def zstd_stored(content):
    """A zstd frame of one raw block: legal, and the same from every library."""
    assert len(content) < 256
    block = (len(content) << 3 | 1).to_bytes(3, "little")
    return bytes.fromhex("28b52ffd20") + bytes([len(content)]) + block + content


# ---------------------------------------------------------------- files


def write(name, comment, sections):
    with open(os.path.join(HERE, name), "w", encoding="ascii") as out:
        for line in comment.splitlines():
            out.write(f"# {line}\n")
        for title, fields in sections:
            out.write(f"\n[{title}]\n")
            for key, value in fields:
                out.write(f"{key} = {text(value)}\n".replace(" \n", "\n"))


def text(value):
    if not isinstance(value, bytes):
        return str(value)
    digits = value.hex()
    if len(digits) <= 80:
        return digits
    return "".join("\n    " + digits[at : at + 80] for at in range(0, len(digits), 80))


def value_text(row):
    return " ".join(kind + (":" + value.hex() if kind in "tb" else "") for kind, value in row)


ACCOUNT = {
    "id": 7,
    "schema": "public",
    "name": "account",
    "encoding": "UTF8",
    "columns": [
        ("branch", "pg_catalog", "int4", -1, 2, 0),
        ("id", "pg_catalog", "int8", -1, 1, 0),
        ("owner", "pg_catalog", "varchar", 44, 0, 0),
        ("balance", "public", "money_amount", -1, 0, 0),
        ("label", "pg_catalog", "text", -1, 0, 1),
    ],
}
PARTITION = {
    **ACCOUNT,
    "id": 8,
    "partition_schema": "archive",
    "partition_name": "account_2",
    "partition_condition": "((branch IS NOT NULL) AND (branch >= 10))",
}
INTEGER_4 = ("b", struct.pack(">i", 4))
BIGINT_42 = ("b", struct.pack(">q", 42))
ROW = [INTEGER_4, BIGINT_42, ("t", "Zo\u00eb".encode()), ("n", b""), ("u", b"")]
CREATE_INDEX = b"CREATE INDEX ON account (owner)"
ALTER_TABLE = b"ALTER TABLE account ADD note text"
LEFT_OUT = [INTEGER_4, BIGINT_42, ("u", b""), ("u", b""), ("u", b"")]
INSERT = record("I", 7, row=ROW)
DESCRIPTION = description(ACCOUNT)


def records():
    def section(title, encoded, operation, **fields):
        return title, [("operation", operation)] + list(fields.items()) + [("record", encoded)]

    key = [BIGINT_42, INTEGER_4]
    return [
        section("insert", INSERT, "I", description=7, row=value_text(ROW)),
        section("update", record("U", 7, row=ROW), "U", description=7, row=value_text(ROW)),
        section(
            "insert of a row that is too large",
            record("I", 7, row=LEFT_OUT, large=True),
            "I",
            description=7,
            too_large=1,
            row=value_text(LEFT_OUT),
        ),
        section(
            "update that moves the key",
            record("U", 7, old_key=key, row=ROW),
            "U",
            description=7,
            old_key=value_text(key),
            row=value_text(ROW),
        ),
        section("delete", record("D", 7, old_key=key), "D", description=7, old_key=value_text(key)),
        section(
            "truncate",
            record("T", 7, cascade=True, restart=True),
            "T",
            description=7,
            truncate_cascade=1,
            truncate_restart_identity=1,
        ),
        section("describe", record("R", 7, table=DESCRIPTION), "R", description=7, table=text(DESCRIPTION)),
        section("skip", record("S"), "S"),
        section("chunk that opens a refresh", chunk(7, 3, 1), "C", description=7, refresh=3, opens=1),
        section(
            "chunk",
            chunk(7, 3, 18, "nn", (b"41", b"4"), (b"42", b"4"), [ROW]),
            "C",
            description=7,
            refresh=3,
            first=1,
            repair=1,
            order="n n",
            key_from="3431 34",
            key_to="3432 34",
            rows=value_text(ROW),
        ),
        section(
            "last chunk",
            chunk(7, 3, 4, "ct", (b"b", b"x"), (), []),
            "C",
            description=7,
            refresh=3,
            last=1,
            order="c t",
            key_from="62 78",
        ),
        section(
            "chunk of a verification",
            chunk(7, 4, 32, "nn", (), (b"42", b"4"), [[("t", b"20000"), ("t", b"-123456789")]]),
            "C",
            description=7,
            refresh=4,
            verify=1,
            order="n n",
            key_to="3432 34",
            rows=value_text([("t", b"20000"), ("t", b"-123456789")]),
        ),
        section(
            "chunk that mends a range",
            chunk(7, 5, 84, "n", (b"4",), (b"9",), []),
            "C",
            description=7,
            refresh=5,
            last=1,
            repair=1,
            partial=1,
            order="n",
            key_from="34",
            key_to="39",
        ),
        section("chunk that ends a cancelled refresh", chunk(7, 3, 8), "C", description=7, refresh=3, cancelled=1),
        section(
            "statement",
            statement(0, 0, b'"$user", public', CREATE_INDEX),
            "X",
            encoding="UTF8",
            search_path='"$user", public',
            sql=CREATE_INDEX,
        ),
        section(
            "statement that changes a tracked table",
            statement(7, 1, b"public", ALTER_TABLE, [(b"standard_conforming_strings", b"off")]),
            "X",
            description=7,
            captured=1,
            encoding="UTF8",
            search_path="public",
            setting="standard_conforming_strings off",
            sql=ALTER_TABLE,
        ),
        section("dropped table", statement(7, 3, b"", b""), "X", description=7, captured=1, dropped=1, encoding="UTF8"),
        section(
            "sequences",
            sequences([("public", "account_id_seq", 43, 1), ("public", "countdown", -1, 0)]),
            "Q",
            encoding="UTF8",
            sequence="public account_id_seq 43 1",
            sequence_2="public countdown -1 0",
        ),
        section(
            "all the sequences that follow",
            sequences([("public", "account_id_seq", 43, 1)], 1),
            "Q",
            encoding="UTF8",
            complete=1,
            sequence="public account_id_seq 43 1",
        ),
    ]


def descriptions():
    columns = [
        ("column", f"{name} {type_schema} {type_name} {typmod} {key_position} {generated}")
        for name, type_schema, type_name, typmod, key_position, generated in ACCOUNT["columns"]
    ]

    def section(title, table, fields):
        names = [(name, table[name]) for name in ("id", "schema", "name", "encoding") + fields]
        return title, names + columns + [("description", description(table))]

    return [section("table", ACCOUNT, ()), section("partition", PARTITION, PARTITION_FIELDS)]


def frames():
    def section(title, encoded, kind, central=CENTRAL, **fields):
        parties = [("kind", kind), ("remote", REMOTE), ("central", central)]
        return title, parties + list(fields.items()) + [("frame", encoded)]

    transfer = {"n": 42, "last_of_transaction": 1, "part": 0, "parts": 1, "record": INSERT}
    part = {"n": 43, "last_of_transaction": 0, "part": 1, "parts": 3, "record": INSERT[20:40]}
    numbers = [(40, 44), (47, 47)]
    missing = [(40, 44, WHOLE), (47, 47, (1, 2))]
    return [
        section("object transfer", frame(1, 42, INSERT, flags=1), 1, **transfer),
        section("part of an object transfer", frame(1, 43, INSERT[20:40], part=1, parts=3), 1, **part),
        section(
            "object transfer before the central is known",
            frame(1, 42, INSERT, flags=1, central=UNKNOWN),
            1,
            central=UNKNOWN,
            **transfer,
        ),
        section("confirmation request", frame(2, 40, range_list(numbers)), 2, numbers="40..44 47..47"),
        section("remote state", frame(3, 39), 3, echo=39),
        section("transfer confirmation", frame(4, 40, range_list(numbers)), 4, numbers="40..44 47..47"),
        section(
            "transfer request", frame(5, 40, missing_list(missing)), 5, missing="40..44/0..4294967295 47..47/1..2"
        ),
        section("state request", frame(6, 39), 6, written=39),
        section("description request", frame(7, 0, struct.pack(">IQQ", 2, 7, 9)), 7, ids="7 9"),
        section("description", frame(8, 0, DESCRIPTION), 8, description=DESCRIPTION),
    ]


FIRST_BATCH = {"first": 1, "last": 40, "before": REMOTE, "random": bytes(range(16))}
SECOND_BATCH = {
    "first": 41,
    "last": 43,
    "before": identity(FIRST_BATCH, 40),
    "random": bytes(range(16, 32)),
}


def batch_text(batch):
    return f"{batch['first']}..{batch['last']} {batch['before'].hex()} {batch['random'].hex()}"


def history():
    sections = []
    for title, batch, numbers in (("first batch", FIRST_BATCH, (0, 1, 2, 40)), ("second batch", SECOND_BATCH, (40, 41, 43))):
        fields = [("batch", batch_text(batch))]
        fields += [("identity", f"{n} {identity(batch, n).hex()}") for n in numbers]
        sections.append((title, fields))
    return sections


def bodies():
    nonce = bytes.fromhex("00112233445566778899aabbccddeeff")
    answer_nonce = bytes.fromhex("ffeeddccbbaa99887766554433221100")
    start_identity = identity(FIRST_BATCH, 30)
    to_central = {"process": REMOTE[::-1], "heard": 77, "start": 30, "start_identity": start_identity, "confirmed": 40, "last": 43, "sent": 41}
    to_central |= {"blocked_at": 43, "oldest": 41, "age": 1500000, "paused": 1, "stop": 0}
    to_remote = {"started": 1, "taken": 1, "flow": 1, "stop": 0, "hearing": 77, "written": 41, "identity": identity(SECOND_BATCH, 41)}
    to_remote |= {"held": 42, "room": 1 << 28, "failed_at": 42}
    transfers = frame(1, 41, INSERT, flags=1) + frame(1, 42, record("D", 7, old_key=[BIGINT_42, INTEGER_4]), flags=1)
    answers = frame(4, 41, range_list([(41, 41)])) + frame(6, 41)
    state = frame(3, 41, central=UNKNOWN)

    def section(title, encoded, direction, fields, content, batches=(), reply_to=bytes(16), central=CENTRAL, own=nonce):
        out = [("secret", SECRET.decode()), ("key", key(direction)), ("direction", direction), ("remote", REMOTE), ("central", central)]
        out += [("nonce", own), ("reply_to", reply_to)] + list(fields.items())
        out += [("batch", batch_text(batch)) for batch in batches]
        return title, out + [("frames", content), ("body", encoded)]

    header = remote_header(*to_central.values(), [SECOND_BATCH])
    first = remote_header(*to_central.values(), [])
    answer = central_header(*to_remote.values())
    return [
        section("remote to central", body(0, header, transfers, nonce), 0, to_central, transfers, [SECOND_BATCH]),
        section(
            "central to remote",
            body(1, answer, answers, answer_nonce, nonce),
            1,
            to_remote,
            answers,
            reply_to=nonce,
            own=answer_nonce,
        ),
        section(
            "remote to central, compressed, before the central is known",
            body(0, first, zstd_stored(state), nonce, central=UNKNOWN, flags=1),
            0,
            to_central,
            state,
            central=UNKNOWN,
        ),
    ]


COMMON = "Written by make_vectors.py; docs/protocol/wire.md says how to read it. All of it but names and numbers is hexadecimal."

write("records.txt", COMMON + "\nOne record per operation.", records())
write("descriptions.txt", COMMON + "\nA table description: name, type's schema, type, typmod, key position, generated.", descriptions())
write("frames.txt", COMMON + "\nA frame per message kind, and variants of the object transfer.", frames())
write("history.txt", COMMON + "\nA chain of two batches (first..last, before, random) and the identities at some numbers.", history())
write("bodies.txt", COMMON + "\nA body each way; the third one's frames are a zstd frame of one raw block.", bodies())
