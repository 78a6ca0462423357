#!/usr/bin/env bash
# README.md and some other pages show the real files and the real output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec .venv/bin/python test/readme.py
