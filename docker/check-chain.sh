#!/bin/sh
# Reads a journal's records, one JSON value a line, and checks the chain with sha256 alone:
#   kcat -C -q -e -b BROKER -t trading -o beginning -f '%s\n' | sh docker/check-chain.sh
# A record counts if its prev is the hash of the last one that counted; the others are what a lost race left behind.
prev=0000000000000000000000000000000000000000000000000000000000000000
valid=0 skipped=0
while IFS= read -r value; do
  said=${value#*\"prev\":\"}
  if [ "${said%%\"*}" = "$prev" ]; then
    prev=$(printf %s "$value" | sha256sum | cut -c1-64)
    valid=$((valid + 1))
  else
    skipped=$((skipped + 1))
  fi
done
echo "records $valid skipped $skipped tip $prev"
