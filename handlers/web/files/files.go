// Package files serves the static files of a page for people, from inside the program: each with its type, the content
// security policy of the page, and a tag by which a browser keeps it.
//
// A file may be kept compressed, as <name>.gz; it is served as <name>. What is not of a known type is not served.
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

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// types are those of the files that are served, by the end of the name.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// Files are the files of a page, by name.
type Files struct {
	files map[string]*file
}

// file is a static file with what an answer says of it.
type file struct {
	content     []byte                 // unless it is kept compressed
	packed      []byte                 // else
	unpacked    func() ([]byte, error) // else
	contentType string
	tag         string
}

// Read reads the files in some folders, whose names must not meet.
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
	one := &file{contentType: contentType, tag: web.TagOf(content)}
	if compressed {
		// Browsers take it as it is kept. It is unpacked for the first who does not: every start would take its time for that, and
		// every node hold the megabytes.
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

// Serve answers with a file, or with 304 to a browser that has it: files carry no version in their names, so a browser
// asks each time, and a new build is seen at once. The policy is its Content-Security-Policy. Without such a file the
// answer is a problem, 404.
func (f *Files) Serve(c echo.Context, name, policy string) error {
	one := f.files[name]
	if one == nil {
		return web.NotFound("NOT_FOUND", "There is no such file.")
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if one.packed != nil {
		return web.TaggedPacked(c, one.tag, one.contentType, one.unpacked, one.packed)
	}
	return web.Tagged(c, one.tag, one.contentType, one.content)
}
