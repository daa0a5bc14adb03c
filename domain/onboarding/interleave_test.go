package onboarding

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestAnswersAreReconstructed: whatever documents answers name, those that are reconstructed name the same in the same
// order, and those to required questions are the same.
func TestAnswersAreReconstructed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scalar.ID { return scalar.ID{15: rapid.ByteRange(1, 9).Draw(t, "document")} }), 0, 4)
		var given []Given
		var in responseInput
		for n := range rapid.IntRange(0, 8).Draw(t, "answers") {
			g := Given{QuestionID: scalar.ID{1, byte(n)}, Documents: ids.Draw(t, "documents")}
			if given = append(given, g); rapid.Bool().Draw(t, "required") {
				in.Given = append(in.Given, givenInput{g.QuestionID, g.Documents})
			}
		}
		got := in.interleave(documentsOf(given))
		if !slices.Equal(documentsOf(got), documentsOf(given)) {
			t.Fatalf("%v names the documents %v, not %v", got, documentsOf(got), documentsOf(given))
		}
		var required []givenInput
		for n, g := range got {
			switch {
			case !g.QuestionID.IsZero():
				required = append(required, givenInput{g.QuestionID, g.Documents})
			case len(g.Documents) == 0 || n > 0 && got[n-1].QuestionID.IsZero():
				t.Fatalf("%v has an answer without need", got)
			}
		}
		if !slices.EqualFunc(required, in.Given, func(a, b givenInput) bool {
			return a.QuestionID == b.QuestionID && slices.Equal(a.Documents, b.Documents)
		}) {
			t.Fatalf("the answers to required questions are %v, not %v", required, in.Given)
		}
	})
}
