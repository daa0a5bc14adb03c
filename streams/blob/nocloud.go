//go:build !cloud

package blob

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
)

// The stores of a binary without the cloud drivers, folders and memory, can't lock blobs.

func applyLock(func(any) bool, Lock) error                     { return ErrNoLocks }
func lockOf(*blob.Attributes) Lock                             { return Lock{} }
func checkLocks(context.Context, *blob.Bucket, *url.URL) error { return ErrNoLocks }
func refused(error) bool                                       { return false }
