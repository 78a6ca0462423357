# Runs each command with a full standard output, and prints its messages and its exit status.
set -f
for command in "$@"; do
  $command 2>&1 >/dev/full | grep -v warning
  $command >/dev/full 2>/dev/null
  echo "status $?"
done
