//===- OtherOptions.h - Commands that compile nothing -----------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_OTHEROPTIONS_H
#define STEPC_TOOLS_STEPC_OTHEROPTIONS_H

#include "tools/stepc/Options.h"

#include <CLI/CLI.hpp>

namespace stepc::driver {

/// The most threads that a user may ask for.
inline constexpr int64_t kMostThreads = 1024;

/// Ends the help of each command.
inline constexpr const char *kExitCodes =
    "Exit status:\n"
    "  0  success\n"
    "  1  an input file is wrong, or asks for what cannot be had, or an output cannot be written\n"
    "  2  the command line is wrong\n"
    "  3  a tool that stepc calls is missing or failed, such as ptxas, or stepc itself is at "
    "fault, which a hint says\n";

void defineFormat(CLI::App &root, FormatCommand &command);
void defineManifest(CLI::App &root, ManifestCommand &command);
void defineProbe(CLI::App &root, ProbeCommand &command);
void defineOptimizers(CLI::App &root, OptimizersCommand &command);

} // namespace stepc::driver

#endif
