// Which sanitizer this build has.
#pragma once

namespace iridium::test {

// GCC defines names, clang has features.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_thread_sanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool under_address_sanitizer = false;
#endif

/// Why a test in which a process runs out of descriptors is skipped under AddressSanitizer.
inline constexpr const char* ubsan_needs_descriptors =
    "UBSan, which is in the same build, looks at objects by descriptors of its own";

/// Everything is slow.
inline constexpr bool under_sanitizer = under_thread_sanitizer || under_address_sanitizer;

}  // namespace iridium::test
