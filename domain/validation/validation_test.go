package validation

import (
	"testing"

	"github.com/go-json-experiment/json"
)

func TestPath(t *testing.T) {
	tier := At("tiers", 2)
	price, size := tier.Then("price"), tier.Then("size")
	if price.String() != "tiers[2].price" || size.String() != "tiers[2].size" || Path(nil).String() != "" {
		t.Errorf("got %s and %s", price, size)
	}
	if !price.Within(tier) || !tier.Within(tier) || !price.Within(nil) || tier.Within(price) || price.Within(size) {
		t.Error("a path is within those that it begins with, and no others")
	}
}

func TestErrors(t *testing.T) {
	e := Errors{Limit: 3}
	path := append(make([]any, 0, 4), "name")
	e.AddTooLong(5, path...)
	path[0] = "changed"
	e.AddCode("", Required, "one of %d", 2)
	e.AddKind(Missing, "is required", "a", 1)
	e.AddCode("b", InvalidValue, "beyond the limit")
	got, err := json.Marshal(e.List)
	want := `[{"field":"name","code":"","message":"must have at most 5 characters"},{"field":"","code":"REQUIRED","message":"one of 2"},` +
		`{"field":"a[1]","code":"","message":"is required"}]`
	if err != nil || string(got) != want {
		t.Errorf("%s (%v)\nwant %s", got, err, want)
	}
	if !e.Any(At("a", 1)) || e.Any(At("a")) || e.Any(At("b")) {
		t.Error("Any reports the errors of exactly this field")
	}
}
