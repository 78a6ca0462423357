#!/usr/bin/env bash
# README.md's example shows the real file and the real output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec .venv/bin/python test/readme.py
