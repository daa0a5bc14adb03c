//go:build !linux

package projectiontest

func inMemory() string { return "" }
