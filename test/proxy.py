#!/usr/bin/env python3
"""An HTTP proxy that misbehaves: it stands between a remote and its central for tests and the demo.

    proxy.py --listen 127.0.0.1:8000 --target 127.0.0.1:8001 --seed 7 --loss 0.05 --damage 0.05 --strange 0.05
    proxy.py ... --control 127.0.0.1:8002        then: curl 'http://127.0.0.1:8002/set?loss=0.3&delay=0.1:2'

Each fault has a probability per request. `slow` is the probability of a delay, `delay` its length as MIN:MAX seconds. The
control port knows
    /set?NAME=VALUE...   change settings (also target=HOST:PORT; only=html,502: which strange answers)
    /down?seconds=S      refuse everything for S seconds; /up ends that
    /replay?count=N      deliver N old requests to the target again
    /stats               what was done so far, as JSON
The same JSON is printed at the end (SIGTERM or SIGINT).
"""

import argparse
import asyncio
import collections
import json
import random
import signal
import sys
import time
import urllib.parse

FAULTS = {
    "loss": "lose the request before the target sees it, or its answer afterwards",
    "repeat": "deliver the request a second time, at once or a little later",
    "replay": "deliver some older request again, beside this one",
    "slow": "delay the request and the answer",
    "reorder": "hold the request back until a later one has passed",
    "damage": "change bytes of the request or the answer",
    "cut": "break the request or the answer off in the middle",
    "half": "pass the first half of the answer on, and keep the connection for the time of a delay",
    "strange": "answer as a proxy or a login page would",
    "down": "begin an outage (see --outage)",
}
STRANGE = ("html", "empty", "cached", "302", "401", "407", "413", "429", "502", "504", "garbage", "truncated")
MAX_HEAD = 64 * 1024


class Settings:
    """What the command line and the control port can change."""

    def __init__(self, arguments):
        for name in FAULTS:
            setattr(self, name, getattr(arguments, name))
        self.delay = arguments.delay
        self.outage = arguments.outage
        self.target = arguments.target
        self.only = arguments.only

    def set(self, name, value):
        if name in FAULTS:
            setattr(self, name, float(value))
        elif name in ("delay", "outage"):
            setattr(self, name, span(value))
        elif name == "target":
            self.target = address(value)
        elif name == "only":
            self.only = value
        else:
            raise ValueError(f"unknown setting {name}")


def span(text):
    low, _, high = text.partition(":")
    return float(low), float(high or low)


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


class Message:
    """One request or answer: the first line, the header lines, the body."""

    def __init__(self, start, headers, body):
        self.start = start
        self.headers = headers
        self.body = body

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def encode(self, body=None, declared=None):
        """Bytes to send. `declared`: a Content-Length other than the true one."""
        body = self.body if body is None else body
        length = len(body) if declared is None else declared
        lines = [self.start]
        lines += [
            f"{key}: {value}"
            for key, value in self.headers
            if key.lower() not in ("content-length", "transfer-encoding", "connection", "expect")
        ]
        lines += [f"Content-Length: {length}", "Connection: keep-alive", "", ""]
        return "\r\n".join(lines).encode("latin-1") + body


async def read_message(reader):
    """The next message on a connection, or None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None
    lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = []
    for line in lines[1:]:
        key, _, value = line.partition(":")
        headers.append((key, value.strip()))
    message = Message(lines[0], headers, b"")
    if (message.header("transfer-encoding") or "").lower() == "chunked":
        message.body = await read_chunks(reader)
    else:
        message.body = await reader.readexactly(int(message.header("content-length") or 0))
    return message


async def read_chunks(reader):
    body = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
        if size == 0:
            return bytes(body)


class Lost(Exception):
    """The exchange ends here, and its connection: without an answer, or with `last` as the last bytes."""

    def __init__(self, last=b""):
        super().__init__()
        self.last = last


class Held(Lost):
    """The same, but the connection stays."""


class Proxy:
    def __init__(self, arguments):
        self.settings = Settings(arguments)
        self.random = random.Random(arguments.seed)
        self.counts = collections.Counter()
        self.old_requests = collections.deque(maxlen=64)
        self.old_answers = collections.deque(maxlen=64)
        self.passed = asyncio.Condition()
        self.passed_count = 0
        self.down_until = 0.0
        self.background = set()

    def happens(self, fault):
        if self.random.random() >= getattr(self.settings, fault):
            return False
        self.counts[fault] += 1
        return True

    def spawn(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    # ------------------------------------------------------------------ one connection of the remote

    async def serve(self, reader, writer):
        try:
            while True:
                request = await read_message(reader)
                if request is None:
                    break
                if request.header("expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.counts["requests"] += 1
                if self.is_down():
                    raise Lost
                writer.write(await self.exchange(request))
                await writer.drain()
        except Lost as lost:
            writer.write(lost.last)
            if isinstance(lost, Held):
                await writer.drain()
                await self.pause()
        except (ConnectionError, OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    def is_down(self):
        if time.monotonic() < self.down_until:
            self.counts["refused while down"] += 1
            return True
        if self.happens("down"):
            self.down_until = time.monotonic() + self.random.uniform(*self.settings.outage)
            return True
        return False

    async def exchange(self, request):
        """Takes one request through all faults; gives the bytes to answer with."""
        if self.happens("strange"):
            return await self.strange(request)
        if self.happens("reorder"):
            await self.let_another_pass()
        if self.happens("slow"):
            await self.pause()
        if self.happens("loss"):
            return await self.lose(request)
        if self.happens("repeat"):
            self.spawn(self.deliver_later(request))
        if self.happens("replay") and self.old_requests:
            self.spawn(self.deliver_later(self.random.choice(self.old_requests)))
        if self.happens("cut"):
            await self.cut(request)
        if self.happens("half"):
            encoded = (await self.deliver(request.encode())).encode()
            raise Held(encoded[: len(encoded) // 2])
        if self.happens("damage"):
            answer = await self.damaged_exchange(request)
        else:
            answer = await self.deliver(request.encode())
            self.old_requests.append(request)
            self.old_answers.append(answer)
        await self.note_passed()
        return answer.encode()

    # ------------------------------------------------------------------ faults

    async def pause(self):
        await asyncio.sleep(self.random.uniform(*self.settings.delay))

    async def let_another_pass(self):
        async with self.passed:
            before = self.passed_count
            try:
                await asyncio.wait_for(self.passed.wait_for(lambda: self.passed_count > before), 1.0)
            except asyncio.TimeoutError:
                pass

    async def note_passed(self):
        async with self.passed:
            self.passed_count += 1
            self.passed.notify_all()

    async def lose(self, request):
        if self.random.random() < 0.5:
            self.counts["lost answers"] += 1
            await self.deliver(request.encode())
        else:
            self.counts["lost requests"] += 1
        if self.random.random() < 0.3:
            await self.pause()
        raise Lost

    async def deliver_later(self, request):
        try:
            await self.pause()
            await self.deliver(request.encode())
        except (Lost, ConnectionError, OSError, asyncio.IncompleteReadError, ValueError):
            pass

    async def cut(self, request):
        if self.random.random() < 0.5 and request.body:
            part = request.body[: self.random.randrange(len(request.body))]
            try:
                await self.deliver(request.encode(part, declared=len(request.body)), half=True)
            except (ConnectionError, OSError, asyncio.IncompleteReadError):
                pass
            raise Lost
        encoded = (await self.deliver(request.encode())).encode()
        raise Lost(encoded[: self.random.randrange(len(encoded))])

    async def damaged_exchange(self, request):
        if self.random.random() < 0.5:
            self.counts["damaged requests"] += 1
            return await self.deliver(request.encode(self.flip(request.body)))
        self.counts["damaged answers"] += 1
        answer = await self.deliver(request.encode())
        return Message(answer.start, answer.headers, self.flip(answer.body))

    def flip(self, body):
        if not body:
            return b"x"
        damaged = bytearray(body)
        for _ in range(self.random.randint(1, 8)):
            damaged[self.random.randrange(len(damaged))] ^= self.random.randint(1, 255)
        return bytes(damaged)

    async def strange(self, request):
        kinds = self.settings.only.split(",") if self.settings.only else STRANGE
        kind = self.random.choice(kinds)
        self.counts["answered " + kind] += 1
        if self.random.random() < 0.5:
            self.spawn(self.deliver_later(request))
        page = b"<html><body><h1>" + kind.encode() + b"</h1></body></html>"
        ours = "application/vnd.onerepl"
        if kind == "html":
            return page_of("200 OK", page)
        if kind == "empty":
            return page_of("200 OK", b"", ours)
        if kind == "garbage":
            return page_of("200 OK", self.random.randbytes(400), ours)
        if kind == "cached":
            old = self.random.choice(self.old_answers) if self.old_answers else None
            return old.encode() if old else page_of("200 OK", b"", ours)
        if kind == "truncated":
            old = self.random.choice(self.old_answers) if self.old_answers else None
            return old.encode(old.body[: len(old.body) // 2]) if old else page_of("200 OK", b"", ours)
        reasons = {
            "302": "302 Found\r\nLocation: http://login.example/",
            "401": '401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"',
            "407": '407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"',
            "413": "413 Request Entity Too Large",
            "429": "429 Too Many Requests\r\nRetry-After: 1",
            "502": "502 Bad Gateway",
            "504": "504 Gateway Timeout",
        }
        return page_of(reasons.get(kind, kind), page)

    # ------------------------------------------------------------------ the target

    async def deliver(self, data, half=False):
        """Sends a request to the target; gives its answer. `half`: the data is broken off, do not wait for long."""
        reader, writer = await asyncio.open_connection(*self.settings.target, limit=MAX_HEAD)
        try:
            writer.write(data)
            await writer.drain()
            if half:
                await asyncio.sleep(0.05)
                raise Lost
            answer = await read_message(reader)
            if answer is None:
                raise Lost
            self.counts["delivered"] += 1
            return answer
        finally:
            writer.close()

    # ------------------------------------------------------------------ control

    async def control(self, reader, writer):
        request = await read_message(reader)
        if request is not None:
            url = urllib.parse.urlsplit(request.start.split(" ")[1])
            query = dict(urllib.parse.parse_qsl(url.query))
            try:
                writer.write(page_of("200 OK", self.obey(url.path, query), "application/json"))
            except (ValueError, KeyError) as error:
                writer.write(page_of("400 Bad Request", str(error).encode()))
            await writer.drain()
        writer.close()

    def obey(self, path, query):
        if path == "/set":
            for name, value in query.items():
                self.settings.set(name, value)
        elif path == "/down":
            self.down_until = time.monotonic() + float(query.get("seconds", "3600"))
        elif path == "/up":
            self.down_until = 0.0
        elif path == "/replay":
            for _ in range(int(query.get("count", "1"))):
                if self.old_requests:
                    self.spawn(self.deliver_later(self.random.choice(self.old_requests)))
        elif path != "/stats":
            raise ValueError(f"unknown command {path}")
        return self.summary().encode() + b"\n"

    def summary(self):
        return json.dumps(dict(sorted(self.counts.items())))


def page_of(status, body, content_type="text/html"):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--target", type=address, required=True)
    parser.add_argument("--control", type=address)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay", type=span, default=(0.05, 0.5), metavar="MIN:MAX")
    parser.add_argument("--outage", type=span, default=(0.5, 3.0), metavar="MIN:MAX")
    parser.add_argument("--only", default="", metavar="KINDS", help="strange answers: " + ",".join(STRANGE))
    for name, text in FAULTS.items():
        parser.add_argument("--" + name, type=float, default=0.0, metavar="P", help=text)
    return parser.parse_args()


async def main():
    arguments = parse_arguments()
    proxy = Proxy(arguments)
    await asyncio.start_server(proxy.serve, *arguments.listen, limit=MAX_HEAD)
    if arguments.control:
        await asyncio.start_server(proxy.control, *arguments.control, limit=MAX_HEAD)
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    await end.wait()
    print(proxy.summary(), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
