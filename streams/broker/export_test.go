package broker

import (
	"context"
	"os"
	"time"
)

// Scan scans a folder as Start does.
func Scan(ctx context.Context, dir string) (*Report, error) { return scan(ctx, dir, func(int64) {}) }

// WithSync has the broker sync its files by a function of the test's.
func (c Config) WithSync(sync func(*os.File) error) Config {
	c.syncFile = sync
	return c
}

// WithTrimmed has the broker call a function of the test's in each trim, after trim.json was written and before anything is
// deleted.
func (c Config) WithTrimmed(trimmed func()) Config {
	c.trimmed = trimmed
	return c
}

// Incomplete returns the segment files that end with an incomplete batch, with the length in bytes to which Start will
// cut each.
func (r *Report) Incomplete() map[string]int64 {
	files := map[string]int64{}
	for _, p := range r.partitions {
		for _, s := range p.segments {
			if s.tail.size > 0 {
				files[s.path] = s.tail.at
			}
		}
	}
	return files
}

// Begins returns the first offset of the only partition.
func (r *Report) Begins() int64 { return r.partitions[0].segments[0].base }

// WithTellEvery has the broker log the progress of its scan so often.
func (c Config) WithTellEvery(every time.Duration) Config {
	c.tellEvery = every
	return c
}
