"""Captures the packets between pods, as anyone on the node could."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tools.cluster.network import PODS

_EVERYTHING = 0x0003
_IP = b"\x08\x00"
_LARGEST = 1 << 16


class Capture:
    """The packets between pods, in order."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []

    @property
    def size(self) -> int:
        return sum(map(len, self.packets))

    def holds(self, text: bytes) -> bool:
        return any(text in packet for packet in self.packets)


@contextmanager
def captured() -> Iterator[Capture]:
    """Needs root and the provider `bare`, where all packets of pods pass this machine."""
    capture, stop, pods = Capture(), threading.Event(), ipaddress.ip_network(PODS)

    def listen() -> None:
        while not stop.is_set():
            try:
                packet = link.recv(_LARGEST)
            except TimeoutError:
                continue
            ends = (packet[26:30], packet[30:34])
            if packet[12:14] == _IP and all(ipaddress.ip_address(end) in pods for end in ends):
                capture.packets.append(packet)

    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(_EVERYTHING)) as link:
        link.settimeout(0.5)
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield capture
        finally:
            stop.set()
            thread.join()
