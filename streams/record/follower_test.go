package record_test

import (
	"testing"
	"testing/synctest"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAtOnce: a channel that is used first in a bubble of synctest is closed outside of it, too.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(*testing.T) { <-record.AtOnce() })
	<-record.AtOnce()
}
