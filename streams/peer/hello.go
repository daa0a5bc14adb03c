package peer

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Path is the path of the route that serves streams.
const Path = "/internal/v2/commands"

// wire is the number of the protocol. Nodes with different numbers have no streams to each other.
const wire = 1

// The revisions of the protocol. Each side sends its revision in an HTTP header, and the stream uses the lower one. The stream's key
// depends on it, so a third party cannot lower it.
const (
	withoutForms = 1 // of build 0.1.0, which sends no header
	withForms    = 2 // each side lists the forms of the payloads that it knows

	revision       = withForms
	revisionHeader = "X-Perpetua-Revision"
)

// revisionOf returns the revision of a stream to a side that has sent a header.
func revisionOf(h http.Header) uint64 {
	n, err := strconv.ParseUint(h.Get(revisionHeader), 10, 32)
	if err != nil || n < withoutForms {
		return withoutForms
	}
	return min(n, revision)
}

// nonce is random: a process of a node, or one attempt to open a stream.
type nonce [16]byte

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// hello is the first frame of a stream, from the node. Its proof is by a key that all nodes of the venue have.
type hello struct {
	wire        uint64
	node, build string
	incarnation nonce // the node's process
	nonce       nonce
	shard       submit.Shard
}

func (h *hello) visit(c *pack.Coder) {
	c.Uint(&h.wire)
	pack.String(c, &h.node)
	pack.String(c, &h.build)
	c.Raw(h.incarnation[:])
	c.Raw(h.nonce[:])
	pack.String(c, &h.shard.Journal)
	partition := int(h.shard.Partition)
	pack.Small(c, &partition)
	h.shard.Partition = int32(partition)
}

// welcome is the owner's answer. Its proof is by the stream's key.
type welcome struct {
	node, build string
	incarnation nonce // the owner's process
	nonce       nonce
	term        int64
	taken       record.Hash // of the term's first record
	commands    uint64      // credit: commands that may be unanswered
	bytes       uint64      // credit: bytes of their payloads
}

func (w *welcome) visit(c *pack.Coder) {
	pack.String(c, &w.node)
	pack.String(c, &w.build)
	c.Raw(w.incarnation[:])
	c.Raw(w.nonce[:])
	pack.Int(c, &w.term)
	c.Raw(w.taken[:])
	c.Uint(&w.commands)
	c.Uint(&w.bytes)
}

// opened is the message with which the owner opens the stream for commands.
type opened struct {
	now stamp
	// earlier reports whether this process of the node had a stream before. last is the highest number that the
	// owner received over it.
	earlier bool
	last    uint64
	forms   []Form // which the owner knows; nil in a revision without them
}

// visit visits the message in a revision.
func (o *opened) visit(revision uint64) func(*pack.Coder) {
	return func(c *pack.Coder) {
		pack.Int(c, &o.now)
		c.Bool(&o.earlier)
		c.Uint(&o.last)
		if revision >= withForms {
			visitForms(&o.forms)(c)
		}
	}
}

// visitOpen visits the message with which the node proves that it has the key.
func visitOpen(revision uint64, forms *[]Form) func(*pack.Coder) {
	if revision < withForms {
		return func(*pack.Coder) {}
	}
	return visitForms(forms)
}

// binding is the input of a stream's key. Each side fills it from its own sources, so that the keys differ if the sides do.
type binding struct {
	revision uint64
	venue    string    // the audience of the venue's tokens, which differs in a copy of the venue
	log      string    // the identity of the Kafka cluster and topic
	journal  scalar.ID // from the genesis record
	shard    submit.Shard
	term     int64
	taken    record.Hash
}

// streamKey derives the key of a stream.
func streamKey(master []byte, node, owner nonce, b binding) ([]byte, error) {
	info := pack.Append(nil, func(c *pack.Coder) {
		partition := int(b.shard.Partition)
		c.Uint(&b.revision)
		pack.String(c, &b.venue)
		pack.String(c, &b.log)
		c.Raw(b.journal[:])
		pack.String(c, &b.shard.Journal)
		pack.Small(c, &partition)
		pack.Int(c, &b.term)
		c.Raw(b.taken[:])
	})
	key, err := hkdf.Key(sha256.New, master, append(node[:], owner[:]...), string(info), sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("peer: derive the key of a stream: %w", err)
	}
	return key, nil
}
