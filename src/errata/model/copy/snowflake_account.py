"""How a Snowflake account is reached, as errata.yaml declares it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from errata.errors import UsageError

_ENCRYPTED = "ENCRYPTED PRIVATE KEY"
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class SnowflakeAccount:
    """An account with everything that a session needs; the key is never shown."""

    account: str
    user: str
    private_key: str = field(repr=False)  # PEM, PKCS #8, not encrypted
    role: str
    warehouse: str
    database: str
    schema: str
    stage: str | None = None  # an external stage over the lake's files, such as @lake_stage
    host: str | None = None  # another host than the account's own, such as that of a private link

    def read_key(self) -> str:
        """The private key as the connector takes it: PKCS #8 in base64, without the lines around it.

        Raises ``UsageError``, which does not quote the key.
        """
        # a variable of the environment often has \n in place of line breaks
        found = _PEM.search(self.private_key.replace("\\n", "\n"))
        if not found or found[1] == _ENCRYPTED:
            what = "an encrypted one" if found else "something else"
            raise UsageError(
                f"the private key of {self.user} was refused; expected an unencrypted PKCS #8 key in PEM, found {what}",
                hint="openssl pkcs8 -topk8 -nocrypt -in KEY.p8 -out KEY.pem",
            )
        return "".join(found[2].split())

    def split_host(self) -> dict[str, str | int]:
        """Host, port and protocol for the connector; nothing: those of the account.

        >>> SnowflakeAccount("a", "u", "", "r", "w", "d", "s", host="http://127.0.0.1:8000").split_host()
        {'host': '127.0.0.1', 'port': 8000, 'protocol': 'http'}
        >>> SnowflakeAccount("a", "u", "", "r", "w", "d", "s", host="a.privatelink.example").split_host()
        {'host': 'a.privatelink.example', 'port': 443, 'protocol': 'https'}
        """
        if self.host is None:
            return {}
        found = re.fullmatch(r"(?:(https?)://)?([^/:\s]+|\[::1\])(?::(\d+))?/?", self.host)
        if not found:
            raise UsageError(f"the host of {self.user} was refused; expected a name such as a.privatelink.example")
        protocol, name = found[1] or "https", found[2]
        if protocol == "http" and name not in _LOOPBACK:
            raise UsageError(f"{name} was refused; http is for emulators on this machine only")
        return {"host": name, "port": int(found[3] or (80 if protocol == "http" else 443)), "protocol": protocol}
