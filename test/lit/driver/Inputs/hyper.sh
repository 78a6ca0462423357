# hyper.sh SPEC MANIFEST TENSORS OUT: runs with numbers that no specification has.
for value in 0x10 1e999 1e-400 ' 1' 1. inf; do
  stepc run "$1" -m "$2" --tensors "$3" --hyper "Sgd.lr=$value" -o "$4"
  echo "status $?"
done
