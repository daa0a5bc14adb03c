package owner

import (
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// String returns the type and the id, for example person/01890a5d-ac96-774b-bcce-b302099a8057.
func (r Ref) String() string { return string(r.Type) + "/" + r.ID.String() }

// ParseRef parses the output of String and no other form.
func ParseRef(s string) (Ref, error) {
	of, id, _ := strings.Cut(s, "/")
	r := Ref{Type: Type(of)}
	if err := r.ID.UnmarshalText([]byte(id)); err != nil || !r.Type.Valid() || r.ID == (scalar.ID{}) || r.String() != s {
		return Ref{}, fmt.Errorf("%q names no owner", s)
	}
	return r, nil
}
