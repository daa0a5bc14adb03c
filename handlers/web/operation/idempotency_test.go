package operation

import (
	"testing"
)

// TestARouteIsTheSameWhateverItsParametersAreCalled: keys that were used are found by a build that calls them otherwise.
func TestARouteIsTheSameWhateverItsParametersAreCalled(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"/v1/persons/:person_id/documents", "/v1/persons/:id/documents", true},
		{"/v1/persons/:id/documents/:n", "/v1/persons/:id/documents", false},
		{"/v1/persons/:id/documents", "/v1/corporates/:id/documents", false},
		{"/v1/orders/:code", "/v1/orders/by-reference", false},
	} {
		if (shape(test.a) == shape(test.b)) != test.same {
			t.Errorf("%s is %s, and %s is %s", test.a, shape(test.a), test.b, shape(test.b))
		}
	}
}
