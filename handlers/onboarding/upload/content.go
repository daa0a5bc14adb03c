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
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
)

// content is an uploaded file as it arrives. The format detector reads it, and each piece also goes to the bucket,
// the scanner and the hash.
type content struct {
	form    *form
	from    io.Reader
	size    int64
	hash    hash.Hash // of the plain text, for requests with an Idempotency-Key; else nil
	draft   *files.Draft
	unkept  error // the error that prevents storing the file
	scan    *clamd.Scan
	away    error // the error that prevents scanning
	format  format.Format
	wrong   *format.Error // the error of a format that is not accepted
	dropped bool          // the stored part was discarded and nothing more is passed on
}

func newContent(f *form, from io.Reader) *content {
	c := &content{form: f, from: from}
	if f.keyed {
		c.hash = sha256.New()
	}
	return c
}

// read reads the file to its end. It returns an error if reading further is pointless.
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
	_, err = io.Copy(io.Discard, struct{ io.Reader }{c}) // read the rest of a refused file because its size matters
	return err
}

// begin opens the draft and the scanner. A failure is reported at the end, unless another error is found.
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

// fail records that the file cannot be stored.
func (c *content) fail(err error) {
	c.unkept = notKept(err)
	c.drop()
}

// leastPiece is the minimum size of a piece that is passed on, because multipart reads are smaller.
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

// pass passes a piece to the hash, the scanner and the draft.
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

// sum returns the hash of the plain text, or zeros without a hash.
func (c *content) sum() (sum [sha256.Size]byte) {
	if c.hash != nil {
		c.hash.Sum(sum[:0])
	}
	return sum
}

// refused returns the error if the content is not accepted as a document of a category, else nil.
func (c *content) refused(of document.Category) error {
	switch {
	case c.wrong != nil:
		return notTaken(c.wrong.Error())
	case c.format != "" && !of.Takes(c.format):
		return notTaken(string(c.format) + " is not taken for the category " + string(of))
	}
	return nil
}

// scanned returns nil if the file is clean or without a scanner.
func (c *content) scanned() error {
	if c.form.receiver.scanner == nil {
		return nil
	}
	found, err := "", c.away
	if c.scan != nil {
		defer c.scan.Close()
		found, err = c.scan.Verdict() // even after a write error, because the scanner may have found something
	}
	switch {
	case found != "":
		return problem.Rejected("DOCUMENT_INFECTED", "The scanner found "+found+" in the file.")
	case err != nil:
		return unscanned(err)
	}
	return nil
}

// drop discards the stored part and stops passing pieces on.
func (c *content) drop() {
	c.dropped = true
	if c.scan != nil {
		c.scan.Close()
	}
	if c.draft != nil {
		_ = c.draft.Discard(context.WithoutCancel(c.form.ctx))
	}
}
