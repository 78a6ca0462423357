# cmake -D OUTPUT=… "-D FILES=a.optim;b.optim" -P embed.cmake: the library's files as C++ text.
set(text "#include \"frontends/language/Library.h\"
using namespace stepc::lang;
llvm::ArrayRef<LibraryFile> stepc::lang::libraryFiles() {
  static constexpr LibraryFile files[] = {
")
list(SORT FILES)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} contents)
  string(APPEND text "{\"stepc/${name}\", R\"~~~(${contents})~~~\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "${text}};
  return files;
}
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
