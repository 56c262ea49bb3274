const express = require("express");
const Redis = require("ioredis");

const cache = new Redis(process.env.REDIS_URL);
const app = express();
app.use(express.json());
app.get("/health", async (_, answer) => answer.json({ ok: await cache.ping() }));
app.get("/items/:id", async (asked, answer) => {
  answer.json({ views: (await cache.get(`item:${asked.params.id}`)) !== null });
});
app.post("/items", async (asked, answer) => {
  await cache.set(`item:${asked.body.id}`, "1");
  answer.status(201).json({ kept: true });
});
app.listen(process.env.PORT, "127.0.0.1");
