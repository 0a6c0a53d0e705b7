#!/usr/bin/env python3
"""Forwards TCP connections, counts their bytes, and may delay them like a long line.

    relay.py --listen 127.0.0.1:8000 --target 127.0.0.1:8001 --delay 0.1 --counts FILE

`delay`: seconds, each way. On SIGUSR1, and at its end, it writes two numbers to FILE: bytes to the target and back.
"""

import argparse
import asyncio
import os
import signal

CHUNK = 256 * 1024
# What may be under way on one connection in one direction.
CHUNKS_UNDER_WAY = 1024


class Relay:
    def __init__(self, arguments):
        self.target = arguments.target
        self.delay = arguments.delay
        self.counts_file = arguments.counts
        self.counts = [0, 0]
        self.tasks = set()

    def write_counts(self):
        new = self.counts_file + ".new"
        with open(new, "w", encoding="ascii") as file:
            print(*self.counts, file=file)
        os.replace(new, self.counts_file)

    def spawn(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def serve(self, reader, writer):
        try:
            target_reader, target_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        self.spawn(self.carry(reader, target_writer, 0))
        self.spawn(self.carry(target_reader, writer, 1))

    async def carry(self, reader, writer, way):
        under_way = asyncio.Queue(CHUNKS_UNDER_WAY)
        delivery = self.spawn(self.deliver(under_way, writer))
        clock = asyncio.get_running_loop().time
        try:
            while data := await reader.read(CHUNK):
                self.counts[way] += len(data)
                await under_way.put((clock() + self.delay, data))
        except OSError:
            pass
        await under_way.put((clock() + self.delay, None))
        await delivery

    @staticmethod
    async def deliver(under_way, writer):
        clock = asyncio.get_running_loop().time
        try:
            while True:
                due, data = await under_way.get()
                if due > clock():
                    await asyncio.sleep(due - clock())
                if data is None:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--target", type=address, required=True)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--counts", required=True)
    arguments = parser.parse_args()
    relay = Relay(arguments)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for end in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(end, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, relay.write_counts)
    await asyncio.start_server(relay.serve, *arguments.listen)
    relay.write_counts()
    await ended.wait()
    relay.write_counts()


asyncio.run(main())
