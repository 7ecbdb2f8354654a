"""The store under kills, full disks, damaged and read-only files, and several processes at once."""

import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from torchcommodity import data
from torchcommodity.data._store import connection as connection_module

PROCESSES = multiprocessing.get_context("forkserver")  # forks a process that has imported torch and nothing else
PROCESSES.set_forkserver_preload(["torch", "pandas", "duckdb", "torchcommodity.data"])
RECORD = data.Provenance("p", "l", "x", "2020-01-01T00:00:00Z", "", "A")


def panel(number, symbols=20):
    """The panel of vintage `number`: one row more than before, and the last row of then revised."""
    values = np.arange(1.0, number + 1)[:, None] + np.arange(symbols)
    values[:-1] += 0.25
    dates = np.datetime64("2020-01-01") + np.arange(number)
    names = [f"S{column}" for column in range(symbols)]
    return data.Panel(torch.from_numpy(values), dates, names, [""] * symbols, [RECORD] * symbols)


def start(target, *arguments):
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*arguments, sender), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def received(receiver):
    """All messages until the process ends."""
    messages = []
    try:
        while True:
            messages.append(receiver.recv())
    except EOFError:
        return messages


class AnnouncedConnection:
    """A connection that says when it commits and closes, where DuckDB writes the file."""

    def __init__(self, connection, sender):
        self.connection, self.sender = connection, sender

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def close(self):
        self.sender.send("close")
        self.connection.close()

    def execute(self, query, *arguments):
        if query == "COMMIT":
            self.sender.send("commit")
        return self.connection.execute(query, *arguments)


def add_forever(path, number, sender):
    """Add vintages after `number`, and say where the writer is."""
    create, connect = connection_module._create, connection_module._connect

    def announced_create(path):
        sender.send("create")
        create(path)

    connection_module._create = announced_create
    connection_module._connect = lambda *arguments: AnnouncedConnection(connect(*arguments), sender)
    store = data.Store(path)
    sender.send(number)
    while True:
        number += 1
        sender.send(store.add(panel(number), "x").number)


# of 96 kills at random moments, 3 hit the commit and none the creation
PLACES = {"create": 0.1, "commit": 0.003, "close": 0.02, "anywhere": 0.2}  # seconds after it in which a kill comes


def check_kills(path, places):
    """Kill a writer at random moments in each place; check the last vintages each time and all of them at the end."""
    store, generator, vintages = data.Store(path), random.Random(path.parent.name), []
    for place in places:
        process, receiver = start(add_forever, path, len(vintages))
        messages, adds = [], 0 if place == "create" else generator.randint(1, 4)
        while sum(isinstance(message, int) for message in messages) < adds or place not in (*messages[-1:], "anywhere"):
            messages.append(receiver.recv())
        time.sleep(generator.uniform(0, PLACES[place]))
        os.kill(process.pid, signal.SIGKILL)
        numbers = [message for message in messages + received(receiver) if isinstance(message, int)]
        reported = max(numbers, default=len(vintages))
        process.join()
        vintages = store.vintages("x") if store.list() else []
        assert len(vintages) in (reported, reported + 1)
        for vintage in vintages[-2:]:
            assert store.load("x", as_of=vintage.known_from).equals(panel(vintage.number))
    for vintage in store.vintages("x"):
        assert store.load("x", as_of=vintage.known_from).equals(panel(vintage.number))
    return len(store.vintages("x"))


def test_what_was_reported_survives_kills(tmp_path):
    assert check_kills(tmp_path / "prices.duckdb", ["anywhere"] * 4) > 2


@pytest.mark.slow
@pytest.mark.process
def test_what_was_reported_survives_many_kills(tmp_path):
    for folder in range(4):  # in each, the file is created under fire
        places = ["create", *["commit", "close"] * 2, "anywhere"]
        assert check_kills(tmp_path / str(folder) / "prices.duckdb", places) > 6


def test_a_crash_while_a_store_is_created_leaves_no_file_of_its_name(tmp_path, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(connection_module, "create_tables", crash)
    store = data.Store(tmp_path / "prices.duckdb")
    with pytest.raises(KeyboardInterrupt):
        store.add(panel(2), "x")
    assert not list(tmp_path.iterdir())


def test_a_store_is_created_without_hard_links(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", link)
    store = data.Store(tmp_path / "prices.duckdb")
    assert store.add(panel(2), "x").number == 1
    assert [path.name for path in tmp_path.iterdir()] == ["prices.duckdb"]


def add_some(path, name, count, sender):
    store = data.Store(path)
    for number in range(1, count + 1):
        sender.send(store.add(panel(number), name).number)


def load_some(path, count, sender):
    store = data.Store(path)
    for _ in range(count):
        entries = store.list()
        sender.send([store.load(entry.name).equals(panel(entry.vintages)) or entry.name for entry in entries[:1]])


def test_two_processes_add_at_once(tmp_path):
    path = tmp_path / "prices.duckdb"
    processes = [start(add_some, path, name, 8) for name in ("a", "b")]
    assert [received(receiver) for _, receiver in processes] == [[*range(1, 9)]] * 2
    store = data.Store(path)
    assert {entry.name: entry.vintages for entry in store.list()} == {"a": 8, "b": 8}
    assert all(store.load(name).equals(panel(8)) for name in ("a", "b"))


def test_a_commit_while_a_store_is_opened_is_seen(tmp_path, monkeypatch):
    """DuckDB reads the headers of a file before it locks it: those from before the commit would undo it."""
    path, connect, calls = tmp_path / "prices.duckdb", duckdb.connect, []
    store = data.Store(path)
    store.add(panel(2), "a")

    def slow_connect(*arguments, **settings):
        calls.append(arguments)
        if len(calls) == 1:
            _, receiver = start(add_some, path, "b", 1)
            assert received(receiver) == [1]
        return connect(*arguments, **settings)

    monkeypatch.setattr(duckdb, "connect", slow_connect)
    store.add(panel(3), "a")
    assert len(calls) == 2
    assert {entry.name: entry.vintages for entry in store.list()} == {"a": 2, "b": 1}


def test_two_processes_add_the_same_name_at_once(tmp_path):
    path = tmp_path / "prices.duckdb"
    processes = [start(add_some, path, "x", 6) for _ in range(2)]
    numbers = [received(receiver) for _, receiver in processes]
    assert all(sorted(column) == column for column in numbers)
    count = len(data.Store(path).vintages("x"))
    assert max(max(column) for column in numbers) == count  # an unchanged panel adds no vintage
    assert 6 <= count <= 12


def test_readers_run_beside_a_writer(tmp_path):
    path = tmp_path / "prices.duckdb"
    data.Store(path).add(panel(1), "x")
    writer, readers = start(add_some, path, "x", 8), [start(load_some, path, 10) for _ in range(2)]
    assert received(writer[1])[-1] == 8
    for _, receiver in readers:
        assert len(received(receiver)) == 10


def hold(path, sender):
    with duckdb.connect(str(path)):
        sender.send("held")
        time.sleep(60)


def test_waiting_for_another_process_is_said_and_ends(tmp_path, monkeypatch):
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(panel(2), "x")
    process, receiver = start(hold, store.path)
    receiver.recv()
    monkeypatch.setattr(connection_module, "LOCK_SECONDS", 0.3)
    monkeypatch.setattr(connection_module, "NOTICE_SECONDS", 0.1)
    words = rf"process {os.getpid()} waited 0 s for \S+ \(process {process.pid}\); close that one, or try again"
    for call in (lambda: store.add(panel(3), "x"), store.load):
        with (
            pytest.warns(UserWarning, match=rf"waits for \S+ \(process {process.pid}\), which has the file open"),
            pytest.raises(data.DataError, match=words),
        ):
            call()
    process.kill()
    process.join()
    assert store.add(panel(3), "x").number == 2


def test_threads_add_at_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    store = data.Store(tmp_path / "prices.duckdb")

    def add(number):
        vintage = store.add(panel(number + 1), f"x{number % 2}")
        return store.load(vintage.name) is not None

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(add, range(12)))
    assert [entry.vintages for entry in store.list()] == [6, 6]


def test_a_connection_that_another_thread_is_closing_is_waited_for(tmp_path, monkeypatch):
    """DuckDB then reports the file as attached; of 640 calls of six threads, 13 met it."""
    store, connect, calls = data.Store(tmp_path / "prices.duckdb"), duckdb.connect, []
    store.add(panel(2), "x")

    def busy(*arguments, **settings):
        calls.append(arguments)
        if len(calls) < 3:
            raise duckdb.Error("Resource In Use Error: Unique file handle conflict: Cannot attach")
        return connect(*arguments, **settings)

    monkeypatch.setattr(duckdb, "connect", busy)
    assert store.add(panel(3), "x").number == 2
    assert len(calls) == 3


def add_with_little_space(path, space, sender):
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + space,) * 2)
    try:
        sender.send(data.Store(path).add(panel(2000), "x").number)
    except data.DataError as error:
        sender.send(str(error))


def test_a_full_disk_is_said_and_leaves_the_store_as_it_was(tmp_path):
    original = tmp_path / "prices.duckdb"
    data.Store(original).add(panel(300), "x")
    answers = []
    for space in (0, 4096, 40_000, 70_000, 200_000, 500_000, 2_000_000):
        path = Path(shutil.copy(original, tmp_path / f"{space}.duckdb"))
        (answer,) = received(start(add_with_little_space, path, space)[1])
        stored = data.Store(path).load("x")
        assert stored.equals(panel(2000 if answer == 2 else 300))
        assert answer == 2 or re.search("expected space on the disk; got .*File too large.* as it was before", answer)
        assert data.Store(path).add(panel(2000), "x").number == 2
        answers.append(answer)
    assert answers[0] != 2
    assert answers[-1] == 2


def add_without_permission(path, sender):
    if os.geteuid() == 0:
        os.setuid(65534)
    store = data.Store(path)
    sender.send(store.load("x").equals(panel(3)))
    try:
        sender.send(store.add(panel(4), "x"))
    except data.DataError as error:
        sender.send(str(error))


def test_a_store_that_cannot_be_written_can_be_read():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "prices.duckdb"
        data.Store(path).add(panel(3), "x")
        os.chmod(path, 0o444)
        loaded, message = received(start(add_without_permission, path)[1])
        assert loaded
        assert re.search(r"expected a file that can be opened; got .*Permission denied; choose another file", message)


def test_damage_is_reported_and_never_read(tmp_path):
    store, generator = data.Store(tmp_path / "prices.duckdb"), random.Random(0)
    store.add(panel(100), "x")
    intact = store.path.read_bytes()
    reported = 0
    for _ in range(40):
        damaged = bytearray(intact)
        damaged[generator.randrange(len(intact))] ^= 1 << generator.randrange(8)
        store.path.write_bytes(damaged[: generator.choice([len(intact), generator.randrange(len(intact))])])
        try:
            assert store.load("x").equals(panel(100))  # the damage is in a part that is not used
        except data.DataError as error:
            reported += 1
            if str(store.path) not in str(error):
                raise
    assert reported > 20
