"""Credentials that are given as literals become references before anything else reads them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from perflab import credentials
from perflab.cli.duel_file import given
from perflab.cli.repeating import repeatable
from perflab.credentials import filled_in, masked
from perflab.errors import ParameterError
from perflab.load.body_secrets import body, shown_answer
from perflab.load.literals import (
    by_reference,
    command,
    header,
    need,
    shell,
    target,
    variable,
    variant,
)  # fmt: skip
from perflab.load.options import LoadOptions
from perflab.load.secret_names import Names
from perflab.load.workload import Request

SECRET = "h8!x-Qq"
UNITS = (
    "a", '"', " ", "<", "a ", "a:", "\n", '{"a', 'name="a" ', '{"a": ', "<a>", "a: b ", "--b\n",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_kept", {})
    monkeypatch.setattr(credentials, "_known", {})
    monkeypatch.setattr(credentials, "_names", {})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        *((header, f"{name}: {SECRET}") for name in (
            "Authorization", "proxy-authorization", "COOKIE", "Set-Cookie", "X-Api-Key",
            "X-Token", "X-Client-Secret", "X-Password", "X-Auth", "X-Session-Id", "X-Session-Data",
            "X-JWT",
        )),
        *((command, f"env {name}={SECRET} python app.py {{port}}") for name in (
            "DB_PASSWORD", "MYSQL_PASSWD", "GITHUB_TOKEN", "SECRET_KEY_BASE", "AWS_KEY", "DB_PASS",
            "db_pwd", "REDIS_AUTH", "DBPASS", "BASICAUTH", "SESSION",
        )),
        (command, f"python app.py --password {SECRET} --port {{port}}"),
        (command, f"python app.py --api-key={SECRET}"),
        (command, f"python app.py --signing-key={SECRET}"),
        (command, f"env DATABASE_URL=postgresql://db/x?user=app&password={SECRET} python app.py"),
        (command, f"python app.py --dsn 'host=db user=app password={SECRET}'"),
        (command, f"python app.py --config '{{\"db_password\": \"{SECRET}\"}}'"),
        (command, f"env DATABASE_URL=postgres://app:{SECRET}@db/x python app.py"),
        (command, f"env DATABASE_URL=postgres://app:{SECRET}@{{host}}/x python app.py"),
        (command, f"python app.py postgres://app:{SECRET}@db/x"),
        (command, f"pip install git+https://ghp{SECRET}012345678@host/x"),
        (command, f"sh -c 'DB_PASSWORD={SECRET} exec python app.py'"),
        (shell, f"pip install --index-url https://me:{SECRET}@host/simple x"),
        (shell, f"NPM_TOKEN={SECRET} npm ci && true"),
        (target, f"/items?token={SECRET}&page=2"),
        (target, f"/items?page=2&X-Amz-Signature={SECRET}"),
        (target, f"http://me:{SECRET}@127.0.0.1:8000/"),
        (target, f"http://me:a#{SECRET}@127.0.0.1:8000/"),
        (command, f"env DATABASE_URL=postgres://app:a?b#{SECRET}@db/x python app.py"),
        (body, json.dumps({"user": "me", "password": SECRET})),
        (body, f"user=me&password={SECRET}"),
        (body, f"token={SECRET}"),
        (body, json.dumps({"authorization": f"Bearer {SECRET}"})),
        (body, f"<login><user>me</user><w:Password type='a'>{SECRET}</w:Password></login>"),
        (body, f'<?xml version="1.0"?><login user="me" apiKey="{SECRET}"/>'),
        (body, f"user: me\nlogin:\n  - api-key: {SECRET}\n    count: 3"),
        (body, f"<login><password>\n  <![CDATA[{SECRET}]]></password></login>"),
        (body, f"<login apiKey='{SECRET}'/>"),
        (body, f"user: me\r\ntoken: {SECRET}\r\nsecret: '{SECRET}' # mine"),
        (body, json.dumps({"dsn": f"postgres://app:{SECRET}@db/x"})),
        (body, json.dumps({"url": f"http://h/?token={SECRET}&a=1", "b": 2})),
        (body, json.dumps({"inner": json.dumps({"password": SECRET})})),
        (body, json.dumps({"access_tokens": ["a1b2", SECRET], "n": 1}, indent=1)),
        (body, f"---\npassword: {SECRET}\n"), (body, f"user=bob\npassword={SECRET}\n"),
        (body, f"password: true-{SECRET}\n"), (variable, f'A={{"url": "http://me:{SECRET}@h"}}'),
        (body, json.dumps({"password_confirmation": SECRET})),
        (body, f'[db]\nuser = "me"\npassword = "{SECRET}"\n'), (body, f"a=1;password={SECRET}"),
        (body, f"password = {SECRET}\n"), (body, f"{{a: {{password: {SECRET}}}}}"),
        (body, f"a: 1\ntoken:\n  - {SECRET}\nb: 2"), (body, f"user[password]={SECRET}&a=1"),
        (body, f"<login><password>two {SECRET}</password></login>"),
        (body, f"<app><param name='password' value='{SECRET}'/></app>"),
        (body, f'--b\r\nContent-Disposition: form-data; name="user[password]"\r\n\r\n{SECRET}\r\n'),
        (target, f"/x?user[password]={SECRET}"), (target, f"/x?user%5Btoken%5D={SECRET}&a=1"),
        (header, f"Referer: https://{SECRET}{SECRET}{SECRET}:@127.0.0.1/"),
        (header, f"Referer: https://{SECRET}{SECRET}{SECRET}:x-oauth-basic@127.0.0.1/"),
        (variable, f'SPRING_APPLICATION_JSON={{"spring":{{"password":"{SECRET}"}}}}'),
        (variable, f"DSN=me:{SECRET}@tcp(127.0.0.1:3306)/shop"),
        (command, f"""env 'A_JSON={{"b":{{"password":"{SECRET}"}}}}' app"""),
        (command, f"app --set=db.password={SECRET}"), (command, f"curl -H X-Api-Key:{SECRET} h"),
        (command, f"curl -u admin:{SECRET} 127.0.0.1"),
        (shell, f"curl -H X-Api-Key:{SECRET} 127.0.0.1"),
        (shell, f"curl -u admin:{SECRET} 127.0.0.1"),
        (shell, f"""curl -d '{{"password": "{SECRET}"}}' 127.0.0.1"""),
        (need, f'db={{"image": "x", "env": {{"APP_KEY": "{SECRET}"}}}}'),
        (body, f"user: me\ntoken: |\n  first\n\n  {SECRET}\ncount: 3"),
        (body, f"login:\r\n  - secret: >-\r\n      {SECRET}\r\n    user: me"),
        (body, f'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\n{SECRET}\r\n--b--'),
        (body, f'------=_Part_0_1.2\nContent-Disposition: form-data; name=token\n\n{SECRET}\n'),
        (body, f'--b\nContent-Disposition: form-data; name="api_key"\n\nA\n{SECRET}\n--b--'),
        (body, json.dumps({"passwords": 1, "password": [SECRET]})),
        (body, json.dumps({"query": f'mutation {{ login(password: "{SECRET}") {{ id }} }}'})),
        (header, f"X-Forwarded: Bearer {SECRET}"), (header, f"X-Token: {{{SECRET}}}"),
        (body, f'{{"password": "{{of}}{SECRET}"}}'),
        (header, f"Authorization: Bearer {{{SECRET}}}"),
        (header, f"Cookie: a={SECRET}; id={{user}}"),
        (body, f'{{"password": "{SECRET}{{random:1-9}}"}}'), (header, f"X-Key: {SECRET}={{user}}"),
        (header, f"Referer: http://me:{SECRET}@127.0.0.1/"),
        (header, f"Referer: http://127.0.0.1/?token={SECRET}"),
        (target, f"/items;jsessionid={SECRET}"),
        (target, f"/items#access_token={SECRET}"),
        (variable, f"JAVA_OPTS=-Dspring.datasource.password={SECRET} -Xmx1g"),
        (command, f"sh -c 'app --password {SECRET}'"),
        (command, f"redis-server --requirepass {SECRET}"),
        (command, f"app --db.pass={SECRET} --credentials={SECRET}"),
        (command, f"app --secret-key-base={SECRET}"),
        (command, f"app -H 'X-Api-Key: {SECRET}'"),
        (shell, f"curl -H 'Authorization: Bearer {SECRET}' 127.0.0.1"),
        (variant, f"new=command:env DB_PASSWORD={SECRET} python app.py"),
        (variant, f"new=url:http://me:{SECRET}@127.0.0.1:8000"),
    ],
)  # fmt: skip
def test_a_credential_leaves_its_place_to_a_reference_that_gives_it_back(form, text) -> None:
    shown = form(text, Names())
    assert SECRET not in shown
    assert "{env:" in shown
    assert filled_in(shown).replace("'", "") == text.replace("'", "")
    assert form(shown, Names()) == shown


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (header, "Accept: text/html"), (header, "X-Author: me"), (header, "X-Session-Timeout: 30"),
        (command, "python app.py --sort-key=name --config '{\"port\": 1}'"),
        (command, "python app.py --max-tokens 100 --port {port}"), (command, "env A=1 PWD=/x app"),
        (command, "python  app.py   'a b'"), (target, "/get?key=5&page=2"),
        (target, "http://127.0.0.1:8000?email=joe@x.com"), (target, "http://[::1]:80?email=joe@x.com"),
        (target, "mongodb://a:27017,b:27017?x=y@z"),
        (shell, "curl http://127.0.0.1:{port}?email=joe@x.com"),
        (variant, "token=command:python app.py"), (variant, "key=git:.@HEAD"),
        (body, "<key>a</key>"), (command, "gunicorn keys:app -u 1000 --user www"),
        (shell, "python -m uvicorn token:app"), (command, "npm run start:token"),
        (body, "{ token: $token }"), (body, "<p>my token is here</p>"), (body, "a = b\nc: d = e"),
        (variable, 'OPTS={"port": 1}'), (shell, "docker run -u 1000:1000 app"),
        (variable, 'CONFIG={"db": {"password": "{db2.password}"}}'), (body, "password: ~\n"),
        (command, "app '--config={\"password\": \"{db.password}\"}'"),
        (shell, "python -u app:main; curl -u bob:$PASSWORD h"), (body, '{"tokens": ["a", "b"]}'),
        (shell, "curl -u http://localhost:{port}/items"), (body, "type Query { token: String }"),
        (body, "token = get_token()"), (body, '{"a": "x token:", "b": "c"}'),
        (body, "callback=http://h:8080&email=joe@x.com"),
        (body, '{"errors": {"password": ["is too short"]}}'),
        (need, 'db={"image": "x", "env": {"A": "b"}}'),
        (body, "max_tokens: 5\ntokens: 3"), (body, "secret: {env:A}\n"),
        (body, "query {\n  login(\n    token: $token\n  ) { id }\n}"), (body, "token: null\n"),
        (body, "Secret: bread needs time.\ntext: |\n  a\npassword: ''\n"),
        (body, '--b\r\nContent-Disposition: form-data; name="text"\r\n\r\nhello\r\n--b--'),
        (body, '{"text": "hello"}'), (body, '{"query": "{ items(sort: \\"name\\") { id } }"}'),
        (header, "Accept: text/html; charset=utf-8"), (variable, "JAVA_OPTS=-Dserver.port={port}"),
        (shell, "npm ci --cache keys --auth-type $KIND"), (command, "app -H 'X-Trace: 1'"),
        (shell, "make && TOKEN=$TOKEN ./build"), (target, "/login?token={line:tokens.txt}"),
        (body, '{"name": "{line:users.txt}", "password": "{line:passwords.txt}"}'),
        (header, "Authorization: Bearer {line:tokens.txt}"), (header, "Cookie: sid={line:a.txt}"),
    ],
)  # fmt: skip
def test_all_else_stays_as_it_is(form, text) -> None:
    assert form(text, Names()) == text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Authorization: env:API_TOKEN", "Authorization: {env:API_TOKEN}"),
        ("Authorization: Bearer env:API_TOKEN", "Authorization: Bearer {env:API_TOKEN}"),
        ("X-Visitor: env:VISITOR", "X-Visitor: {env:VISITOR}"),
    ],
)
def test_a_header_takes_its_value_from_a_variable(given: str, shown: str) -> None:
    assert header(given, Names()) == shown


@pytest.mark.promise
def test_a_credential_that_answers_must_hold_is_a_reference_and_judges_all_the_same() -> None:
    given = {"headers": [f"Authorization: Bearer {SECRET}"], "expect_body": f'"{SECRET}"'}
    asked = {"name": "me", "path": "/me", "expect_body": SECRET}
    shown = by_reference({**given, "requests": [asked]})
    assert SECRET not in str(shown)
    request = Request(expect_body=shown["expect_body"]).with_credentials()
    assert request.expect_body == f'"{SECRET}"'
    # The line that repeats the command names what has this value, and not what it is a part of.
    by_reference({"headers": given["headers"], "expect_body": SECRET})
    assert filled_in(masked(SECRET)) == SECRET
    assert by_reference({"expect_body": "of no secret"}) == {"expect_body": "of no secret"}


@pytest.mark.promise
def test_a_token_in_an_answer_is_not_shown() -> None:
    text = '{"access_token": "abc-def-ghi", "expires_in": 3600, "user": "me"}'
    assert shown_answer(text) == '{"access_token": "...", "expires_in": 3600, "user": "me"}'


@pytest.mark.promise
@pytest.mark.parametrize(
    "text",
    [
        f"access_token={SECRET}&error=busy", f"<token>{SECRET}</token>", '{"token": 48291563777}',
        f'<form><input name="csrf_token" value="{SECRET}"></form>',
        json.dumps({"password": ["a", SECRET]}), json.dumps({"cookie": f"sid={SECRET}"}),
        f"no connection to postgres://app:{SECRET}@db/x",
    ],
)  # fmt: skip
def test_a_credential_of_any_form_in_an_answer_is_not_shown(text: str) -> None:
    shown = shown_answer(text)
    assert SECRET not in shown
    assert "48291563777" not in shown
    assert "..." in shown


def test_a_name_that_the_user_calls_secret_is_one() -> None:
    given = {"headers": [f"X-Visitor: {SECRET}"], "secret": ["x-visitor"]}
    assert SECRET not in str(by_reference(given))


@pytest.mark.promise
@pytest.mark.parametrize("words", [("--env", "DB_PASSWORD {}"), ("-H", "Authorization Bearer {}")])
def test_a_credential_that_is_mistyped_is_not_repeated(words: tuple[str, str]) -> None:
    named = {"--env": "env", "-H": "headers"}[words[0]]
    variants = ["a=command:cat {port}", "b=command:cat {port}"]
    with pytest.raises(ParameterError) as caught:
        given("custom_service", "", {"variants": variants, named: [words[1].format(SECRET)]}, "")
    assert words[1].split()[0] in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.promise
@pytest.mark.parametrize("text", [SECRET, f"{SECRET}=="])
@pytest.mark.parametrize("named", ["headers", "env"])
def test_a_credential_without_a_name_is_not_repeated(named: str, text: str) -> None:
    variants = ["a=command:cat {port}", "b=command:cat {port}"]
    entries = ["A: 1" if named == "headers" else "A=1", f"-{text}"]
    with pytest.raises(ParameterError) as caught:
        given("custom_service", "", {"variants": variants, named: entries}, "")
    assert "entry 2: " in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.promise
def test_a_header_of_a_load_without_a_name_is_not_repeated() -> None:
    with pytest.raises(ParameterError, match="--header entry 1: must be like") as caught:
        LoadOptions.of({"url": "http://127.0.0.1:1/", "users": 1, "headers": [SECRET]})
    assert SECRET not in str(caught.value)


def test_a_value_in_the_list_of_secret_names_is_refused_and_not_shown() -> None:
    with pytest.raises(ParameterError) as caught:
        LoadOptions.of({"url": "http://127.0.0.1:1/", "users": 1, "secret": ["hunter2"]})
    assert "secret: entry 1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.promise
def test_headers_of_a_file_are_sent_and_no_value_of_it_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "headers.txt"
    file.write_text(f"# ours\nX-Visitor: {SECRET}\n\n")
    options = LoadOptions.of(
        {"url": "http://127.0.0.1:1/", "users": 1, "header_file": str(file), "headers": ["A: 1"]}
    )
    assert SECRET not in options.model_dump_json()
    request = options.workload().request
    assert SECRET not in request.model_dump_json()
    assert request.with_credentials().headers == {"A": "1", "X-Visitor": SECRET}


@pytest.mark.parametrize(
    ("text", "problem"), [("no colon", "line 1"), (None, "No such file"), ("A:", "line 1")]
)
def test_a_header_file_that_cannot_be_used_stops_the_load(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "headers.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ParameterError, match=problem):
        LoadOptions.of({"url": "http://127.0.0.1:1/", "users": 1, "header_file": str(file)})


def test_a_load_whose_variable_is_missing_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ABSENT_HERE", raising=False)
    options = LoadOptions.of(
        {"url": "http://127.0.0.1:1/", "users": 1, "headers": ["Authorization: env:ABSENT_HERE"]}
    )
    with pytest.raises(ParameterError, match="ABSENT_HERE is not set"):
        options.workload()


@pytest.mark.promise
@pytest.mark.parametrize("value", ["correct horse battery staple and a tail", "sésame-" * 9])
def test_a_variable_that_no_path_can_hold_is_named_and_no_part_of_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OF_QUERY", value)
    options = LoadOptions.of({"url": "http://127.0.0.1:1/?token=env:OF_QUERY", "users": 1})
    with pytest.raises(ParameterError, match="OF_QUERY") as caught:
        options.workload()
    # What a worker would say of the filled path.
    with pytest.raises(ValidationError) as refused:
        Request.model_validate({"path": f"/?token={value}"})
    for part in (value[place : place + 8] for place in range(len(value) - 7)):
        assert part not in str(caught.value) + str(refused.value)


@pytest.mark.promise
def test_a_credential_that_is_no_text_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BYTES_HERE", "hunter2-\udcff")
    options = LoadOptions.of(
        {"url": "http://127.0.0.1:1/", "users": 1, "headers": ["X-Token: env:BYTES_HERE"]}
    )
    with pytest.raises(ParameterError, match="UTF-8 cannot encode") as caught:
        options.workload()
    assert "hunter2" not in str(caught.value)


def test_a_command_line_is_repeated_with_references() -> None:
    words = [
        "duel", "-H", f"Authorization: Bearer {SECRET}", f"--header=Cookie: {SECRET}1",
        f"-HX-Token: {SECRET}2", f"--variant=a=command:env DB_PASSWORD={SECRET}3 app",
        "--path", f"/?token={SECRET}4", "--users", "4",
    ]  # fmt: skip
    shown = repeatable(words, {})
    assert SECRET not in " ".join(shown)
    assert [shown[0], *shown[-2:]] == ["duel", "--users", "4"]
    assert shown[2] == "Authorization: {env:AUTHORIZATION}"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("begin", ["", "--b\r\n", "<", "{", "a: ", '{"a":', "a: |\n "])
def test_a_large_body_is_read_in_a_moment_whatever_it_holds(begin: str, unit: str) -> None:
    """A pattern that tries every end from every begin would take hours."""
    assert body(begin + unit * 200_000, Names()) == begin + unit * 200_000


def test_a_text_of_several_lines_ends_where_its_lines_do() -> None:
    shown = body("- token: |\n    a b\n  user: me\nabout: >\n  token: words\n", Names())
    assert shown == "- token: |\n    {env:TOKEN}\n  user: me\nabout: >\n  token: {env:TOKEN_2}\n"


@pytest.mark.promise
def test_a_number_may_be_a_credential_of_a_body() -> None:
    shown = body('{"token": 482915637, "count": 5}', Names())
    assert shown == '{"token": {env:TOKEN}, "count": 5}'
    assert filled_in(shown) == '{"token": 482915637, "count": 5}'


@pytest.mark.promise
@pytest.mark.parametrize(
    "spelt",
    [
        "a&amp;h8!x-Qq&lt;b/c", "a%26h8%21x-Qq%3Cb%2Fc", "a%26h8%21x-Qq%3cb%2fc",
        r"a\u0026h8!x-Qq\u003cb/c", base64.b64encode(b"a&h8!x-Qq<b/c").decode(),
    ],
)  # fmt: skip
def test_what_an_answer_repeats_in_another_spelling_is_masked(spelt: str) -> None:
    credentials.keep("a&h8!x-Qq<b/c", "X-Token")
    assert credentials.masked(f"you sent {spelt} here") == "you sent {env:X_TOKEN} here"


def test_a_file_of_variables_is_read_as_a_shell_reads_it(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    lines = ["A=abc#defgh # note", "export B='x # y'", "C=http://h/#/x", "# D=no", "E= #", 'F="#z"']
    file.write_text("\n".join(lines), encoding="utf-8-sig")
    values = by_reference({"env_file": str(file)})["env"]
    assert [filled_in(text) for text in values] == [
        "A=abc#defgh", "B=x # y", "C=http://h/#/x", "E=", "F=#z",
    ]  # fmt: skip


@pytest.mark.promise
def test_of_the_variables_of_a_service_ordinary_words_are_not_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGION_OF_IT", "europe")
    monkeypatch.setenv("VISITOR_OF_IT", "caroline")
    file = tmp_path / ".env"
    file.write_text(
        "MODE_OF_IT=test\nSTAGE_OF_IT=production\nLONG_OF_IT=hunter7-x\nPIN_KEY=1234\nAPI_KEY=hunter2k\nBUS=amqp://me:hunter3b@bus/\nMINE=hunter4m\n"
        "DSN='host=db password=hunter5d'\nHEADER_OF_IT=hunter6h\n"
    )
    given = {
        "env_file": str(file), "env": ["REGION_OF_IT", "VISITOR_OF_IT"], "secret": ["MINE"],
        "headers": ["X-Visitor: env:VISITOR_OF_IT", "X-Own: {env:HEADER_OF_IT}"],
    }  # fmt: skip
    references = by_reference(given)
    # A run validates its parameters once more.
    for values in (references, by_reference(references)):
        assert "hunter" not in str(values)
        assert "test" not in str(values["env"]), "it is recorded nowhere"
    told = "a test in europe production: hunter7-x pin 1234; hunter2k hunter3b hunter4m "
    told += "host=db password=hunter5d hunter6h caroline"
    filled_in(str(references))
    assert masked(told).startswith("a test in europe production: {env:")
    assert "hunter" not in masked(told)
    assert "1234" not in masked(told)
    assert "caroline" not in masked(told)
