package monitor

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// The most bytes that are read of a checkpoint, and of a tile.
const (
	maxCheckpoint = 64 << 10
	maxTile       = 256 * tlog.HashSize
)

// get returns the body of a response of at most a number of bytes.
func get(ctx context.Context, client *http.Client, url string, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	a, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", url, err)
	case a.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", url, a.Status)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: the response has more than %d bytes", url, limit)
	}
	return body, nil
}

// tiles reads the tiles of a source. It implements tlog.TileReader.
type tiles struct {
	ctx    context.Context
	client *http.Client
	url    string
	failed error // of the last tile that could not be read
}

// Height implements tlog.TileReader.
func (*tiles) Height() int { return 8 }

// SaveTiles implements tlog.TileReader.
func (*tiles) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader. A partial tile that is gone is the beginning of the full one.
func (t *tiles) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range all {
		size := tile.W * tlog.HashSize
		b, err := get(t.ctx, t.client, t.url+"/"+transparency.TilePath(tile), maxTile)
		if err != nil && tile.W < 1<<tile.H {
			full := tile
			full.W = 1 << tile.H
			if b, err = get(t.ctx, t.client, t.url+"/"+transparency.TilePath(full), maxTile); err == nil && len(b) > size {
				b = b[:size]
			}
		}
		if err != nil {
			t.failed = err
			return nil, err
		}
		if len(b) != size {
			return nil, fmt.Errorf("%s has %d bytes, not %d", transparency.TilePath(tile), len(b), size)
		}
		data = append(data, b)
	}
	return data, nil
}
