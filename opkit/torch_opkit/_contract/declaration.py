"""What an operator without a record says about itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor

from torch_opkit._cases import Bad, Cases, Sample
from torch_opkit._contract.signature import Parameter, make_sample

Samples = Sequence[Sample | tuple[Any, ...] | Tensor] | Callable[[], Any]
Time = int | tuple[int, int] | Literal["guess"] | None
REFUSED = (ValueError, TypeError, RuntimeError)  # what a bad input may raise


@dataclass(frozen=True)
class Declaration:
    """The arguments of `check` that describe an operator, as they were passed. None and "guess": not stated."""

    samples: Samples | None = None
    time: Time = "guess"
    causal: bool | Callable[..., bool] | None = None
    warmup: int | Callable[..., int | tuple[int, ...]] | None = None
    reference: Callable[..., Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    bad_inputs: Sequence[Any] = ()
    cases: Cases | None = None
    masks_nan: bool = False  # a NaN output takes no part in the backward pass

    def __post_init__(self) -> None:
        axes = self.time if isinstance(self.time, tuple) else (self.time, self.time)
        is_pair = len(axes) == 2 and all(isinstance(axis, int) and axis < 0 for axis in axes)
        if self.time is not None and self.time != "guess" and not is_pair:
            raise ValueError(
                f"check: time must be a negative axis, a pair (input axis, output axis), or None; got {self.time!r}: "
                "for rows on the axis before the last, pass time=-2"
            )
        if self.causal is not None and not isinstance(self.causal, bool) and not callable(self.causal):
            raise TypeError(f"check: causal must be a bool or a function of settings; got {self.causal!r}")
        is_count = isinstance(self.warmup, int) and not isinstance(self.warmup, bool) and self.warmup >= 0
        if self.warmup is not None and not callable(self.warmup) and not is_count:
            raise ValueError(f"check: warmup must be an integer >= 0 or a function of settings; got {self.warmup!r}")
        if self.reference is not None and not callable(self.reference):
            raise TypeError(f"check: reference must be callable; got {type(self.reference).__name__}")
        if not isinstance(self.settings, Mapping):
            raise TypeError(f"check: settings must map names to a value or a list of values; got {self.settings!r}")
        if self.cases is not None and not isinstance(self.cases, Cases):
            raise TypeError(
                f"check: cases must be opkit.Cases; got {type(self.cases).__name__}: pass samples=[...] for samples"
            )
        if self.cases is not None and self.samples is not None:
            raise ValueError("check: pass samples or cases, which has samples of its own; got both")

    def complete(self, op: object) -> "Declaration":
        """With what the operator itself declares, in a method `declared_properties`, where the caller does not."""
        properties = op.declared_properties() if hasattr(op, "declared_properties") else {}
        default = Declaration()
        missing = {name: x for name, x in properties.items() if getattr(self, name) == getattr(default, name)}
        return replace(self, **missing)

    @property
    def stated(self) -> tuple[str, ...]:
        """Names of the arguments that only operators without a record need."""
        names = ("causal", "warmup", "reference")
        time = () if self.time == "guess" else ("time",)
        return time + tuple(name for name in names if getattr(self, name) is not None)

    @property
    def axes(self) -> tuple[int, int] | None:
        """The time axis of inputs and outputs; None if there is none, or it is not stated."""
        if self.time is None or self.time == "guess":
            return None
        return self.time if isinstance(self.time, tuple) else (self.time, self.time)

    def values_of_settings(self) -> dict[str, tuple[Any, ...]]:
        """The values of each setting to be tried; the first is the base value."""
        values = {name: tuple(v) if isinstance(v, (list, tuple)) else (v,) for name, v in self.settings.items()}
        if empty := [name for name, v in values.items() if not v]:
            raise ValueError(f"check: settings must give each name at least one value; got none for {empty[0]!r}")
        return values

    def make_samples(self, parameters: Sequence[Parameter]) -> tuple[Sample, ...]:
        """The stated samples, each with the base value of every setting; the first with each other value too."""
        stated = self.samples() if callable(self.samples) else self.samples
        if isinstance(stated, (Tensor, Sample)):
            stated = [stated]
        if stated is not None and not isinstance(stated, Iterable):
            expected = "a sequence of Samples, tuples of arguments or Tensors, or a function that returns one"
            raise ValueError(f"check: samples must be {expected}; got {type(stated).__name__}")
        samples = [_make_sample(parameters, sample) for sample in stated or ()]
        if not samples:
            raise ValueError("check: samples must hold at least one Sample, tuple of arguments or Tensor; got none")
        return vary_settings(samples, self.values_of_settings(), parameters)

    def make_bad_inputs(self, parameters: Sequence[Parameter]) -> tuple[Bad, ...]:
        stated = [bad if isinstance(bad, Bad) else Bad(bad, "", REFUSED) for bad in self.bad_inputs]
        return tuple(replace(bad, sample=_make_sample(parameters, bad.sample)) for bad in stated)


def vary_settings(
    samples: Sequence[Sample], values: Mapping[str, tuple[Any, ...]], parameters: Sequence[Parameter]
) -> tuple[Sample, ...]:
    """Each sample with the base value of every setting; and the first one with each other value."""
    names = [p.name for p in parameters]
    if unknown := [name for name in values if name not in names]:
        raise ValueError(
            f"check: settings must name parameters of the operator, {', '.join(names)}; got {unknown[0]!r}"
        )
    base = {name: v[0] for name, v in values.items()}
    varied = [Sample(*s.tensors, **{**s.settings, **base}) for s in samples]
    first = varied[0]
    others = [{name: other} for name, v in values.items() for other in v[1:]]
    return (*varied, *(Sample(*first.tensors, **{**first.settings, **other}) for other in others))


def _make_sample(parameters: Sequence[Parameter], sample: object) -> Sample:
    if isinstance(sample, Sample):
        return make_sample(parameters, sample.tensors, sample.settings)
    if isinstance(sample, (Tensor, tuple, list)):
        return make_sample(parameters, (sample,) if isinstance(sample, Tensor) else tuple(sample), {})
    raise TypeError(
        f"check: samples must hold Sample objects, tuples of arguments or Tensors; got {type(sample).__name__}"
    )
