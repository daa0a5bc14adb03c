package transparency

import (
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

func TestTilePath(t *testing.T) {
	for path, want := range map[string]tlog.Tile{
		"tile/0/000":                     {H: 8, L: 0, N: 0, W: 256},
		"tile/0/x001/x234/067":           {H: 8, L: 0, N: 1234067, W: 256},
		"tile/3/999.p/1":                 {H: 8, L: 3, N: 999, W: 1},
		"tile/entries/000.p/255":         {H: 8, L: -1, N: 0, W: 255},
		"tile/entries/x001/000":          {H: 8, L: -1, N: 1000, W: 256},
		"tile/63/x001/x234/067.p/17":     {H: 8, L: 63, N: 1234067, W: 17},
		"tile/entries/x001/x234/067.p/8": {H: 8, L: -1, N: 1234067, W: 8},
	} {
		if got, err := ParseTilePath(path); err != nil || got != want || TilePath(want) != path {
			t.Errorf("%s: %+v, %v, %s", path, got, err, TilePath(want))
		}
	}
	for _, path := range []string{"", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/00/000", "tile/64/000", "tile/-1/000",
		"tile/data/000", "tile/8/0/000", "tile/0/x000/000", "tile/0/1000", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/",
		"tile/0/000/", "tile/entries/data/000", "tile/0/x001/x234/x067", "tile/0/001/234/067", "0/000", "/tile/0/000", "tile/0/%30", "tile/0/..", "tile/0/+01"} {
		if got, err := ParseTilePath(path); err == nil {
			t.Errorf("%q is read as %+v", path, got)
		}
	}
}

func FuzzParseTilePath(f *testing.F) {
	f.Add("tile/0/x001/x234/067.p/1")
	f.Add("tile/entries/000")
	f.Fuzz(func(t *testing.T, path string) {
		if tile, err := ParseTilePath(path); err == nil && TilePath(tile) != path {
			t.Errorf("%q is %+v, which is %q", path, tile, TilePath(tile))
		}
	})
}

func TestHosts(t *testing.T) {
	for _, host := range []string{"localhost", "venue.example", "venue.example:8443", "börse.example", "[::1]:8080"} {
		if err := CheckHost(host); err != nil {
			t.Error(err)
		}
	}
	for _, host := range []string{"", ".", "..", "a b", "a+b", "a/b", "a\nb", "\xff", `a\b`} {
		if CheckHost(host) == nil {
			t.Errorf("%q is accepted", host)
		}
	}
}
