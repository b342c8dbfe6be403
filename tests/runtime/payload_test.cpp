#include "runtime/payload.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;

TEST(Payloads, GiveBackWhatWasWritten) {
  const Bytes raw = {std::byte{1}, std::byte{0}, std::byte{255}};
  const Bytes bytes = PayloadWriter()
                          .number(std::uint8_t{200})
                          .number(std::int32_t{-5})
                          .number(std::numeric_limits<std::uint64_t>::max())
                          .number(2.5)
                          .text("text")
                          .text("")
                          .text(std::string_view("a\0b", 3))
                          .bytes(raw)
                          .take();
  PayloadReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint8_t>(), 200);
  EXPECT_EQ(reader.number<std::int32_t>(), -5);
  EXPECT_EQ(reader.number<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(reader.number<double>(), 2.5);
  EXPECT_EQ(reader.text(), "text");
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.text(), std::string("a\0b", 3));
  EXPECT_EQ(Bytes(reader.rest().begin(), reader.rest().end()), raw);
}

TEST(Payloads, RefuseANumberPastTheEnd) {
  for (std::size_t size = 0; size < 8; ++size) {
    const Bytes bytes(size);
    expect_error(Errc::protocol, [&] { PayloadReader(bytes).number<std::uint64_t>(); });
  }
}

TEST(Payloads, RefuseATextPastTheEnd) {
  const Bytes whole = PayloadWriter().text("hello").take();
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(Errc::protocol, [&] { PayloadReader(std::span(whole).first(size)).text(); });
  EXPECT_EQ(PayloadReader(whole).text(), "hello");
}

TEST(Payloads, RefuseATextLongerThanAnyMemory) {
  const Bytes bytes = PayloadWriter().number(std::numeric_limits<std::uint32_t>::max()).take();
  expect_error(Errc::protocol, [&] { PayloadReader(bytes).text(); });
}

TEST(Payloads, LeaveTheRestAfterARefusal) {
  const Bytes bytes = PayloadWriter().number(std::uint16_t{7}).take();
  PayloadReader reader(bytes);
  expect_error(Errc::protocol, [&] { reader.number<std::uint32_t>(); });
  EXPECT_EQ(reader.rest().size(), 2u);
  EXPECT_EQ(reader.number<std::uint16_t>(), 7);
}

TEST(Payloads, AreEmptyWithoutContent) {
  EXPECT_TRUE(PayloadWriter().take().empty());
  EXPECT_TRUE(PayloadReader({}).rest().empty());
}

}  // namespace
}  // namespace iridium
