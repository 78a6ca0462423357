# Runs a command that may write no file of more than so many kilobytes, and prints its exit status.
ulimit -f $(($1 * 2))
shift
"$@"
echo "status $?"
