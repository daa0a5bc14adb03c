package broker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropCached makes the kernel drop the last bytes of a file from its page cache, except pages that are not written to
// disk yet.
func dropCached(file *os.File, last int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := unix.Fadvise(int(file.Fd()), max(0, info.Size()-last), 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop what is cached of %s: %w", file.Name(), err)
	}
	return nil
}
