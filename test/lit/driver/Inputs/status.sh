# Runs a command and prints its exit status.
"$@"
echo "status $?"
