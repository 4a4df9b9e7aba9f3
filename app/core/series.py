"""Samples of one contender in columns that grow."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from app.core.messages import Sample

Array = npt.NDArray[np.float64]


class RawSamples(msgspec.Struct, frozen=True):
    """A series as it stands in a file. `disturbed` is an index into `disturbances`; 0 is undisturbed."""

    round: list[int] = []
    at_s: list[float] = []
    seconds: list[float] = []
    calls: list[int] = []
    disturbed: list[int] = []
    disturbances: list[str] = msgspec.field(default_factory=lambda: [""])
    device_seconds: list[float | None] | None = None


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

    def to_raw(self) -> RawSamples:
        device = self.device_seconds
        return RawSamples(
            round=self.rounds.tolist(),
            at_s=self.at_s.tolist(),
            seconds=self.seconds.tolist(),
            calls=self.calls.astype(np.int64).tolist(),
            disturbed=self._data[self._DISTURBED, : self._n].astype(np.int64).tolist(),
            disturbances=list(self.disturbances),
            device_seconds=None
            if np.isnan(device).all()
            else [None if np.isnan(value) else value for value in device.tolist()],
        )

    @classmethod
    def from_raw(cls, raw: RawSamples) -> Series:
        """Raises ValueError where columns are unequal or a value cannot be a sample's."""
        n = len(raw.seconds)
        columns = (raw.round, raw.at_s, raw.seconds, raw.calls, raw.disturbed)
        if {len(raw.round), len(raw.at_s), len(raw.calls), len(raw.disturbed)} != {n}:
            raise ValueError("the columns of samples have unequal lengths")
        device = [np.nan] * n if raw.device_seconds is None else raw.device_seconds
        if len(device) != n:
            raise ValueError("the columns of samples have unequal lengths")
        series = cls()
        if n == 0:
            return series
        series._data = np.array([*columns, [np.nan if v is None else v for v in device]], dtype=np.float64)
        series._n = n
        series.disturbances = list(raw.disturbances) or [""]
        finite = np.isfinite(series._data[:5]).all() and (series.seconds > 0).all()
        if (np.diff(series._data[cls._ROUND]) <= 0).any():
            raise ValueError("the rounds of a series do not increase")
        marks = series._data[cls._DISTURBED]
        if not finite or series.disturbances[0] != "" or marks.min() < 0:
            raise ValueError("a sample is not a positive time")
        if marks.max() >= len(series.disturbances):
            raise ValueError("a sample names a disturbance that is not listed")
        return series
