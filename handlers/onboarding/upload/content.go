package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
)

// content is the file of an upload while it comes in. What tells its kind reads it, and each piece goes on to the bucket, the
// scanner and the hash on the way.
type content struct {
	form    *form
	from    io.Reader
	size    int64
	hash    hash.Hash // of the file in clear, for who asks with an Idempotency-Key; else nil
	draft   *files.Draft
	unkept  error // why it can't be kept
	scan    *clamd.Scan
	away    error // why it can't be scanned
	format  format.Format
	wrong   *format.Error // why it is of no kind that is taken
	dropped bool          // nothing of it is kept any more
}

func newContent(f *form, from io.Reader) *content {
	c := &content{form: f, from: from}
	if f.keyed {
		c.hash = sha256.New()
	}
	return c
}

// read reads the file to its end. An error says that there is no point in reading on.
func (c *content) read(tables bool) error {
	c.begin()
	ahead := c.form.receiver.buffers.take(c)
	defer c.form.receiver.buffers.give(ahead)
	found, err := format.Identify(ahead, tables)
	switch {
	case err == nil:
		c.format = found
	case !errors.As(err, &c.wrong):
		return err
	}
	if c.wrong != nil {
		c.drop()
	}
	_, err = io.Copy(io.Discard, struct{ io.Reader }{c}) // the rest of what is refused, whose size matters still
	return err
}

// begin opens what the file goes to. A failure refuses the file in the end, if nothing else does.
func (c *content) begin() {
	f := c.form
	var err error
	if c.draft, err = f.receiver.files.Create(f.ctx, f.of, f.id); err != nil {
		c.fail(err)
		return
	}
	if f.receiver.scanner != nil {
		c.scan, c.away = f.receiver.scanner.Begin(f.ctx)
	}
}

// fail notes that the file can't be kept.
func (c *content) fail(err error) {
	c.unkept = notKept(err)
	c.drop()
}

// leastPiece is how much is gathered before it goes on: parts come in smaller pieces.
const leastPiece = 32 << 10

// Read implements io.Reader.
func (c *content) Read(b []byte) (n int, err error) {
	for n < min(len(b), leastPiece) && err == nil {
		var more int
		more, err = c.from.Read(b[n:])
		c.form.body.grant(more)
		n += more
	}
	if c.size += int64(n); c.size > onboarding.MaxFile {
		c.drop()
		return 0, tooLarge()
	}
	c.pass(b[:n])
	return n, err
}

// pass sends a piece on.
func (c *content) pass(b []byte) {
	if c.hash != nil {
		c.hash.Write(b)
	}
	if c.dropped || len(b) == 0 {
		return
	}
	if c.scan != nil && c.away == nil {
		_, c.away = c.scan.Write(b)
	}
	if _, err := c.draft.Write(b); err != nil {
		c.fail(err)
	}
}

// sum returns the hash of the file in clear; zeros where nobody asks for it.
func (c *content) sum() (sum [sha256.Size]byte) {
	if c.hash != nil {
		c.hash.Sum(sum[:0])
	}
	return sum
}

// refused returns why the content is not taken as a document of a category, or nil.
func (c *content) refused(of document.Category) error {
	switch {
	case c.wrong != nil:
		return notTaken(c.wrong.Error())
	case c.format != "" && !of.Takes(c.format):
		return notTaken(string(c.format) + " is not taken for the category " + string(of))
	}
	return nil
}

// scanned returns nil if the file was scanned and is clean, or if nothing scans.
func (c *content) scanned() error {
	if c.form.receiver.scanner == nil {
		return nil
	}
	found, err := "", c.away
	if c.scan != nil {
		defer c.scan.Close()
		found, err = c.scan.Verdict() // also where it took not all: it may have said why
	}
	switch {
	case found != "":
		return web.Rejected("DOCUMENT_INFECTED", "The scanner found "+found+" in the file.")
	case err != nil:
		return unscanned(err)
	}
	return nil
}

// drop discards what was written, and passes nothing on any more.
func (c *content) drop() {
	c.dropped = true
	if c.scan != nil {
		c.scan.Close()
	}
	if c.draft != nil {
		_ = c.draft.Discard(context.WithoutCancel(c.form.ctx))
	}
}
