package upload

import (
	"bufio"
	"io"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
)

// buffers is a pool of read buffers. The pool grows with concurrent uploads, and the garbage collector frees unused
// buffers.
type buffers struct{ free sync.Pool }

// take returns a buffer that reads from r.
func (b *buffers) take(r io.Reader) *bufio.Reader {
	if in, ok := b.free.Get().(*bufio.Reader); ok {
		in.Reset(r)
		return in
	}
	return bufio.NewReaderSize(r, max(pieceSize, format.Window))
}

// give returns a buffer to the pool. Neither the buffer nor its contents may be used afterwards.
func (b *buffers) give(in *bufio.Reader) {
	in.Reset(nil) // release the request
	b.free.Put(in)
}
