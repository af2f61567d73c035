"""Source `nexmark`: persons, auctions, bids and closings of an auction site, seeded, batch and streaming.

    spark.readStream.format("nexmark").option("stream", "bid").option("events_per_batch", 1000).load()

Of 50 events 1 is a person, 3 are auctions and 46 are bids, as usual for this benchmark; `closing` gives the
end of each auction, the punctuation of its bids. Every stream is made from the same sequence of events, so
they fit each other. Event `n` is the same in every run with the same seed: nothing is stored, and any part
can be made again.

Options: `stream`; `seed`; `events`, how many in all (a streaming source without it goes on for ever);
`events_per_batch` of a micro-batch; `rate`, events a second of event time; `open_rounds`, the longest
auction in rounds of 50 events; `disorder_seconds`, how late an event may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

import streamjoin as sj

SCHEMAS = {
    "person": "id long, name string, email_address string, credit_card string, city string, state string, "
    "date_time timestamp, extra string",
    "auction": "id long, item_name string, description string, initial_bid long, reserve long, "
    "date_time timestamp, expires timestamp, seller long, category long, extra string",
    "bid": "auction long, bidder long, price long, channel string, url string, date_time timestamp, "
    "extra string",
    "closing": "auction long, date_time timestamp",
}
EVENTS = 50  # of one round: 1 person, 3 auctions, 46 bids
AUCTIONS = 3
BIDS = EVENTS - AUCTIONS - 1
STATES = np.array(["OR", "ID", "CA", "WA", "AZ", "WY"])
CITIES = np.array(["Portland", "Boise", "Los Angeles", "Seattle", "Phoenix", "Cheyenne"])
NAMES = np.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple"])
START = 1_700_000_000_000_000  # microseconds since 1970


@dataclass(frozen=True)
class Site:
    """The events of one site. Times are microseconds; a round of 50 events takes `round_us`."""

    seed: int
    round_us: int
    open_rounds: int
    disorder_us: int

    def rows(self, stream: str, first: int, last: int) -> pa.RecordBatch:
        """Return the rows of a stream in the rounds from `first` up to, without, `last`."""
        return {
            "person": self._persons,
            "auction": self._auctions,
            "bid": self._bids,
            "closing": self._closings,
        }[stream](np.arange(first, last, dtype=np.int64))

    def _draw(self, what: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return random bits that depend on seed, purpose and number alone (splitmix64)."""
        salt = (self.seed * 0x9E3779B97F4A7C15 + what * 0xD1B54A32D192ED03) % 2**64
        x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def _below(self, what: int, numbers: npt.NDArray[np.int64], bound: Any) -> npt.NDArray[np.int64]:
        bounds = np.asarray(bound, dtype=np.uint64)
        return (self._draw(what, numbers) % bounds).astype(np.int64)

    def _time(self, rounds: npt.NDArray[np.int64], place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return START + rounds * self.round_us + place * self.round_us // EVENTS

    def _late(self, what: int, numbers: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> Any:
        """Move some times back, as events do that arrive late."""
        return times - self._below(what, numbers, self.disorder_us + 1) if self.disorder_us else times

    def _length(self, auctions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many whole rounds an auction is open."""
        return 1 + self._below(1, auctions, self.open_rounds)

    def _persons(self, rounds: npt.NDArray[np.int64]) -> pa.RecordBatch:
        home = self._below(2, rounds, len(STATES))
        name = NAMES[self._below(3, rounds, len(NAMES))]
        return _batch(
            "person",
            id=rounds,
            name=name,
            email_address=_joined(np.char.lower(name), "@", rounds.astype(str), ".example"),
            credit_card=np.char.zfill(self._below(16, rounds, 10**16).astype(str), 16),
            city=CITIES[home],
            state=STATES[home],
            date_time=self._late(4, rounds, self._time(rounds, np.zeros_like(rounds))),
        )

    def _auctions(self, rounds: npt.NDArray[np.int64]) -> pa.RecordBatch:
        ids = (rounds[:, None] * AUCTIONS + np.arange(AUCTIONS)).ravel()
        opened = self._time(ids // AUCTIONS, 1 + ids % AUCTIONS)
        first = 1 + self._below(6, ids, 100)
        return _batch(
            "auction",
            id=ids,
            item_name=_joined("item ", ids.astype(str)),
            description=_joined("number ", ids.astype(str), ", as good as new"),
            initial_bid=first,
            reserve=first + self._below(17, ids, 100),
            date_time=self._late(7, ids, opened),
            expires=self._ends(ids),
            seller=self._below(5, ids, ids // AUCTIONS + 1),
            category=10 + self._below(8, ids, 5),
        )

    def _ends(self, auctions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._time(auctions // AUCTIONS + self._length(auctions), np.full_like(auctions, EVENTS - 1))

    def _bids(self, rounds: npt.NDArray[np.int64]) -> pa.RecordBatch:
        numbers = (rounds[:, None] * BIDS + np.arange(BIDS)).ravel()
        now = numbers // BIDS
        # On an auction that opened at most `open_rounds` ago; if that has closed, on one of this round.
        age = np.minimum(self._below(9, numbers, self.open_rounds + 1), now)
        auction = (now - age) * AUCTIONS + self._below(10, numbers, AUCTIONS)
        closed = age > self._length(auction)
        auction = np.where(closed, now * AUCTIONS + self._below(11, numbers, AUCTIONS), auction)
        times = self._time(now, 1 + AUCTIONS + numbers % BIDS)
        return _batch(
            "bid",
            auction=auction,
            bidder=self._below(12, numbers, now + 1),
            price=100 + self._below(13, numbers, 10_000),
            channel=CHANNELS[self._below(14, numbers, len(CHANNELS))],
            url=_joined("https://auction.example/item.htm?id=", auction.astype(str)),
            date_time=self._late(15, numbers, times),
        )

    def _closings(self, rounds: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Return the closings that fall into these rounds, in time order, behind the last possible bid."""
        if not len(rounds):
            return _batch("closing", auction=rounds, date_time=rounds)
        first = max(0, int(rounds[0]) - self.open_rounds)
        ids = np.arange(first * AUCTIONS, (int(rounds[-1]) + 1) * AUCTIONS, dtype=np.int64)
        closing = ids // AUCTIONS + self._length(ids)
        ids = ids[(closing >= rounds[0]) & (closing <= rounds[-1])]
        ids = ids[np.argsort(self._ends(ids), kind="stable")]
        return _batch("closing", auction=ids, date_time=self._ends(ids))


def _joined(*parts: Any) -> npt.NDArray[np.str_]:
    """Return texts put together, one a row."""
    text: Any = parts[0]
    for part in parts[1:]:
        text = np.char.add(text, part)
    return np.asarray(text)


def _batch(stream: str, **columns: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return columns in the stream's schema; `extra` is empty, it only fills up rows in the benchmark."""
    types = {"long": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
    rows = len(next(iter(columns.values())))
    arrays, names = [], []
    for name, kind in (part.strip().split(" ") for part in SCHEMAS[stream].split(",")):
        if name == "extra":
            array = pa.repeat(pa.scalar("", pa.string()), rows)
        elif kind == "string":
            array = pa.array(columns[name].tolist(), pa.string())
        else:
            array = pa.array(columns[name], pa.int64()).cast(types[kind])
        arrays.append(array)
        names.append(name)
    return pa.record_batch(arrays, names=names)


@dataclass
class Rounds(InputPartition):
    """A run of rounds that one task makes."""

    first: int
    last: int


class NexmarkSource(DataSource):
    """The data source; its options are those of the module's text."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "nexmark"

    def schema(self) -> StructType | str:
        """Return the columns of the chosen stream."""
        return SCHEMAS[self._stream()]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a static DataFrame."""
        return NexmarkReader(self._stream(), self._site(), self._number("events", 50_000))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming DataFrame."""
        events = self._number("events", 0)
        return NexmarkStreamReader(
            self._stream(), self._site(), self._number("events_per_batch", 5_000), events or None
        )

    def _stream(self) -> str:
        stream = self.options.get("stream", "bid")
        if stream not in SCHEMAS:
            raise sj.QueryError(f"nexmark, stream: expected one of {sorted(SCHEMAS)}, got {stream!r}")
        return stream

    def _number(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        if not text.isdigit():
            raise sj.QueryError(f"nexmark, {option}: expected a number that is not negative, got {text!r}")
        return int(text)

    def _rate(self) -> float:
        text = self.options.get("rate", str(EVENTS / 60))
        try:
            rate = float(text)
        except ValueError:
            rate = 0.0
        if not 0 < rate < float("inf"):
            raise sj.QueryError(f"nexmark, rate: expected events a second, more than none, got {text!r}")
        return rate

    def _site(self) -> Site:
        return Site(
            seed=self._number("seed", 1),
            round_us=max(EVENTS, round(EVENTS * 1_000_000 / self._rate())),
            open_rounds=max(1, self._number("open_rounds", 120)),
            disorder_us=self._number("disorder_seconds", 0) * 1_000_000,
        )


class NexmarkReader(DataSourceReader):
    """All rows of a stream among the first `events` events."""

    def __init__(self, stream: str, site: Site, events: int) -> None:
        """Take the declaration to the workers."""
        self._stream, self._site, self._rounds = stream, site, events // EVENTS

    def partitions(self) -> Sequence[InputPartition]:
        """Cut the events into pieces that tasks can make by themselves."""
        step = 20_000
        return [Rounds(at, min(at + step, self._rounds)) for at in range(0, self._rounds, step)] or [
            Rounds(0, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Make the rows of one piece."""
        assert isinstance(partition, Rounds)
        yield self._site.rows(self._stream, partition.first, partition.last)


class NexmarkStreamReader(DataSourceStreamReader):
    """A run of rounds a micro-batch, for ever or until `events`."""

    def __init__(self, stream: str, site: Site, events_per_batch: int, events: int | None) -> None:
        """Start before the first event."""
        self._stream, self._site = stream, site
        self._step = max(1, events_per_batch // EVENTS)
        self._end = None if events is None else events // EVENTS

    def initialOffset(self) -> dict[str, int]:
        """Return the place before the first round."""
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Let one more run of rounds arrive; there is always a next one, so no trigger gets them all."""
        place = start["round"] + self._step
        return {"round": place if self._end is None else min(place, self._end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the rounds between two places."""
        return [Rounds(start["round"], end["round"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Make the rows of one micro-batch."""
        assert isinstance(partition, Rounds)
        if partition.first < partition.last:
            yield self._site.rows(self._stream, partition.first, partition.last)
