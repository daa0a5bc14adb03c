//go:build !linux

package projectiontest

import "errors"

func inMemory() string { return "" }
func sweep(string)     {}
func lockedFolder(string, string) (string, error) {
	return "", errors.ErrUnsupported
}
