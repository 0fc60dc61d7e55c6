"""Grades into Canvas and Moodle: a small server holds every request to their documentation."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from course_lib.command_line import main
from tests.grading.test_reports import not_graded, results_of, submission, verdict

STUDENTS = [("101", "Ada Lovelace", "ada"), ("102", "Bob", "b2"), ("103", "Grace", "grace")]


@pytest.fixture
def server(monkeypatch):
    """Canvas and Moodle as documented, as far as grades need them; what came is in `requests`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer({})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer({key: value[0] for key, value in parse_qs(body, True).items()})

        def answer(self, form):
            path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
            server.requests.append((self.command, path, form))
            status, content, links = self.canvas(path, query, form)
            if path == "/webservice/rest/server.php":
                status, content, links = 200, self.moodle(form), ""
            self.send_response(status)
            if links:
                self.send_header("Link", links)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def canvas(self, path, query, form):
            if self.headers["Authorization"] != "Bearer secret":
                return 401, {"errors": [{"message": "Invalid access token."}]}, ""
            if path == "/api/v1/courses/12/assignments/345":
                return 200, {"id": 345, "points_possible": 100.0}, ""
            if path == "/api/v1/courses/12/users" and query["enrollment_type[]"] == ["student"]:
                page = int(query.get("page", ["1"])[0])
                own = [STUDENTS[page - 1]] if page <= len(STUDENTS) else []
                users = [{"id": int(i), "name": name, "login_id": login} for i, name, login in own]
                address = f"http://127.0.0.1:{server.server_port}{path}?enrollment_type[]=student"
                further = f'<{address}&page={page + 1}>; rel="next"' if own else ""
                return 200, users, further
            if path.endswith("/345/submissions/update_grades") and self.command == "POST":
                for name in form:
                    assert re.fullmatch(r"grade_data\[\d+\]\[(posted_grade|text_comment)\]", name)
                return 200, {"id": 1, "workflow_state": "queued", "url": "..."}, ""
            return 404, {}, ""

        def moodle(self, form):
            assert form["moodlewsrestformat"] == "json"
            if form["wstoken"] != "secret":
                return {"exception": "moodle_exception", "message": "Invalid token"}
            if form["wsfunction"] == "mod_assign_list_participants":
                assert (form["assignid"], form["groupid"], form["filter"]) == ("345", "0", "")
                return [{"id": int(i), "fullname": name, "username": x} for i, name, x in STUDENTS]
            assert form["wsfunction"] == "mod_assign_save_grades"
            needed = {"userid", "grade", "attemptnumber", "addattempt", "workflowstate"}
            given = {re.sub(r"grades\[0\]\[(\w+)\].*", r"\1", key) for key in form}
            assert needed <= given
            return None

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("CANVAS_TOKEN", "secret")
    monkeypatch.setenv("MOODLE_TOKEN", "secret")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def upload(server, tmp_path):
    """Run the command on a small class."""
    late = submission("b2", score=7, late=True)
    given = results_of(submission("ada_101", number="101"), late, not_graded("x", "missing"))
    (tmp_path / "results.json").write_text(json.dumps(given))

    def upload(tool, *options):
        url = f"http://127.0.0.1:{server.server_port}"
        words = [tool, str(tmp_path), "--url", url, "--assignment", "345", "--course", "12"]
        return main.main(["upload", *words, *options])

    return upload


def sent(server):
    return [form for method, path, form in server.requests if "grades" in path + str(form)]


@pytest.mark.parametrize("tool", ["canvas", "moodle"])
def test_nothing_is_sent_unless_it_is_asked_for(upload, server, capsys, tool):
    assert upload(tool, "--scale", "100") == 0
    said = capsys.readouterr().out
    assert "Bob (102): " in said
    assert "Grace has no grade." in said
    assert "2 grades with comments; nothing was sent" in said
    assert ("let Canvas take off no others" in said) == (tool == "canvas")
    assert not sent(server)


def test_canvas_gets_each_grade_scaled_to_its_points_and_the_reasons(upload, server, capsys):
    assert upload("canvas", "--send") == 0
    (form,) = sent(server)
    assert form["grade_data[101][posted_grade]"] == "67.86"
    assert form["grade_data[102][posted_grade]"] == "50"
    assert "Does not hold yet: every case" in form["grade_data[101][text_comment]"]
    said = capsys.readouterr().out
    assert "Scaled: 14 points of these results are 100 in Canvas." in said
    assert "Canvas has taken 2 grades (queued)." in said
    assert "secret" not in said


def test_nothing_is_sent_while_marks_are_open(upload, tmp_path, capsys):
    open_mark = {"by_hand/why": verdict("to be marked", 0, "Not marked yet.")}
    given = results_of(submission("ada_101", number="101", exercises=open_mark))
    (tmp_path / "results.json").write_text(json.dumps(given))
    assert upload("canvas", "--send") == 2
    assert "1 answer to be marked" in capsys.readouterr().err


def test_moodle_gets_each_grade_and_the_reasons(upload, server):
    assert upload("moodle", "--send", "--scale", "28") == 0
    (form,) = sent(server)
    assert (form["assignmentid"], form["applytoall"]) == ("345", "0")
    assert (form["grades[1][userid]"], form["grades[1][grade]"]) == ("102", "14")
    comment = form["grades[0][plugindata][assignfeedbackcomments_editor][text]"]
    assert "known mistake, 2.5 of 7 points" in comment


@pytest.mark.parametrize(
    ("tool", "environment", "options", "said"),
    [
        ("canvas", {"CANVAS_TOKEN": ""}, [], "into the environment variable CANVAS_TOKEN"),
        ("canvas", {"CANVAS_TOKEN": "x"}, [], "127.0.0.1 answered 401 Unauthorized"),
        ("moodle", {"MOODLE_TOKEN": "x"}, [], "Moodle says: Invalid token"),
        ("canvas", {}, ["--course", "13"], "127.0.0.1 answered 404"),
        ("canvas", {}, ["--course", "../x"], "are the numbers in its address"),
        ("canvas", {}, ["--url", "http://canvas.example.edu"], "not sent in the clear"),
        ("canvas", {}, ["--url", "http://127.0.0.1:1"], "could not be asked"),
        ("canvas", {}, ["--url", "https://[::1"], "is no address"),
        ("canvas", {}, ["--url", "https://a:b:c"], "is no address"),
        ("canvas", {}, ["--scale", "0"], "more than 0"),
        ("moodle", {}, [], "Moodle does not say how many points this assignment has: --scale does"),
    ],
)
def test_what_cannot_be_sent_is_one_sentence(
    upload, server, monkeypatch, capsys, tool, environment, options, said
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert upload(tool, "--send", *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not sent(server)
