//===- LibraryFile.cpp - Whether a library's file is whole -----------------===//

#include "passes/codegen/LibraryFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"

#include <cstring>

using namespace llvm;

namespace stepc::codegen {
namespace {

constexpr StringRef kText("\nstepc checksum\n", 16);
constexpr size_t kFooterBytes = 32;

template <typename T> T at(StringRef bytes, uint64_t offset) {
  T result;
  std::memcpy(&result, bytes.data() + offset, sizeof(T));
  return result;
}

uint64_t crcOf(StringRef bytes) { return crc32(arrayRefFromStringRef(bytes)); }

/// Sets `end` to the end of all contents that the file's headers name. Returns an empty text, or why the
/// headers cannot be those of this file.
std::string checkHeaders(StringRef bytes, uint64_t &end) {
  if (bytes.size() < sizeof(ELF::Elf64_Ehdr) || !bytes.starts_with(StringRef(ELF::ElfMagic, 4)))
    return std::string("expected an ELF file, found ") +
           (bytes.empty() ? "an empty file" : "another, or its first bytes alone");
  auto header = at<ELF::Elf64_Ehdr>(bytes, 0);
  if (header.e_ident[ELF::EI_CLASS] != ELF::ELFCLASS64 ||
      header.e_ident[ELF::EI_DATA] != ELF::ELFDATA2LSB || header.e_type != ELF::ET_DYN ||
      header.e_machine != ELF::EM_X86_64 || header.e_phentsize != sizeof(ELF::Elf64_Phdr) ||
      (header.e_shnum != 0 && header.e_shentsize != sizeof(ELF::Elf64_Shdr)))
    return "expected a shared library for x86-64, found another file";
  end = sizeof(header);
  auto reach = [&](const char *what, uint64_t offset, uint64_t size) -> std::string {
    if (offset > bytes.size() || size > bytes.size() - offset)
      return (Twine("expected ") + what + " within the file, up to byte " + Twine(offset + size) +
              ", found " + Twine(bytes.size()) + " bytes; the library is truncated or damaged")
          .str();
    end = std::max(end, offset + size);
    return {};
  };
  if (std::string wrong =
          reach("its table of segments", header.e_phoff, header.e_phnum * sizeof(ELF::Elf64_Phdr));
      !wrong.empty())
    return wrong;
  if (std::string wrong =
          reach("its table of sections", header.e_shoff, header.e_shnum * sizeof(ELF::Elf64_Shdr));
      !wrong.empty())
    return wrong;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    auto segment = at<ELF::Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(ELF::Elf64_Phdr));
    if (std::string wrong = reach("its segments", segment.p_offset, segment.p_filesz);
        !wrong.empty())
      return wrong;
  }
  for (size_t i = 0; i < header.e_shnum; ++i) {
    auto section = at<ELF::Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(ELF::Elf64_Shdr));
    if (section.sh_type == ELF::SHT_NOBITS || section.sh_type == ELF::SHT_NULL)
      continue;
    if (std::string wrong = reach("its sections", section.sh_offset, section.sh_size);
        !wrong.empty())
      return wrong;
  }
  return {};
}

} // namespace

std::string footerOf(StringRef bytes) {
  std::string footer = kText.str();
  footer.resize(kFooterBytes);
  support::endian::write64le(footer.data() + 16, bytes.size());
  support::endian::write64le(footer.data() + 24, crcOf(bytes));
  return footer;
}

std::string checkLibraryFile(StringRef bytes) {
  StringRef footer = bytes.take_back(std::min(bytes.size(), kFooterBytes));
  if (footer.starts_with(kText)) {
    StringRef content = bytes.drop_back(kFooterBytes);
    uint64_t size = support::endian::read64le(footer.data() + 16),
             crc = support::endian::read64le(footer.data() + 24), found = crcOf(content);
    if (size != content.size())
      return "the library is damaged: expected " + std::to_string(size) + " bytes, found " +
             std::to_string(content.size()) + " before its checksum";
    if (crc != found)
      return "the library is damaged: expected checksum " + utohexstr(crc, true, 8) +
             ", as the compiler wrote it, found " + utohexstr(found, true, 8) +
             "; compile the library again";
    return {};
  }
  uint64_t end = 0;
  if (std::string wrong = checkHeaders(bytes, end); !wrong.empty())
    return wrong;
  if (end != bytes.size())
    return "the library is damaged: expected a checksum behind its sections, or nothing, found " +
           std::to_string(bytes.size() - end) + " other bytes; compile the library again";
  return {};
}

} // namespace stepc::codegen
