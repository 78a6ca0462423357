#include "frontends/manifest/Safetensors.h"
#include "frontends/text/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace json = llvm::json;

namespace stepc::manifest {

bool writeSafetensors(llvm::StringRef path, llvm::ArrayRef<TensorView> tensors,
                      llvm::ArrayRef<std::pair<std::string, std::string>> metadata,
                      ErrorList &errors) {
  size_t before = errors.size();
  llvm::StringSet<> names;
  for (const TensorView &view : tensors) {
    if (view.name == "__metadata__" || !names.insert(view.name).second)
      errors.add(path, "expected each tensor name once, found it again or reserved", view.name);
    if (view.type == TensorType::Unsupported)
      errors.add(path, "expected F64, F32, BF16, F16 or I64, found another dtype", view.name);
    else if (int64_t(view.bytes.size()) != view.numElements() * byteSize(view.type))
      errors.add(path,
                 "expected " + llvm::Twine(view.numElements() * byteSize(view.type)) +
                     " bytes for the shape, found " + llvm::Twine(view.bytes.size()),
                 view.name);
  }
  if (errors.size() != before)
    return false;

  std::vector<const TensorView *> order;
  for (const TensorView &view : tensors)
    order.push_back(&view);
  llvm::sort(order, [](const TensorView *a, const TensorView *b) {
    int64_t sizeA = byteSize(a->type), sizeB = byteSize(b->type);
    return sizeA != sizeB ? sizeA > sizeB : a < b; // views of one array: addresses give the order
  });
  std::string header;
  llvm::raw_string_ostream os(header);
  json::OStream out(os);
  out.object([&] {
    if (!metadata.empty())
      out.attributeObject("__metadata__", [&] {
        for (const auto &[key, value] : metadata)
          out.attribute(key, value);
      });
    int64_t offset = 0;
    for (const TensorView *view : order) {
      int64_t end = offset + int64_t(view->bytes.size());
      out.attributeObject(view->name, [&] {
        out.attribute("dtype", toString(view->type));
        out.attribute("shape", json::Array(view->shape));
        out.attribute("data_offsets", json::Array{offset, end});
      });
      offset = end;
    }
  });
  // Blanks make the data begin at a multiple of 8 bytes.
  header.append((8 - header.size() % 8) % 8, ' ');

  char length[8];
  llvm::support::endian::write64le(length, header.size());
  std::vector<llvm::StringRef> pieces = {llvm::StringRef(length, sizeof(length)), header};
  for (const TensorView *view : order)
    pieces.emplace_back(reinterpret_cast<const char *>(view->bytes.data()), view->bytes.size());
  if (path == "-") {
    for (llvm::StringRef piece : pieces)
      llvm::outs() << piece;
    return true; // llvm::outs() remembers its errors
  }
  llvm::Error failure = text::writeFile(path, pieces);
  if (!failure)
    return true;
  llvm::handleAllErrors(std::move(failure), [&](const llvm::FileError &error) {
    errors.add(error.getFileName(), error.messageWithoutFileInfo());
  });
  return false;
}

} // namespace stepc::manifest
