"""Run every benchmark, or those named on the line: ``python -m benchmarks gray_zone modl``."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

# before numpy loads: CPU seconds of one thread are what the tables compare
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def main(names: list[str]) -> None:
    here = os.path.dirname(__file__)
    found = sorted(
        module.name.removeprefix("bench_")
        for module in pkgutil.iter_modules([here])
        if module.name.startswith("bench_")
    )
    unknown = set(names) - set(found)
    if unknown:
        sys.exit(f"no benchmark {sorted(unknown)[0]!r}; there are {', '.join(found)}")
    for name in names or found:
        print(f"\n# {name}\n", flush=True)
        importlib.import_module(f"benchmarks.bench_{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
