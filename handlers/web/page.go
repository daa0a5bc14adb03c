package web

// The page sizes of cursor paging and of operator lists.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
	DefaultSize     = 50
	MaxSize         = 100
)

// Numbered is what a client asks of an operator's list: a page from 1 and its size.
type Numbered struct{ Page, Size int }

// Numbered reads page and size.
func (f *Form) Numbered() Numbered {
	return Numbered{
		Page: int(f.OptionalInteger("page", 1, 1_000_000_000).Or(1)),
		Size: int(f.OptionalInteger("size", 1, MaxSize).Or(DefaultSize)),
	}
}

// Offset is how many items come before the page.
func (n Numbered) Offset() int { return (n.Page - 1) * n.Size }

// Items is the answer of an operator's list.
type Items[T any] struct {
	Items []T `json:"items"`
	Total int `json:"total"`
	Page  int `json:"page"`
	Size  int `json:"size"`
	Pages int `json:"pages"`
}

// NewItems makes the answer to a page out of the items on it and the number of all of them.
func NewItems[T any](n Numbered, items []T, total int) Items[T] {
	if items == nil {
		items = []T{}
	}
	return Items[T]{Items: items, Total: total, Page: n.Page, Size: n.Size, Pages: (total + n.Size - 1) / n.Size}
}

// Slice makes the answer to a page out of all the items.
func Slice[T any](n Numbered, all []T) Items[T] {
	from := min(n.Offset(), len(all))
	return NewItems(n, all[from:min(from+n.Size, len(all))], len(all))
}
