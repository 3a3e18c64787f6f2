#include "real/train/checkpoint.h"

#include <ATen/Context.h>
#include <fmt/core.h>
#include <torch/serialize/archive.h>
#include <torch/serialize/tensor.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"
#include "real/train/digest.h"

namespace ferry::real::train {

namespace {

constexpr std::int64_t kSchema = 1;

// The default generators that a training uses: the CPU's, and that of its device if it has one.
std::vector<at::Generator> generators(torch::nn::Module& module) {
  std::vector<at::Generator> all = {
      at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CPU))};
  const c10::Device device = module.parameters().at(0).device();
  if (!device.is_cpu()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

std::string archive_text(Workload& workload, torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive model;
  workload.module().save(model);
  archive.write("model", model);
  torch::serialize::OutputArchive moments;
  optimizer.save(moments);
  archive.write("optimizer", moments);
  std::size_t number = 0;
  for (at::Generator& generator : generators(workload.module())) {
    const std::lock_guard lock(generator.mutex());
    archive.write("generator" + std::to_string(number++), generator.get_state(),
                  /*is_buffer=*/true);
  }
  std::string text;
  archive.save_to([&text](const void* bytes, std::size_t size) {
    text.append(static_cast<const char*>(bytes), size);
    return size;
  });
  return text;
}

Json header(const Workload& workload, std::int64_t step, std::string_view archive) {
  Json training = Json::object();
  for (const auto& [key, value] : workload.identity()) training[key] = value;
  return {{"ferry", "training"}, {"schema", kSchema},       {"training", training},
          {"step", step},        {"bytes", archive.size()}, {"digest", digest(archive)}};
}

// Returns the step in the header if everything else in it matches.
std::int64_t check(const std::string& file, std::string_view line, std::string_view archive,
                   const Workload& workload) {
  const Json json = parse_json(line, file, 1);
  Fields fields(json, file, 1);
  if (fields.text("ferry") != "training") fields.expected("ferry", "\"training\"");
  fields.integer("schema", kSchema, kSchema);
  const Json& training = fields.at("training");
  const std::int64_t step = fields.integer("step");
  const std::int64_t bytes = fields.integer("bytes");
  const std::string sum = fields.text("digest");
  if (bytes != static_cast<std::int64_t>(archive.size())) {
    throw InputError(file, 0,
                     fmt::format("expected {} bytes after the first line, found {}: it is "
                                 "cut short or not whole",
                                 bytes, archive.size()));
  }
  if (sum != digest(archive)) {
    throw InputError(file, 0, "damaged: the digest of its bytes is not the one in its header");
  }
  Fields saved(training, file, 1);
  const Workload::Identity identity = workload.identity();
  for (const auto& [key, value] : identity) {
    const std::string was = saved.text(key);
    if (was != value) {
      throw InputError(
          file, 1, fmt::format("expected the same training: {} was {} and is {}", key, was, value));
    }
  }
  for (const auto& item : training.items()) {
    const std::string& key = item.key();
    const auto same = [&](const auto& each) { return each.first == key; };
    if (std::none_of(identity.begin(), identity.end(), same)) {
      throw InputError(file, 1,
                       fmt::format("expected the same training: {} was {} and is now the default",
                                   key, saved.text(key)));
    }
  }
  return step;
}

// Reads everything before it changes anything, so an unreadable archive changes nothing.
void restore(torch::serialize::InputArchive& archive, Workload& workload,
             torch::optim::Optimizer& optimizer) {
  torch::serialize::InputArchive model;
  torch::serialize::InputArchive moments;
  archive.read("model", model);
  archive.read("optimizer", moments);
  std::vector<at::Generator> all = generators(workload.module());
  std::vector<torch::Tensor> states(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    archive.read("generator" + std::to_string(i), states[i], /*is_buffer=*/true);
  }
  workload.module().load(model);
  optimizer.load(moments);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::lock_guard lock(all[i].mutex());
    all[i].set_state(states[i].cpu());
  }
}

}  // namespace

void save_state(const std::filesystem::path& file, Workload& workload,
                torch::optim::Optimizer& optimizer, std::int64_t step) {
  const std::string archive = archive_text(workload, optimizer);
  AtomicFile out(file);
  out.write(header(workload, step, archive).dump() + "\n");
  out.write(archive);
  out.commit();
}

std::int64_t resume_state(const std::filesystem::path& path, Workload& workload,
                          torch::optim::Optimizer& optimizer) {
  const std::string file = path.string();
  const std::string content = read_file(path);
  const std::size_t end = content.find('\n');
  if (!content.starts_with("{\"ferry\":\"training\"") || end == std::string::npos) {
    throw InputError(file, 0, "expected a training's state, as --save writes it");
  }
  const std::string_view archive = std::string_view(content).substr(end + 1);
  const std::int64_t step =
      check(file, std::string_view(content).substr(0, end), archive, workload);
  try {
    torch::serialize::InputArchive input;
    input.load_from(archive.data(), archive.size(), c10::Device(c10::DeviceType::CPU));
    restore(input, workload, optimizer);
  } catch (const c10::Error& error) {
    throw InputError(file, 0, std::string("cannot be read: ") + error.what_without_backtrace());
  }
  return step;
}

}  // namespace ferry::real::train
