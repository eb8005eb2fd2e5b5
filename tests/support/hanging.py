"""Folders whose file system never answers: a disk that hangs, a network file system that is cut off."""

import contextlib
import ctypes
import os
import select
import struct
import threading

import pytest

_LIBC = ctypes.CDLL(None, use_errno=True)
_INIT = 26
_DETACH = 2
_REQUEST = struct.Struct("<IIQQIIII")  # length, opcode, number, node, uid, gid, pid, padding
# Of the answer to the first request: protocol 7.31, and no wishes.
_INIT_ANSWER = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, 0)


class HangingFolder:
    """`with` puts a file system over the folder that takes each request and answers none: whoever
    opens or looks for something there sleeps, and no signal wakes him. At its end all is as it was."""

    def __init__(self, folder):
        self.folder = os.fspath(folder).encode()
        self._device = None

    def __enter__(self):
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if _LIBC.mount(b"hangs", self.folder, b"fuse.hangs", 0, options) != 0:
            error = ctypes.get_errno()
            os.close(device)
            raise OSError(error, os.strerror(error))
        self._device = device
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._swallow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Whoever sleeps is told that there is nothing."""
        if self._device is None:
            return
        os.close(self._stop)
        self._thread.join()
        os.close(self._stopped)
        _LIBC.umount2(self.folder, _DETACH)
        os.close(self._device)
        self._device = None

    @contextlib.contextmanager
    def ends_first(self):
        """For a process that began under it and cannot end while it hangs."""
        try:
            yield
        finally:
            self.end()

    def _swallow(self):
        while True:
            ready, _, _ = select.select([self._device, self._stopped], [], [])
            if self._stopped in ready:
                return
            _, opcode, number, *_ = _REQUEST.unpack(os.read(self._device, 1 << 20)[:_REQUEST.size])
            if opcode == _INIT:
                answer = struct.pack("<IiQ", 16 + len(_INIT_ANSWER), 0, number) + _INIT_ANSWER
                os.write(self._device, answer)


@pytest.fixture()
def hanging_folders(tmp_path):
    """For tests that need one: not every machine lets them be made."""
    (tmp_path / "probe").mkdir()
    try:
        with HangingFolder(tmp_path / "probe"):
            pass
    except OSError as error:
        pytest.skip(f"this needs root and /dev/fuse: {error}")
