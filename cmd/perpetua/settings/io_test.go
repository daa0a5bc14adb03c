package settings_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// TestProgressOfLongCommands checks how often a command whose errors are not on a terminal prints its progress.
func TestProgressOfLongCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		progress := settings.IO{Err: &out}.Progress()
		for _, line := range []string{"a", "b", "c", "d", "e"} {
			progress(line)
			time.Sleep(15 * time.Second)
		}
		if got := out.String(); got != "c\ne\n" {
			t.Errorf("the progress of 75 seconds, told every 15 seconds, is %q", got)
		}
	})
}
