package web

import (
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// OptionalTime reads an optional timestamp.
func (f *Form) OptionalTime(name string) Optional[scalar.Time] {
	return read(f, name, false, form.Time().Read)
}

// Bound reads a bound of a search, which may be any time since 1970. Its value is never zero if it is set.
func (f *Form) Bound(name string, required bool) Optional[scalar.Time] {
	t := read(f, name, required, form.TimeSince(0).Read)
	if t.Set {
		t.Value = max(t.Value, 1) // no record is this old, so 0 and 1 are equivalent
	}
	return t
}
