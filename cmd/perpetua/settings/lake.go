package settings

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// LakePrefix returns the prefix of the keys of the data files of the DuckLake catalog, in the bucket with the archive. It ends with a
// slash. Venues that share a bucket have topics with different prefixes, and so different folders.
func (s *Settings) LakePrefix() string { return withSlash("lake/" + s.Kafka.Prefix) }

// LakeURL returns the folder or URL of these files as DuckDB opens it, with a slash at the end. The error is a usage error if DuckDB
// can't open the bucket.
func (s *Settings) LakeURL() (string, error) {
	at, err := s.ArchiveBucketURL()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", Usagef("--archive-url: %v", err)
	}
	key := u.Query().Get("prefix") + s.LakePrefix()
	switch u.Scheme {
	case "s3", "gs":
		return u.Scheme + "://" + u.Host + "/" + key, nil
	case "azblob":
		return "az://" + u.Host + "/" + key, nil
	case "file":
		folder := u.Path
		if u.Host == "." {
			folder = strings.TrimPrefix(folder, "/")
		}
		dir, err := filepath.Abs(filepath.FromSlash(folder))
		return withSlash(path.Join(filepath.ToSlash(dir), key)), err
	}
	return "", Usagef("--lake needs an archive in a folder or in a bucket that DuckDB can open, not in %s", u.Redacted())
}

func withSlash(folder string) string { return strings.TrimSuffix(folder, "/") + "/" }
