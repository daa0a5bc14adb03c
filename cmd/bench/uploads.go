package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
)

const (
	uploadSize  = 20 << 20 // bytes; the largest file allowed
	uploadsLive = 8        // concurrent uploads
)

// uploadConfig configures the child that uploads files.
type uploadConfig struct{ URL, Token string }

// uploadReply is the result of a round.
type uploadReply struct {
	Count     int
	PerSecond float64 // megabytes
}

// uploadBody returns a form with a file of the largest size, declared as a PDF.
func uploadBody() (contentType string, content []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("category", "contract")
	into, _ := w.CreateFormFile("file", "contract.pdf")
	file := make([]byte, uploadSize)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range file {
		file[i] = byte(random.Uint32())
	}
	copy(file, "%PDF-1.7\n")
	end := "\nstartxref\n9\n%%EOF\n"
	copy(file[len(file)-len(end):], end)
	_, _ = into.Write(file)
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// uploaderChild uploads files over the requested number of connections for the requested time.
func uploaderChild(ctx context.Context, cfg uploadConfig, in *json.Decoder, out *json.Encoder) error {
	contentType, content := uploadBody()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: uploadsLive, WriteBufferSize: 256 << 10}}
	return answerAll(in, out, struct{}{}, func(round loadRequest) (uploadReply, error) {
		return uploadFor(ctx, client, cfg, contentType, content, round)
	})
}

func uploadFor(ctx context.Context, client *http.Client, cfg uploadConfig, contentType string, content []byte, round loadRequest) (uploadReply, error) {
	start := time.Now()
	counts := make([]int, round.Connections)
	g, ctx := errgroup.WithContext(ctx)
	for n := range counts {
		g.Go(func() error {
			for time.Since(start) < round.For {
				if err := uploadOne(ctx, client, cfg, contentType, content); err != nil {
					return err
				}
				counts[n]++
			}
			return nil
		})
	}
	err := g.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return uploadReply{total, float64(total) * uploadSize / 1e6 / time.Since(start).Seconds()}, err
}

func uploadOne(ctx context.Context, client *http.Client, cfg uploadConfig, contentType string, content []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.URL, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+cfg.Token)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("an upload was answered %d %.300s", answer.StatusCode, text)
	}
	return err
}

// plainFilesConfig configures the rival: its folder, and whether files are on disk when it answers.
type plainFilesConfig struct {
	Folder string
	Sync   bool
}

// plainFilesChild is a bare Echo with a handler that streams a form's file to disk, hashes it on the way, and answers
// with the hash. It does nothing else: no scan, no encryption, no record.
func plainFilesChild(_ context.Context, cfg plainFilesConfig, in *json.Decoder, out *json.Encoder) error {
	e := echo.New()
	e.POST("/documents", func(c echo.Context) error {
		sum, err := keepPlain(c.Request(), cfg)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, map[string]string{"sha256": sum})
	})
	return serveRival(e, in, out)
}

func keepPlain(r *http.Request, cfg plainFilesConfig) (sum string, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", err
	}
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return "", err
		}
		if p.FormName() != "file" {
			continue
		}
		file, err := os.CreateTemp(cfg.Folder, "upload-*")
		if err != nil {
			return "", err
		}
		hash := sha256.New()
		_, err = io.Copy(io.MultiWriter(file, hash), p)
		if err == nil && cfg.Sync {
			err = file.Sync()
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return "", err
		}
		sum = hex.EncodeToString(hash.Sum(nil))
	}
}

// uploads is a server that accepts files, and the child that uploads them.
type uploads struct {
	load   *child
	folder string // folder of the files
	stop   func()
}

// round uploads for a while and then deletes the files, so that the disk does not fill up.
func (u *uploads) round(length time.Duration) func() (float64, error) {
	return func() (float64, error) {
		var r uploadReply
		if err := u.load.call(loadRequest{uploadsLive, length}, &r); err != nil {
			return 0, err
		}
		return r.PerSecond, u.clear()
	}
}

func (u *uploads) clear() error {
	entries, err := os.ReadDir(u.folder)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(u.folder, e.Name())))
	}
	return err
}

func (u *uploads) close() {
	if u.load != nil {
		u.load.stop()
	}
	u.stop()
}

// venueUploads starts a venue with a person to upload files for.
func (b *bench) venueUploads(ctx context.Context) (*venue, *uploads, error) {
	v, err := b.newVenue(ctx)
	if err != nil {
		return nil, nil, err
	}
	u := &uploads{folder: filepath.Join(v.dir, "blob", "documents"), stop: v.discard}
	answer, err := v.do(ctx, "broker-a", http.MethodPost, "/api/v1/persons", map[string]string{"external_id": "bench", "first_name": "B", "last_name": "B"})
	var person struct{ ID string }
	if err == nil {
		err = json.Unmarshal(answer, &person)
	}
	token := ""
	if err == nil {
		token, err = v.token(ctx, "broker-a")
	}
	if err == nil {
		u.load, err = b.child(ctx, "uploader", uploadConfig{v.REST + "/api/v1/persons/" + person.ID + "/documents", token}, new(struct{}))
	}
	if err != nil {
		u.close()
		return nil, nil, err
	}
	return v, u, nil
}

// plainUploads starts the rival.
func (b *bench) plainUploads(ctx context.Context, sync bool) (*uploads, error) {
	folder, err := os.MkdirTemp(b.dir, "files-*")
	if err != nil {
		return nil, err
	}
	var ready rivalReady
	server, err := b.child(ctx, "plain-files", plainFilesConfig{folder, sync}, &ready)
	if err != nil {
		return nil, err
	}
	u := &uploads{folder: folder, stop: server.stop}
	if u.load, err = b.child(ctx, "uploader", uploadConfig{URL: ready.URL + "/documents"}, new(struct{})); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

// measureUploads measures uploads and the memory that they need.
func measureUploads(ctx context.Context, b *bench) error {
	_, ours, err := b.venueUploads(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("uploads of %d MiB, %d at once: judged, sealed, hashed, synced and in the log", uploadSize>>20, uploadsLive)
	for _, baseline := range []struct {
		name string
		sync bool
		aim  Aim
	}{{"Echo that streams to a file and hashes", false, atLeast(0.5)}, {"the same, and syncs the file", true, Aim{}}} {
		var theirs *uploads
		if theirs, err = b.plainUploads(ctx, baseline.sync); err != nil {
			break
		}
		err = b.pair(Row{Measure: what, Unit: "MB/s", Against: baseline.name, Aim: baseline.aim}, ours.round(b.round), theirs.round(b.round))
		theirs.close()
		if err != nil {
			break
		}
	}
	ours.close()
	if err != nil {
		return err
	}
	return b.uploadMemory(ctx)
}

// uploadMemory measures the growth of a process with default settings while files are uploaded: the peak of its
// resident memory, as counted by the kernel, minus its size before the first upload. That includes garbage that could
// be collected and the program's code pages.
func (b *bench) uploadMemory(ctx context.Context) error {
	v, ours, err := b.venueUploads(ctx)
	if err != nil {
		return err
	}
	defer ours.close()
	row := Row{Measure: fmt.Sprintf("memory of the process at most while %d are uploaded, above before, with default settings", uploadsLive), Unit: "MB", Aim: atMost(64)}
	before, known := residentOf(v.PID)
	for range b.rounds {
		if _, err := ours.round(b.round)(); err != nil {
			return err
		}
	}
	if peak, ok := highestOf(v.PID); ok && known {
		row.Ours.Rounds = []float64{float64(peak-before) / 1e6}
		b.add(row)
	}
	return nil
}

// residentOf and highestOf return the current and the peak resident memory of a process, in bytes.
func residentOf(pid int) (bytes int64, ok bool) { return memoryOf(pid, "VmRSS:") }
func highestOf(pid int) (bytes int64, ok bool)  { return memoryOf(pid, "VmHWM:") }

func memoryOf(pid int, name string) (bytes int64, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name); found {
			n, err := fmt.Sscanf(rest, "%d kB", &bytes)
			return bytes << 10, err == nil && n == 1
		}
	}
	return 0, false
}
