package webhooks

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
)

// TestABodyIsMadeOnce: the body of a notice is made once for the receivers that get it one after the other, a failure
// is not kept, and memory holds it in clear no longer than until the collector comes by.
func TestABodyIsMadeOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it comes by only where the test has it
	n := &reported{Notice: &onboarding.Notice{Code: "A"}}
	made := 0
	body := func() ([]byte, error) {
		return n.body(func(n *onboarding.Notice) ([]byte, error) {
			if made++; made == 1 {
				return nil, errors.New("the key is not there")
			}
			return []byte(n.Code + " and so on"), nil
		})
	}
	if _, err := body(); err == nil {
		t.Fatal("a failure passes for a body")
	}
	first, err := body()
	if err != nil {
		t.Fatal(err)
	}
	second, err := body()
	if err != nil || string(second) != string(first) || made != 2 {
		t.Fatalf("the second receiver gets %q after %d times, %v", second, made, err)
	}
	runtime.KeepAlive(first)
	runtime.GC()
	if n.sent.Value() != nil {
		t.Error("the body outlives those that it was made for")
	}
	if again, err := body(); err != nil || string(again) != "A and so on" || made != 3 {
		t.Errorf("later it is %q after %d times, %v", again, made, err)
	}
}
