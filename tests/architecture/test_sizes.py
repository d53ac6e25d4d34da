"""How large a room may be: one that holds a fifth of the house is where nobody finds anything."""

from __future__ import annotations

from tests.architecture.rooms import CLIENTS, REPOSITORY, ROOMS

LARGEST_ROOM = 0.14  # of the lines of all rooms


def test_no_room_is_too_large() -> None:
    lines = {
        room: sum(
            len(path.read_text().splitlines())
            for path in (REPOSITORY / room).rglob("*.py")
            if "migrations" not in path.parts
        )
        for room in (*ROOMS, *CLIENTS)
    }
    whole = sum(lines.values())
    assert not {room: f"{count / whole:.1%}" for room, count in lines.items() if count > LARGEST_ROOM * whole}
