package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// ErrOverwrites means that a key store replaces an object although it was asked to create it only if absent. Two nodes
// that create the key of one owner concurrently would then seal with different keys, and one of the keys is lost.
var ErrOverwrites = errors.New("the key store replaces an object that it was asked to create only if absent")

// Probe creates an object in the key store at a URL twice and removes it. It returns nil if the second attempt fails as
// it must, and ErrOverwrites if the store ignores the condition. It does not create a missing folder.
func Probe(ctx context.Context, at string) (err error) {
	u, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("key store: %w", err)
	}
	if u.Scheme == "file" {
		query := u.Query()
		query.Set("create_dir", "false")
		u.RawQuery = query.Encode()
	}
	s, err := openStore(ctx, u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return probe(ctx, s)
}

func probe(ctx context.Context, s store) (err error) {
	name := "doctor-" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := s.create(ctx, name, []byte("one")); err != nil {
		return fmt.Errorf("key store: create an object: %w", err)
	}
	defer func() {
		if removing := s.remove(context.WithoutCancel(ctx), name); removing != nil {
			err = errors.Join(err, fmt.Errorf("key store: remove the object %s: %w", name, removing))
		}
	}()
	switch err := s.create(ctx, name, []byte("two")); {
	case err == nil:
		return ErrOverwrites
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("key store: create an object again: %w", err)
	}
	content, err := s.read(ctx, name)
	if err != nil {
		return fmt.Errorf("key store: read an object: %w", err)
	}
	if string(content) != "one" {
		return ErrOverwrites
	}
	return nil
}
