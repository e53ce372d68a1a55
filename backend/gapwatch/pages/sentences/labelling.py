"""What a save of labels did: one line, with the progress of the deployments it touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from gapwatch.pages.words import category_name, count, plural
from gapwatch.store.read.labelling_progress import LabellingProgress
from gapwatch.store.write.labels import Labelling

REASONS = {
    "did not fail": "did not fail",
    "same already": "had it already",
    "not stored": "not stored any more",
    "changed since": "changed by somebody since",
}


def saved_words(labelling: Labelling, progress: Sequence[LabellingProgress]) -> str:
    """Labelled contact dynamics, 7 of 264."""
    several = len(labelling.changed) + len(labelling.refused) > 1
    how_many = plural(len(labelling.changed), "episode")
    if not labelling.changed:
        return "Nothing was taken back" if labelling.is_undo else "Nothing was changed"
    if labelling.is_undo:
        done = f"Taken back: {how_many} as before" if several else "Taken back, as it was before"
    elif not labelling.is_category:
        return "Note saved"
    elif labelling.category is None:
        done = f"Label taken off {how_many}" if several else "Label taken off"
    else:
        name = category_name(labelling.category).lower()
        done = f"Labelled {how_many} {name}" if several else f"Labelled {name}"
    return f"{done}, {progress_words(progress)}" if progress else done


def progress_words(progress: Sequence[LabellingProgress]) -> str:
    """7 of 264, and of how many deployments if it is more than one."""
    labelled, failures = (sum(getattr(one, name) for one in progress) for name in ("labelled", "failures"))
    several = f" failures of {len(progress)} deployments" if len(progress) > 1 else ""
    return f"{count(labelled)} of {count(failures)}{several}"


def refused_words(reasons: Collection[str]) -> str:
    """2 did not fail, 1 had it already."""
    numbers = Counter(reasons)
    return ", ".join(f"{count(numbers[reason])} {words}" for reason, words in REASONS.items() if numbers[reason])
