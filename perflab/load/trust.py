"""TLS of a load: whom it trusts, and the certificate that it shows."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ParameterError
from perflab.load.frozen import FrozenModel


class Certificate(FrozenModel):
    """A client's certificate and its private key, as PEM files.

    ``key_file`` may be empty where the key is in ``cert_file``. ``password_env`` names the
    environment variable that has the password of an encrypted key: the password itself is in no
    command line and no record.
    """

    cert_file: str
    key_file: str = ""
    password_env: str = ""

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have a context show it.

        Raises
        ------
        ParameterError
            A file cannot be read, they do not fit each other, or the password is missing or wrong.
        """
        asked = []

        def password() -> str:
            # Without a function OpenSSL would ask at the terminal, and wait.
            asked.append(True)
            return os.environ.get(self.password_env, "") if self.password_env else ""

        if problem := self._missing():
            raise ParameterError("client certificate", [problem])
        try:
            context.load_cert_chain(self.cert_file, self.key_file or None, password)
        except (OSError, ValueError) as error:
            raise ParameterError("client certificate", [self._why(error, bool(asked))]) from None

    def check(self) -> None:
        """Look at it before anything starts; raises as :meth:`load_into`."""
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _missing(self) -> str:
        for option, name in (("--cert", self.cert_file), ("--key", self.key_file)):
            if name and not Path(name).is_file():
                return f"{option} {name}: no such file"
        if self.password_env and self.password_env not in os.environ:
            return f"--key-password-env {self.password_env}: no such environment variable is set"
        return ""

    def _why(self, error: Exception, was_asked: bool) -> str:
        key = self.key_file or self.cert_file
        if was_asked and not self.password_env:
            return (
                f"--key {key} is encrypted: put its password into an environment variable and "
                "name that with --key-password-env"
            )
        if was_asked:
            return f"--key {key} is not decrypted by the password in {self.password_env}"
        if "KEY_VALUES_MISMATCH" in str(error):
            return f"--cert {self.cert_file} and --key {key} do not fit: the key is another's"
        if not self.key_file:
            return (
                f"--cert {self.cert_file} does not hold a certificate and its key in PEM; "
                "name the key's file with --key"
            )
        return f"--cert {self.cert_file}, --key {key}: not a certificate and a key in PEM ({error})"


@dataclass(frozen=True)
class Trust:
    """Whom TLS trusts (``ca_file``: this bundle), and what it shows of itself."""

    verify: bool = True
    ca_file: str = ""
    certificate: Certificate | None = None

    def context(self) -> ssl.SSLContext:
        """Return a new TLS context; raises as :meth:`Certificate.load_into`."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            self.certificate.load_into(context)
        return context
