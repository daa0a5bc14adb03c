package owner

import "testing"

func TestRefs(t *testing.T) {
	for _, good := range []string{"person/01890a5d-ac96-774b-bcce-b302099a8057", "corporate/01890a5d-ac96-774b-bcce-b302099a8057"} {
		if r, err := ParseRef(good); err != nil || r.String() != good {
			t.Errorf("%s: %v, %v", good, r, err)
		}
	}
	for _, bad := range []string{"", "person", "person/", "broker/01890a5d-ac96-774b-bcce-b302099a8057", "person/01890A5D-ac96-774b-bcce-b302099a8057",
		"person/00000000-0000-0000-0000-000000000000", "person/../master.key", "person/01890a5d-ac96-774b-bcce-b302099a8057/x"} {
		if r, err := ParseRef(bad); err == nil {
			t.Errorf("%q is read as %v", bad, r)
		}
	}
}
