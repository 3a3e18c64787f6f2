"""What others wrote, in a Python process, under Ferry and without: the same bits?

    run.py CALLS LIST [--stride N] [--models NAME...]
    run.py --device cuda [--models NAME...]

CALLS is what tests/real/sweep/record.py wrote, LIST the overloads that are known not to be the same
(tests/real/sweep/listed.txt). On a GPU run the architectures alone, with deterministic algorithms.
The package is $FERRY_PYTHON_PACKAGE's. The last line says what was the same and what was left out.
Exit codes: 0 all is as it should be, 1 it is not.
"""

import argparse
import os
import pathlib
import sys
import unittest
import warnings

sys.path[:0] = [os.environ["FERRY_PYTHON_PACKAGE"], str(pathlib.Path(__file__).parents[1])]

import torch
import transformers

from campaign import architectures


def try_architectures(names, device="cpu"):
    print(architectures.HEAD, flush=True)
    rows = []
    for row in architectures.run_all(names, device):
        print(row.text(), flush=True)
        rows.append(row)
    faults = [f"{row.model}: {fault}" for row in rows for fault in row.faults]
    left_out = [f"{row.model}: {why}" for row in rows for why in row.left_out]
    ways = sum(row.ways for row in rows)
    return f"{len(rows)} architectures in {ways} ways", left_out, faults


def try_pytorchs():
    """Each test in all its ways (pytorchs/ways.py)."""
    from campaign.pytorchs import checkpoints, hooks, nested, selective
    load = unittest.defaultTestLoader.loadTestsFromModule
    suite = unittest.TestSuite(map(load, (hooks, checkpoints, nested, selective)))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(suite)
    faults = [f"PyTorch's: {test}" for test, _ in result.failures + result.errors]
    return f"{result.testsRun} tests of PyTorch's", [], faults


def try_operators(calls, listed, stride):
    from campaign import operators
    sweep = operators.Sweep(operators.read_calls(calls), operators.read_list(listed), stride).run()
    print(sweep.text(), flush=True)
    left_out = [f"{sweep.verdicts[verdict]} overloads {verdict}"
                for verdict in ("not called", "unstable", "refused") if sweep.verdicts[verdict]]
    return f"{sweep.verdicts['equal']} overloads", left_out, sweep.faults


def on_a_cpu(options):
    from campaign import trainers
    torch.set_num_threads(1)
    return (try_architectures(options.models), trainers.try_sft(), try_pytorchs(),
            try_operators(options.calls, options.list, options.stride))


def on_a_gpu(options):
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    return (try_architectures(options.models, "cuda"),)


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("calls", nargs="?")
    parser.add_argument("list", nargs="?")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--stride", type=int, default=1, help="of the overloads")
    parser.add_argument("--models", nargs="*", default=())
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_warn_always(False)
    transformers.logging.set_verbosity_error()
    if options.device == "cpu" and not options.list:
        parser.error("expected CALLS and LIST")
    tried = on_a_gpu(options) if options.device == "cuda" else on_a_cpu(options)
    same, left_out, faults = zip(*tried)
    left_out, faults = sum(left_out, []), sum(faults, [])
    for fault in faults:
        print(fault)
    print(f"Python: the same to the bit are {', '.join(filter(None, same))}; left out: "
          f"{'; '.join(left_out) or 'nothing'}; faults: {len(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
