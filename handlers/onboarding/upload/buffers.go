package upload

import (
	"bufio"
	"io"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
)

// buffers are what uploads are read through, used by one after the other: as many as were needed at once, until the garbage
// collector takes those that are not in use.
type buffers struct{ free sync.Pool }

// take returns a buffer that reads from r.
func (b *buffers) take(r io.Reader) *bufio.Reader {
	if in, ok := b.free.Get().(*bufio.Reader); ok {
		in.Reset(r)
		return in
	}
	return bufio.NewReaderSize(r, max(pieceSize, format.Window))
}

// give takes a buffer back. Nothing may be read from it, or be held of what was, any more.
func (b *buffers) give(in *bufio.Reader) {
	in.Reset(nil) // it must not hold on to its request
	b.free.Put(in)
}
