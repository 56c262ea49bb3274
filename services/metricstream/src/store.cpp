#include "store.hpp"

#include "double_mutex_store.hpp"
#include "per_client_store.hpp"
#include "queued_store.hpp"
#include "ring_store.hpp"

namespace metricstream {

std::unique_ptr<Store> make_store(const Settings& settings, Counters& counters) {
  switch (settings.store) {
    case StoreKind::PerClient: return std::make_unique<PerClientStore>(settings, counters);
    case StoreKind::Ring: return std::make_unique<RingStore>(settings, counters);
    case StoreKind::DoubleMutex: break;
  }
  return std::make_unique<DoubleMutexStore>(settings, counters);
}

std::unique_ptr<Store> make_queued(const Settings& settings, Counters& counters,
                                   std::unique_ptr<Store> behind) {
  return std::make_unique<QueuedStore>(settings, counters, std::move(behind));
}

}  // namespace metricstream
