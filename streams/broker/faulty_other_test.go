//go:build !linux

package broker_test

func failSyncs()        { panic("not on this system") }
func limitFiles(uint64) { panic("not on this system") }
