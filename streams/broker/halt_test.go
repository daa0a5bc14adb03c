package broker

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFailedErrorNamesTheRemedy: a limit of the process is no matter of the disk.
func TestFailedErrorNamesTheRemedy(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{syscall.EMFILE: "ulimit -n", syscall.EFBIG: "ulimit -f", syscall.ENOSPC: "see to the disk", syscall.EIO: "see to the disk"} {
		for _, err := range []error{&os.PathError{Op: "write", Path: "0.dat", Err: errno}, fmt.Errorf("kfake: persist batch trading-0: %v", errno)} { //nolint:errorlint // as kfake logs it
			if text := (&FailedError{Dir: "kafka", Err: err}).Error(); !strings.Contains(text, want) {
				t.Errorf("want %q in: %s", want, text)
			}
		}
	}
}
