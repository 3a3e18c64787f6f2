// What was read is run: a program as it is, a plan and a card on a program that is known to be
// fine.
#pragma once

#include <string>

#include "formats/hazard_file.h"
#include "formats/plan.h"
#include "formats/program.h"
#include "scenarios/hardware.h"
#include "scenarios/kernel_times.h"

namespace ferry::fuzz {

// A step of this is simulated: kept and offloaded, checked. What it may cost is a matter of
// milliseconds: past that it ends as a step ends that is beyond the simulator's limits.
void run_program(const Program& program);

void run_plan(const Plan& plan);
void run_card(const Hardware& card);
void run_times(const TimesTable& times);

// Judged, where it is short; the schedule that is found shows what it is said to show.
void run_hazard(const HazardFile& hazard);

}  // namespace ferry::fuzz
