// Package blob opens the bucket: the store for data that is too large for the log or does not belong in it. It holds
// snapshots, which can be deleted and rebuilt from the log, and uploaded files, which cannot. Keys have a separate
// store.
//
// A bucket is named by a URL. The scheme file is a folder, mem is memory that ends with the process; s3, gs and azblob
// are in binaries built with the tag cloud. With prefix=venue/ in the URL's query, several venues share one bucket.
//
// A blob is written whole or not at all: a folder writes a temporary file, syncs it and renames it; the other stores
// are atomic themselves. A writer that is killed leaves its temporary file behind, which the users of the bucket delete
// later (see Abandoned).
//
// Other packages use a bucket through a Store, which does not wait for a bucket that hangs.
package blob

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // scheme mem
)

// folderScheme is the scheme of the URL of a folder.
const folderScheme = "file"

// Folder is the name of the default bucket inside a data folder, used unless a URL is configured.
const Folder = "blob"

// URLOf returns the URL of the bucket in a folder.
func URLOf(folder string) string {
	return (&url.URL{Scheme: folderScheme, Path: filepath.ToSlash(folder)}).String()
}

// CheckURL validates the URL of a bucket without opening it. The error names the missing part of the URL, or the missing driver.
func CheckURL(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("%q is not a URL like file:///var/lib/blobs or s3://bucket", at)
	}
	cloud := isCloud(u.Scheme)
	switch {
	case u.Scheme == folderScheme:
		return nil // openFolder checks the path
	case u.Scheme == "":
		return fmt.Errorf("%q is not a URL: a folder is written like file:///var/lib/blobs", at)
	case cloud && u.Host == "":
		return fmt.Errorf("%s has no bucket name: use a URL like %s://bucket%s, with the credentials in the environment", u.Redacted(), u.Scheme, exampleQuery(u.Scheme))
	case cloud && !blob.DefaultURLMux().ValidBucketScheme(u.Scheme):
		return fmt.Errorf("this binary has no driver for %s://: build it with go build -tags cloud ./cmd/perpetua", u.Scheme)
	case !blob.DefaultURLMux().ValidBucketScheme(u.Scheme):
		return fmt.Errorf("unknown scheme %q: use file, s3, gs or azblob", u.Scheme)
	}
	return nil
}

// isCloud reports whether a scheme is that of an object store.
func isCloud(scheme string) bool { return scheme == "s3" || scheme == "gs" || scheme == "azblob" }

// exampleQuery returns the query that the URL of a cloud bucket usually needs.
func exampleQuery(scheme string) string {
	if scheme == "s3" {
		return "?region=eu-central-1"
	}
	return ""
}

// Open returns the bucket at a URL. It creates a missing folder, accessible to its owner only, unless the query says
// create_dir=false: then a missing folder, for example one that is not mounted, is an error. The caller must close the
// bucket.
func Open(ctx context.Context, at string) (*blob.Bucket, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	if u.Scheme == folderScheme {
		return openInTime(ctx, u, openFolder)
	}
	if err := CheckURL(at); err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	bucket, err := blob.OpenBucket(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("blob store at %s: %w", u.Redacted(), err)
	}
	return bucket, nil
}

// openWithin bounds the time to open a folder: a folder on a network file system may hang forever.
const openWithin = 10 * time.Second

// openInTime opens a folder, which does not observe a context, and abandons the attempt if it hangs.
func openInTime(ctx context.Context, u *url.URL, open func(*url.URL) (*blob.Bucket, error)) (*blob.Bucket, error) {
	type opened struct {
		bucket *blob.Bucket
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		b, err := open(u)
		done <- opened{b, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("blob store: the folder of %s did not answer within %v", u.Redacted(), openWithin))
	defer cancel()
	select {
	case o := <-done:
		return o.bucket, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pathOf returns the path in the URL of a folder.
func pathOf(u *url.URL) string {
	path := filepath.FromSlash(u.Path)
	if u.Host == "." {
		return strings.TrimPrefix(path, string(filepath.Separator))
	}
	return path
}

// Same reports whether two URLs name the same bucket. It opens neither. URLs that it cannot compare are not the same.
func Same(a, b string) bool {
	one, err := normal(a)
	if err != nil {
		return false
	}
	other, err := normal(b)
	return err == nil && one == other
}

// normal returns the URL of a bucket in the form that all its URLs have.
func normal(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	query := u.Query()
	if u.Scheme == folderScheme {
		query.Del("create_dir")
		if u.Path, err = filepath.Abs(pathOf(u)); err != nil {
			return "", err
		}
		if real, err := filepath.EvalSymlinks(u.Path); err == nil {
			u.Path = real
		}
		u.Host = ""
	}
	u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(u.Path, "/"), "", query.Encode()
	return u.String(), nil
}

// openFolder opens a bucket in a folder.
func openFolder(u *url.URL) (*blob.Bucket, error) {
	query := u.Query()
	prefix, create := query.Get("prefix"), query.Get("create_dir") != "false"
	query.Del("prefix")
	query.Del("create_dir")
	switch {
	case len(query) > 0:
		return nil, fmt.Errorf("blob store: a folder takes prefix and create_dir, not %q", query.Encode())
	case u.Host != "" && u.Host != "localhost" && u.Host != ".":
		return nil, fmt.Errorf("blob store: the folder of %q must be absolute, as in file:///var/lib/blobs", u.String())
	}
	if _, err := folderOf(prefix); err != nil {
		return nil, fmt.Errorf("blob store: the prefix: %w", err)
	}
	driver, err := newFolder(pathOf(u), create)
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	bucket := blob.NewBucket(driver)
	if prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix)
	}
	return bucket, nil
}
