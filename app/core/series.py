"""Samples of one contender in columns that grow."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from app.core.messages import Sample

Array = npt.NDArray[np.float64]


class Column(msgspec.Struct, frozen=True):
    """Numbers as bytes, a hundred times faster to read than digits: `numpy.frombuffer(base64, type)`.

    `type` as numpy writes it: `<i4` is a little-endian integer of four bytes.
    """

    type: Literal["<f8", "<i4", "<i8", "<u2"] = "<f8"
    base64: bytes = b""

    @classmethod
    def of(cls, values: npt.NDArray[np.generic], type_: Literal["<f8", "<i4", "<i8", "<u2"]) -> Column:
        return cls(type_, values.astype(type_).tobytes())

    def numbers(self) -> Array:
        """Raises ValueError where the bytes are no whole number of values."""
        if len(self.base64) % np.dtype(self.type).itemsize:
            raise ValueError(f"a column of samples is no whole number of {self.type}")
        return np.frombuffer(self.base64, self.type).astype(np.float64)


class RawSamples(msgspec.Struct, frozen=True):
    """A series as it stands in a file. `disturbed` is an index into `disturbances`; 0 is undisturbed.

    `disturbed` is null where nothing was; `device_seconds` where there is no device, and NaN in it where one
    sample has none.
    """

    round: Column = Column("<i4")
    at_s: Column = Column()
    seconds: Column = Column()
    calls: Column = Column("<i4")
    disturbed: Column | None = None
    disturbances: list[str] = msgspec.field(default_factory=lambda: [""])
    device_seconds: Column | None = None


class Series:
    """Every sample of one contender in one workload, in the order taken. None is ever dropped."""

    _COLUMNS = ("round", "at_s", "seconds", "calls", "disturbed", "device_seconds")
    _ROUND, _AT, _SECONDS, _CALLS, _DISTURBED, _DEVICE = range(6)

    def __init__(self) -> None:
        self._data = np.empty((6, 256))
        self._n = 0
        self.disturbances: list[str] = [""]

    def __len__(self) -> int:
        return self._n

    def append(self, sample: Sample, round_number: int) -> None:
        """Add a sample under the recording's own round number."""
        self._reserve(1)
        if sample.disturbed not in self.disturbances:
            self.disturbances.append(sample.disturbed)
        self._data[:, self._n] = (
            round_number,
            sample.at_s,
            sample.seconds,
            sample.calls,
            self.disturbances.index(sample.disturbed),
            np.nan if sample.device_seconds is None else sample.device_seconds,
        )
        self._n += 1

    def extend(self, later: Series) -> None:
        """Add the samples of a series whose rounds all follow this one's."""
        self._reserve(len(later))
        self.disturbances += [text for text in later.disturbances if text not in self.disturbances]
        added = later._data[:, : later._n].copy()
        place = np.array([self.disturbances.index(text) for text in later.disturbances], dtype=np.float64)
        added[self._DISTURBED] = place[added[self._DISTURBED].astype(np.int64)]
        self._data[:, self._n : self._n + later._n] = added
        self._n += later._n

    def _reserve(self, more: int) -> None:
        if self._n + more > self._data.shape[1]:
            grown = np.empty((6, max(2 * self._data.shape[1], self._n + more)))
            grown[:, : self._n] = self._data[:, : self._n]
            self._data = grown

    @property
    def rounds(self) -> npt.NDArray[np.int64]:
        return self._data[self._ROUND, : self._n].astype(np.int64)

    @property
    def at_s(self) -> Array:
        """When each sample ended, seconds since 1970. A view: do not keep it over an append."""
        return self._data[self._AT, : self._n]

    @property
    def seconds(self) -> Array:
        """Latency per call, seconds. A view."""
        return self._data[self._SECONDS, : self._n]

    @property
    def calls(self) -> Array:
        return self._data[self._CALLS, : self._n]

    @property
    def undisturbed(self) -> npt.NDArray[np.bool_]:
        """Which samples may enter a speed-up."""
        return np.equal(self._data[self._DISTURBED, : self._n], 0)

    @property
    def device_seconds(self) -> Array:
        """Time between events on the device, seconds per call; NaN where there is none. A view."""
        return self._data[self._DEVICE, : self._n]

    def disturbance(self, index: int) -> str:
        """What disturbed sample `index`; empty for nothing."""
        return self.disturbances[int(self._data[self._DISTURBED, index])]

    def held(self) -> Series:
        """The samples so far, whatever is appended later. Shares memory; append nothing to it."""
        held = Series.__new__(Series)
        held._data, held._n = self._data, self._n
        held.disturbances = list(self.disturbances)
        return held

    def to_raw(self) -> RawSamples:
        rounds, calls = self._data[self._ROUND, : self._n], self._data[self._CALLS, : self._n]
        disturbed = self._data[self._DISTURBED, : self._n]
        device = self.device_seconds
        return RawSamples(
            round=_integers(rounds),
            at_s=Column.of(self.at_s, "<f8"),
            seconds=Column.of(self.seconds, "<f8"),
            calls=_integers(calls),
            disturbed=_integers(disturbed) if disturbed.any() else None,
            disturbances=list(self.disturbances),
            device_seconds=None if np.isnan(device).all() else Column.of(device, "<f8"),
        )

    @classmethod
    def from_raw(cls, raw: RawSamples) -> Series:
        """Raises ValueError where columns are unequal or a value cannot be a sample's."""
        seconds = raw.seconds.numbers()
        n = int(seconds.size)
        columns = [
            raw.round.numbers(),
            raw.at_s.numbers(),
            seconds,
            raw.calls.numbers(),
            np.zeros(n) if raw.disturbed is None else raw.disturbed.numbers(),
            np.full(n, np.nan) if raw.device_seconds is None else raw.device_seconds.numbers(),
        ]
        if any(column.size != n for column in columns):
            raise ValueError("the columns of samples have unequal lengths")
        series = cls()
        if n == 0:
            return series
        series._data = np.stack(columns)
        series._n = n
        series.disturbances = list(raw.disturbances) or [""]
        if (np.diff(series._data[cls._ROUND]) <= 0).any():
            raise ValueError("the rounds of a series do not increase")
        marks, device = series._data[cls._DISTURBED], series._data[cls._DEVICE]
        positive = (seconds > 0).all() and (series.calls > 0).all() and not (device < 0).any()
        if not (np.isfinite(series._data[:5]).all() and positive and not np.isinf(device).any()):
            raise ValueError("a sample is not a positive time")
        if series._data[cls._ROUND, 0] < 0:
            raise ValueError("a round has a number below 0")
        if series.disturbances[0] != "" or marks.min() < 0 or marks.max() >= len(series.disturbances):
            raise ValueError("a sample names a disturbance that is not listed")
        return series


def _integers(values: Array) -> Column:
    return Column.of(values, "<i4" if values.size == 0 or values.max() < 2**31 else "<i8")
