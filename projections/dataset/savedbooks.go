package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	savedVersion = 1
	maxSaved     = 4 << 30 // bytes of JSON, the orders of a book with 30 million
)

// savedBooks is the first line of saved books. The orders follow, one a line.
type savedBooks struct {
	Version int         `json:"version"`
	Next    int64       `json:"next"`   // sequence of the next record
	Hash    record.Hash `json:"hash"`   // of the record before it
	Orders  int         `json:"orders"` // their number

	Taker scalar.ID            `json:"taker,omitzero"`
	Aside map[string]scalar.ID `json:"aside,omitempty"`
}

// savedOrder is an order that rests in a book.
type savedOrder struct {
	Code   scalar.ID    `json:"code"`
	Symbol string       `json:"symbol"`
	Action order.Action `json:"action"`
	Takes  bool         `json:"takes,omitzero"`
	Price  number       `json:"price"`
	Amount number       `json:"amount"`
}

// Save returns the books in a form that LoadBooks reads. Equal books are equal bytes.
func (b *Books) Save() ([]byte, error) {
	var to bytes.Buffer
	z, err := zstd.NewWriter(&to, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	lines := jsontext.NewEncoder(z)
	err = json.MarshalEncode(lines, &savedBooks{savedVersion, b.next, b.hash, len(b.orders), b.taker, b.aside}, json.Deterministic(true))
	for _, code := range b.codes() {
		if err != nil {
			return nil, err
		}
		o := b.orders[code]
		line := savedOrder{code, o.in.symbol, order.Sell, o.takes, o.price.Bytes(), o.amount.Bytes()}
		if o.buys {
			line.Action = order.Buy
		}
		err = json.MarshalEncode(lines, &line)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// LoadBooks reads what Save has returned.
func LoadBooks(content []byte) (*Books, error) {
	z, err := zstd.NewReader(bytes.NewReader(content), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b := NewBooks()
	if err := b.load(jsontext.NewDecoder(io.LimitReader(z, maxSaved))); err != nil {
		return nil, fmt.Errorf("dataset: reading saved books: %w", err)
	}
	b.settle()
	return b, nil
}

func (b *Books) load(lines *jsontext.Decoder) error {
	var head savedBooks
	if err := json.UnmarshalDecode(lines, &head, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if head.Version != savedVersion || head.Next < 0 {
		return fmt.Errorf("they have version %d and are before record %d", head.Version, head.Next)
	}
	b.next, b.hash, b.taker = head.Next, head.Hash, head.Taker
	maps.Copy(b.aside, head.Aside)
	for {
		var o savedOrder
		err := json.UnmarshalDecode(lines, &o, json.RejectUnknownMembers(true))
		switch {
		case errors.Is(err, io.EOF) && len(b.orders) == head.Orders:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("they have %d orders and not %d", len(b.orders), head.Orders)
		case err != nil:
			return err
		}
		r := resting{b.book(o.Symbol), o.Action == order.Buy, o.Takes, o.Price.wide(), o.Amount.wide()}
		if _, twice := b.orders[o.Code]; twice || r.price.Sign() <= 0 || r.amount.Sign() <= 0 || !r.buys && o.Action != order.Sell {
			return fmt.Errorf("the order %v is there twice, or lacks a price, an amount, or a side", o.Code)
		}
		b.put(o.Code, &r)
	}
}

// wide returns the multiple of 10⁻¹⁸ that a number is.
func (n number) wide() fixed.Wide {
	return fixed.WideFrom(int64(binary.BigEndian.Uint64(n[:8])), binary.BigEndian.Uint64(n[8:]))
}

// booksFile returns the path of the saved books before the range that a later run begins with.
func (c *Config) booksFile() string { return filepath.Join(c.Dir, booksTable, c.Journal+".books.zst") }

// loadBooks loads the books that an earlier run has saved. If they are missing, damaged, of another log, or later than the next record, the
// caller must add all records again.
func (w *Writer) loadBooks() error {
	if !slices.ContainsFunc(w.tables, func(t table) bool { return t.name == booksTable }) {
		return nil
	}
	w.books = NewBooks()
	content, err := os.ReadFile(w.cfg.booksFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	saved, err := LoadBooks(content)
	if err != nil || saved.next > w.next {
		return nil
	}
	if known, ok := w.known[saved.next-1]; ok && known != saved.hash {
		return nil
	}
	w.books = saved
	return nil
}

// saveBooks saves the books before the next range. It comes after the files of the range before: a run that is killed in between continues
// from earlier books, and not from later ones.
func (w *Writer) saveBooks() error {
	if w.books == nil {
		return nil
	}
	content, err := w.books.Save()
	if err != nil {
		return err
	}
	return base.WriteFile(w.cfg.booksFile(), content)
}

// catchesUp reports whether the books need records that the files have.
func (w *Writer) catchesUp() bool { return w.books != nil && w.books.next < w.next }

// SaveEvery is the number of ranges after which a run that only reads for the books saves them, so that the next one continues from there.
const SaveEvery = 16

// catchUp adds a record that the files have to the books.
func (w *Writer) catchUp(e *record.Entry) error {
	if err := w.books.Add(e); err != nil {
		return err
	}
	if w.books.next%(SaveEvery*w.cfg.Range) > 0 || w.books.next == w.next {
		return nil
	}
	return w.saveBooks()
}
