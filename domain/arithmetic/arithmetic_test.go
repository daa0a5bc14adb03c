package arithmetic_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

func TestEvaluate(t *testing.T) {
	values := map[string]string{"a": "2.5", "b": "-7", "third": "1/3"}
	for formula, want := range map[string]string{
		"a + b * 2":                    "-11.5",
		"(a + b) * 2":                  "-9",
		"a - -b":                       "-4.5",
		"b / 2 / 2":                    "-1.75",
		"a * third":                    "5/6",
		"third * 3":                    "1",
		"floor(third, 2)":              "0.33",
		"ceil(third, 2)":               "0.34",
		"floor(b * third, 1)":          "-2.4",
		"ceil(b * third, 1)":           "-2.3",
		"truncate(b * third, 1)":       "-2.3",
		"away(b * third, 1)":           "-2.4",
		"half_even(a, 0)":              "2",
		"half_even(a + 1, 0)":          "4",
		"half_even(-a, 0)":             "-2",
		"half_even(b * third, 1)":      "-2.3",
		"away(a, 1)":                   "2.5",
		"min(a, b, 0)":                 "-7",
		"max(0, a, b)":                 "2.5",
		"abs(b)":                       "7",
		"a > b":                        "true",
		"a >= 2.5 and b < -7":          "false",
		"a < 0 and b < 0 or third > 0": "true",
		"a = 2.5":                      "true",
	} {
		used := map[string]string{}
		for name, v := range values {
			for _, word := range strings.FieldsFunc(formula, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }) {
				if word == name {
					used[name] = v
				}
			}
		}
		if got, err := arithmetic.Evaluate(formula, used); err != nil || got != want {
			t.Errorf("%s is %s, not %s: %v", formula, got, want, err)
		}
	}
	for formula, reason := range map[string]string{
		"":             "ends too early",
		"a +":          "ends too early",
		"a b":          "does not end",
		"(a":           `must`,
		"c":            "no value for c",
		"a / 0":        "divides by zero",
		"a + 1 or 2":   "joins conditions",
		"a > 1 and 2":  "joins conditions",
		"sqrt(a, 1)":   "no function sqrt",
		"floor(a)":     "as arguments",
		"floor(a, -1)": "as arguments",
		"abs(a, a)":    "one argument",
		"1":            "a is not used",
		"a + 1x":       "not a number",
	} {
		if _, err := arithmetic.Evaluate(formula, map[string]string{"a": "2"}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", formula, err)
		}
	}
}

func TestASheetShowsEachItsOwn(t *testing.T) {
	var none *arithmetic.Sheet
	none.Add("", "sum", "", "a + b", "3")
	if none.On() || len(none.Lines()) > 0 {
		t.Error("a sheet that is off collects lines")
	}
	s := new(arithmetic.Sheet)
	s.Add("", "public", "", "price", "5", arithmetic.Decimal("price", fixed.Decimal{Coef: 50, Scale: 1}))
	s.Add("A", "sum", "", "a + b", "0.3", arithmetic.Money("a", 1e7), arithmetic.Sum("b", fixed.Money(2e7).Wide()))
	s.Add("B", "part", "x", "rate * 2", "2/13", arithmetic.Rate("rate", fixed.Leverage(13)))
	for customer, want := range map[string]string{"A": "public sum", "B": "public part", "C": "public"} {
		var names []string
		for _, l := range s.For(customer) {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s sees %s", customer, got)
		}
	}
	if err := s.Lines()[1].Check(); err != nil {
		t.Error(err)
	}
	if err := s.Lines()[2].Check(); err != nil {
		t.Error(err)
	}
	if err := s.Lines()[0].Check(); err != nil { // 5.0 and 5 are the same number
		t.Error(err)
	}
	wrong := s.Lines()[1]
	wrong.Result = "0.4"
	if err := wrong.Check(); err == nil {
		t.Error("a wrong result is right")
	}
}
