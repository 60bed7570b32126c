"""Run every benchmark, or those named on the line: ``python -m benchmarks gray_zone votes:solve``.

Words after a colon are the benchmark's own, as on the line of ``python -m benchmarks.bench_votes``;
``laconic.papers.votes:stumps:5:20`` and the like run another module that prints tables.
``--quick`` runs ``QUICK`` instead of everything, which takes many hours. Tables are printed as
Markdown and written to ``benchmarks/last.json``. A ratio to a peer more than 30 % below the stored
one is named at the end, and the run fails. ``--store`` puts the tables into
``benchmarks/results.json`` as soon as a benchmark has printed them; the guides show what is there
(:mod:`benchmarks.stored`).
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
from laconic.papers.engine import versions  # noqa: E402

LAST = Path(__file__).with_name("last.json")
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


def entries(name: str, printed: str, packages: dict[str, str]) -> stored.Store:
    """What is stored of a benchmark; ``packages`` are versions, and the commit."""
    stamp = {
        "command": f"python -m benchmarks {name}",
        "commit": packages["commit"],
        "versions": {own: number for own, number in packages.items() if own != "commit"},
    }
    tables = stored.tables_printed(printed)
    return {f"{name}/{k}": {**stamp, "table": own} for k, own in enumerate(tables, 1)}


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
    packages = versions()  # before the first table that is stored makes the tree another one
    last: stored.Store = {}
    slower: list[str] = []
    for name in names or found:
        print(f"\n# {name}\n", flush=True)
        own, *given = name.split(":")
        sys.argv = [own, *given]
        with redirect_stdout(Both()) as screen:
            module = own if "." in own else f"benchmarks.bench_{own}"
            runpy.run_module(module, run_name="__main__")
        new = entries(name, screen.getvalue(), packages)
        last |= new
        stored.write(last, LAST)
        store = stored.read()
        slower += [
            f"{key}: {sentence}"
            for key, entry in new.items()
            if key in store
            for sentence in stored.regressions(store[key]["table"], entry["table"])
        ]
        if "--store" in words:
            stored.write(store | new)
    if slower:
        sys.exit("\nmore than 30 % below the stored ratio:\n" + "\n".join(slower))


if __name__ == "__main__":
    main(sys.argv[1:])
