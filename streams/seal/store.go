package seal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Folder is where the key store is inside a data folder, where no URL names another.
const Folder = "keys"

// ErrAway says that the key store can't be asked.
var ErrAway = errors.New("the key store does not answer")

// store keeps small things by name, each whole or not at all, also after a power cut. Its errors are fs.ErrNotExist from
// read and remove, fs.ErrExist from create, and others where it can't be asked.
type store interface {
	read(ctx context.Context, name string) ([]byte, error)
	// create keeps what is not there yet. Of two who do it at once, one gets fs.ErrExist.
	create(ctx context.Context, name string, content []byte) error
	// overwrite writes content over the old content, which has the same length, so that nothing of it is left. A power cut may
	// leave a mixture of both, unless they are one sector long.
	overwrite(ctx context.Context, name string, content []byte) error
	// replace replaces the content. A power cut leaves the old or the new content. The old content may stay on the disk.
	replace(ctx context.Context, name string, content []byte) error
	remove(ctx context.Context, name string) error
	// list returns the names directly under a folder, without the folder's name; none where there is no such folder.
	list(ctx context.Context, folder string) ([]string, error)
	close() error
}

// openStore opens the key store at a URL: a folder, which is made if need be unless the query says create_dir=false, or a
// bucket as those of package blob are.
func openStore(ctx context.Context, at string) (store, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("key store: %w", err)
	}
	if u.Scheme != "file" {
		bucket, err := blob.Open(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("key store: %w", err)
		}
		return &bucketStore{bucket}, nil
	}
	path, create, err := folderOf(u)
	if err != nil {
		return nil, err
	}
	s, err := inTime(ctx, make(chan struct{}, 1), openWithin, func() (*folderStore, error) { return openFolder(path, create) })
	if err != nil {
		return nil, fmt.Errorf("key store: %w", err)
	}
	return s, nil
}

// folderOf returns the path of a folder that a URL names, and whether it may be made.
func folderOf(u *url.URL) (path string, create bool, err error) {
	path = filepath.FromSlash(u.Path)
	query := u.Query()
	create = query.Get("create_dir") != "false"
	query.Del("create_dir")
	switch {
	case len(query) > 0:
		return "", false, fmt.Errorf("key store: a folder takes create_dir, not %q", query.Encode())
	case u.Host == ".":
		return strings.TrimPrefix(path, string(filepath.Separator)), create, nil
	case u.Host != "" && u.Host != "localhost", path == "":
		return "", false, fmt.Errorf("key store: the folder of %q must be absolute, as in file:///var/lib/keys", u.String())
	}
	return path, create, nil
}

const (
	openWithin = 10 * time.Second
	// patience is how long the key store is waited for.
	patience = 4 * time.Second
	// pending is how many questions to a folder may be under way; those that hang for ever count.
	pending = 32
)

// inTime returns what a question to a folder returns, which knows of no context, or gives up on it. What hangs keeps its slot.
func inTime[T any](ctx context.Context, slots chan struct{}, within time.Duration, question func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w within %v", ErrAway, within))
	defer cancel()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	answered := make(chan answer, 1) // with room, so that a question that is left behind can end
	go func() {
		defer func() { <-slots }()
		value, err := question()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
