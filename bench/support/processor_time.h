// Budgets that count processor time, for machines that others use, too.
#pragma once

namespace emplace::bench {

// From now on the steady clock of this process, by which budgets go, tells each thread how long it
// has run. A search must then keep to the thread that made its budget: one thread for each run.
// What waits for a time would wait wrongly; nothing that a search does waits.
void count_processor_time();

}  // namespace emplace::bench
