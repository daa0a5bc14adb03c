package trading

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// TestInputsEncodeThemselves as the generic encoder does.
func TestInputsEncodeThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var amount *fixed.Decimal
		if rapid.Bool().Draw(t, "with amount") {
			amount = &fixed.Decimal{Coef: rapid.Int64().Draw(t, "amount"), Scale: uint8(rapid.IntRange(0, 8).Draw(t, "scale"))}
		}
		var names []string
		for _, c := range changes {
			if rapid.Bool().Draw(t, c.Name()) {
				names = append(names, c.Name())
			}
		}
		for _, in := range []decide.InputAppender{&placeOrderInput{amount}, &amendOrderInput{names, amount}} {
			want, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := in.AppendJSON(nil); err != nil || string(got) != string(want) {
				t.Fatalf("%s, and not %s (%v)", got, want, err)
			}
		}
	})
}
