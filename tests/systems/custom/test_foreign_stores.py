"""No load and no set-up meets a store that the lab did not start, unless the user named it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.host.foreign_stores import addresses
from tests.systems.custom.test_variants import COMMAND, checked, problems, two_revisions

VARIANTS = [f"a=command:{COMMAND}", f"b=command:{COMMAND} --new"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "DATABASE_URL",
            "postgresql://me:secret@db.example.com:5433/shop",
            ["db.example.com:5433"],
        ),
        ("DATABASE_URL", "postgresql+asyncpg://db/shop", ["db:5432"]),
        ("X", "jdbc:mysql://10.0.0.7/shop?user=me", ["10.0.0.7:3306"]),
        ("CACHE", "rediss://:pw@cache.example.com/0", ["cache.example.com:6379"]),
        ("M", "mongodb://a:1,b:2/shop", ["a:1", "b:2"]),
        ("DATABASE_URL", "postgres://app:s3c#r3t@127.0.0.1:5432/x", ["127.0.0.1:5432"]),
        ("CACHE", "redis://:s3c?r#t@cache/0", ["cache:6379"]),
        ("CACHE", "redis://:pw@cache?name=a@127.0.0.1:6379", ["cache:6379"]),
        ("CACHE", "redis://cache:6380?name=a@127.0.0.1:6379", ["cache:6380"]),
        ("DSN", "host=db.example.com dbname=shop", ["db.example.com"]),
        ("DSN", "mysql:host=db.example.com;dbname=shop", ["db.example.com"]),
        ("DB_DSN", "app:pw@tcp(prod-db:3306)/app", ["prod-db:3306"]),
        ("command", "migrate -database 'mysql://app:pw@tcp(db:3306)/app'", ["db:3306"]),
        ("DB_DSN", "app:pw@tcp({db.host}:{db.port})/app", []),
        ("X", "jdbc:oracle:thin:@//h:1521/x", ["h:1521"]),
        ("X", "jdbc:oracle:thin:me/pw@h:1521:x", ["h:1521"]),
        ("X", "sqlserver://h;database=x", ["h:1433"]),
        ("X", "jdbc:sqlserver://h:1400;user=me;password=p@ss", ["h:1400"]),
        ("MSSQL", "mssql://me:p;w@h/x", ["h:1433"]),
        ("PGHOST", "/var/run/postgresql", ["/var/run/postgresql"]),
        ("DB_HOST", "db", ["db"]),
        ("SPRING_KAFKA_SERVERS", "k1:9092,k2:9092", ["k1:9092", "k2:9092"]),
        ("command", "python app.py --db postgres://db/shop", ["db:5432"]),
        ("old", "env MODE=x PGHOST=db.internal python app.py", ["db.internal"]),
        ("old", "sh -c 'DB_HOST=\"a,b\" python app.py'", ["a", "b"]),
        ("old", "export PGHOST=${A:-db},${B}; ./run", ["db"]),
        ("old", "sh -c 'DB_HOST=$PGHOST DB_ADDR=${PGHOST} exec python app.py'", []),
        ("prepare", "export PGHOST=db; URL=http://x ./migrate", ["db"]),
        ("old", "env PGHOST={db.host} MODE=test python app.py --host=db", []),
        ("DATABASE_URL", "postgresql://{db.user}:{db.password}@{db.host}:{db.port}/x", []),
        ("DATABASE_URL", "{db.url}", []),
        ("PGHOST", "{db.host}", []),
        ("DATABASE_URL", "sqlite:///shop.db", []),
        ("ALLOWED_HOST", "example.com", []),
        ("UPSTREAM", "http://127.0.0.1:8000/", []),
        ("DB_HOSTS_FILE", "x", []),
        ("MODE", "test", []),
    ],
)
def test_addresses_of_stores_are_found(name: str, text: str, found: list[str]) -> None:
    assert list(addresses(name, text)) == found


@pytest.mark.promise
def test_a_store_that_the_lab_did_not_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = "postgresql://me:hunter2@db.example.com/shop"
    monkeypatch.setenv("SHOP_DATABASE", outside)
    (tmp_path / ".env").write_text(f"# the team's\nexport DATABASE_URL='{outside}'\nMODE=fastest\n")
    ways: list[dict[str, object]] = [
        {"env": [f"DATABASE_URL={outside}"]},
        {"env": ["SHOP_DATABASE"]},
        {"env_file": str(tmp_path / ".env")},
        {"variants": [f"a=command:env DB={outside} {COMMAND}", VARIANTS[1]]},
    ]
    for way in ways:
        told = problems(**({"variants": VARIANTS} | way))
        assert "a store that the lab did not start (db.example.com:5432)" in told, way
        assert "hunter2" not in told
        assert "also" not in told, "it cannot be allowed"
    by_name = [f"old=command:env PGHOST=db.example.com {COMMAND}", VARIANTS[1]]
    assert "a store that the lab did not start (db.example.com)" in problems(variants=by_name)
    assert "is no address of loopback" in problems(variants=VARIANTS, also=["db.example.com:5432"])


@pytest.mark.promise
@pytest.mark.parametrize("name", ["setup", "command", "prepare"])
def test_a_variant_that_is_named_like_a_parameter_hides_no_store(tmp_path: Path, name: str) -> None:
    repository = two_revisions(tmp_path / "repository", ("server.py", ""))
    values = {"command": COMMAND, "setup": "true", "prepare": "true"}
    values[name] += " --db postgres://db.example.com/shop"
    variants = [f"old=git:{repository}@v1", f"{name}=command:{COMMAND}"]
    told = problems(**values, variants=variants)
    assert f"{name} holds the address of a store that the lab did not start" in told


@pytest.mark.promise
def test_one_on_loopback_is_refused_until_it_is_named() -> None:
    values = {"variants": VARIANTS, "env": ["DATABASE_URL=postgresql://me:pw@localhost/shop"]}
    assert 'also = ["localhost:5432"]' in problems(**values)
    assert checked(**values, also=["localhost:5432"]).also == ("localhost:5432",)


@pytest.mark.promise
def test_no_part_of_a_password_with_a_sign_of_addresses_is_shown() -> None:
    address = "postgres://app:hunter2#rest@localhost/x"
    values = {"variants": VARIANTS, "env": [f"DATABASE_URL={address}"]}
    told = problems(**values)
    assert "(localhost:5432)" in told
    assert "hunter2" not in told
    assert checked(**values, also=["localhost:5432"]).also == ("localhost:5432",)


def test_what_the_user_sets_overrules_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://db.example.com/shop\nSTYLE='a b'\n")
    values = {"variants": VARIANTS, "env_file": str(tmp_path / ".env"), "env": ["DATABASE_URL=x"]}
    assert checked(**values).variables == {"DATABASE_URL": "x", "STYLE": "{env:STYLE}"}


def test_a_line_that_is_no_variable_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GOOD=1\nTOKEN hunter2\n")
    told = problems(variants=VARIANTS, env_file=str(tmp_path / ".env"))
    assert ".env, line 2: it is not like 'NAME=value'" in told
    assert "hunter2" not in told
