"""What a new process pays before it does anything: imports, ``--help``, and numba's cache."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

_REPEATS = 5
_FIT = """
import time
from sklearn.datasets import make_classification
from laconic import {name}
X, y = make_classification(400, 6, random_state=0)
start = time.process_time()
{name}({arguments}).fit(X, y)
first = time.process_time() - start
start = time.process_time()
{name}({arguments}).fit(X, y)
print(first - (time.process_time() - start))
"""
_MODELS = {
    "GrayZoneLogisticRegression": "zone=(0.1, 0.6)",
    "ModlEncoder": "",
    "WeightedNaiveBayes": "",
    "MinimaxClassifier": "",
    "CqBoostClassifier": "",
    "SparseAdditiveClassifier": "",
}


def seconds(code: str) -> float:
    """Median wall time of a fresh interpreter that runs ``code``."""
    taken = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    sklearn = seconds("import sklearn")
    laconic = seconds("import sklearn, laconic")
    everything = seconds("import sklearn, laconic\nfor n in laconic.__all__: getattr(laconic, n)")
    helped = seconds("from laconic.cli import main\nmain(['--help'])")
    print("| what | seconds |\n|---|---|")
    print(f"| import sklearn | {sklearn:.2f} |")
    print(f"| import laconic, above it | {laconic - sklearn:.2f} |")
    print(f"| every public name of laconic, above it | {everything - sklearn:.2f} |")
    print(f"| laconic --help | {helped:.2f} |")
    import laconic as package

    for name, arguments in _MODELS.items():
        if name not in package.__all__:
            continue
        code = _FIT.format(name=name, arguments=arguments)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # fill cache
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        print(f"| numba, first fit of {name}, cache filled (CPU) | {float(run.stdout):.2f} |")


if __name__ == "__main__":
    main()
