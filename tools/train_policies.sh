#!/usr/bin/env bash
# Trains the policies that are shipped (policies/KIND.policy), and those that docs/policies.md judges them by.
#
#   tools/train_policies.sh gdp mars placeto    # into policies/
#   tools/train_policies.sh practice imitation untrained plain    # gdp by RL alone, by imitation alone, not at all,
#                                                                   and without superposition
#   tools/train_policies.sh no-cnn no-rnn no-transformer    # gdp without one kind of architecture
#   tools/train_policies.sh gdp-ptb placeto-ptb ...    # on one family alone (cifar10, nmt, ptb)
#   tools/train_policies.sh nmt-both nmt-imitation nmt-practice nmt-plain nmt-untrained    # the same for one cluster,
#                                                      in minutes: imitation, then practice; one of them; ...;
#                                                      "batch": on the graphs that policies of the family are measured on
#   tools/train_policies.sh ptb-placeto-both ptb-placeto-untrained ...    # the same of placeto
#
# A training that was interrupted goes on where it was (OUT/NAME.state).
# EMPLACE names the program (default: build/emplace), OUT the folder (default: policies, and build/policies for the
# others), THREADS how many threads to use. What comes out does not depend on THREADS, only on libtorch's version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
emplace=${EMPLACE:-$root/build/emplace}
out=${OUT:-$root/policies}  # every policy there becomes part of the library
judges=${OUT:-$root/build/policies}
threads=${THREADS:-$(nproc)}

cnn="zoo:alexnet zoo:resnet-50 zoo:inception-v3 zoo:vgg-16 zoo:densenet-121 zoo:nasnet-small:layers=6 zoo:wavenet
  zoo:wide-resnet-50-2 family:cifar10:seed=0..7"
rnn="zoo:rnnlm:sequence=8 zoo:rnnlm:sequence=6,layers=2 zoo:gnmt-2:sequence=6 zoo:gnmt-2:sequence=10
  zoo:gnmt-8:sequence=3 family:nmt:seed=0..7 family:ptb:seed=0..7"
transformer="zoo:bert-base zoo:bert-base:layers=6 zoo:gpt2-small zoo:gpt2-small:layers=6 zoo:transformer-base
  zoo:transformer-big zoo:t5-small zoo:vit-b-16 zoo:transformer-xl-4 zoo:transformer-xl-2"
imitate="--imitate anneal --imitate-evaluations 5000"

clusters="2xp100 4xp100 8xv100-nvlink 2xa100+2xt4 4xh100-pcie"

unknown() {
  echo "$1: expected one of the names that the head of this file lists" >&2
  exit 2
}

# train KIND NAME "GRAPHS" OPTIONS...
train() {
  local kind=$1 name=$2 graphs=$3 folder=$judges
  if [[ $kind == "$name" ]]; then folder=$out; fi  # shipped
  mkdir -p "$folder" "$judges"
  shift 3
  local state="$judges/$name.state"
  local resume=()
  if [[ -e $state ]]; then resume=(--resume); fi
  # shellcheck disable=SC2086  # lists of words
  "$emplace" train --policy "$kind" --graphs $graphs \
    --clusters $clusters --memory 0.4,0.8 --seed 1 --threads "$threads" "$@" \
    --checkpoint "$state" "${resume[@]}" --output "$folder/$name.policy"
  rm -f "$state" "$state.lock"
}

# train_part FAMILY-HOW or FAMILY-placeto-HOW
train_part() {
  local family=${1%%-*} clusters=4xp100 seeds=0..15 kind=gdp half=80
  if [[ $1 == *-placeto-* ]]; then kind=placeto half=20; fi
  local imitate="--imitate anneal --imitate-evaluations 2000"
  local then="$imitate --imitation-steps $half --steps $half"
  local how
  case ${1##*-} in
    both) how=$then ;;
    imitation) how="$imitate --imitation-steps $((2 * half)) --steps 0" ;;
    practice) how="--steps $((2 * half))" ;;
    plain) how="$then --superposition false" ;;
    untrained) how="--steps 0" ;;
    batch) how=$then seeds=100..103 ;;
    *) unknown "$1" ;;
  esac
  # shellcheck disable=SC2086  # lists of words
  train "$kind" "$1" "family:$family:seed=$seeds" --tasks-per-step 4 $how
}

both="$imitate --imitation-steps 300 --steps 600 --learning-rate 1e-3"
for name in "$@"; do
  case $name in
    gdp) train gdp gdp "$cnn $rnn $transformer" $both ;;
    mars) train mars mars "$cnn $rnn $transformer" $imitate --encoder-steps 100 --imitation-steps 200 --steps 300 --learning-rate 5e-4 ;;
    placeto) train placeto placeto "$cnn $rnn $transformer" $imitate --imitation-steps 100 --steps 30 ;;
    practice) train gdp practice "$cnn $rnn $transformer" --steps 900 ;;
    imitation) train gdp imitation "$cnn $rnn $transformer" $imitate --imitation-steps 900 --steps 0 ;;
    untrained) train gdp untrained "$cnn $rnn $transformer" --steps 0 ;;
    plain) train gdp plain "$cnn $rnn $transformer" $both --superposition false ;;
    no-cnn) train gdp no-cnn "$rnn $transformer" $both ;;
    no-rnn) train gdp no-rnn "$cnn $transformer" $both ;;
    no-transformer) train gdp no-transformer "$cnn $rnn" $both ;;
    gdp-cifar10 | gdp-nmt | gdp-ptb) train gdp "$name" "family:${name#gdp-}:seed=0..15" $both ;;
    placeto-cifar10 | placeto-nmt | placeto-ptb)
      train placeto "$name" "family:${name#placeto-}:seed=0..15" $imitate --imitation-steps 100 --steps 30
      ;;
    cifar10-* | nmt-* | ptb-*) train_part "$name" ;;
    *) unknown "$name" ;;
  esac
done
