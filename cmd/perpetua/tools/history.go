package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// archives are the archives of the venue that the settings name. They are opened when a log turns out to be trimmed.
type archives struct {
	settings *settings.Settings

	mu    sync.Mutex
	store archive.Store // nil while it is not open
	box   *seal.Box
	done  func()
}

// newArchives returns the archives of a venue. The caller closes them.
func newArchives(s *settings.Settings) *archives { return &archives{settings: s} }

// history returns the archives as readers of a log use them.
func (a *archives) history() journal.History { return wholelog.Archives{Config: a.config, Once: true} }

// config returns the archive of a partition.
func (a *archives) config(ctx context.Context, name string, partition int32) (archive.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		if err := a.open(ctx); err != nil {
			return archive.Config{}, fmt.Errorf("the archive can't be opened; --archive-url names it: %w", err)
		}
	}
	return a.settings.ArchiveConfig(a.store, a.box, name, partition), nil
}

// archive opens the full ranges of the archive of a partition.
func (a *archives) archive(ctx context.Context, name string, partition int32) (*archive.Archive, error) {
	cfg, err := a.config(ctx, name, partition)
	if err != nil {
		return nil, err
	}
	return archive.OpenRanges(ctx, cfg)
}

func (a *archives) open(ctx context.Context) error {
	s := a.settings
	if s.Stores.ArchiveURL == "" && s.Stores.BlobURL == "" {
		if ours, _, err := folderOfLog(s); err != nil || !ours {
			return errors.Join(err, errors.New("no bucket is at hand"))
		}
	}
	box, err := a.key(ctx)
	if err != nil {
		return err
	}
	store, done, err := s.OpenArchive(ctx)
	if err != nil {
		return err
	}
	a.store, a.done, a.box = store, done, box
	return nil
}

// key returns the key that opens the archives.
func (a *archives) key(ctx context.Context) (*seal.Box, error) {
	s := a.settings
	switch {
	case s.Stores.ArchiveKey != "":
		return settings.ReadKey("archive-key-file", s.Stores.ArchiveKey)
	case keysOfFollower(s):
		return nil, errors.New("the folder is that of a follower, and its master key opens no archive of a venue: --archive-key-file names the key")
	}
	return s.FindMaster(ctx)
}

func (a *archives) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done != nil {
		a.done()
		a.done, a.store = nil, nil
	}
}
