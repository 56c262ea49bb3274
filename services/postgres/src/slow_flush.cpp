// Preloaded into PostgreSQL: each fdatasync lasts at least FLUSH_US microseconds, as on a slower
// disk. PostgreSQL flushes its WAL by fdatasync, and all who wait for a flush wait as long.
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr long NS_PER_US = 1000, NS_PER_S = 1'000'000'000;

long least_ns() {
    const char* text = std::getenv("FLUSH_US");
    return text ? std::atol(text) * NS_PER_US : 0;
}

}  // namespace

extern "C" int fdatasync(int file) {
    static const long LEAST_NS = least_ns();
    timespec end{};
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (end.tv_nsec + LEAST_NS) / NS_PER_S;
    end.tv_nsec = (end.tv_nsec + LEAST_NS) % NS_PER_S;
    const auto result = static_cast<int>(syscall(SYS_fdatasync, file));
    const int error = errno;
    if (LEAST_NS > 0) {
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
        }
    }
    errno = error;
    return result;
}
