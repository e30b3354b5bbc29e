"""The server by HTTP: invitations, sessions, tokens, uploads with their receipts, and what strangers try."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from joserfc.errors import BadSignatureError
from samples import GOOD, ON_BOTH, OUT, count, output, verified, words_of
from serving import ADDRESS, Served, run, set_keys
from sqlalchemy import select

from geval_py.board.database.schema import blobs, submissions
from geval_py.board.people import schema
from geval_py.board.people.secrets import digest_of

BAD = GOOD.replace(" :", " ;", 1)


def archive(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return packed.getvalue()


def state(program, number):
    return program.get(f"/api/uploads/{number}").json()


def test_an_invitation_signs_in_once(served):
    link, browser = served.invite("anna"), served.browser()
    assert "You are invited as anna" in browser.get(link).text
    assert browser.get(link).status_code == 200  # to look at it does not use it
    answer = browser.post(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/me")
    assert re.search("; HttpOnly; .*; SameSite=lax", answer.headers["set-cookie"])
    assert "team anna" in browser.get("/me").text
    again = served.browser().post(link)
    assert (again.status_code, "this link was used or has expired" in again.text) == (403, True)


def test_signing_in_makes_a_new_session_each_time(served):
    """A cookie that somebody else has put into the browser is not the session's."""
    browser, other = served.browser(), served.browser()
    for one in (browser, other):
        one.cookies.set("geval", "fixed")
    browser.post(served.invite("anna"))
    assert other.get("/me").status_code == 303


def test_an_invitation_is_too_old_after_two_weeks(served):
    link = served.invite("anna")
    served.clock.wait(days=14, seconds=1)
    assert served.browser().get(link).status_code == 404
    assert served.browser().post(link).status_code == 403


def test_signing_out_ends_the_session_for_whoever_has_the_cookie(served):
    browser, stolen = served.signed_in("anna"), served.browser()
    stolen.cookies.update(browser.cookies)
    assert browser.post("/sign-out").status_code == 303
    assert stolen.get("/me").headers["location"] == "/sign-in"


def test_a_changed_receipt_is_not_valid(served):
    program = served.token("anna")
    receipt, key = program.put(OUT, GOOD).json()["receipt"], program.get("/receipt-key").text
    header, payload, signature = receipt.split(".")
    for changed in (f"{header}.{payload[:-4]}AAAA.{signature}", f"{header}.{payload}.{'A' * len(signature)}"):
        with pytest.raises(BadSignatureError):
            verified(changed, key)


def test_a_hostile_name_is_text(served):
    text = served.signed_in("<script>alert(1)</script>").get("/me").text
    assert ("<script>alert" in text, "&lt;script&gt;" in text) == (False, True)


def test_a_second_invitation_signs_in_to_the_same_account(served):
    served.signed_in("anna")
    assert "Sign in as anna" in served.browser().get(served.invite("Anna ")).text
    assert "team anna" in served.signed_in("ANNA").get("/me").text
    assert count(served.board, schema.accounts) == 1


def test_a_session_ends_after_thirty_days_without_use(served):
    browser = served.signed_in("anna")
    for days, status in ((29, 200), (29, 200), (31, 303)):  # each use prolongs it
        served.clock.wait(days=days)
        assert browser.get("/me").status_code == status


def test_the_database_holds_no_secret_and_the_audit_log_what_was_done(served):
    link, browser = served.invite("anna"), served.browser()
    assert served.rows(select(schema.secrets.c.digest)) == [digest_of(link.rpartition("/")[2])]
    browser.post(link)
    token = re.search(r"<code>([\w-]{43})</code>", browser.post("/me/tokens", data={"name": "laptop"}).text)[1]
    told = repr([row for table in (schema.secrets, schema.account_log) for row in served.rows(select(table))])
    assert link.rpartition("/")[2] not in told
    for secret in (browser.cookies["geval"], token):
        assert secret not in told
        assert digest_of(secret) in told
    assert [line[:2] for line in served.log()] == [("anna", "signed in"), ("anna", "made a token")]


def test_how_to_submit_names_the_board_and_says_when_the_deadline_has_passed(served):
    text = served.browser().get("/submit.html").text
    assert '<li><a href="sign-in">Sign in</a>, with the link that the organiser sends you.</li>' in text
    assert '<li>On <a href="me">your page</a>, choose a file and press <em>Send</em>.' in text
    assert f"geval submit test-A/out.tsv --board {ADDRESS}\n" in text
    assert "Ask the organiser where to send it" not in text
    assert "A team may send 60 uploads an hour, each of at most 200.0 MB." in text
    late = "The last deadline was"
    assert late not in text
    set_keys(served.board, phases="[{name: main, until: 2027-01-10T13:00:00Z}]")
    served.clock.wait(hours=2)
    assert late in served.browser().get("/submit.html").text
    assert late in served.signed_in("anna").get("/me").text


@pytest.mark.slow
def test_no_button_is_shown_that_would_be_refused(served):
    tests, phases = "{test-A: {disclosed: 4, split: 50 %}}", "[{name: main, until: 2027-01-10T13:00:00Z}]"
    set_keys(served.board, finals=1, seed=7, tests=tests, phases=phases, submissions_a_day=3)
    one, _ = (served.send("anna", output("test-A", skill)) for skill in (0.3, 0.5))
    browser, upload = served.signed_in("anna"), f"/me/uploads/{one['number']}"
    assert browser.get("/me").text.count("name as final") == 2
    assert "Withdraw it" in browser.get(upload).text
    refused = served.signed_in("bob").post("/me/final", data={"code": one["code"]})
    assert (refused.status_code, "this submission does not belong to your team" in refused.text) == (403, True)
    for undo, buttons in (("", (0, 1)), ("yes", (2, 0)), ("", (0, 1))):
        assert browser.post("/me/final", data={"code": one["code"], "undo": undo}).status_code == 303
        page = browser.get("/me").text
        assert (page.count("name as final"), page.count("final: undo")) == buttons
    assert 'type="checkbox" name="dry"' in page
    served.send("anna", output("test-A", 0.6))
    page = browser.get("/me").text
    assert "Your team has no submission left today. You can still check a file: a trial does not count." in page
    assert '<input type="hidden" name="dry" value="yes">' in page
    served.clock.wait(hours=2)
    page = browser.get("/me").text
    assert (page.count("name as final"), page.count("final: undo")) == (0, 0)
    assert re.search(rf">{one['number']}</a>.*?</tr>", page, re.DOTALL)[0].count("final") == 1
    page, reason = browser.get(upload).text, "the deadline of main has passed; ask the organiser to withdraw"
    assert ("Withdraw it" in page, f"{reason} {one['code']}." in page) == (False, True)


def test_a_board_is_served_below_the_path_of_its_address(board, tmp_path):
    served = Served(board, tmp_path, url="https://board.test/course/gap")
    browser, at = served.browser(), "/course/gap"
    answer = browser.post(at + served.invite("anna"), headers={"X-Forwarded-Proto": "https"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{at}/me")
    assert answer.headers["set-cookie"].startswith("__Secure-geval=")
    assert "; Path=/course/gap; SameSite=lax; Secure" in answer.headers["set-cookie"]
    browser.cookies.set("__Secure-geval", re.search("=([^;]+)", answer.headers["set-cookie"])[1])
    sent = browser.post(f"{at}/me/upload", files={"file": ("out.tsv", GOOD)}, data={"test": "test-A"})
    number = re.fullmatch(rf"{at}/me/uploads/([0-9a-f]{{12}})", sent.headers["location"])[1]
    token = re.search(r"<code>([\w-]{43})</code>", browser.post(f"{at}/me/tokens", data={"name": "a"}).text)[1]
    program = served.browser()
    program._headers = {"Authorization": f"Bearer {token}"}
    assert program.put(at + OUT, GOOD).json()["state"] == f"{at}/api/uploads/{number}"
    assert program.get(f"{at}/api/uploads/none").json() == {"error": "Your team has no such upload."}
    served.work()
    assert f'href="{at}/submissions/' in browser.get(f"{at}/me/uploads/{number}").text
    for path in ("/", "/me", "/healthz"):
        assert browser.get(path).status_code == 404
    for path in (f"{at}/", f"{at}/me", f"{at}/sign-in", f"{at}/me/uploads/{number}"):
        text = browser.get(path).text
        assert [link for link in re.findall(r'(?:href|src|action)="(/[^"]*)"', text) if not link.startswith(at)] == []
    assert served.browser().get(f"{at}/me").headers["location"] == f"{at}/sign-in"
    assert browser.post(f"{at}/sign-out").headers["location"] == f"{at}/"


def test_a_team_sees_its_own_uploads_alone(served):
    anna, bob = served.token("anna"), served.token("bob")
    number = anna.put(OUT, GOOD).json()["number"]
    assert bob.get(f"/api/uploads/{number}").status_code == 404
    assert number not in served.signed_in("bob").get("/me").text
    assert number in served.signed_in("anna").get("/me").text


@ON_BOTH
def test_an_upload_is_scored_and_has_a_valid_receipt(served):
    program = served.token("anna")
    answer = program.put(OUT, GOOD)
    number = answer.json()["number"]
    assert (answer.status_code, state(program, number)["state"]) == (201, "waiting")
    served.clock.wait(seconds=5)
    assert served.work() == 1
    told = state(program, number)
    assert (told["state"], told["cost"], told["arrived"]) == ("scored", 1, "2027-01-10T12:00:00Z")
    receipt = verified(answer.json()["receipt"], program.get("/receipt-key").text.strip())
    assert (receipt["submitter"], receipt["file"], receipt["test"]) == ("anna", "out.tsv", "test-A")
    assert receipt["sha256"] == told["sha256"]
    assert count(served.board, submissions) == 1
    assert "anna" in served.browser().get("/").text


def test_a_rejected_upload_names_line_and_column(served):
    told = served.send("anna", BAD)
    assert (told["state"], told["problems"][0]["places"][0]["line"]) == ("rejected", 1)
    page = served.signed_in("anna").get(f"/me/uploads/{told['number']}").text
    assert 'class="state rejected">rejected' in page
    shown = re.search("<pre[^>]*>(.*?)</pre>", page, re.DOTALL)[1].splitlines()  # as geval check tells it
    assert [line[:7] for line in shown] == ["  E113 ", "    an ", "    tes", "      |", "      |", "    To "]
    assert "<h2>Problems</h2>" in page


def test_a_trial_is_checked_and_counts_for_nothing(served):
    set_keys(served.board, submissions_a_day=1)
    program = served.token("anna")
    sent = [program.put(f"{OUT}&dry=yes", text).json() for text in (GOOD, BAD)]
    assert [one["receipt"] for one in sent] == ["", ""]
    numbers = [one["number"] for one in sent]
    assert served.signed_in("bob", team="anna").get(f"/me/uploads/{numbers[0]}/receipt").status_code == 404
    served.work()
    assert [state(program, number)["state"] for number in numbers] == ["done", "rejected"]
    assert served.rows(select(submissions.c.trial)) == [True, True]
    assert count(served.board, blobs) == 0
    assert program.put(OUT, GOOD).status_code == 201  # the quota is whole


def test_the_same_file_again_is_the_same_upload(served):
    program = served.token("anna")
    first, again = program.put(OUT, GOOD), program.put(OUT, GOOD)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["receipt"] == again.json()["receipt"]
    number = first.json()["number"]
    assert again.json()["note"] == f"this is the submission {number} of 2027-01-10T12:00:00Z again"
    assert count(served.board, submissions) == 1
    assert program.put("/upload/out-k=3.tsv?test=test-A", GOOD).status_code == 201  # its name has its parameters


def test_the_same_content_in_another_archive_is_refused_and_costs_nothing(served):
    """What it is can be known only once it is opened."""
    set_keys(served.board, submissions_a_day=2)
    program = served.token("anna")
    first = program.put(OUT, GOOD).json()["number"]
    other = program.put("/upload/team.zip", archive({"test-A/out.tsv": GOOD})).json()
    assert other["note"] == ""
    served.work()
    told = state(program, other["number"])
    assert (told["state"], told["code"], told["cost"]) == ("refused", "", 0)
    assert told["reason"] == f"this is the submission {first} of 2027-01-10T12:00:00Z again"
    assert told["quota"]["used"] == 1


def test_an_upload_is_not_dated_before_the_newest_submission(served):
    """The clock was set back; the quota, phases and order of what came before stay as they are."""
    program = served.token("anna")
    program.put(OUT, GOOD)
    served.clock.wait(hours=-30)
    number = program.put(OUT, output("test-A", 0.6)).json()["number"]
    assert (state(program, number)["arrived"], served.work()) == ("2027-01-10T12:00:00Z", 2)


def test_what_a_limit_kept_out_is_accepted_once_it_is_larger(served):
    set_keys(served.board, limits="{files: 1}", submissions_a_day=1)
    program = served.token("anna")
    packed = archive({"test-A/out.tsv": GOOD, "dev-0/out.tsv": output("dev-0", 0.4)})
    first = program.put("/upload/team.zip", packed).json()
    served.work()
    assert state(program, first["number"])["state"] == "rejected"
    set_keys(served.board, limits="{files: 2}")
    again = program.put("/upload/team.zip", packed)
    assert (again.status_code, again.json()["receipt"]) == (200, first["receipt"])
    served.work()
    told = state(program, first["number"])
    assert (told["state"], told["cost"], told["quota"]["used"]) == ("scored", 1, 1)


def test_uploads_that_wait_use_up_the_quota(served):
    set_keys(served.board, submissions_a_day=2)
    program = served.token("anna")
    texts = [output("test-A", 0.5, seed) for seed in range(4)]
    assert [program.put(OUT, text).status_code for text in texts] == [201, 201, 429, 429]
    served.work()
    used_up = "The quota is used up: anna sent 2 of 2 submissions on 2027-01-10 (UTC)"
    answer = program.put(OUT, texts[2])
    assert (answer.status_code, answer.json()["error"][: len(used_up)]) == (429, used_up)
    served.clock.wait(days=1)
    assert program.put(OUT, texts[2]).status_code == 201


def test_more_outputs_than_the_quota_are_refused_without_cost(served):
    set_keys(served.board, submissions_a_day=1)
    files = archive({f"test-A/out-k={k}.tsv": output("test-A", 0.5, k) for k in range(3)})
    told = served.send("anna", files, "/upload/team.zip")
    assert (told["state"], told["cost"]) == ("refused", 0)
    assert "3 outputs for test-A count as 3" in told["reason"]
    assert served.token("anna").put(OUT, GOOD).status_code == 201


@pytest.mark.parametrize(("path", "content", "status"), [
    (f"{OUT}&dry=yes", "{}\n", 201), (OUT, "x" * 4001, 413), (OUT.replace("tsv", "exe"), "x", 403), (OUT, None, 400),
], ids=["accepted", "too large", "refused", "unfinished"])  # fmt: skip
def test_each_upload_counts_for_the_hour_whatever_it_came_to(served, path, content, status):
    set_keys(served.board, server="{upload: 4000, uploads_an_hour: 2}")
    program = served.token("anna")
    token = program._headers["Authorization"].removeprefix("Bearer ")
    part = {"type": "http.request", "body": b"the", "more_body": True}
    for number in range(2):
        if content is None:
            assert asked(served.app, [part, {"type": "http.disconnect"}], token) == status
        else:
            assert program.put(path, content.format(number)).status_code == status
    assert program.put(OUT, GOOD).status_code == 429
    served.clock.wait(hours=1)
    assert program.put(OUT, GOOD).status_code == 201


SETS = ": test-A, dev-0; name it with geval submit -t test-A"
NAME = "the file's name needs visible characters, at most 200 bytes, and must not begin with a dot"


@pytest.mark.parametrize(("path", "reason"), [
    (f"/upload/{'%E6%BC%A2' * 66}.zip", NAME),
    *((f"/upload/{name}", f"an output needs a test set{SETS}") for name in ("out.tsv", "out.jsonl.xz")),
    ("/upload/out.tsv?test=test-B", f"there is no test set `test-B`{SETS}"),
    ("/upload/out.tsv?test=../x", f"there is no test set `../x`{SETS}"),
    ("/upload/..%2F..%2Fout.sh?test=test-A", None), ("/upload/.zip", NAME), ("/upload/a%00.zip", NAME),
    ("/upload/team.zip?test=test-A", "`team.zip` is an archive, whose folders name the test sets: leave the test set out"),
    ("/upload/out.exe?test=test-A", "`out.exe` is neither an archive (.zip, .tar, .tar.gz, .tgz, .tar.xz, .tar.zst) "
     "nor an output such as out.tsv: rename it to out.tsv, or out-NAME.tsv"),
])  # fmt: skip
def test_names_that_are_refused(shared, path, reason):
    answer = shared.token("anna").put(path, GOOD)
    assert answer.status_code in (403, 404, 405)
    assert reason is None or answer.json()["error"] == reason
    assert count(shared.board, submissions) == 0


def test_an_older_browser_is_known_by_its_origin(served):
    browser = served.signed_in("anna")
    browser._headers = {}
    for headers, status in (({"Origin": "http://evil.test"}, 403), ({}, 403), ({"Origin": ADDRESS}, 303)):
        assert browser.post("/sign-out", headers=headers).status_code == status


@pytest.mark.parametrize("name", ["", "anna"])
@pytest.mark.parametrize("path", ["/", "/me", "/sign-in", "/nothing", "/api/me", "/healthz", "/static/board.css"])
def test_every_answer_has_the_headers_that_guard_it(shared, name, path):
    headers = (shared.signed_in(name) if name else shared.browser()).get(path).headers
    assert {"script-src 'self'", "frame-ancestors 'none'"} <= {*headers["content-security-policy"].split("; ")}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == ("no-cache" if path in ("/", "/static/board.css") else "no-store")


@pytest.mark.parametrize("path", [
    "/../board.yaml", "/..%2fboard.yaml", "/%2e%2e/board.yaml", "/static/../../board.yaml", "/.git/config",
    "/static/%00", "/..%5cboard.yaml", "/receipt.key", "//etc/passwd", "/missing.html", "/submissions/",
    "/static/%2e%2e/board.yaml",
])  # fmt: skip
def test_no_path_leaves_the_site(shared, path):
    answer = shared.browser().get(path)
    assert (answer.status_code, "title:" in answer.text) == (404, False)


def test_a_compressed_body_is_refused_unread(served):
    assert served.token("anna").put(OUT, b"\x1f\x8b", headers={"Content-Encoding": "gzip"}).status_code == 415


def test_hidden_answers_are_in_no_answer(served):
    number, browser = served.send("anna", GOOD)["number"], served.signed_in("anna")
    pages = ["/", "/me", f"/me/uploads/{number}", f"/api/uploads/{number}", "/healthz", "/feed.xml"]
    told = "".join(browser.get(page).text for page in pages)
    assert [word for word in words_of("test-A") if re.search(rf"\b{word}\b", told)] == []
    assert "expected.tsv" not in told


def test_the_pages_name_nobody_but_teams(served):
    served.signed_in("alice", team="anna", email="alice@uni.example")
    served.token("alice").put(OUT, GOOD)
    served.work()
    pages = ["/", "/submissions.html", "/feed.xml", "/data/submissions.json", "/data/outputs.csv"]
    told = "".join(served.browser().get(page).text for page in pages)
    assert [name in told for name in ("anna", "uni.example", "alice")] == [True, False, False]


def test_the_server_works_without_the_answers(served):
    program, number = served.token("anna"), served.send("anna", GOOD)["number"]
    Path(served.board.folder, "../answers").resolve().rename(Path(served.board.folder, "../elsewhere").resolve())
    assert "anna" in served.browser().get("/").text
    assert state(program, number)["state"] == "scored"
    assert program.put(OUT, output("test-A", 0.3)).status_code == 201


def asked(app, messages, token):
    """Ask by PUT with a body that comes in parts; gives the status, None without an answer."""
    parts, told = iter(messages), []

    async def receive():
        return next(parts)

    async def send(message):
        told.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode()), (b"host", b"board.test")]
    scope = {"type": "http", "method": "PUT", "path": "/upload/out.tsv", "raw_path": b"/upload/out.tsv"}
    scope |= {"query_string": b"test=test-A", "headers": headers, "http_version": "1.1", "scheme": "http"}
    scope |= {"server": ("board.test", 80), "client": ("127.0.0.1", 1), "root_path": "", "asgi": {"version": "3.0"}}
    run(app, scope, receive, send)
    return next((message["status"] for message in told if message["type"] == "http.response.start"), None)


def test_an_upload_that_is_cut_off_leaves_nothing(served, tmp_path):
    token = served.token("anna")._headers["Authorization"].removeprefix("Bearer ")
    for cut in (0, 1, 100, len(GOOD) - 1):
        part = {"type": "http.request", "body": GOOD.encode()[:cut], "more_body": True}
        assert asked(served.app, [part, {"type": "http.disconnect"}], token) == 400
        assert count(served.board, submissions) == count(served.board, blobs) == 0
        assert [path.name for path in (tmp_path / "place").iterdir()] == []
    whole = {"type": "http.request", "body": GOOD.encode(), "more_body": False}
    assert asked(served.app, [whole], token) == 201
