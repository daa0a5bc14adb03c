package onboarding_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestUnits splits the records of random logs. No unit holds what is another party's.
func TestUnits(t *testing.T) {
	classes, err := disclose.Compile(schemas.Events())
	if err != nil {
		t.Fatal(err)
	}
	s, err := classes.Splitter("onboarding")
	if err != nil {
		t.Fatal(err)
	}
	customers := 0
	digest := &recordtest.Digest{Each: func(value []byte) {
		for _, u := range disclosetest.Check(t, s, value) {
			if u.Class == disclose.Customer {
				customers++
			}
		}
	}}
	for seed := range 15 {
		frozenWorld(t, digest, make(recordtest.Verdicts), seed, 1+seed%onboarding.Rules().Newest())
	}
	if digest.Records() < 300 || customers < digest.Records() {
		t.Errorf("%d records have %d units of parties", digest.Records(), customers)
	}
}
