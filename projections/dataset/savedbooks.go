package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
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

// savedBooks is the form of saved books.
type savedBooks struct {
	Version int         `json:"version"`
	Next    int64       `json:"next"` // sequence of the next record
	Hash    record.Hash `json:"hash"` // of the record before it

	Taker scalar.ID            `json:"taker,omitzero"`
	Aside map[string]scalar.ID `json:"aside,omitempty"`

	Orders []savedOrder `json:"orders"`
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
	text, err := json.Marshal(&savedBooks{savedVersion, b.next, b.hash, b.taker, b.aside, b.saved()}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(text, nil), z.Close()
}

// LoadBooks reads what Save has returned.
func LoadBooks(content []byte) (*Books, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSaved))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	text, err := z.DecodeAll(content, nil)
	if err != nil {
		return nil, fmt.Errorf("dataset: reading saved books: %w", err)
	}
	var saved savedBooks
	if err := json.Unmarshal(text, &saved, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("dataset: reading saved books: %w", err)
	}
	if saved.Version != savedVersion || saved.Next < 0 {
		return nil, fmt.Errorf("dataset: saved books of version %d before record %d", saved.Version, saved.Next)
	}
	b := NewBooks()
	b.next, b.hash, b.taker = saved.Next, saved.Hash, saved.Taker
	maps.Copy(b.aside, saved.Aside)
	for _, o := range saved.Orders {
		r := resting{o.Symbol, o.Action, o.Takes, o.Price.wide(), o.Amount.wide()}
		if _, twice := b.orders[o.Code]; twice || r.price.Sign() <= 0 || r.amount.Sign() <= 0 {
			return nil, errors.New("dataset: saved books have an order twice, or one without a price or an amount")
		}
		b.orders[o.Code] = r
		b.change(&r, r.amount, 1)
	}
	b.settle()
	return b, nil
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
