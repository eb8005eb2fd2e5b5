"""What the referee's workers wrote, read back: attempts with their beats. Times are seconds of CLOCK_BOOTTIME."""

import dataclasses
import json
import pathlib

BEAT = 0.5
# Two beats further apart than this: the process stood still in between.
STILL = 3 * BEAT


@dataclasses.dataclass(frozen=True, order=True)
class Unit:
    """One index of one job of one system: what has to be done once."""
    system: str
    job: str
    index: int


@dataclasses.dataclass
class Attempt:
    """One start of the worker's process."""
    unit: Unit
    key: str
    pod: str = ""
    node: str = ""
    token: str = ""              # the number of the attempt, where the system gives one
    start: float = 0.0
    beats: list = dataclasses.field(default_factory=list)
    end: float | None = None     # it did all its work
    term: float | None = None    # somebody asked it to end
    told: float | None = None    # the nemesis told it to crash, or to hang

    @property
    def last(self):
        """Its last sign of life. That somebody asked it to end is none: who ends what hangs is not quicker for it."""
        return max(self._signs())

    def alive(self):
        """[(from, to)]: when it ran, without the time in which it stood still."""
        times = self._signs()
        spans = [[times[0], times[0]]]
        for time in times[1:]:
            if time - spans[-1][1] <= STILL:
                spans[-1][1] = time
            else:
                spans.append([time, time])
        return [tuple(span) for span in spans]

    def _signs(self):
        return sorted([self.start, *self.beats, *([self.end] if self.end is not None else [])])

    @property
    def worked(self):
        """Seconds in which it ran."""
        return sum(end - begin for begin, end in self.alive())


def attempts_of(lines):
    """All attempts, in the order of their starts, from decoded lines."""
    found = {}
    for line in lines:
        unit = Unit(line["system"], line["job"], line["index"])
        attempt = found.setdefault(line["key"], Attempt(unit, line["key"], line["pod"], line["node"], line["token"],
                                                        line["at"]))
        event = line["event"]
        if event == "beat":
            attempt.beats.append(line["at"])
        elif event in ("start", "end", "term", "told"):
            setattr(attempt, event, line["at"])
        else:
            raise ValueError(f"the ledger has an event {event!r}")
        if attempt.unit != unit:
            raise ValueError(f"two runs have written as {line['key']}: {attempt.unit} and {unit}")
    return sorted(found.values(), key=lambda attempt: attempt.start)


def read(folder):
    """All attempts of a folder of ledgers. The last line of a file may be cut off by a power cut: it is left out."""
    lines = []
    for path in sorted(pathlib.Path(folder).glob("*.ndjson")):
        text = path.read_text(encoding="utf-8")
        lines += [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    return attempts_of(lines)


def packed(attempts):
    """For a file: as the ledger has it, to the millisecond, each beat as the milliseconds since the one before."""
    return [dataclasses.asdict(attempt) | {"beats": [
        round(1000 * at) - round(1000 * before)
        for before, at in zip([attempt.start, *attempt.beats], attempt.beats)]} for attempt in attempts]


def unpacked(entries):
    """The attempts again."""
    found = []
    for entry in entries:
        at, beats = round(1000 * entry["start"]), []
        for step in entry["beats"]:
            at += step
            beats.append(at / 1000)
        found.append(Attempt(**entry | {"unit": Unit(**entry["unit"]), "beats": beats}))
    return found
