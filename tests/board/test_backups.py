"""``geval board backup`` and ``restore``: nothing is lost."""

import hashlib
import io
import random
import shutil
import subprocess
import tarfile
from dataclasses import replace

import pytest
from answer_formats import in_another_format
from raising import refused
from samples import (
    NOW,
    change,
    output,
    rows_of,
    submission_in,
    without_limits,
    words_of,
    write_answers,
    write_challenge,
)
from sqlalchemy import select

from geval_py.board.backups import PLACES, back_up, restore, write_archive
from geval_py.board.database.schema import METADATA
from geval_py.board.database.store import DATABASE_VARIABLE, Board, StoreError
from geval_py.board.operations import audit, creation, notices
from geval_py.board.operations import submissions as moderating
from geval_py.board.operations.extensions import extend
from geval_py.board.operations.rescoring import rescore
from geval_py.board.operations.status import outdated
from geval_py.board.operations.submissions import add
from geval_py.board.people import accounts, sign_in
from geval_py.board.people.store import accounts_of, open_accounts
from geval_py.board.ranking.leaderboard import standings
from geval_py.board.references import references_of
from geval_py.board.server import queue, signed_receipts, uploads
from geval_py.errors import CorruptFileError, DataError, UnreadableFileError

CANARY = "canary0f4e"
PUBLIC = ("README.md", "config.txt", "dev-0/expected.tsv", "dev-0/in.tsv", "test-A/in.tsv")


@pytest.fixture(scope="module")
def full_once(tmp_path_factory):
    """The folder of a board that is filled once, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("full")
    write_challenge(folder)
    creation.create(folder / "board", challenge=folder / "challenge", answers=folder / "answers")
    filled(without_limits(folder / "board"), submission_in(folder), folder).engine.dispose()
    return folder


@pytest.fixture
def full(full_once, tmp_path):
    shutil.copytree(full_once, tmp_path, dirs_exist_ok=True)
    return Board.open(tmp_path / "board")


@pytest.fixture
def full_anywhere(board, submission, tmp_path):
    return filled(board, submission, tmp_path)


def filled(board, submission, tmp_path):
    """Put something into each table of a board; the answers have a canary word."""
    write_answers(tmp_path / "answers", [CANARY, *words_of("test-A")[1:]])
    add(board, str(submission("ann", 0.5, variants=("k=1", "k=2"))), now=NOW)
    add(board, str(submission("bob", 0.4, tests=("test-A", "dev-0"))), now=NOW)
    add(board, str(submission("mal", lines=3)), now=NOW)
    write_answers(tmp_path / "answers", [CANARY, *words_of("test-A")[2:], "word0"])
    rescore(board, now=NOW)
    gone = add(board, str(submission("gone", 0.3)), now=NOW)
    change(board, moderating.withdraw, board.settings, gone.code, "it used the answers", NOW)
    change(board, notices.announce, board, "test-B opens on Monday", NOW)
    change(board, extend, board, "bob", more=1, reason="ill", now=NOW)
    uploaded(board, tmp_path)
    return board


def uploaded(board, tmp_path):
    """Invite somebody, who signs in and uploads a file, which waits."""
    with accounts_of(board).writing() as people:
        account = accounts.invite(people, "eve-of-the-server", now=NOW).account
    with board.writing() as connection:
        notices.notify(connection, account.id, {"by": "", "address": "https://board.example"}, NOW)
        audit.log(connection, account.label, "withdrew", now=NOW)
        queue.ask_to_rescore(connection, account.name, NOW, dry=True)
    path, text = tmp_path / "upload", output("test-A", 0.6)
    path.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    names = {"sent_name": "out.tsv", "test": "test-A", "sha256": digest, "bytes": len(text), "trial": False}
    key = signed_receipts.signing_key(board.folder)
    uploads.accept(board, account, str(path), key, arrived=NOW, **names)


def rows(board):
    tables = METADATA.tables.items()
    return {name: rows_of(board, select(table).order_by(*table.primary_key)) for name, table in tables}


@pytest.mark.slow
def test_an_export_holds_all(full_anywhere, tmp_path):
    full, before = full_anywhere, rows(full_anywhere)
    assert all(before.values())
    back_up(full.folder, str(tmp_path / "board.tar.zst"), now=NOW)
    (imported,) = restore(str(tmp_path / "board.tar.zst"), str(tmp_path / "elsewhere" / "again"))
    assert rows(imported) == before
    assert imported.engine.dialect.name == "sqlite"
    assert standings(imported, now=NOW) == standings(full, now=NOW)
    with imported.reading() as connection:
        assert outdated(connection, imported.settings, references_of(imported.settings)) == []
    kept = replace(imported.settings, challenge="", answers="", database="", zone=full.settings.zone)
    assert kept == replace(full.settings, challenge="", answers="", database="")


@pytest.mark.slow
def test_an_import_into_postgresql(full, tmp_path, postgresql, submission, monkeypatch):
    before, url = rows(full), postgresql.new_database()
    back_up(full.folder, str(tmp_path / "board.tar"), now=NOW)
    (imported,) = restore(str(tmp_path / "board.tar"), str(tmp_path / "again"), database=url)
    assert rows(imported) == before
    assert (imported.engine.dialect.name, imported.settings.database) == ("postgresql", url)
    assert list((tmp_path / "again").glob("board.sqlite*")) == []
    assert add(imported, str(submission("new")), now=NOW).state == "scored"
    with pytest.raises(StoreError) as caught:
        restore(str(tmp_path / "board.tar"), str(tmp_path / "third"), database=url)
    assert str(caught.value).endswith("it already contains the submissions of a board")
    assert not (tmp_path / "third").exists()
    monkeypatch.setenv(DATABASE_VARIABLE, postgresql.new_database())  # it is not written into board.yaml
    (imported,) = restore(str(tmp_path / "board.tar"), str(tmp_path / "third"))
    assert (imported.engine.dialect.name, imported.settings.database) == ("postgresql", "board.sqlite")
    assert rows(imported) == before


@pytest.mark.slow
def test_an_import_into_a_database_that_board_yaml_does_not_name(full, tmp_path, postgresql):
    back_up(full.folder, str(tmp_path / "board.tar"), now=NOW)
    found = members(tmp_path / "board.tar")
    lines = [line for line in found["board.yaml"].decode().splitlines() if not line.startswith("database:")]
    exported(tmp_path / "without.tar", found | {"board.yaml": "\n".join(lines).encode()})
    url = postgresql.new_database()
    (imported,) = restore(str(tmp_path / "without.tar"), str(tmp_path / "again"), database=url)
    assert (imported.settings.database, rows(imported)) == (url, rows(full))
    assert restore(str(tmp_path / "without.tar"), str(tmp_path / "third"))[0].settings.database == "board.sqlite"


@pytest.mark.slow
def test_equal_boards_give_equal_archives(full, tmp_path):
    for name in ("one.tar", "other.tar"):
        back_up(full.folder, str(tmp_path / name), now=NOW)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()
    own = ["accounts.sqlite", "answers/test-A/expected.tsv", "board.sqlite", "board.yaml"]
    challenge = [f"challenge/{name}" for name in PUBLIC]
    assert list(members(tmp_path / "one.tar")) == [*own, *challenge, "receipt.key", "SHA256SUMS"]
    restore(str(tmp_path / "one.tar"), str(tmp_path / "again"))
    back_up(Board.open(tmp_path / "again").folder, str(tmp_path / "third.tar"), now=NOW)
    one, third = (members(tmp_path / name)["board.sqlite"] for name in ("one.tar", "third.tar"))
    assert one == third


def members(path):
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def test_answers_in_json_lines(sqlite_board, submission, tmp_path):
    challenge, answers = tmp_path / "challenge", tmp_path / "answers"
    in_another_format(challenge / "dev-0", "expected.jsonl")
    in_another_format(answers / "test-A", "expected.jsonl")
    add(sqlite_board, str(submission("ann", tests=("dev-0", "test-A"))), now=NOW)
    back_up(sqlite_board.folder, str(tmp_path / "one.tar"), now=NOW)
    names = [name for name in members(tmp_path / "one.tar") if name.endswith((".jsonl", ".json", ".tsv", ".txt"))]
    shown = ["config.txt", "dev-0/expected.jsonl", "dev-0/in.tsv", "test-A/in.tsv"]
    assert names == ["answers/test-A/expected.jsonl", *(f"challenge/{name}" for name in shown)]
    (new,) = restore(str(tmp_path / "one.tar"), str(tmp_path / "new"))
    assert references_of(new.settings) == references_of(sqlite_board.settings)


@pytest.mark.parametrize("quoted", ["{}", "'{}'", '"{}"', "&place {}"])
def test_an_import_that_names_what_is_not_its_own_is_refused(full, tmp_path, quoted):
    back_up(full.folder, str(tmp_path / "board.tar"), now=NOW)
    found = members(tmp_path / "board.tar")
    text = found["board.yaml"].decode()
    for name, place in PLACES.items():
        foreign = quoted.format(tmp_path / "elsewhere" / place).replace("&place", f"&{name}")
        assert f"\n{name}: {place}\n" in text
        text = text.replace(f"\n{name}: {place}\n", f"\n{name}: {foreign}\n")
    exported(tmp_path / "foreign.tar", found | {"board.yaml": text.encode()})
    with pytest.raises(UnreadableFileError, match="names folders or a database outside the backup"):
        restore(str(tmp_path / "foreign.tar"), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def exported(path, contents):
    """Write an export of other contents, with their digests."""
    places = {}
    for number, (name, content) in enumerate(contents.items()):
        if name != "SHA256SUMS":
            places[name] = path.with_name(f"content{number}")
            places[name].write_bytes(content)
    with open(path, "wb") as file:
        write_archive(file, places)


LINK = tarfile.TarInfo("board.yaml")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "/etc/passwd"


@pytest.mark.parametrize(("listed", "message"), [
    ([tarfile.TarInfo("../board.yaml")], r"'../board.yaml' would be extracted to '.*/board.yaml', which is outside"),
    ([tarfile.TarInfo("board.yaml")], "`board.yaml` does not match its digest in SHA256SUMS"),
    ([LINK], "is a link to an absolute path"), ([], "files are missing"),
], ids=["outside", "without digests", "link", "empty"])  # fmt: skip
def test_what_is_no_export(listed, message, tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        for member in listed:
            archive.addfile(member)
    with pytest.raises(CorruptFileError, match=message):
        restore(str(tmp_path / "bad.tar"), str(tmp_path / "again"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tar"]


def test_a_damaged_database_or_half_an_export_is_not_restored(packed, full, tmp_path):
    assert refuses(tmp_path, packed[: len(packed) // 2])
    (tmp_path / "whole.tar").write_bytes(packed)
    exported(tmp_path / "other.tar", members(tmp_path / "whole.tar") | {"board.sqlite": b"no database"})
    with pytest.raises(StoreError):
        restore(str(tmp_path / "other.tar"), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_no_board_is_made_in_the_place_of_another(sqlite_board, tmp_path):
    back_up(sqlite_board.folder, str(tmp_path / "board.tar"), now=NOW)
    with refused(f"`{tmp_path / 'board'}` is there already, and is left as it is\n  name another"):
        restore(str(tmp_path / "board.tar"), str(tmp_path / "board"))


@pytest.fixture(scope="module")
def packed(full_once):
    """An export that is not compressed, as bytes."""
    back_up(full_once / "board", str(full_once / "board.tar"), now=NOW)
    return (full_once / "board.tar").read_bytes()


def parts_of(content):
    """The places of the parts of an archive, in bits: headers, contents, what fills their last block, the end."""
    places, end = {}, 0
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            places[f"header of {member.name}"] = (member.offset, member.offset_data)
            places[member.name] = (member.offset_data, member.offset_data + member.size)
            end = -(-places[member.name][1] // 512) * 512
            places[f"filling of {member.name}"] = (places[member.name][1], end)
    places["end"] = (end, len(content))
    return {name: (8 * start, 8 * stop) for name, (start, stop) in places.items() if start < stop}


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def refuses(tmp_path, content):
    (tmp_path / "flipped.tar").write_bytes(content)
    with pytest.raises(DataError):
        restore(str(tmp_path / "flipped.tar"), str(tmp_path / "again"))
    return not (tmp_path / "again").exists()


def test_a_flipped_bit_in_any_file_is_found(packed, tmp_path):
    chance = random.Random(1)
    places = {name: place for name, place in parts_of(packed).items() if not name.startswith(("header", "filling"))}
    del places["end"]
    assert len(places) > 10
    for name, (start, stop) in places.items():
        for bit in (start, stop - 1, chance.randrange(start, stop)):
            assert refuses(tmp_path, flipped(packed, bit)), name
    (tmp_path / "board.tar").write_bytes(flipped(packed, places["answers/test-A/expected.tsv"][0]))
    damage = "`answers/test-A/expected.tsv` does not match its digest in SHA256SUMS"
    hint = "write it again, or upload it again: a part of it may be missing"
    with refused(f"Corrupt tar file `{tmp_path}/board.tar`: {damage}\n  {hint}", CorruptFileError):
        restore(str(tmp_path / "board.tar"), str(tmp_path / "again"))


@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [True, False])
def test_several_boards_are_restored_with_their_accounts(is_shared, tmp_path, geval):
    write_challenge(tmp_path)
    folder, file = tmp_path / "boards", str(tmp_path / "boards.tar.zst")
    for name in ("gap", "bible"):
        creation.create(folder / name, challenge=tmp_path / "challenge", answers=tmp_path / "answers")
    if is_shared:
        open_accounts(str(folder / "accounts.sqlite"))
    for name in ("gap", "bible"):
        with accounts_of(Board.open(folder / name)).writing() as people:
            accounts.invite(people, f"anna of {name}", team="Team 7", now=NOW)
    assert geval("board", "backup", str(folder), file) == (0, "", "")
    assert geval("board", "restore", str(tmp_path / "again"), file) == (0, "", "")
    assert (tmp_path / "again" / "accounts.sqlite").is_file() == is_shared
    for name in ("gap", "bible"):
        restored = Board.open(tmp_path / "again" / name)
        assert rows(restored) == rows(Board.open(folder / name))
        with accounts_of(restored).reading() as people:
            assert [one.name for one in accounts.all_accounts(people)] == [f"anna of {name}"]


def test_no_link_is_in_a_backup(full, tmp_path):
    """One that was used since would work again; sessions and tokens are those of the backup."""
    with accounts_of(full).writing() as people:
        link = accounts.invite(people, "anna", now=NOW).secret
        token = sign_in.make_token(people, accounts.account_named(people, "anna"), now=NOW)
    back_up(full.folder, str(tmp_path / "board.tar"), now=NOW)
    (restored,) = restore(str(tmp_path / "board.tar"), str(tmp_path / "again"))
    with accounts_of(restored).writing() as people:
        with pytest.raises(accounts.RefusedError, match="this link was used or has expired"):
            sign_in.accept(people, link, NOW)
        assert sign_in.token_account(people, token, "submit", NOW).name == "anna"
        assert accounts.invite(people, "anna", now=NOW).secret


def test_a_member_that_was_added_or_removed_is_found(packed, full, tmp_path):
    (tmp_path / "whole.tar").write_bytes(packed)
    found = members(tmp_path / "whole.tar")
    digests = found.pop("SHA256SUMS")
    fewer = {name: content for name, content in found.items() if "dev-0" not in name}
    for changed in (found | {"challenge/more.txt": b"x"}, fewer):
        with tarfile.open(tmp_path / "changed.tar", "w") as archive:
            for name, content in (*changed.items(), ("SHA256SUMS", digests)):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        assert refuses(tmp_path, (tmp_path / "changed.tar").read_bytes())


def test_sha256sum_checks_an_unpacked_export(full, tmp_path):
    back_up(full.folder, str(tmp_path / "export.tar"), now=NOW)
    with tarfile.open(tmp_path / "export.tar") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    words = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    checked = subprocess.run(words, cwd=tmp_path / "unpacked", capture_output=True, text=True)
    assert (checked.returncode, checked.stdout.count(": OK\n") > 7) == (0, True), checked.stderr
