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

// Folder is the name of the default key store inside a data folder, used unless a URL is configured.
const Folder = "keys"

// ErrAway reports that the key store does not answer.
var ErrAway = errors.New("the key store does not answer")

// store stores small objects by name. An object is written whole or not at all, even at a power cut. read and remove
// return fs.ErrNotExist, and create returns fs.ErrExist; all other errors mean that the store cannot be used.
type store interface {
	read(ctx context.Context, name string) ([]byte, error)
	// create creates an object that does not exist. Of two concurrent calls, one returns fs.ErrExist.
	create(ctx context.Context, name string, content []byte) error
	// overwrite writes content over the old content, which has the same length, so that none of the old content
	// remains. A power cut may leave a mixture of both, unless they are one sector long.
	overwrite(ctx context.Context, name string, content []byte) error
	// replace replaces the content. A power cut leaves the old or the new content. The old content may stay on the disk.
	replace(ctx context.Context, name string, content []byte) error
	remove(ctx context.Context, name string) error
	// list returns the names directly under a folder, without the folder's name. A missing folder has none.
	list(ctx context.Context, folder string) ([]string, error)
	close() error
}

// openStore opens the key store at a URL: a folder, which is created if missing unless the query says create_dir=false,
// or a bucket that package blob supports.
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

// folderOf returns the path of the folder at a URL, and whether it may be created.
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
	// patience bounds the wait for the key store.
	patience = 4 * time.Second
	// pending is the maximum number of concurrent questions to a folder, including those that hang forever.
	pending = 32
)

// inTime runs a question to a folder, which does not observe a context, and returns its result. It abandons the
// question when the time is over. An abandoned question holds its slot until it ends.
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
	answered := make(chan answer, 1) // buffered, so that an abandoned question can end
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
