package broker

import "os"

// WithSync has the broker sync its files by a function of the test's.
func (c Config) WithSync(sync func(*os.File) error) Config {
	c.syncFile = sync
	return c
}
