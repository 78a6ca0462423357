# disk.sh FOLDER SIZE COMMAND...: runs a command with a small file system in the folder, and says what it left there.
mount -t tmpfs -o "size=$2" none "$1" || exit 1
folder=$1
shift 2
"$@"
echo "left: $(ls -A "$folder")"
