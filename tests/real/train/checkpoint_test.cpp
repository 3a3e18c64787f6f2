// A training that was saved and resumed computes the bits of one that was not.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "formats/error.h"
#include "formats/text_file.h"
#include "real/train/checkpoint.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

// A workload with its optimiser, stepped by hand.
struct Trainee {
  explicit Trainee(const Options& options)
      : workload(make_workload(options)),
        optimizer(workload->module().parameters(),
                  torch::optim::AdamWOptions(options.learning_rate)) {}

  std::vector<float> train(std::int64_t from, std::int64_t to) {
    std::vector<float> losses;
    for (std::int64_t step = from; step < to; ++step) {
      torch::Tensor loss = workload->loss(workload->batch(step));
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(loss.item<float>());
    }
    return losses;
  }

  std::unique_ptr<Workload> workload;
  torch::optim::AdamW optimizer;
};

bool same_state(torch::nn::Module& a, torch::nn::Module& b) {
  const auto equal = [](const std::vector<torch::Tensor>& x, const std::vector<torch::Tensor>& y) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), torch::equal);
  };
  return equal(a.parameters(), b.parameters()) && equal(a.buffers(), b.buffers());
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : file_(folder_.path("state")) {
    options_.gpt = {.layers = 2, .width = 16, .heads = 2, .context = 16, .dropout = 0.2};
    options_.batch = 2;
    options_.data = folder_.text();
  }

  void expect_same_after_resume() {
    Trainee whole(options_);
    const std::vector<float> expected = whole.train(0, 6);
    Trainee first(options_);
    first.train(0, 3);
    save_state(file_, *first.workload, first.optimizer, 3);
    Trainee second(options_);
    torch::rand({17});  // the generator is elsewhere
    EXPECT_EQ(resume_state(file_, *second.workload, second.optimizer), 3);
    const std::vector<float> losses = second.train(3, 6);
    EXPECT_EQ(losses, std::vector<float>(expected.begin() + 3, expected.end()));
    EXPECT_TRUE(same_state(second.workload->module(), whole.workload->module()));
    // Saved again, it is the same file.
    save_state(file_ + "2", *second.workload, second.optimizer, 6);
    Trainee third(options_);
    resume_state(file_ + "2", *third.workload, third.optimizer);
    EXPECT_TRUE(same_state(third.workload->module(), whole.workload->module()));
  }

  // Nothing is changed, and the message has this in it.
  void expect_refused(const std::string& content, const std::string& message) {
    folder_.write("bad", content);
    Trainee trainee(options_);
    Trainee untouched(options_);
    try {
      resume_state(folder_.path("bad"), *trainee.workload, trainee.optimizer);
      FAIL() << message;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with(folder_.path("bad"))) << what;
      EXPECT_NE(what.find(message), std::string::npos) << what;
    }
    EXPECT_TRUE(same_state(trainee.workload->module(), untouched.workload->module()));
  }

  std::string saved() {
    Trainee trainee(options_);
    trainee.train(0, 2);
    save_state(file_, *trainee.workload, trainee.optimizer, 2);
    return read_file(file_);
  }

  test::Folder folder_;
  std::string file_;
  Options options_;
};

TEST_F(CheckpointTest, AGptGoesOnBitForBit) { expect_same_after_resume(); }

TEST_F(CheckpointTest, AResnetGoesOnBitForBit) {
  options_.model = Model::kResnet;
  options_.resnet = {.layers = 1, .width = 4};
  options_.images = 20;
  expect_same_after_resume();
}

TEST_F(CheckpointTest, TheFirstLineSaysWhatItIs) {
  const std::string content = saved();
  EXPECT_TRUE(content.starts_with(R"({"ferry":"training","schema":1,"training":{"model":"gpt",)"));
  EXPECT_NE(content.find(R"("step":2,"bytes":)"), std::string::npos);
}

TEST_F(CheckpointTest, NothingIsLeftBesideTheFile) {
  saved();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path(""))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"state", "text"}));
}

TEST_F(CheckpointTest, ForeignFilesAreRefused) {
  expect_refused("", "expected a training's state");
  expect_refused("{\"ferry\":\"plan\"}\n", "expected a training's state");
  expect_refused("{\"ferry\":\"training\",\n", "expected");
  expect_refused("{\"ferry\":\"training\",\"schema\":2}\nx", "schema");
  expect_refused("{\"ferry\":\"training\",\"schema\":1}\nx", "training");
}

TEST_F(CheckpointTest, AFileCutShortIsRefusedWhereverItIsCut) {
  const std::string content = saved();
  for (const std::size_t size : {content.size() - 1, content.size() / 2, content.find('\n') + 1}) {
    expect_refused(content.substr(0, size), "it is cut short or not whole");
  }
  expect_refused(content.substr(0, content.find('\n')), "expected a training's state");
  expect_refused(content + "x", "it is cut short or not whole");
}

TEST_F(CheckpointTest, ADamagedFileIsRefused) {
  std::string content = saved();
  content[content.size() - 1000] ^= 1;
  expect_refused(content, "damaged");
}

TEST_F(CheckpointTest, AnotherTrainingIsRefusedWithWhatDiffers) {
  const std::string content = saved();
  const Options own = options_;
  options_.gpt.layers = 1;
  expect_refused(content, "expected the same training: --layers was 2 and is 1");
  options_ = own;
  options_.seed = 2;
  expect_refused(content, "--seed was 1 and is 2");
  options_ = own;
  options_.learning_rate = 0.5;
  expect_refused(content, "--lr was 0.001 and is 0.5");
  options_ = own;
  folder_.write("text/more.txt", "another text");
  expect_refused(content, "--data was ");
  options_.model = Model::kResnet;
  expect_refused(content, "model was gpt and is resnet");
}

TEST_F(CheckpointTest, WhereItCannotBeWrittenTheOldOneStays) {
  const std::string content = saved();
  Trainee trainee(options_);
  EXPECT_THROW(save_state(folder_.path("nowhere/state"), *trainee.workload, trainee.optimizer, 0),
               std::system_error);
  EXPECT_EQ(read_file(file_), content);
}

}  // namespace
}  // namespace ferry::real::train
