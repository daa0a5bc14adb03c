//go:build !linux

package broker

import "os"

// dropCached does nothing on systems without fadvise.
func dropCached(*os.File, int64) error { return nil }
