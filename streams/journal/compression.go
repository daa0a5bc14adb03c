package journal

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Compression names how batches are compressed on their way to the brokers, where they stay as they were sent. It changes
// nothing of a record: key, value, headers and hash are of what a reader gets after decompression.
type Compression string

// DefaultCompression is what a writer uses that is not told otherwise. Every client reads it without add-ons, and it costs
// no processor time. Others make a log smaller: of 1.3 KB of records in a batch of one (of sixteen), gzip leaves 43 % (21 %),
// snappy 52 % (29 %), zstd 37 % (17 %); per record, compressing and reading once takes gzip 15 µs (7 µs), snappy 3 µs
// (1.5 µs), zstd 16 µs (5 µs).
const DefaultCompression Compression = "none"

// codecs in the order in which a person is told of them.
var codecs = []struct {
	name  Compression
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression().WithLevel(1)}, {"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()},
}

// ParseCompression returns the compression of a name, the default for none.
func ParseCompression(name string) (Compression, error) {
	if name == "" {
		return DefaultCompression, nil
	}
	var known []string
	for _, c := range codecs {
		if string(c.name) == name {
			return c.name, nil
		}
		known = append(known, string(c.name))
	}
	return "", fmt.Errorf("%q is none of %s", name, strings.Join(known, ", "))
}

// codec is that of a name that ParseCompression has returned, or of "".
func (c Compression) codec() kgo.CompressionCodec {
	if c == "" {
		c = DefaultCompression
	}
	for _, known := range codecs {
		if known.name == c {
			return known.codec
		}
	}
	panic(fmt.Sprintf("journal: no compression %q", string(c)))
}
