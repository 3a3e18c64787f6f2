// Runs a program in all orders of its turns, but only once for orders that are alike.
//
// Two turns that touch nothing in common may change places, and all that follows stays the same.
// Orders that arise from each other in this way are a *class*, and one run stands for all of them.
// TurnOrders runs a program once for each class:
//
//   TurnOrders orders;
//   do { OrderedChoices choices(orders); run(choices); } while (orders.next());
//
// Turns report what they touch while they run (Choices::touch). If two turns of a run meet and
// nothing else orders them (turn_analysis.h), the other order is tried too. This is source-set
// dynamic partial-order reduction with sleep sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014,
// algorithm 1). A run may turn out to be like an earlier one: each actor that could go on was tried
// before, in another order. Such a run is *repeated*, and goes on with the usual answers.
//
// A row of turns within a turn is tried in every order. Questions that are not turns get the usual
// answer, except that a pool's query always finds its event done. So a run depends on the order of
// its turns, and not on time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/choices/turn_analysis.h"

namespace ferry::choices {

class TurnOrders {
 public:
  // kAll tries every order, as if all turns met. Tests check the classes against it.
  enum class Which : std::uint8_t { kClasses, kAll };
  explicit TurnOrders(Which which = Which::kClasses) : which_(which) {}

  // Goes to the next order, after a run. Returns false if there is none.
  bool next();

  std::uint64_t runs() const { return runs_; }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t classes() const { return runs_ - repeated_; }
  // About the last run, after next(). Runs of one class have equal hashes.
  std::uint64_t last_class() const { return last_class_; }
  bool last_repeated() const { return last_repeated_; }

 private:
  friend class OrderedChoices;

  struct Tried {
    std::uint32_t actor = 0;
    Touches touches;
  };
  // A question which actor goes on.
  struct Place {
    std::vector<std::uint32_t> ready;
    bool within = false;                // in a row within a turn; then the rest is unused
    std::uint32_t chosen = 0;           // an index of `ready`
    Touches touches;                    // of the chosen turn, in any run
    std::vector<std::uint32_t> wanted;  // actors to try
    std::vector<Tried> tried;
    std::vector<Tried> asleep;  // the sleep set: tried before, in another order
    bool spent(std::uint32_t actor) const;
  };

  void begin();
  void place(const Question& question, std::size_t row, bool within);
  void take(std::size_t row, bool within);
  std::vector<Tried> still_asleep(std::size_t row) const;
  void analyse();
  bool advance(Place& place) const;

  Which which_;
  std::vector<Place> path_;
  std::uint64_t runs_ = 1;
  std::uint64_t repeated_ = 0;
  std::uint64_t last_class_ = 0;
  bool last_repeated_ = false;
  // The current run:
  std::vector<Turn> turns_;
  std::vector<std::size_t> places_;  // the place of each turn
  std::size_t at_ = 0;               // number of places passed
  bool repeats_ = false;
};

// Answers the questions of one run.
class OrderedChoices final : public Choices {
 public:
  explicit OrderedChoices(TurnOrders& orders) : orders_(orders) { orders_.begin(); }

 private:
  std::uint32_t pick(const Question& question) override;
  void row_began() override;
  void row_ended() override { --depth_; }
  void took(const Question& question, std::uint32_t answer) override;
  void touched(std::uint64_t key, Access access) override;
  bool is_told(const Question& question) const;

  TurnOrders& orders_;
  std::size_t depth_ = 0;  // number of open rows
  std::size_t rows_ = 0;   // number of rows so far, without those within others
};

}  // namespace ferry::choices
