package rest

import (
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
)

// These are the page sizes of lists with cursors (PageSize) and of operator lists (Size).
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
	DefaultSize     = 50
	MaxSize         = 100
)

// Numbered is a request for a page of an operator list. Pages are numbered from 1.
type Numbered struct{ Page, Size int }

// ReadNumbered reads page and size.
func ReadNumbered(f *input.Form) Numbered {
	return Numbered{
		Page: int(f.OptionalInteger("page", 1, 1_000_000_000).Or(1)),
		Size: int(f.OptionalInteger("size", 1, MaxSize).Or(DefaultSize)),
	}
}

// Offset returns the number of items before the page.
func (n Numbered) Offset() int { return (n.Page - 1) * n.Size }

// Items is a page of an operator list.
type Items[T any] struct {
	Items []T `json:"items"`
	Total int `json:"total"`
	Page  int `json:"page"`
	Size  int `json:"size"`
	Pages int `json:"pages"`
}

// NewItems returns a page with the given items of a list with total items.
func NewItems[T any](n Numbered, items []T, total int) Items[T] {
	if items == nil {
		items = []T{}
	}
	return Items[T]{Items: items, Total: total, Page: n.Page, Size: n.Size, Pages: (total + n.Size - 1) / n.Size}
}

// Slice returns a page of a list that is completely in memory.
func Slice[T any](n Numbered, all []T) Items[T] {
	from := min(n.Offset(), len(all))
	return NewItems(n, all[from:min(from+n.Size, len(all))], len(all))
}
