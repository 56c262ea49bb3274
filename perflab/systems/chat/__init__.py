"""The chat service: WebSockets, codecs, logins (chat study)."""
