#include "cli/next_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "formats/modules.h"

namespace ferry::cli {
namespace {

bool has_recomputed(const plan::PolicyRow& row) {
  const std::vector<bool>& recompute = row.candidate.mix.recompute;
  return std::find(recompute.begin(), recompute.end(), true) != recompute.end();
}

// True if the plan recomputes modules that did not call a checkpoint when the program was captured:
// the user would have to edit the model.
bool edits_modules(const PolicyRequest& request, const plan::PolicyRow& row) {
  return has_recomputed(row) && !plan::has_segments(request.program, /*modules=*/false);
}

// True if the requested policies can also be planned without recomputing modules.
bool may_be_without_modules(const PolicyRequest& request) {
  return request.every_policy ||
         std::none_of(request.plan.policies.begin(), request.plan.policies.end(), is_for_segments);
}

// True for a model of transformers whose plan is what the library itself does when it is asked to.
bool checkpoints_each_layer(const PolicyArguments& arguments, const plan::PolicyRow& row) {
  return row.policy == name(Policy::kCheckpoint) && is_configuration(arguments.subject) &&
         arguments.output.empty();
}

// Says what a user has to do so that the model calls checkpoints. If a model with adapters is
// checkpointed, libraries make its inputs require gradients: more is saved than was planned.
std::string edit(const PolicyArguments& arguments, const Program& program) {
  const bool adapted = std::any_of(program.about.begin(), program.about.end(),
                                   [](const auto& line) { return line.first == "lora"; });
  if (marks_callable(program) && !adapted) {
    return "# it chooses among checkpointed layers: TrainingArguments(…, "
           "gradient_checkpointing=True); --policy best --no-modules needs none";
  }
  if (is_configuration(arguments.subject)) {
    return "# plan with --checkpointing, and train with gradient_checkpointing=True; "
           "--policy best --no-modules needs neither";
  }
  return "# the model has to call torch_ferry.checkpoint for each recomputed module; "
         "--policy best --no-modules plans it without edits";
}

std::string plan_command(const PolicyArguments& arguments, const std::string& file,
                         bool no_modules) {
  std::string command = "ferry";
  for (const std::string& word : arguments.typed) command += " " + quoted(word);
  if (no_modules) command += " --no-modules";
  return command + " -o " + quoted(file);
}

}  // namespace

std::string quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> next_steps(const PolicyArguments& arguments, const PolicyRequest& request,
                                    const plan::PlanResult& result) {
  const plan::PolicyRow* row = result.stopped ? nullptr : plan::best_row(result);
  if (!row || !row->is_answer()) return {};
  const bool keeps = !row->candidate.options && !has_recomputed(*row) && !row->candidate.spanned;
  if (keeps) return {};
  if (checkpoints_each_layer(arguments, *row)) {
    return {"TrainingArguments(…, gradient_checkpointing=True)",
            "model.gradient_checkpointing_enable(), in your own loop"};
  }
  std::vector<std::string> steps;
  const bool edits = edits_modules(request, *row);
  const bool other_plan = edits && may_be_without_modules(request);
  if (edits && !(other_plan && arguments.output.empty())) {
    steps.push_back(edit(arguments, request.program));
  }
  std::string file = arguments.output.string();
  if (file.empty()) {
    file = std::filesystem::path(arguments.subject).stem().string() + ".plan";
    steps.push_back(plan_command(arguments, file, other_plan));
  }
  steps.push_back(
      fmt::format("with torch_ferry.execute(\"{}\"): loss = …; then loss.backward()", file));
  steps.push_back(fmt::format("Trainer(…, callbacks=[OffloadCallback(plan=\"{}\")])", file));
  return steps;
}

std::string next_steps_text(const std::vector<std::string>& steps) {
  if (steps.empty()) return "";
  std::string text = "\nTo train like this, on the command line and then in Python:\n";
  for (const std::string& step : steps) text += "  " + step + "\n";
  return text;
}

}  // namespace ferry::cli
