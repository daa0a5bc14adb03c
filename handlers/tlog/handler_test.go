package tlog_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	xtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/tlog"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

var id = scalar.ID{1, 2, 3}

// served is a log of some records. It implements tlog.Log.
type served struct {
	tiles map[string][]byte
	last  transparency.Checkpoint

	cosigned bool // the last checkpoint is
}

func (s *served) Checkpoint(context.Context) (transparency.Checkpoint, error) {
	if s.last.Size == 0 {
		return s.last, fs.ErrNotExist
	}
	return s.last, nil
}

func (s *served) Cosigned(ctx context.Context) (transparency.Checkpoint, error) {
	if !s.cosigned {
		return transparency.Checkpoint{}, fs.ErrNotExist
	}
	return s.Checkpoint(ctx)
}

func (s *served) Tile(_ context.Context, t xtlog.Tile) ([]byte, error) {
	data, ok := s.tiles[transparency.TilePath(t)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (s *served) Keys(ctx context.Context) (string, error) {
	c, err := s.Checkpoint(ctx)
	return transparency.KeyLine(c.Newest(), time.Time{}), err
}

func (s *served) Rotation(_ context.Context, generation int) ([]byte, error) {
	if generation != 2 {
		return nil, fs.ErrNotExist
	}
	return []byte("{}\n"), nil
}

// signsAll lets everything be signed.
type signsAll struct{ transparency.Heads }

func (signsAll) Advance(context.Context, transparency.Origin, transparency.Head, transparency.Head) error {
	return nil
}

// entry returns the entry of a record of the tests.
func entry(sequence int64) []byte {
	e := transparency.Entry(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(sequence))))
	return e[:]
}

func newLog(t *testing.T, size int64) *served {
	t.Helper()
	s := &served{tiles: make(map[string][]byte)}
	var tree transparency.Tree
	keep := func(t transparency.Tile) { s.tiles[transparency.TilePath(t.Tile)] = t.Data }
	for i := range size {
		tree.Append([32]byte(entry(i)[1:]), keep)
	}
	for _, tile := range tree.Partial() {
		keep(tile)
	}
	origin := transparency.Origin{Host: "venue.example", Journal: "trading", ID: id}
	key, err := transparency.NewKey(origin, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if s.last, err = transparency.NewSigner(origin, signsAll{}, key).Sign(t.Context(), transparency.Head{}, transparency.Head{Size: size, Root: tree.Root()}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// serve serves logs by journal.
func serve(t *testing.T, logs map[string]tlog.Log) string {
	t.Helper()
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tlog.Register(e.Echo, tlog.Config{Auth: rest.NewAuth(access.NewTokens(nil, "test", time.Now)), Public: []string{"trading"},
		Log: func(_ context.Context, journal string, partition int32) (tlog.Log, scalar.ID, error) {
			if journal == "broken" {
				return nil, id, errors.New("the database is away")
			}
			if l := logs[journal]; l != nil && partition == 0 {
				return l, id, nil
			}
			return nil, id, fs.ErrNotExist
		}})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL
}

func get(t *testing.T, url string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, body
}

func TestResponses(t *testing.T) {
	trading := newLog(t, 600)
	trading.cosigned = true
	url := serve(t, map[string]tlog.Log{"trading": trading, "onboarding": newLog(t, 3), "empty": new(served)})
	for path, want := range map[string]struct {
		status int
		kind   string
		cached string
	}{
		"trading/0/checkpoint":                                {200, "text/plain; charset=utf-8", "public, max-age=1"},
		"trading/0/key":                                       {200, "text/plain; charset=utf-8", "public, max-age=60"},
		"trading/0/cosigned-checkpoint":                       {200, "text/plain; charset=utf-8", "public, max-age=1"},
		"onboarding/0/cosigned-checkpoint":                    {status: 401},
		"trading/0/tile/0/001":                                {200, "application/octet-stream", "public, max-age=31536000, immutable"},
		"trading/0/tile/0/002.p/88":                           {200, "application/octet-stream", "public, max-age=31536000, immutable"},
		"trading/0/tile/entries/000":                          {200, "application/octet-stream", "public, max-age=31536000, immutable"},
		"trading/0/" + id.String() + "/key":                   {200, "text/plain; charset=utf-8", "public, max-age=60"},
		"trading/0/" + id.String() + "/tile/entries/002.p/88": {200, "application/octet-stream", "public, max-age=31536000, immutable"},
		"trading/0/tile/0/002":                                {status: 404},
		"trading/0/tile/0/x000/001":                           {status: 404},
		"trading/0/tile/data/001":                             {status: 404},
		"trading/0/tile/0/..%2f..%2fkey":                      {status: 404},
		"trading/0/" + scalar.ID{}.String() + "/key":          {status: 404},
		"trading/1/checkpoint":                                {status: 404},
		"trading/00/checkpoint":                               {status: 404},
		"trading/x/checkpoint":                                {status: 404},
		"onboarding/0/checkpoint":                             {status: 401},
		"onboarding/0/tile/entries/000.p/3":                   {status: 401},
		"other/0/checkpoint":                                  {status: 401},
	} {
		r, body := get(t, url+"/tlog/"+path)
		if r.StatusCode != want.status || want.status == 200 && (r.Header.Get("Content-Type") != want.kind || r.Header.Get("Cache-Control") != want.cached) {
			t.Errorf("%s: %d %v %.100q", path, r.StatusCode, r.Header, body)
		}
	}
}

// client is a client of another make, over HTTP. It implements tlog.TileReader.
type client struct {
	t      *testing.T
	url    string
	tamper func(path string, data []byte)
}

func (c *client) Height() int                      { return 8 }
func (c *client) SaveTiles([]xtlog.Tile, [][]byte) {}

func (c *client) ReadTiles(tiles []xtlog.Tile) (all [][]byte, err error) {
	for _, tile := range tiles {
		path := "tile/" + strings.TrimPrefix(tile.Path(), "tile/8/")
		r, data := get(c.t, c.url+"/"+path)
		if r.StatusCode != 200 {
			return nil, fmt.Errorf("%s: %s", path, r.Status)
		}
		if c.tamper != nil {
			c.tamper(path, data)
		}
		all = append(all, data)
	}
	return all, nil
}

// TestAnotherClient verifies records and the growth of a log with package tlog of golang.org/x/mod. It refuses tiles that were
// tampered with.
func TestAnotherClient(t *testing.T) {
	const size = 70_000
	url := serve(t, map[string]tlog.Log{"trading": newLog(t, size)}) + "/tlog/trading/0"
	_, key := get(t, url+"/key")
	verifier, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		t.Fatal(err)
	}
	_, signed := get(t, url+"/checkpoint")
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(opened.Text, "\n")
	root, err := xtlog.ParseHash(lines[2])
	if err != nil || lines[0] != "venue.example/tlog/trading/0/"+id.String() || lines[1] != fmt.Sprint(size) {
		t.Fatalf("%q, %v", lines, err)
	}
	tree := xtlog.Tree{N: size, Hash: root}
	random := rand.New(rand.NewPCG(1, 1))
	c := &client{t: t, url: url}
	for range 5 {
		n := random.Int64N(size)
		proof, err := xtlog.ProveRecord(size, n, xtlog.TileHashReader(tree, c))
		if err == nil {
			err = xtlog.CheckRecord(proof, size, root, n, xtlog.RecordHash(entry(n)))
		}
		if err != nil {
			t.Errorf("record %d: %v", n, err)
		}
		var older transparency.Tree
		for i := range n + 1 {
			older.Append([32]byte(entry(i)[1:]), func(transparency.Tile) {})
		}
		growth, err := xtlog.ProveTree(size, n+1, xtlog.TileHashReader(tree, c))
		if err == nil {
			err = xtlog.CheckTree(growth, size, root, n+1, older.Root())
		}
		if err != nil {
			t.Errorf("from size %d: %v", n+1, err)
		}
		c.tamper = func(_ string, data []byte) { data[random.IntN(len(data))] ^= 1 << random.IntN(8) }
		if _, err := xtlog.ProveRecord(size, n, xtlog.TileHashReader(tree, c)); err == nil {
			t.Errorf("record %d is proven by tiles that were tampered with", n)
		}
		c.tamper = nil
	}
}

// TestPython has a program verify logs that shares no code with this one, and find what is wrong with others.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	verify := func(l *served) (string, error) {
		url := serve(t, map[string]tlog.Log{"trading": l}) + "/tlog/trading/0"
		said, err := exec.CommandContext(t.Context(), python, "testdata/verify.py", url).CombinedOutput()
		return string(said), err
	}
	for _, size := range []int64{1, 256, 257, 1500} {
		if said, err := verify(newLog(t, size)); err != nil || !strings.Contains(said, fmt.Sprintf("%d records", size)) {
			t.Errorf("%d records: %v\n%s", size, err, said)
		}
	}
	for name, damage := range map[string]func(*served){
		"an entry":     func(s *served) { s.tiles["tile/entries/001"][40] ^= 1 },
		"a hash":       func(s *served) { s.tiles["tile/0/002.p/88"][40] ^= 1 },
		"a higher one": func(s *served) { s.tiles["tile/1/000.p/2"][40] ^= 1 },
		"a tile":       func(s *served) { s.tiles["tile/0/000"] = s.tiles["tile/0/001"] },
		"the size":     func(s *served) { s.last.Note = []byte(strings.Replace(string(s.last.Note), "\n600\n", "\n599\n", 1)) },
		"the key":      func(s *served) { s.last.Verifier = newLog(t, 1).last.Verifier[:50] },
	} {
		l := newLog(t, 600)
		damage(l)
		if said, err := verify(l); err == nil {
			t.Errorf("%s was changed: %s", name, said)
		}
	}
}

// TestTessera has Tessera's fsck and client verify logs. They are in a module of their own, which brings many others.
func TestTessera(t *testing.T) {
	if os.Getenv("PERPETUA_TEST_TESSERA") == "" {
		t.Skip("it takes modules from the module proxy: make tessera")
	}
	program := filepath.Join(t.TempDir(), "fsck")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = "testdata/fsck", append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, size := range []int64{1, 255, 256, 257, 70_000} {
		l := newLog(t, size)
		url := serve(t, map[string]tlog.Log{"trading": l}) + "/tlog/trading/0"
		said, err := exec.CommandContext(t.Context(), program, url, l.last.Verifier).CombinedOutput()
		if err != nil || !strings.Contains(string(said), fmt.Sprintf("%d records", size)) {
			t.Errorf("%d records: %v\n%s", size, err, said)
		}
		l.tiles[transparency.TilePath(xtlog.Tile{H: 8, L: -1, W: int(min(size, 256))})][10] ^= 1
		if said, err := exec.CommandContext(t.Context(), program, url, l.last.Verifier).CombinedOutput(); err == nil {
			t.Errorf("%d records, of which one was changed: %s", size, said)
		}
	}
}
