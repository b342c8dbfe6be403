// What `iridium bench` is to measure.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_axes.h"

namespace iridium::cli {
namespace {

BenchCommand command_for(std::vector<std::string> operations) {
  BenchCommand command;
  command.operations = std::move(operations);
  command.bytes = "1K,4K";
  return command;
}

TEST(BenchPlan, HasAHeatPerSizeWithItsBaselines) {
  const std::vector<BenchHeat> heats = plan(command_for({"put", "device_barrier"}));
  ASSERT_EQ(heats.size(), 3u);
  EXPECT_EQ(heats[1].bytes, 4096u);
  ASSERT_EQ(heats[1].entries.size(), 3u);
  EXPECT_EQ(heats[1].entries[0].contender, "iridium");
  EXPECT_EQ(heats[1].entries[0].arguments, (Arguments{{"bytes", "4096"}}));
  EXPECT_EQ(heats[1].entries[1].contender, "memory_copy");
  EXPECT_EQ(heats[2].operation, "device_barrier");
  EXPECT_EQ(heats[2].bytes, 0u);
  ASSERT_EQ(heats[2].entries.size(), 1u);
  EXPECT_EQ(heats[2].entries[0].arguments, Arguments{});
}

TEST(BenchPlan, HasTheCopiesThatAnAllGatherCouldBeMadeOfBesideIt) {
  BenchCommand command = command_for({"all_gather", "all_reduce"});
  command.settings = {"algorithm=automatic"};
  const std::vector<BenchHeat> heats = plan(command);
  ASSERT_EQ(heats.size(), 4u);
  ASSERT_EQ(heats[0].entries.size(), 4u);
  EXPECT_EQ(heats[0].entries[3].contender, "gather_copies");
  EXPECT_EQ(heats[2].entries.size(), 3u);
}

TEST(BenchPlan, MeasuresKindsOfMemoryThatTheOperationHas) {
  BenchCommand command = command_for({"all_reduce", "broadcast"});
  command.settings = {"algorithm=automatic", "memory=plain,in_place"};
  command.baselines.clear();
  const std::vector<BenchHeat> heats = plan(command);
  ASSERT_EQ(heats[0].entries.size(), 2u);
  EXPECT_EQ(heats[0].entries[1].arguments.at("memory"), "in_place");
  ASSERT_EQ(heats[2].entries.size(), 1u);
  EXPECT_EQ(heats[2].entries[0].arguments.at("memory"), "plain");
}

TEST(BenchPlan, TakesSettings) {
  BenchCommand command = command_for({"put"});
  command.settings = {"blocks=8,16"};
  const std::vector<BenchHeat> heats = plan(command);
  ASSERT_EQ(heats[0].entries.size(), 4u);
  EXPECT_EQ(heats[0].entries[2].arguments, (Arguments{{"bytes", "1024"}, {"blocks", "8"}}));
  EXPECT_EQ(heats[0].entries[3].arguments, (Arguments{{"bytes", "1024"}, {"blocks", "16"}}));
  for (const char* bad :
       {"colour=red", "blocks", "blocks=", "=8", "bytes=4", "blocks=abc", "blocks=0", "blocks=8,8",
        "blocks=8,", "blocks=99999999999", "blocks=all"}) {
    command.settings = {bad};
    EXPECT_THROW(plan(command), Error) << bad;
  }
  command.settings = {"blocks=8", "blocks=16"};
  EXPECT_THROW(plan(command), Error);
  command.settings = {};
  for (const char* bad : {"1", "4K,6", "65G"}) {
    command.bytes = bad;
    EXPECT_THROW(plan(command), Error) << bad;
  }
}

/// As collectives are described; nothing prepares it.
Operation described_collective() {
  Operation operation;
  operation.name = "collective";
  operation.parameters = {{"bytes", {"4012"}},
                          {"dtype", {"bf16", "fp32"}},
                          {"op", {"sum", "max"}},
                          {"algorithm", {"automatic", "ring"}},
                          {"memory", {"plain", "symmetric"}},
                          {"blocks", {"automatic"}},
                          {"tile", {"automatic"}}};
  return operation;
}

TEST(BenchPlan, HasAHeatPerTypeAndReduction) {
  BenchCommand command = command_for({"collective"});
  command.bytes = "1K";
  command.settings = {"dtype=bf16,fp32", "op=sum,max"};
  const std::vector<Operation> known = {described_collective()};
  std::vector<std::string> seen;
  for (const BenchHeat& heat : plan(command, known)) {
    seen.push_back(heat.dtype + " " + heat.op);
    // Two algorithms and two copies, which do not look at types.
    ASSERT_EQ(heat.entries.size(), 4u);
    EXPECT_EQ(heat.entries[1].arguments, (Arguments{{"bytes", "1024"},
                                                    {"dtype", heat.dtype},
                                                    {"op", heat.op},
                                                    {"algorithm", "ring"},
                                                    {"memory", "plain"}}));
    EXPECT_EQ(heat.entries[2].arguments, (Arguments{{"bytes", "1024"}}));
    for (const BenchHeat::Entry& entry : heat.entries) {
      const BenchFigure figure = blank_figure(heat, entry, 2, "graph");
      EXPECT_EQ(figure.dtype, heat.dtype);
      EXPECT_EQ(figure.op, heat.op);
      EXPECT_EQ(figure.memory, entry.contender == "iridium" ? "plain" : "");
      EXPECT_TRUE(is_of(figure, heat));
    }
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"bf16 sum", "bf16 max", "fp32 sum", "fp32 max"}));
}

/// As products are described; nothing prepares it.
Operation described_product() {
  Operation operation;
  operation.name = "product";
  operation.parameters = {{"shape", {"5x7x9", "1x1x1"}},
                          {"dtype", {"bf16", "fp16"}},
                          {"layout", {"nk", "kn"}},
                          {"algorithm", {"automatic", "simple"}}};
  return operation;
}

TEST(BenchPlan, HasAHeatPerShapeTypeAndLayout) {
  BenchCommand command = command_for({"product"});
  command.shapes = {"16x3584x8192,2x3x5"};
  command.settings = {"dtype=bf16,fp16", "layout=kn,nk"};
  const std::vector<Operation> known = {described_product()};
  std::vector<std::string> seen;
  for (const BenchHeat& heat : plan(command, known)) {
    ASSERT_TRUE(heat.shape);
    EXPECT_EQ(heat.bytes, 0u);
    seen.push_back(heat.dtype + " " + heat.layout + " " + name(*heat.shape));
    // Both algorithms; nothing is copied that bandwidths could be seen beside.
    ASSERT_EQ(heat.entries.size(), 2u);
    EXPECT_EQ(heat.entries[1].arguments, (Arguments{{"shape", name(*heat.shape)},
                                                    {"dtype", heat.dtype},
                                                    {"layout", heat.layout},
                                                    {"algorithm", "simple"}}));
    BenchFigure figure = blank_figure(heat, heat.entries[1], 2, "graph");
    EXPECT_EQ(figure.shape, heat.shape);
    EXPECT_EQ(figure.layout, heat.layout);
    EXPECT_EQ(figure.algorithm, "simple");
    EXPECT_TRUE(is_of(figure, heat));
    figure.layout = "";
    EXPECT_FALSE(is_of(figure, heat));
    figure.layout = heat.layout;
    figure.shape->depth += 1;
    EXPECT_FALSE(is_of(figure, heat));
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{
                "bf16 kn 16x3584x8192", "bf16 kn 2x3x5", "bf16 nk 16x3584x8192", "bf16 nk 2x3x5",
                "fp16 kn 16x3584x8192", "fp16 kn 2x3x5", "fp16 nk 16x3584x8192", "fp16 nk 2x3x5"}));
}

TEST(BenchPlan, MeasuresTheDefaultShapeWhereNoneIsGiven) {
  const std::vector<Operation> known = {described_product(), described_collective()};
  const std::vector<BenchHeat> heats = plan(command_for({"product", "collective"}), known);
  ASSERT_EQ(heats.size(), 3u);
  EXPECT_EQ(heats[0].shape, (MatmulShape{5, 7, 9}));
  EXPECT_EQ(heats[1].shape, std::nullopt);
  EXPECT_EQ(heats[1].bytes, 1024u);
}

TEST(BenchPlan, HasDefaultShapesThatEndSoonOnCpus) {
  for (const char* backend : {"host", "cuda"})
    EXPECT_GE(parse_shapes("--shape", default_shapes(backend)).size(), 3u);
  for (const MatmulShape& shape : parse_shapes("--shape", default_shapes("host")))
    EXPECT_LT(shape.flops(), 5e7) << name(shape);
}

TEST(BenchPlan, RefusesShapesThatMeanNothing) {
  const std::vector<Operation> known = {described_product(), described_collective()};
  BenchCommand command = command_for({"collective"});
  command.shapes = {"2x3x5"};
  EXPECT_THROW(plan(command, known), Error) << "nothing has a shape";
  command.operations = {"collective", "product"};
  EXPECT_EQ(plan(command, known).size(), 3u);
  command.shapes = {"2x3"};
  EXPECT_THROW(plan(command, known), Error);
  command.shapes = {};
  for (const char* bad : {"shape=2x3x5", "layout=mn", "layout=nk,nk"}) {
    command.settings = {bad};
    EXPECT_THROW(plan(command, known), Error) << bad;
  }
}

TEST(BenchPlan, GivesOperationsTheirOwnAlgorithms) {
  BenchCommand command = command_for({"collective", "other"});
  command.bytes = "1K";
  command.settings = {"algorithm=ring,push"};
  Operation other = described_collective();
  other.name = "other";
  for (Parameter& parameter : other.parameters)
    if (parameter.name == "algorithm") parameter.values = {"automatic", "push"};
  const std::vector<Operation> known = {described_collective(), other};
  std::vector<std::string> seen;
  for (const BenchHeat& heat : plan(command, known))
    for (const BenchHeat::Entry& entry : heat.entries)
      if (entry.contender == "iridium")
        seen.push_back(heat.operation + " " + entry.arguments.at("algorithm"));
  EXPECT_EQ(seen, (std::vector<std::string>{"collective ring", "other push"}));
}

TEST(BenchPlan, LeavesToTheOperationWhatIsAutomatic) {
  BenchCommand command = command_for({"collective"});
  command.bytes = "1K";
  command.settings = {"algorithm=ring", "blocks=automatic,8", "tile=automatic,4"};
  const std::vector<Operation> known = {described_collective()};
  const std::vector<BenchHeat> heats = plan(command, known);
  ASSERT_EQ(heats.size(), 1u);
  std::vector<std::pair<int, int>> seen;
  std::vector<std::string> copies;
  for (const BenchHeat::Entry& entry : heats[0].entries) {
    const BenchFigure figure = blank_figure(heats[0], entry, 2, "graph");
    if (figure.contender == "iridium") seen.emplace_back(figure.blocks, figure.tile);
    if (figure.contender == "copy_kernel") copies.push_back(entry.arguments.at("blocks"));
  }
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{0, 0}, {0, 4}, {8, 0}, {8, 4}}));
  EXPECT_EQ(copies, std::vector<std::string>{"8"});
  for (const char* bad : {"tile=3", "tile=8", "tile=0", "tile=2,2"}) {
    command.settings = {bad};
    EXPECT_THROW(plan(command, known), Error) << bad;
  }
}

TEST(BenchPlan, LetsKindsOfMemoryAndGridsTakeTurns) {
  BenchCommand command = command_for({"collective"});
  command.settings = {"memory=plain,symmetric", "blocks=4,8", "algorithm=ring"};
  command.baselines = {};
  const std::vector<Operation> known = {described_collective()};
  const std::vector<BenchHeat> heats = plan(command, known);
  ASSERT_EQ(heats.size(), 2u);
  ASSERT_EQ(heats[0].entries.size(), 4u);
  EXPECT_EQ(heats[0].dtype, "bf16");
  EXPECT_EQ(heats[0].op, "sum");
  const BenchFigure last = blank_figure(heats[0], heats[0].entries[3], 2, "graph");
  EXPECT_EQ(last.memory, "symmetric");
  EXPECT_EQ(last.blocks, 8);
  EXPECT_EQ(last.algorithm, "ring");
}

}  // namespace
}  // namespace iridium::cli
