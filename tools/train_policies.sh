#!/usr/bin/env bash
# Trains the policies that are shipped (policies/KIND.policy), and those that docs/policies.md judges them by.
#
#   tools/train_policies.sh gdp mars placeto    # into policies/
#   tools/train_policies.sh practice            # gdp without imitation
#   tools/train_policies.sh no-cnn no-rnn no-transformer    # gdp without one kind of architecture
#
# EMPLACE names the program (default: build/emplace), OUT the folder (default: policies, and build/policies for the
# others), THREADS how many threads to use. What comes out does not depend on THREADS, only on libtorch's version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
emplace=${EMPLACE:-$root/build/emplace}
out=${OUT:-$root/policies}  # every policy there becomes part of the library
judges=${OUT:-$root/build/policies}
threads=${THREADS:-$(nproc)}

cnn="zoo:alexnet zoo:resnet-50 zoo:inception-v3 zoo:vgg-16 zoo:densenet-121 zoo:nasnet-small:layers=6 zoo:wavenet family:cifar10:seed=0..3"
rnn="zoo:rnnlm:sequence=8 zoo:gnmt-2:sequence=6 family:nmt:seed=0..3 family:ptb:seed=0..3"
transformer="zoo:bert-base zoo:gpt2-small zoo:transformer-base zoo:t5-small zoo:vit-b-16 zoo:transformer-xl-4"
imitate="--imitate anneal --imitate-evaluations 5000"

# train KIND NAME "GRAPHS" OPTIONS...
train() {
  local kind=$1 name=$2 graphs=$3 folder=$judges
  if [[ $kind == "$name" ]]; then folder=$out; fi
  mkdir -p "$folder"
  shift 3
  # shellcheck disable=SC2086  # lists of words
  "$emplace" train --policy "$kind" --graphs $graphs \
    --clusters 2xp100 4xp100 8xv100-nvlink 2xa100+2xt4 4xh100-pcie --memory 0.4,0.8 \
    --seed 1 --threads "$threads" "$@" --output "$folder/$name.policy"
}

for name in "$@"; do
  case $name in
    gdp) train gdp gdp "$cnn $rnn $transformer" $imitate --imitation-steps 300 --steps 600 --learning-rate 1e-3 ;;
    mars) train mars mars "$cnn $rnn $transformer" $imitate --encoder-steps 100 --imitation-steps 200 --steps 300 --learning-rate 5e-4 ;;
    placeto) train placeto placeto "$cnn $rnn $transformer" $imitate --imitation-steps 100 --steps 30 ;;
    practice) train gdp practice "$cnn $rnn $transformer" --steps 900 ;;
    no-cnn) train gdp no-cnn "$rnn $transformer" $imitate --imitation-steps 300 --steps 600 --learning-rate 1e-3 ;;
    no-rnn) train gdp no-rnn "$cnn $transformer" $imitate --imitation-steps 300 --steps 600 --learning-rate 1e-3 ;;
    no-transformer) train gdp no-transformer "$cnn $rnn" $imitate --imitation-steps 300 --steps 600 --learning-rate 1e-3 ;;
    *)
      echo "$name: expected gdp, mars, placeto, practice, no-cnn, no-rnn or no-transformer" >&2
      exit 2
      ;;
  esac
done
