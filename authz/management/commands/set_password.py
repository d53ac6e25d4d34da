"""`manage.py set_password USER`: set a password and revoke the account's personal tokens."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from authz.models import User


class Command(BaseCommand):
    help = "Set an account's password; it is asked for twice, or read from standard input. Its personal tokens end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--keep-tokens", action="store_true", help="leave its personal tokens good")

    def handle(self, *args: Any, **options: Any) -> None:
        account = User.objects.filter(username=options["user"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['user']}.")
        password = _asked() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            validate_password(password, account)
        except ValidationError as wrong:
            raise CommandError(" ".join(wrong.messages)) from None
        account.set_password(password)
        account.keeps_tokens = options["keep_tokens"]
        account.save()
        tokens = "are as before" if account.keeps_tokens else "have ended"
        self.stdout.write(f"The password of {account} is set; its personal tokens {tokens}.")


def _asked() -> str:
    password = getpass("New password: ")
    if getpass("Again: ") != password:
        raise CommandError("The two differ.")
    return password
