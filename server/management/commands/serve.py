"""`manage.py serve`: migrate, bootstrap an empty store, print the URLs, and serve."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from gunicorn.app.base import BaseApplication

from metalake import bind_address, leader_election, refusal_audit, shared_memory, shared_settings
from metalake import database_checks as store
from metalake.errors import Invalid
from metalake.request_target import in_url, is_loopback
from server import preload, static_files
from server.background import Drainer, Rounds
from server.http.process import BALANCE, ROLES, ServerWorker


class Command(BaseCommand):
    help = "Start Metalake; on an empty store it creates the admin and a first catalog."
    requires_system_checks = ()  # `make check` runs them; they would add a second to each start

    def handle(self, *args: Any, **options: Any) -> None:
        if shared_memory.folder() is None:
            raise CommandError("Start it with manage.py serve, which sets up the metrics that its processes share.")
        self.locks = leader_election.begin_to_serve()  # stored, so that they last as long as this process
        store.wait_until_it_answers(self._say)
        if store.is_behind():
            self._say("Preparing the database ...")
            call_command("migrate", verbosity=0, interactive=False, stdout=self.stdout)
        _check_names()
        call_command("bootstrap", stdout=self.stdout)
        static_files.prepare()
        _share()
        listener = bind_address.listen()
        base = f"http://{in_url(settings.METALAKE_HOST)}:{settings.METALAKE_PORT}"
        self.stdout.write(
            f"Metalake serves on {base} ({settings.METALAKE_WORKERS} x {settings.METALAKE_THREADS} threads)\n"
            f"  pages         {base}/\n"
            f"  native API    {base}/api          described at {base}/api/schema/ui/\n"
            f"  Iceberg REST  {base}/iceberg/demo   with warehouse=lake\n"
            f"  operators     {base}/admin/\n"
            f"Next: 'make demo' in another terminal. Stop with Ctrl-C."
        )
        for hint in (*hints(), *missing_folders(), *shared_settings.sentences()):
            self.stdout.write(hint)
        sys.stdout.flush()
        connections.close_all()
        Server(settings.METALAKE_PROCESSES, listener.detach()).run()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        sys.stdout.flush()


def _check_names() -> None:
    from catalogs.services.nesting import check_separator_of_names

    try:
        check_separator_of_names()
    except Invalid as wrong:
        raise CommandError(wrong.message) from None


def _share() -> None:
    """Store the settings of this server that other processes have to share."""
    from catalogs.services import shared_folders

    shared_settings.begin()
    shared_folders.mark_used()


def hints() -> Iterator[str]:
    """Sentences about what an operator should fix (docs/operations.md)."""
    if not (is_loopback(settings.METALAKE_HOST) or os.environ.get("METALAKE_ALLOWED_HOSTS")):
        names = ", ".join(settings.ALLOWED_HOSTS)
        yield (
            f"It only answers to the host names {names}: set METALAKE_ALLOWED_HOSTS to a comma-separated list of the "
            f"names and addresses that clients and proxies use."
        )
    if settings.METALAKE_HOME.stat().st_mode & 0o007:
        yield f"Every account of this machine may read {settings.METALAKE_HOME}: chmod 700 it."
    store = Path(settings.DATABASES["default"]["NAME"])
    if settings.ON_SQLITE and store.stat().st_mode & 0o077 and store.stat().st_uid != os.geteuid():
        yield f"Other accounts of this machine may read {store}, which this account does not own: chmod 600 it."


def missing_folders() -> Iterator[str]:
    """Sentences about missing warehouse folders: a mount failed, or the store was copied without them."""
    from catalogs.services import file_check

    for catalog, folder in file_check.missing_warehouses():
        yield (
            f"The tables of {catalog} are in {folder}, which does not exist: restore the folder, or put a link there "
            f"(docs/operations.md, Backup and restore)."
        )


class Server(BaseApplication):
    """gunicorn starts, replaces and ends the processes, each with its event loop (docs/decisions/server.md)."""

    def __init__(self, processes: int, listener: int) -> None:
        """`listener` is the file descriptor of a listening socket."""
        self.processes, self.listener = processes, listener
        super().__init__(prog="metalake")

    def load_config(self) -> None:
        self.cfg.set("bind", f"fd://{self.listener}")
        self.cfg.set("workers", self.processes)
        self.cfg.set("worker_class", ServerWorker)
        self.cfg.set("preload_app", True)
        self.cfg.set("timeout", 60)
        self.cfg.set("graceful_timeout", 30)
        # gunicorn's heartbeat is a file; on a slow disk it would stall the workers.
        self.cfg.set("worker_tmp_dir", "/dev/shm" if sys.platform == "linux" else None)  # noqa: S108
        self.cfg.set("loglevel", "warning")
        self.cfg.set("control_socket_disable", True)
        self.cfg.set("when_ready", lambda server: preload.freeze())
        self.cfg.set("post_worker_init", start_draining)
        self.cfg.set("on_exit", flush_refusals)
        self.cfg.set("child_exit", forget_connections)
        self.cfg.set("pre_fork", ROLES.choose)
        self.cfg.set("on_reload", ROLES.renew)

    def load(self) -> Any:
        from metalake.wsgi import application

        preload.load()
        return application


def forget_connections(server: Any, worker: Any) -> None:
    """Runs in the parent, after a process ended for any reason."""
    BALANCE.put(worker.age, BALANCE.NOBODY)


def start_draining(worker: Any) -> None:
    """Runs in each process of the server, after the fork."""
    leads = leader_election.leadership()
    Drainer(leads).start()
    Rounds(leads).start()
    logging.getLogger(__name__).info("worker %s is ready", worker.pid)


def flush_refusals(server: Any) -> None:
    """Runs in the parent, after the last process ended: writes the refusals they have counted since."""
    refusal_audit.flush(everything=True)
