// The ranks that execute steps together (exec/peers.h), over a transport between processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dist/post.h"
#include "dist/transport.h"
#include "exec/peers.h"

namespace emplace {

class RankPeers final : public exec::Peers, private dist::Post::Listener {
 public:
  // `lost_after`: seconds of silence.
  RankPeers(std::unique_ptr<dist::Transport> transport, double lost_after);
  ~RankPeers() override;

  int rank() const override { return post_->rank(); }
  int size() const override { return post_->size(); }
  std::string machine() const override;

  void listen(exec::PeerEvents* events) override;
  void tell(int to, exec::Notice notice) override;
  void send(int to, int tag, std::span<const std::byte> buffer,
            std::function<void()> done) override;
  void receive(int from, int tag, std::span<std::byte> buffer, std::function<void()> done) override;
  void forget() override;

  // This rank cannot take part: the others end with these words.
  void leave(const std::string& why);
  // The last call. MPI is ended as well where nobody was lost.
  void close();

 private:
  using Ticket = dist::Transport::Ticket;
  struct Moving {  // a buffer, in as many pieces as the transport takes at a time
    int pieces = 0;
    std::function<void()> done;
  };

  void on_message(int from, dist::Kind kind, dist::Reader& body) override;
  void on_lost(int rank, const std::string& why) override;
  void on_tick() override;
  // Posts the buffer piece by piece.
  template <class Byte>
  void move(std::span<Byte> buffer, std::function<void()> done,
            const std::function<Ticket(std::span<Byte>)>& post);

  std::recursive_mutex hearing_;  // held while something is heard or done
  exec::PeerEvents* events_ = nullptr;
  std::vector<std::pair<int, exec::Notice>> kept_;  // came while nobody listened
  std::vector<std::pair<int, std::string>> kept_losses_;
  std::atomic<bool> in_order_{true};  // nobody was lost, and nobody has left
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // taken after the other
  std::unordered_map<Ticket, std::shared_ptr<Moving>> moving_;
  std::unique_ptr<dist::Post> post_;  // whose thread ends first
};

}  // namespace emplace
