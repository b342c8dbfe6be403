#include "collectives/sequences.h"

#include <random>

namespace iridium::test {

std::vector<Call> drawn_calls(int members, std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  const std::vector<Call> forms = every_form({});
  std::vector<Call> calls;
  while (calls.size() < static_cast<std::size_t>(count)) {
    Call call = forms[draw(forms.size())];
    call.type = data_types()[draw(data_types().size())];
    call.op = reduce_ops()[draw(reduce_ops().size())];
    if (!knows(call.algorithm, call.op)) continue;
    call.count = draw(4) == 0 ? draw(8) : draw(1500);
    call.blocks = static_cast<int>(draw(5));
    call.tile = draw(2) == 0 ? 0 : 1;
    call.root = static_cast<int>(draw(static_cast<std::size_t>(members)));
    call.out_shift = call.symmetric ? 0 : draw(3);
    calls.push_back(call);
  }
  return calls;
}

Sequence::Sequence(Context& context, const Team& team, const std::vector<Call>& calls)
    : team_(team) {
  for (const Call& call : calls) runs_.push_back(make_run(context, team, call));
}

void Sequence::set(StreamRef& stream, std::uint64_t seed) {
  for (const auto& run : runs_) run->set(stream, seed++);
}

void Sequence::launch(StreamRef& stream) {
  for (const auto& run : runs_) {
    run->launch(stream);
    run->spoil(stream);
  }
}

void Sequence::fetch(StreamRef& stream) {
  for (const auto& run : runs_) run->fetch(stream);
}

void Sequence::check() {
  team_.check();
  for (const auto& run : runs_) run->check();
}

}  // namespace iridium::test
