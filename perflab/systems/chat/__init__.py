"""The chat service: WebSockets, codecs, logins (chat study)."""

# Of every account.
PASSWORD = "correct horse"
