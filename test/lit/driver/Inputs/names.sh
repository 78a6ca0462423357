# Compiles FOLDER/step.optim under many names and checks their headers together: names.sh FOLDER REPOSITORY
set -e
cd "$1"
: > all.c
for name in stepc stepc_library STEPC_library_table stepc_rt transport mpi kernel_abi int class namespace main 9 _x \
    'a, b' Muon muon λ; do
  cp step.optim "$name.optim"
  stepc compile "$name.optim" -m "$2/test/inputs/two_ranks.json" -o "out-$name"
  entry=$(sed -n 's/^const stepc_library \*\(.*\)(void);$/\1/p' "out-$name/$name.h")
  prefix=${entry%_library}
  { printf '#include "out-%s/%s.h"\n' "$name" "$name"
    printf 'const stepc_library *(*of_%s)(void) = %s;\n' "$prefix" "$entry"
    printf 'int parameters_of_%s[%s_parameters + %s_routes + 1 + %s_route_A_lr];\n' "$prefix" "$prefix" "$prefix" "$prefix"
  } > one.c
  cat one.c >> all.c
  for language in 'c -std=c11' 'c++ -std=c++17'; do
    clang-22 -x $language -Wall -Wextra -Werror -pedantic -I "$2/runtime/include" -fsyntax-only one.c
  done
  nm -D "out-$name/lib$name.so" | grep -q " T $entry\$"
done
for language in 'c -std=c11' 'c++ -std=c++17'; do
  clang-22 -x $language -Wall -Wextra -Werror -pedantic -I "$2/runtime/include" -fsyntax-only all.c
done
