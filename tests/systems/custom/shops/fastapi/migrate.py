import os

import psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as db:
    db.execute("CREATE TABLE orders (id text)")
    db.execute("CREATE TABLE items (page int, name text)")
    db.execute("INSERT INTO items SELECT n / 10, 'item ' || n FROM generate_series(1, 1000) n")
