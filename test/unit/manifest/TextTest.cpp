// What a terminal would obey is spelt, and no name may have it.
#include "frontends/text/Text.h"
#include "gtest/gtest.h"

using namespace stepc;

TEST(Text, WhatATerminalObeysIsSpelt) {
  using namespace std::string_literals;
  EXPECT_EQ(text::printable("plain é… 重み\t\n"), "plain é… 重み\t\n");
  EXPECT_EQ(text::printable("\x1B[2J\r\x7F\0"s), "\\u001b[2J\\u000d\\u007f\\u0000");
  EXPECT_EQ(text::printable("\u009B1m"), "\\u009b1m"); // one character that starts a sequence
  EXPECT_EQ(text::printable("a\u202Eb\u2066c\u200Fd\u061Ce\u2028"),
            "a\\u202eb\\u2066c\\u200fd\\u061ce\\u2028");
  // Bytes that are no UTF-8: stray, cut, too long a form, half of a pair.
  EXPECT_EQ(text::printable("\xFF"
                            "a\x80\xC3"),
            "\\xffa\\x80\\xc3");
  EXPECT_EQ(text::printable("\xC0\x80\xED\xA0\x80"), "\\xc0\\x80\\xed\\xa0\\x80");
  EXPECT_EQ(text::printableName("a\nb\t"), "a\\u000ab\\u0009");
  for (const char *once : {"\x1B[2J\\u001b", "\xFF\\xff", "a\nb"})
    EXPECT_EQ(text::printable(text::printable(once)), text::printable(once));
}

TEST(Text, ALineKeepsItsColumns) {
  EXPECT_EQ(text::printableLine("a\x1B"
                                "b\u202E"
                                "c\xFF"
                                "d\té\r"),
            "a b c d\té ");
}

TEST(Text, NamesHaveNoControlCharacters) {
  using namespace std::string_literals;
  for (const char *good : {"w", "layers.0.é 重み", "a\\u0000", "'\"~/"})
    EXPECT_EQ(text::checkName(good, "a name"), "") << good;
  auto wrong = [](const std::string &name) {
    std::string message = text::checkName(name, "a name");
    std::string start = "expected a name in UTF-8 without control characters, found ";
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.substr(std::min(start.size(), message.size()));
  };
  EXPECT_EQ(wrong("a\0b"s), "U+0000 in 'a\\u0000b'");
  EXPECT_EQ(wrong("a\nb"), "U+000A in 'a\\u000ab'");
  EXPECT_EQ(wrong("a\tb\x1B"), "U+0009 in 'a\\u0009b\\u001b'");
  EXPECT_EQ(wrong("\u202Egnp.exe"), "U+202E in '\\u202egnp.exe'");
  EXPECT_EQ(wrong("a\xE9"), "the byte 0xe9 in 'a\\xe9'");
}

// Two names that look alike are two parameters.
TEST(Text, NamesHaveNoInvisibleCharacters) {
  for (auto [name, found] : {std::pair("x\u200B.w", "U+200B in 'x\\u200b.w'"),
                             {"x\uFEFF", "U+FEFF in 'x\\ufeff'"},
                             {"\u00ADx", "U+00AD in '\\u00adx'"},
                             {"x\u3164", "U+3164 in 'x\\u3164'"},
                             {"x\U000E0041", "U+E0041 in 'x\\ue0041'"}})
    EXPECT_EQ(text::checkName(name, "a name"),
              std::string("expected a name in UTF-8 without invisible characters, found ") + found);
  // In comments they may be parts of other characters.
  EXPECT_EQ(text::findUnprintable("\u26A0\uFE0F", "").bytes, 0u);
}

TEST(Text, TheFirstOneIsFound) {
  text::Unprintable found = text::findUnprintable("a\nb\u2067c", "\n");
  EXPECT_EQ(found.offset, 3u);
  EXPECT_EQ(found.bytes, 3u);
  EXPECT_EQ(found.what, "U+2067");
  EXPECT_EQ(text::findUnprintable("a\nb\tc", "\n\t").what, "");
}
