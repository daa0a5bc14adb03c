// Package files serves the static files of a web page from an embedded file system, with content types, the page's
// content security policy and ETags.
//
// A file may be stored compressed as <name>.gz and is served as <name>. Files of unknown types are not served.
package files

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// types maps file extensions to the content types that are served.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// Files holds the files of a page by name.
type Files struct {
	files map[string]*file
}

// file is a static file with its response headers.
type file struct {
	content     []byte                 // nil if stored compressed
	packed      []byte                 // nil unless stored compressed
	unpacked    func() ([]byte, error) // nil unless stored compressed
	contentType string
	tag         string
}

// Read reads the files of some folders. Two files must not have the same name.
func Read(fsys fs.FS, folders ...string) (*Files, error) {
	f := &Files{files: make(map[string]*file)}
	for _, folder := range folders {
		entries, err := fs.ReadDir(fsys, folder)
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		for _, entry := range entries {
			if err := f.read(fsys, folder, entry.Name()); err != nil {
				return nil, fmt.Errorf("files: %s: %w", entry.Name(), err)
			}
		}
	}
	return f, nil
}

func (f *Files) read(fsys fs.FS, folder, entry string) error {
	name, compressed := strings.CutSuffix(entry, ".gz")
	contentType := types[path.Ext(name)]
	if contentType == "" {
		return nil
	}
	if f.files[name] != nil {
		return fmt.Errorf("there are two of that name")
	}
	content, err := fs.ReadFile(fsys, folder+"/"+entry)
	if err != nil {
		return err
	}
	one := &file{contentType: contentType, tag: rest.TagOf(content)}
	if compressed {
		// Browsers get the compressed bytes. Decompress only for the first client that does not accept gzip; doing it
		// at startup would cost time and megabytes on every node.
		one.packed, one.unpacked = content, sync.OnceValues(func() ([]byte, error) { return unpack(content) })
	} else {
		one.content = content
	}
	f.files[name] = one
	return nil
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Serve responds with a file, or with 304 if the browser has it. File names carry no version, so browsers revalidate
// each time and see a new build immediately. policy is the Content-Security-Policy. An unknown file is a 404 problem.
func (f *Files) Serve(c echo.Context, name, policy string) error {
	one := f.files[name]
	if one == nil {
		return problem.NotFound("NOT_FOUND", "There is no such file.")
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if one.packed != nil {
		return rest.TaggedPacked(c, one.tag, one.contentType, one.unpacked, one.packed)
	}
	return rest.Tagged(c, one.tag, one.contentType, one.content)
}
