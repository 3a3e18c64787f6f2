"""The races: where each was published, in which version, and which version mended it."""

import dataclasses

SIDE, MAIN = "--side-first", "--main-first"
SCHEDULES = ((), (SIDE,), (MAIN,))


@dataclasses.dataclass(frozen=True)
class Case:
    what: str
    program: str          # and its arguments
    before: str           # the version that has the race
    after: str            # the one that mended it; none where none has
    kinds: frozenset      # of the violations
    wrong: frozenset      # the schedules whose values show it
    besides: tuple = ()   # other packages that the published file imports

    @property
    def package(self):
        return self.before.partition("==")[0]


def case(what, program, before, after, kinds, wrong, **others):
    return Case(what, program, before, after, frozenset(kinds), frozenset(wrong), **others)


READ, REUSE = "read after write", "reuse"
AO = {"besides": ("torchao==0.9.0",)}
CASES = (
    case("a gradient is a view of what was brought back (torchtune #1860)",
         "torchtune_gradient.py", "torchtune==0.3.1", "torchtune==0.4.0", {REUSE}, {SIDE}, **AO),
    case("a checkpoint saves a view of what was brought back (torchtune #1867)",
         "torchtune_checkpoint.py", "torchtune==0.4.0", "torchtune==0.5.0", {REUSE}, {SIDE}, **AO),
    case("compute on another stream than the default one",
         "side_stream.py torchtune", "torchtune==0.6.1", "", {READ, REUSE}, {SIDE, MAIN}, **AO),
    case("a slice is copied on the side stream (TRL #7195)",
         "trl_slice.py", "trl==1.13.0", "trl==1.14.0", {READ, REUSE}, {SIDE, MAIN}),
    case("compute on another stream than the default one (TRL #7195)",
         "side_stream.py trl", "trl==1.13.0", "trl==1.14.0", {READ, REUSE}, {SIDE, MAIN}),
    case("two branches on two streams", "two_streams.py", "trl==1.14.0", "", {REUSE}, {SIDE, MAIN}),
    case("the host reads weights that have not arrived", "diffusers_host.py",
         "diffusers==0.33.1", "diffusers==0.35.2", {READ}, {SIDE}),
    case("record_stream with the stream of the copies (diffusers #12721)",
         "diffusers_groups.py --record", "diffusers==0.35.2", "diffusers==0.36.0", {REUSE}, {SIDE}),
    case("weights leave for a file while they are read",
         "diffusers_groups.py --disk", "diffusers==0.40.0", "diffusers==0.41.0", {REUSE}, {SIDE}),
    # 0.36.0 left out the hook that would have waited, where a model has nothing besides its blocks.
    case("a model of blocks alone reads weights before they are there",
         "diffusers_groups.py --blocks", "diffusers==0.41.0", "", {READ}, {MAIN}),
    case("batches made in memory that the consumer still reads (timm #2784)",
         "timm_prefetch.py", "timm==1.0.29", "timm==1.0.30", {REUSE}, {SIDE}),
    case("read back from host memory that is still filled (Megatron #7398)",
         "megatron_groups.py", "megatron-core==0.16.1", "", {READ}, {MAIN}),
)
