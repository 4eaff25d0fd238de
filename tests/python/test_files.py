"""How files are written."""

import itertools
import os
import stat
import threading

import emplace
import pytest
from emplace import _files


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_who_may_read_a_file_stays_as_it_was(tmp_path, mode):
    path = tmp_path / "p.json"
    path.write_text("old")
    path.chmod(mode)
    _files.write(path, "new")
    assert path.read_text() == "new"
    assert mode_of(path) == mode


def test_what_a_link_leads_to_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "p.json"
    target.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to("real/p.json")
    _files.write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(os.listdir(tmp_path / "real")) == ["p.json"]


def test_the_process_keeps_its_umask(tmp_path, monkeypatch):
    def refuse(mask):
        raise AssertionError(f"the umask is {mask:o} for a moment")

    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", refuse)
        _files.write(tmp_path / "p.json", "new")
        assert mode_of(tmp_path / "p.json") == 0o640
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_content_is_on_the_disk_before_it_has_the_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("rename"), replace(a, b))[1])
    _files.write(tmp_path / "p.json", "new")
    assert calls == ["sync", "rename"]


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    path.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(emplace.Error, match="p.json: cannot be written"):
        _files.write(path, "new")
    assert os.listdir(tmp_path) == ["p.json"]
    assert path.read_text() == "old"


def test_what_a_killed_process_left_does_not_matter(tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    monkeypatch.setattr(_files, "_counter", itertools.count(7))
    left = [tmp_path / f"p.json.tmp-{os.getpid()}-py{number}" for number in (7, 8)]
    for one in left:
        one.write_text("half")
    _files.write(path, "new")
    assert path.read_text() == "new" and [one.read_text() for one in left] == ["half"] * 2
    assert len(os.listdir(tmp_path)) == 3


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    _files.write(path, "new")
    reader.join()
    assert got == ["new"]
    assert stat.S_ISFIFO(os.stat(path).st_mode)
