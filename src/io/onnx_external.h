// Contents of tensors that lie outside an ONNX file, beside it.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include "base/units.h"

#include "io/file_calls.h"

namespace emplace {

// Every tensor with contents of the node's attributes, bodies included.
void for_each_tensor(onnx::NodeProto& node, const std::function<void(onnx::TensorProto&)>& visit);

// Copies the contents of external tensors from the files beside one model into one new file beside
// another, piece by piece, whatever their size. Contents whose file is not there stay where the
// tensor says, and are counted.
class ExternalCopier {
 public:
  // Of the model that is read; `to_folder` and `file`: of the one that is written. The file is
  // made when there is something to put into it.
  ExternalCopier(std::string from_folder, std::string to_folder, std::string file);

  // Throws an Error that names the tensor when its file is shorter than the tensor says, lies
  // outside the folder, behind a link or cannot be read, or when the new one cannot be written.
  void copy(onnx::TensorProto& tensor);
  void finish();

  Bytes written() const { return end_; }
  // Files that are not there.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  // Where something went wrong.
  void refuse(const std::string& problem) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  // Nothing where it cannot be; errno says why, ELOOP where a link is on the way.
  static File open_beneath(const std::string& folder, const std::filesystem::path& relative);
  void append(std::FILE* from, Bytes offset, Bytes length, const std::string& path);

  std::string from_folder_;
  std::string path_;  // of the new file
  std::string name_;
  OutputFile file_;
  Bytes end_ = 0;
  std::vector<std::string> missing_;
};

}  // namespace emplace
