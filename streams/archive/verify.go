package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

var (
	errStart = errors.New("the chain has another hash before a block than the object says")
	errHash  = errors.New("a record has another hash than the object says")
	errChain = errors.New("a record does not continue the chain")
)

// verify puts the hash of the record before into each value, hashes it, and compares what the object keeps of the hashes. Its
// error comes with the sequence of the record.
func (v *verified) verify(prev []int) (sequence int64, err error) {
	hash, next, block := v.Start, v.First, 0
	v.hashes = make([]record.Hash, len(v.sequences))
	head := make([]byte, 0, 128)
	for i, s := range v.sequences {
		value := v.value(i)
		if s >= 0 {
			if s%blockRecords == 0 {
				if v.starts[block] != hash {
					return s, errStart
				}
				block++
			}
			if at := prev[i]; at >= 0 {
				hex.Encode(v.values[at:at+2*len(hash)], hash[:])
			}
			head = strconv.AppendInt(append(head[:0], `{"sequence":`...), s, 10)
			head = append(hex.AppendEncode(append(head, `,"prev":"`...), hash[:]), '"')
			if !bytes.HasPrefix(value, head) {
				return s, errChain
			}
			next = s + 1
		} else if prev[i] >= 0 {
			return next, errChain
		}
		v.hashes[i] = sha256.Sum256(value)
		if !bytes.Equal(v.hashes[i][:hashBytes], v.prefixes[i*hashBytes:][:hashBytes]) {
			return next, errHash
		}
		if s >= 0 {
			hash = v.hashes[i]
		}
	}
	v.end = hash
	return next, nil
}
