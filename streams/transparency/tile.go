package transparency

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	height = 8 // of a tile, in levels of the tree
	width  = 1 << height
	// maxLevel is the highest level of the specification. No tree of this package reaches it.
	maxLevel = 63
	// bundles is the level of entry bundles, which the tiles of package tlog call data.
	bundles = -1
)

// Tile is a tile or an entry bundle (level -1) with its content.
type Tile struct {
	tlog.Tile
	Data []byte
}

// TilePath returns the path of a tile or entry bundle below the log's prefix: tile/<L>/<N>[.p/<W>] or tile/entries/<N>[.p/<W>].
func TilePath(t tlog.Tile) string {
	// Package tlog puts the height first, which tlog-tiles fixes at 8, and has the same form for the rest.
	rest := strings.TrimPrefix(t.Path(), "tile/8/")
	if index, ok := strings.CutPrefix(rest, "data/"); ok {
		rest = "entries/" + index
	}
	return "tile/" + rest
}

// ParseTilePath is the inverse of TilePath. It accepts no other form of a number.
func ParseTilePath(path string) (tlog.Tile, error) {
	rest, ok := strings.CutPrefix(path, "tile/")
	if index, bundle := strings.CutPrefix(rest, "entries/"); bundle {
		rest = "data/" + index
	}
	t, err := tlog.ParseTilePath("tile/8/" + rest)
	if !ok || err != nil || t.L > maxLevel || TilePath(t) != path {
		return tlog.Tile{}, fmt.Errorf("%q is not the path of a tile", path)
	}
	return t, nil
}

// full returns the tile with all its hashes.
func full(t tlog.Tile) tlog.Tile {
	t.W = width
	return t
}

// unit returns the size of a hash in a tile, or of an entry in a bundle, in bytes.
func unit(level int) int {
	if level == bundles {
		return 2 + EntrySize
	}
	return tlog.HashSize
}

// widthAt returns the width of the tile with an index on a level, in a tree of a size: 0 if the tree has no such tile.
func widthAt(level int, index, size int64) int {
	hashes := size >> (height * max(level, 0))
	if index > hashes>>height {
		return 0
	}
	return int(min(hashes-index<<height, width))
}
