"""Run every benchmark, or those named on the line: ``python -m benchmarks gray_zone votes:solve``.

Words after a colon are the benchmark's own, as on the line of ``python -m benchmarks.bench_votes``;
``laconic.papers.votes:stumps:5:20`` and the like run another module that prints tables.
``--quick`` runs ``QUICK`` instead of everything, which takes many hours. Tables are printed as
Markdown; what was printed is written to ``benchmarks/last``. A ratio to a peer more than 30 % below
the stored one is named at the end, and the run fails. ``--store`` puts the text of ``votes:solve``
into ``benchmarks/printed/votes/solve.json`` as soon as it is printed, and that of ``minimax``
into ``minimax/all.json``; the guides show what is there (:mod:`benchmarks.stored`).
"""

from __future__ import annotations

import io
import os
import pkgutil
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

# before numpy loads: CPU seconds of one thread are what the tables compare
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Khiops looks for its programs on the path, where an environment that is not activated has none
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

from benchmarks import stored  # noqa: E402

LAST = Path(__file__).with_name("last")
QUICK = (
    "convex_risk:--quick", "gray_zone:dense", "gray_zone_kernel:2000", "minimax",
    "modl:--only:growth", "naive_bayes:times:3e5", "rules", "startup", "votes:solve", "votes:lp",
)  # fmt: skip
"""One benchmark of each family that has a ratio to a peer, in its small sizes."""


class Both(io.StringIO):
    """Writes to the screen and keeps a copy."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
        return super().write(text)


def name_of(words: str) -> str:
    """The name under which a run is stored.

    >>> name_of("votes:solve"), name_of("modl:--only:growth"), name_of("minimax")
    ('votes/solve', 'modl/only-growth', 'minimax/all')
    """
    own, *given = words.split(":")
    return f"{own}/{'-'.join(word.lstrip('-') for word in given) or 'all'}"


def slower(new: stored.Run, old: stored.Run | None) -> list[str]:
    """Ratios of a run that fell by more than 30 % since the stored one."""
    if old is None:
        return []
    pairs = zip(old.tables, new.tables, strict=False)
    return [sentence for before, now in pairs for sentence in stored.regressions(before, now)]


def main(words: list[str]) -> None:
    here = os.path.dirname(__file__)
    names = [word for word in words if word not in ("--store", "--quick")]
    if "--quick" in words:
        names += QUICK
    found = sorted(
        module.name.removeprefix("bench_")
        for module in pkgutil.iter_modules([here])
        if module.name.startswith("bench_")
    )
    asked = [name.partition(":")[0] for name in names]
    unknown = [own for own in asked if "." not in own and own not in found]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(found)}")
    commit = stored.commit_of_sources()
    fallen: list[str] = []
    for words_of_one in names or found:
        print(f"\n# {words_of_one}\n", flush=True)
        own, *given = words_of_one.split(":")
        sys.argv = [own, *given]
        with redirect_stdout(Both()) as screen:
            module = own if "." in own else f"benchmarks.bench_{own}"
            runpy.run_module(module, run_name="__main__")
        name = name_of(words_of_one)
        new = stored.run_of(f"python -m benchmarks {words_of_one}", screen.getvalue(), commit)
        stored.write(name, new, LAST)
        fallen += [f"{name}: {sentence}" for sentence in slower(new, stored.read().get(name))]
        if "--store" in words:
            stored.write(name, new)
    if fallen:
        sys.exit("\nmore than 30 % below the stored ratio:\n" + "\n".join(fallen))


if __name__ == "__main__":
    main(sys.argv[1:])
