"""What is not as it should be of a run: not the plain run's, or not what the plan said."""

from campaign.bits import same
from campaign.fine_tunings.scripts import AGAIN


def difference(want, got):
    """In words; nothing where all is the same to the bit."""
    if want.losses != got.losses:
        return [f"the losses are {got.losses}, not {want.losses}"]
    others = [name for name in want.weights if not same(want.weights[name], got.weights[name])]
    return [f"{len(others)} weights differ, {others[0]} first"] if others else []


def faults_of_plan(plan, kept, got):
    """What is not as the plan says, or as the batches' shapes say. `kept`: a run that keeps all."""
    said = plan.row["offloaded_bytes"] // AGAIN, \
        plan.row["recomputes"] // AGAIN, plan.text.count('"first":')
    first = kept.watch.forwards[0].shapes
    for number, (given, one) in enumerate(zip(kept.watch.forwards, got.watch.forwards)):
        if one.others != (given.shapes != first):
            yield f"forward {number}, of {given.shapes}, counts as {one.others} of other shapes"
        elif not one.others and (one.moved, one.recomputes, one.replays) != said:
            yield (f"forward {number} moved {one.moved} B, {one.recomputes} segments and "
                   f"{one.replays} spans ran again; the plan says {said}")
    if not any(said):
        yield f"the plan of {plan.budget} B does nothing"
    lowered = lowers(plan)
    if lowered <= 0:
        yield f"the plan of {plan.budget} B lowers no peak"
    at = got.watch.usual()
    before, after = kept.watch.forwards[at].held, got.watch.forwards[at].held
    if before - after < lowered / 2:
        yield f"forward {at} holds {after} B, plain {before} B; the plan says {lowered} B less"


def lowers(plan):
    """By how many bytes the plan has less of activations at the peak than with all kept."""
    held = {row["policy"]: row["peak_bytes"]["activations"] for row in plan.rows}
    return held["keep"] - held[plan.policy]


def faults_of_offload(got):
    for number, one in enumerate(got.watch.forwards):
        if not one.moved or one.others:
            yield f"forward {number} moved {one.moved} B"
