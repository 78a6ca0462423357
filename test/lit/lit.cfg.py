# How lit runs the tests in this folder. Configured by lit.site.cfg.py in the build folder:
#
#   /usr/lib/llvm-22/bin/lit build/test/lit          (or: ninja -C build check-lit)
#
# STEPC_LIT_ROUNDTRIP=1 makes every stepc-opt verify that what it parsed prints and parses alike.
import os
import platform
import subprocess

import lit.formats

config.name = "stepc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".optim", ".json", ".test"]
config.excludes = ["Inputs", "inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.stepc_build, "test", "lit")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.stepc_build, "bin"), config.llvm_tools, os.environ.get("PATH", "")])
for name in ("HOME", "ASAN_OPTIONS", "LD_LIBRARY_PATH", "STEPC_OPT_SKIP_PASS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

if os.environ.get("STEPC_LIT_ROUNDTRIP"):
    config.substitutions.append((r"(?<![\w./-])stepc-opt(?![\w./-])", "stepc-opt --verify-roundtrip"))
config.substitutions.append(("%repo", config.stepc_source))
config.substitutions.append(("%build", config.stepc_build))
config.substitutions.append(("%clang_c", "clang-22 -std=c11 -Wall -Wextra -pedantic -Werror"))
config.substitutions.append(("%clang_cxx", "clang++-22 -std=c++20 -Wall -Wextra -pedantic -Werror"))

# What tests may ask for with REQUIRES.
config.available_features.add(platform.machine())
if os.path.exists(os.path.join(config.stepc_build, "bin", "stepc")):
    config.available_features.add("stepc")
# A file system of a few pages, where users may mount one in a namespace of their own.
small_disk = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
try:
    if subprocess.run(small_disk, capture_output=True, timeout=10, check=False).returncode == 0:
        config.available_features.add("small-disk")
except (OSError, subprocess.TimeoutExpired):
    pass
