#!/usr/bin/env python3
"""Holds connections of a central with requests that never end: each sends a byte now and then.

    strangers.py --target 127.0.0.1:8000 --source 127.0.0.2 --connections 1050 --holding FILE

A connection that is turned away is opened anew. FILE is written when each connection was opened once.
"""

import argparse
import socket
import time

INTERVAL = 0.7  # seconds between the bytes of one connection
BEGIN = (
    b"POST /onerepl/v1/messages HTTP/1.1\r\nHost: central\r\nContent-Type: application/vnd.onerepl\r\n"
    b"Content-Length: 1000000\r\n\r\nORPB"
)


class Stranger:
    def __init__(self, target, source):
        self.target = target
        self.source = source
        self.socket = None

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((self.source, 0))
        self.socket.connect_ex(self.target)
        self.began = False

    def close(self):
        self.socket.close()
        self.socket = None

    def step(self):
        """Opens what is closed, or sends the begin of a request, or one byte more of it."""
        if self.socket is None:
            return self.open()
        try:
            self.socket.send(b"x" if self.began else BEGIN)
            self.began = True
        except BlockingIOError:
            pass  # not accepted yet
        except OSError:
            self.close()
            self.open()
        return None

    def turned_away(self):
        """The central has answered or closed."""
        try:
            self.socket.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--source", default="127.0.0.1")
    parser.add_argument("--connections", type=int, default=1050)
    parser.add_argument("--holding", required=True)
    arguments = parser.parse_args()
    host, port = arguments.target.rsplit(":", 1)
    strangers = [Stranger((host, int(port)), arguments.source) for _ in range(arguments.connections)]

    next_round = time.monotonic()
    rounds = 0
    while True:
        # Spread over the interval, as independent clients would be.
        for number, stranger in enumerate(strangers):
            if stranger.socket is not None and stranger.turned_away():
                stranger.close()
            stranger.step()
            if number % 50 == 49:
                pause = next_round + INTERVAL * number / len(strangers) - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
        rounds += 1
        if rounds == 3:
            with open(arguments.holding, "w", encoding="ascii") as file:
                print(sum(stranger.socket is not None for stranger in strangers), file=file)
        next_round = max(next_round + INTERVAL, time.monotonic())


if __name__ == "__main__":
    main()
