import os

import psycopg
from fastapi import FastAPI

app = FastAPI()
db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


@app.get("/health")
def health() -> str:
    return "ok"


@app.get("/items")
def items(page: int) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM items WHERE page = %s", (page,))]


@app.post("/orders", status_code=201)
def order(body: dict[str, str]) -> str:
    db.execute("INSERT INTO orders VALUES (%s)", (body["id"],))
    return "ordered"
