package commitment

import (
	"crypto/sha256"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
)

// Committer commits to the records of one journal. It is not safe for concurrent use; two of them share nothing.
type Committer struct {
	splitter *disclose.Splitter
	hash     disclose.Hash
	mac      mac
	leaves   []tlog.Hash

	// Of the record that is split.
	key      *EpochKey
	sequence int64
	record   [sha256.Size]byte // the SHA-256 of its value
	hashing  Hash              // the key of hashed values; zero until one is met
}

// NewCommitter returns a committer for the records of a journal.
func NewCommitter(classes *disclose.Policy, journal string) (*Committer, error) {
	splitter, err := classes.Splitter(journal)
	if err != nil {
		return nil, err
	}
	c := &Committer{splitter: splitter}
	c.hash = c.hashed
	return c, nil
}

// Root returns the root of the valid record with the value. key is the epoch key for the sequence.
func (c *Committer) Root(key *EpochKey, sequence int64, value []byte) (Hash, error) {
	if _, err := c.commit(key, sequence, value); err != nil {
		return Hash{}, err
	}
	return Hash(RootOf(c.leaves)), nil
}

// Tree returns the units of a record and what proves them.
func (c *Committer) Tree(key *EpochKey, sequence int64, value []byte) (*Tree, error) {
	units, err := c.commit(key, sequence, value)
	if err != nil {
		return nil, err
	}
	t := &Tree{Sequence: sequence, Units: slices.Clone(units), key: key, record: c.record, leaves: slices.Clone(c.leaves)}
	for i := range t.Units { // the splitter uses its memory again
		u := &t.Units[i]
		u.Bytes, u.Owner = slices.Clone(u.Bytes), slices.Clone(u.Owner)
	}
	return t, nil
}

// commit computes the leaf hashes of a record's units.
func (c *Committer) commit(key *EpochKey, sequence int64, value []byte) ([]disclose.Unit, error) {
	c.key, c.sequence, c.record, c.hashing, c.leaves = key, sequence, sha256.Sum256(value), Hash{}, c.leaves[:0]
	units, err := c.splitter.Split(value, c.hash)
	if err != nil {
		return nil, err
	}
	for i := range units {
		salt := key.salt(&c.mac, sequence, &c.record, i)
		c.leaves = append(c.leaves, leafOf(&c.mac, salt, uint32(i), uint32(len(units)), units[i].Bytes))
	}
	return units, nil
}

// hashed returns the keyed hash of a value that units do not show.
func (c *Committer) hashed(value []byte) [32]byte {
	if c.hashing == (Hash{}) {
		c.hashing = c.key.hashing(&c.mac, c.sequence, &c.record)
	}
	c.mac.begin((*[KeySize]byte)(&c.hashing))
	c.mac.buf = append(c.mac.buf, value...)
	return c.mac.end()
}

// recordHash is tlog.RecordHash without allocating.
func recordHash(data Hash) tlog.Hash {
	var b [1 + sha256.Size]byte
	copy(b[1:], data[:])
	return sha256.Sum256(b[:])
}
