"""Makes the checks that suite.py asks for, by name, one line each way."""

import argparse
import ctypes
import json
import os
import platform
import sys
import traceback
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "python")]
os.environ["STEPC_TORCH_EXTENSION"] = "0"  # compiled for another Python


def why_not(dry: bool) -> str:
    """Why nothing can be checked here; empty where it can."""
    about = json.loads((FOLDER / "cases.json").read_text())
    if about["dry"] != dry:
        built, asked = ("for a dry run", "without --dry") if about["dry"] else ("for a GPU", "with --dry")
        sys.exit(f"expected to be run as the folder was built, {built}, found a run {asked}")
    try:
        import torch
    except ImportError as error:
        return f"no PyTorch: {error}"
    return "" if dry or torch.cuda.is_available() else "no GPU"


def about_machine(dry: bool) -> dict:
    import torch

    about = {"python": platform.python_version(), "torch": torch.__version__, "cpu": platform.processor() or platform.machine()}
    if not dry:
        driver = ctypes.c_int()
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(driver))
        major, minor = torch.cuda.get_device_capability()
        about |= {"gpu": torch.cuda.get_device_name(), "chip": f"sm_{major}{minor}", "driver_for_cuda": driver.value}
    return about


def made(check) -> dict:
    from checks.machine import Skipped

    try:
        found = check.function()
        text, figures = found if isinstance(found, tuple) else (found, {})
        return {"outcome": "passed", "text": text, "figures": figures}
    except Skipped as error:
        return {"outcome": "skipped", "text": str(error)}
    except Exception as error:  # noqa: BLE001 - told to the suite
        traceback.print_exc()
        text = str(error) if type(error).__name__ == "Failed" else f"{type(error).__name__}: {error}"
        return {"outcome": "failed", "text": " / ".join(text.strip().splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--list", action="store_true", help="print what there is to check")
    parser.add_argument("--one", help="make this check alone, and print what came of it")
    parser.add_argument("--reply", type=int, help="the file descriptor of results")
    options = parser.parse_args()
    skipped = why_not(options.dry)
    if options.list and skipped:
        print(json.dumps({"skipped": skipped}))
        return
    from checks import all_checks
    from checks.machine import Machine

    found = {check.name: check for check in all_checks(Machine(FOLDER, options.dry))}
    if options.list:
        listed = [{"name": name, "seconds": check.seconds} for name, check in found.items()]
        print(json.dumps({"skipped": "", "machine": about_machine(options.dry), "checks": listed}))
        return
    if options.one:
        result = made(found[options.one])
        print("\n" + json.dumps(result))
        sys.exit(result["outcome"] == "failed")
    with os.fdopen(options.reply, "w", buffering=1) as reply:
        print(json.dumps({"ready": True}), file=reply)
        for line in sys.stdin:
            print(json.dumps(made(found[line.strip()])), file=reply)


if __name__ == "__main__":
    main()
