package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive/columns"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// objectMagic is the first line of an object. The rest is sealed.
const objectMagic = "perpetua range 1\n"

// objectHead is the first line of JSON of an object, before its chunks.
type objectHead struct {
	Journal    string      `json:"journal"`
	Partition  int32       `json:"partition"`
	Partitions int32       `json:"partitions"`
	JournalID  scalar.ID   `json:"journal_id"`
	Chunks     []chunkHead `json:"chunks"`
}

// sealObject returns the blob of an object: the first line, and sealed with its key as associated data, the header and the chunks.
func sealObject(c *Config, key string, l log, heads []chunkHead, chunks []byte) ([]byte, error) {
	line, err := json.Marshal(objectHead{l.journal, l.partition, l.partitions, l.id, heads})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	sealed, err := c.Box.Seal(append(append(line, '\n'), chunks...), associatedData(key, l.id))
	return append([]byte(objectMagic), sealed...), err
}

func associatedData(key string, id scalar.ID) seal.AssociatedData {
	return seal.AssociatedData{Owner: id.String(), Field: key, Type: "archive"}
}

// object is an open object. Its chunks are decoded one by one.
type object struct {
	cfg      *Config
	manifest *Manifest
	log      log
	heads    []chunkHead
	chunks   [][]byte
}

// readObject reads and unseals the object of a manifest.
func readObject(ctx context.Context, c *Config, m *Manifest) (*object, error) {
	wrong := func(d Damage, err error) error { return &Error{Key: m.Object, Sequence: m.First, Damage: d, Err: err} }
	b, err := c.Store.Read(ctx, m.Object, maxBlob)
	switch {
	case blob.Missing(err):
		return nil, wrong(Missing, nil)
	case err != nil:
		return nil, fmt.Errorf("archive: reading %s: %w", m.Object, err)
	case int64(len(b)) < m.Bytes:
		return nil, wrong(Cut, fmt.Errorf("it has %d bytes, not %d", len(b), m.Bytes))
	case sha256.Sum256(b) != m.Hash:
		return nil, wrong(Damaged, errors.New("its hash is not the one in the manifest"))
	}
	return openObject(c, m, b)
}

// openObject unseals an object.
func openObject(c *Config, m *Manifest, b []byte) (*object, error) {
	wrong := func(d Damage, err error) error { return &Error{Key: m.Object, Sequence: m.First, Damage: d, Err: err} }
	sealed, ok := bytes.CutPrefix(b, []byte(objectMagic))
	if !ok {
		line, _, _ := bytes.Cut(b[:min(len(b), 80)], []byte("\n"))
		if bytes.HasPrefix(line, []byte(objectMagic[:len(objectMagic)-2])) {
			return nil, wrong(Version, fmt.Errorf("it begins with %q", line))
		}
		return nil, wrong(Damaged, errForm)
	}
	plain, err := c.Box.Open(sealed, associatedData(m.Object, m.Base.JournalID))
	var other *seal.WrongKeyError
	if errors.As(err, &other) {
		return nil, wrong(Foreign, err)
	}
	if err != nil {
		return nil, wrong(Damaged, err)
	}
	line, rest, _ := bytes.Cut(plain, []byte("\n"))
	var head objectHead
	if err := json.Unmarshal(line, &head, json.RejectUnknownMembers(true)); err != nil {
		return nil, wrong(Damaged, err)
	}
	if head.Journal != m.Base.Journal || head.Partition != m.Base.Partition || head.JournalID != m.Base.JournalID || head.Partitions != m.Base.Partitions {
		return nil, wrong(Foreign, fmt.Errorf("it is of %s/%d, journal %v", head.Journal, head.Partition, head.JournalID))
	}
	o := &object{cfg: c, manifest: m, heads: head.Chunks,
		log: log{head.Journal, head.Partition, head.Partitions, head.JournalID}}
	for _, h := range head.Chunks {
		if h.Facts < 0 || h.Columns < 0 || h.Records < 1 || h.Records > maxChunkRecords || h.Values < 0 || h.Values > columns.MaxBytes || h.First < 0 || h.Offset < 0 ||
			h.Facts > len(rest) || h.Columns > len(rest)-h.Facts {
			return nil, wrong(Damaged, errForm)
		}
		n := h.Facts + h.Columns
		o.chunks, rest = append(o.chunks, rest[:n]), rest[n:]
	}
	if len(rest) > 0 || len(o.chunks) == 0 {
		return nil, wrong(Damaged, errForm)
	}
	return o, nil
}

// maxChunkRecords is the highest number of records in a chunk. Skipped records count.
const maxChunkRecords = 1 << 20

// decoders decode chunks. They are safe for concurrent use.
type decoders struct {
	columns *columns.Decoder
	zstd    *zstd.Decoder
}

func newDecoders() (*decoders, error) {
	c, err := columns.NewDecoder()
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxFacts))
	return &decoders{c, z}, err
}

// maxFacts is the highest number of bytes of the facts of a chunk.
const maxFacts = 1 << 30

// facts decompresses the facts of a chunk. It allocates nothing for a length that they cannot have.
func (d *decoders) facts(b []byte) ([]byte, error) {
	var head zstd.Header
	if err := head.Decode(b); err != nil {
		return nil, err
	}
	if head.HasFCS && head.FrameContentSize > uint64(len(b))*columns.MaxExpansion {
		return nil, errForm
	}
	return d.zstd.DecodeAll(b, nil)
}

// verified is a chunk of verified records.
type verified struct {
	*chunk
	values []byte
	ends   []int
	hashes []record.Hash
	end    record.Hash // of the chain
}

func (v *verified) value(i int) []byte {
	from := 0
	if i > 0 {
		from = v.ends[i-1]
	}
	return v.values[from:v.ends[i]:v.ends[i]]
}

// chunk decodes a chunk and verifies the chain in it.
func (o *object) chunk(d *decoders, n int) (*verified, error) {
	h, b := o.heads[n], o.chunks[n]
	wrong := func(sequence int64, err error) error {
		return &Error{Key: o.manifest.Object, Sequence: sequence, Damage: Damaged, Err: err}
	}
	facts, err := d.facts(b[:h.Facts])
	if err != nil {
		return nil, wrong(h.First, err)
	}
	c, err := parseFacts(h, facts)
	if err != nil {
		return nil, wrong(h.First, err)
	}
	values, err := d.columns.Decode(o.log.id, c.sequences, b[h.Facts:], h.Values)
	if err != nil {
		return nil, wrong(h.First, err)
	}
	v := &verified{chunk: c, values: values.Bytes, ends: values.Ends}
	if sequence, err := v.verify(values.Prev); err != nil {
		return nil, wrong(sequence, err)
	}
	return v, nil
}
