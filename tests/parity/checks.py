"""What the parity tests share: PyTorch from where the build found it, and checks, counted."""

import argparse
import os
import sys
import warnings

SKIPPED = 77
failures = []


def check(condition, message):
    print(("ok      " if condition else "FAILED  ") + message, flush=True)
    if not condition:
        failures.append(message)


def parse_arguments(description):
    """Parses --engine and --torch, and makes PyTorch importable; call before importing it.

    Without the Python packages the test is skipped; where CI=true it fails.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--engine", required=True, help="the normlab-train-csv program")
    parser.add_argument("--torch", help="folder of the torch package that the build uses")
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    arguments = parser.parse_args()
    if arguments.torch:
        # Last, so that everything else comes from the tests' own environment.
        sys.path.append(os.path.dirname(arguments.torch))
    try:
        import numpy  # noqa: F401
        import safetensors.numpy  # noqa: F401
        import scipy  # noqa: F401
        import torch
    except ImportError as error:
        print(f"a Python package is missing ({error}); install them with:")
        print("  python3 -m venv .venv-test")
        print("  .venv-test/bin/pip install -r tests/requirements.txt")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="torch.optim")
    return arguments


def finish():
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)
