package trading

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// matching is what a pattern means, as a regular expression without backtracking (RE2).
func matching(pattern string) *regexp.Regexp {
	parts := strings.Split(strings.ToUpper(pattern), "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, `.*`) + `\z`)
}

// FuzzFilter holds patterns against the regular expressions that they stand for: anchored on both sides, * for any
// characters and nothing else special, without regard to case.
func FuzzFilter(f *testing.F) {
	for _, seed := range [][2]string{{"BTC*", "BTCUSDC_PERP"}, {"*", ""}, {"", ""}, {"**A**", "a"}, {"b*c", "abc"}, {"a.c", "abc"}, {"a*b*c", "aXbXbc"},
		{"*A*A*A*B", "AAAAAAAA"}, {"[A-Z]+", "ABC"}, {"\\*", "*"}, {"straße*", "STRASSE"}, {"ı", "I"}, {"*\n*", "a\nb"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > maxFilter || len(value) > maxFilter {
			return
		}
		want := matching(pattern).MatchString(strings.ToUpper(value))
		got := filter{strings.ToUpper(pattern)}.match(value)
		if got != want && strings.ToValidUTF8(pattern+value, "") == pattern+value {
			t.Errorf("%q matches %q: %v, want %v", pattern, value, got, want)
		}
	})
}

// TestHostilePatternsAreCheap: the steps of matching are bounded by the product of the lengths, however a pattern is made.
// A matcher that tries every split of "*A*A*…" takes longer than the universe lasts.
func TestHostilePatternsAreCheap(t *testing.T) {
	value := strings.Repeat("A", maxFilter)
	for _, pattern := range []string{strings.Repeat("*A", maxFilter/2-1) + "*B", strings.Repeat("A*", maxFilter/2-1) + "B", strings.Repeat("*", maxFilter-1) + "B",
		"*" + strings.Repeat("A", maxFilter-2) + "B"} {
		done := make(chan bool, 1)
		go func() { done <- filter{pattern}.match(value) }()
		select {
		case matched := <-done:
			if matched {
				t.Errorf("%.20s… matches", pattern)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%.20s… hangs", pattern)
		}
	}
}
