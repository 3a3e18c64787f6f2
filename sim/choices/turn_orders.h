// All orders in which turns can be taken, but one of those that are alike.
//
// Two turns that touch nothing in common may change places: what follows is the same. Orders that
// come from one another so are a *class*, and one run stands for all of it. This goes through the
// classes of a program, running it once for each:
//
//   TurnOrders orders;
//   do { OrderedChoices choices(orders); run(choices); } while (orders.next());
//
// Each turn's touches are told while it runs (Choices::touch). Where two turns of a run meet and
// nothing else puts one before the other (turn_analysis.h), the other order is tried as well:
// source-set dynamic partial-order reduction with sleep sets (Abdulla, Aronis, Jonsson, Sagonas,
// POPL 2014, algorithm 1). A run may turn out to be like an earlier one: where all that may go on
// were tried in another order before. It is *repeated*, and goes on in the usual way.
//
// A row of turns within a turn is tried in every way. What is no turn is answered in the usual way,
// and a pool's query with "done", whatever the clock says: so a run depends on the order of its
// turns, and not on time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/choices/turn_analysis.h"

namespace ferry::choices {

class TurnOrders {
 public:
  // kAll tries every order, as if all turns met: what the classes are checked by.
  enum class Which : std::uint8_t { kClasses, kAll };
  explicit TurnOrders(Which which = Which::kClasses) : which_(which) {}

  // Goes to the next order, after a run; returns false where there is none.
  bool next();

  std::uint64_t runs() const { return runs_; }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t classes() const { return runs_ - repeated_; }
  // Of the last run, once next() was called. Equal hashes: the orders are alike.
  std::uint64_t last_class() const { return last_class_; }
  bool last_repeated() const { return last_repeated_; }

 private:
  friend class OrderedChoices;

  struct Tried {
    std::uint32_t actor = 0;
    Touches touches;
  };
  // A question of whose turn it is.
  struct Place {
    std::vector<std::uint32_t> ready;
    bool within = false;       // in a row within a turn
    std::uint32_t chosen = 0;  // an index of `ready`
    // Not where it is within a turn:
    Touches touches;                    // of the chosen turn, in any run
    std::vector<std::uint32_t> wanted;  // actors
    std::vector<Tried> tried;
    std::vector<Tried> asleep;  // whose turn was tried before, in another order
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
  // Of the run that goes on.
  std::vector<Turn> turns_;
  std::vector<std::size_t> places_;  // by turn
  std::size_t at_ = 0;               // the places that it has passed
  bool repeats_ = false;
};

// Answers one run.
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
  std::size_t depth_ = 0;  // the rows that are open
  std::size_t rows_ = 0;   // that began, not within others
};

}  // namespace ferry::choices
