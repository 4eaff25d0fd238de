// MKL takes as many threads as libtorch has been told to use. OpenBLAS has one number of threads
// for the whole process and one team that all callers queue for, so it is left with one thread
// (cli/blas.h), and products are divided among the team of whoever calls: by rows or columns, never
// by what is summed up.
#include "exec/team_products.h"

#include <algorithm>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "exec/ranges.h"

namespace emplace::exec {
namespace {

using at::Tensor;

// Below this many multiplications, waking the team takes longer than it saves.
constexpr std::int64_t kWorthSharing = 100'000;
constexpr std::int64_t kTogether = 16;  // rows or columns that kernels take at once

bool shared_by_team(const Tensor& a, std::int64_t multiplications) {
  static const bool has_team = at::hasMKL();
  return !has_team && a.is_cpu() && multiplications >= kWorthSharing && at::get_num_threads() > 1;
}

// A range of rows, of columns or of batches for every thread.
template <class Body>
void share(std::int64_t count, std::int64_t together, const Body& body) {
  const std::int64_t threads = at::get_num_threads();
  const std::int64_t blocks = (count + together - 1) / together;
  const std::int64_t each = (blocks + threads - 1) / threads * together;
  for_parts((count + each - 1) / each,
            [&](std::int64_t i) { body(i * each, std::min(each, count - i * each)); });
}

std::int64_t multiplications_of(const Tensor& a, const Tensor& b) {
  return a.numel() * b.size(-1);
}

// Of the product's rows or columns, whichever are more.
template <class Multiply>
void share_matrix(const Tensor& a, const Tensor& b, Tensor& y, const Multiply& multiply) {
  const std::int64_t side = y.size(0) >= y.size(1) ? 0 : 1;
  share(y.size(side), kTogether, [&](std::int64_t start, std::int64_t length) {
    Tensor part = y.narrow(side, start, length);
    if (side == 0) {
      multiply(part, a.narrow(0, start, length), b, start, length);
    } else {
      multiply(part, a, b.narrow(1, start, length), start, length);
    }
  });
}

// Batches as one.
Tensor flat(const Tensor& x) {
  return x.dim() == 3 ? x : x.reshape({-1, x.size(-2), x.size(-1)});
}

Tensor team_bmm(const Tensor& a, const Tensor& b) {
  if (!shared_by_team(a, multiplications_of(a, b))) return at::bmm(a, b);
  Tensor y = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  share(a.size(0), 1, [&](std::int64_t start, std::int64_t length) {
    Tensor part = y.narrow(0, start, length);
    at::bmm_out(part, a.narrow(0, start, length), b.narrow(0, start, length));
  });
  return y;
}

}  // namespace

Tensor team_mm(const Tensor& a, const Tensor& b) {
  if (!shared_by_team(a, multiplications_of(a, b))) return at::mm(a, b);
  Tensor y = at::empty({a.size(0), b.size(1)}, a.options());
  share_matrix(a, b, y,
               [](Tensor& part, const Tensor& left, const Tensor& right, std::int64_t,
                  std::int64_t) { at::mm_out(part, left, right); });
  return y;
}

Tensor team_addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta, double alpha) {
  if (!shared_by_team(a, multiplications_of(a, b))) return at::addmm(c, a, b, beta, alpha);
  Tensor y = at::empty({a.size(0), b.size(1)}, a.options());
  const Tensor added = c.expand_as(y);
  share_matrix(a, b, y,
               [&](Tensor& part, const Tensor& left, const Tensor& right, std::int64_t start,
                   std::int64_t length) {
                 const std::int64_t side = y.size(0) >= y.size(1) ? 0 : 1;
                 at::addmm_out(part, added.narrow(side, start, length), left, right, beta, alpha);
               });
  return y;
}

Tensor team_matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 2 && b.dim() == 2) return team_mm(a, b);
  const auto batch = [](const Tensor& x) {
    return x.sizes().slice(0, std::max<std::int64_t>(x.dim() - 2, 0));
  };
  if (a.dim() < 3 || batch(a) != batch(b) || a.numel() == 0 || b.numel() == 0) {
    return at::matmul(a, b);
  }
  std::vector<std::int64_t> shape = a.sizes().vec();
  shape.back() = b.size(-1);
  return team_bmm(flat(a), flat(b)).view(shape);
}

}  // namespace emplace::exec
