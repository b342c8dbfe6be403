#include "backend/host/fiber.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "iridium/errors.h"

namespace iridium {
namespace {

/// Runs any callable on a fiber; it must outlive the run.
template <class Body>
void start(Fiber& fiber, Body& body) {
  fiber.start([](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
}

/// Resumes until the function has ended, and says how many times.
int run_to_end(Fiber& fiber) {
  int turns = 0;
  while (!fiber.finished()) {
    fiber.resume();
    ++turns;
  }
  return turns;
}

template <class Body>
void expect_refused(Body body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
  }
}

TEST(Fiber, RunsAFunctionToItsEndAtTheNextResume) {
  Fiber fiber;
  EXPECT_TRUE(fiber.finished());
  int runs = 0;
  auto body = [&] { ++runs; };
  start(fiber, body);
  EXPECT_FALSE(fiber.finished());
  EXPECT_EQ(runs, 0);
  fiber.resume();
  EXPECT_TRUE(fiber.finished());
  EXPECT_EQ(runs, 1);
}

TEST(Fiber, KeepsLocalsAcrossManySuspensions) {
  constexpr int turns = 10000;
  Fiber fiber;
  std::string result;
  auto body = [&] {
    std::string text = "a local that does not fit into the string object itself";
    int integer = 0;
    double real = 0.5;
    for (int turn = 0; turn < turns; ++turn) {
      fiber.suspend();
      ++integer;
      real += 1;
    }
    result = text + ' ' + std::to_string(integer) + ' ' + std::to_string(real);
  };
  start(fiber, body);
  EXPECT_EQ(run_to_end(fiber), turns + 1);
  EXPECT_EQ(result, "a local that does not fit into the string object itself 10000 10000.500000");
}

TEST(Fiber, SuspendsAnywhereInTheCallsOfItsFunction) {
  struct Recursion {
    Fiber fiber;
    int sum = 0;
    void descend(int depth) {
      if (depth == 0) return;
      fiber.suspend();
      descend(depth - 1);
      fiber.suspend();
      sum += depth;
    }
  } recursion;
  auto body = [&] { recursion.descend(50); };
  start(recursion.fiber, body);
  EXPECT_EQ(run_to_end(recursion.fiber), 101);
  EXPECT_EQ(recursion.sum, 50 * 51 / 2);
}

TEST(Fiber, TakesTurnsWithManyOthers) {
  constexpr int count = 300;
  struct Worker {
    Fiber* fiber = nullptr;
    int number = 0;
    int sum = 0;
    void operator()() {
      // Different numbers of turns, so that fibers end while others go on.
      const int turns = 20 + number % 7;
      int own = 0;
      for (int turn = 0; turn < turns; ++turn) {
        own += number;
        fiber->suspend();
      }
      sum = own;
    }
  };
  std::vector<Fiber> fibers(count);
  std::vector<Worker> workers(count);
  for (std::size_t i = 0; i < count; ++i) {
    workers[i] = {.fiber = &fibers[i], .number = static_cast<int>(i)};
    start(fibers[i], workers[i]);
  }
  bool any = true;
  while (any) {
    any = false;
    for (Fiber& fiber : fibers)
      if (!fiber.finished()) {
        fiber.resume();
        any = true;
      }
  }
  for (const Worker& worker : workers)
    EXPECT_EQ(worker.sum, (20 + worker.number % 7) * worker.number) << worker.number;
}

TEST(Fiber, RunsOneFunctionAfterAnother) {
  Fiber fiber;
  int sum = 0;
  for (int round = 0; round < 1000; ++round) {
    auto body = [&fiber, &sum, round] {
      fiber.suspend();
      sum += round;
    };
    start(fiber, body);
    EXPECT_EQ(run_to_end(fiber), 2);
  }
  EXPECT_EQ(sum, 999 * 1000 / 2);
}

TEST(Fiber, HandsOnWhatItsFunctionThrows) {
  Fiber fiber;
  auto fails = [&] {
    fiber.suspend();
    throw std::out_of_range("thrown on the fiber");
  };
  auto works = [&] { fiber.suspend(); };
  for (int round = 0; round < 3; ++round) {
    start(fiber, fails);
    fiber.resume();
    try {
      fiber.resume();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "thrown on the fiber");
    }
    EXPECT_TRUE(fiber.finished());
    start(fiber, works);
    EXPECT_EQ(run_to_end(fiber), 2);
  }
}

TEST(Fiber, SuspendsInsideHandlersWithoutMixingThemUp) {
  std::vector<Fiber> fibers(3);
  struct Thrower {
    Fiber* fiber = nullptr;
    std::string name;
    std::string caught;
    void operator()() {
      try {
        throw std::runtime_error(name);
      } catch (const std::runtime_error&) {
        fiber->suspend();
        try {
          throw;
        } catch (const std::runtime_error& again) {
          caught = again.what();
        }
      }
    }
  };
  std::array<Thrower, 3> throwers{
      {{&fibers[0], "first", ""}, {&fibers[1], "second", ""}, {&fibers[2], "third", ""}}};
  for (std::size_t i = 0; i < fibers.size(); ++i) start(fibers[i], throwers[i]);
  for (Fiber& fiber : fibers) fiber.resume();
  EXPECT_EQ(std::current_exception(), nullptr);
  try {
    throw std::logic_error("the thread's own");
  } catch (const std::logic_error&) {
    // First in, first out: the opposite of how handlers of one stack end.
    for (Fiber& fiber : fibers) fiber.resume();
    EXPECT_THROW(throw, std::logic_error);
  }
  for (const Thrower& thrower : throwers) EXPECT_EQ(thrower.caught, thrower.name);
}

TEST(Fiber, HasRoomForLargeLocals) {
  Fiber fiber;
  long sum = 0;
  auto body = [&] {
    std::array<volatile unsigned char, 128 * 1024> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 251);
    fiber.suspend();
    for (const volatile unsigned char& byte : bytes) sum += byte;
  };
  start(fiber, body);
  run_to_end(fiber);
  long expected = 0;
  for (int i = 0; i < 128 * 1024; ++i) expected += i % 251;
  EXPECT_EQ(sum, expected);
}

TEST(Fiber, CanBeDestroyedWhenNothingIsLeftInTheMiddle) {
  int runs = 0;
  auto body = [&] { ++runs; };
  {
    const Fiber never_started;
  }
  {
    Fiber armed;
    start(armed, body);
  }
  EXPECT_EQ(runs, 0);
  {
    Fiber ended;
    start(ended, body);
    ended.resume();
  }
  EXPECT_EQ(runs, 1);
}

TEST(Fiber, MovesWithItsVector) {
  std::vector<Fiber> fibers;
  int runs = 0;
  for (int count = 1; count <= 20; ++count) {
    fibers.emplace_back();
    for (Fiber& fiber : fibers) {
      auto body = [&] {
        fiber.suspend();
        ++runs;
      };
      start(fiber, body);
      EXPECT_EQ(run_to_end(fiber), 2);
    }
  }
  EXPECT_EQ(runs, 20 * 21 / 2);
  std::swap(fibers.front(), fibers.back());
  fibers.erase(fibers.begin());
  EXPECT_TRUE(fibers.back().finished());
}

TEST(Fiber, RunsOnTheStackOfAnother) {
  Fiber outer;
  Fiber inner;
  int inner_turns = 0;
  int outer_turns = 0;
  auto inner_body = [&] {
    ++inner_turns;
    inner.suspend();
    ++inner_turns;
  };
  auto outer_body = [&] {
    start(inner, inner_body);
    inner.resume();
    ++outer_turns;
    outer.suspend();
    inner.resume();
    outer_turns += inner_turns;
  };
  start(outer, outer_body);
  EXPECT_EQ(run_to_end(outer), 2);
  EXPECT_EQ(outer_turns, 3);
}

TEST(Fiber, RefusesCallsOutOfOrder) {
  Fiber fiber;
  expect_refused([&] { fiber.resume(); });
  expect_refused([&] { fiber.suspend(); });
  auto body = [&] {
    expect_refused([&] { fiber.resume(); });
    fiber.suspend();
  };
  start(fiber, body);
  expect_refused([&] { start(fiber, body); });
  fiber.resume();
  expect_refused([&] { start(fiber, body); });
  expect_refused([&] { fiber.suspend(); });
  fiber.resume();
  expect_refused([&] { fiber.resume(); });
}

TEST(Fiber, LivesAndDiesOnAnyThread) {
  std::array<long, 4> sums{};
  std::vector<std::thread> threads;
  for (long& sum : sums)
    threads.emplace_back([&sum] {
      std::vector<Fiber> fibers(10);
      for (int round = 0; round < 10; ++round)
        for (Fiber& fiber : fibers) {
          auto body = [&] {
            fiber.suspend();
            ++sum;
          };
          start(fiber, body);
          run_to_end(fiber);
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0L), 400);
}

TEST(FiberDeathTest, EndsTheProcessWhenAFunctionIsLeftInTheMiddle) {
  EXPECT_DEATH(
      {
        Fiber fiber;
        auto body = [&] { fiber.suspend(); };
        start(fiber, body);
        fiber.resume();
      },
      "");
}

// Each call touches its frame, so that none is optimized away.
int overflow(int depth) {
  std::array<volatile int, 256> frame;
  for (volatile int& value : frame) value = depth;
  return depth < 0 ? 0 : overflow(depth + 1) + frame[static_cast<std::size_t>(depth) % 256];
}

TEST(FiberDeathTest, EndsTheProcessWhenTheStackOverflows) {
  EXPECT_DEATH(
      {
        Fiber fiber;
        auto body = [] { overflow(0); };
        start(fiber, body);
        fiber.resume();
      },
      "");
}

}  // namespace
}  // namespace iridium
