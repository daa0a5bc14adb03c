// Command fsck has the checker and the client of Tessera, which share no code with this project, verify a served log.
//
// usage: fsck URL VERIFIER-KEY
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if err := check(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(ctx context.Context, at, key string) error {
	root, err := url.Parse(strings.TrimSuffix(at, "/") + "/")
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return err
	}
	f, err := client.NewHTTPFetcher(root, http.DefaultClient)
	if err != nil {
		return err
	}
	if err := fsck.New(verifier.Name(), verifier, f, leafHashes, fsck.Opts{N: 4}).Check(ctx); err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	last, _, _, err := client.FetchCheckpoint(ctx, f.ReadCheckpoint, verifier, verifier.Name())
	if err != nil {
		return err
	}
	b, err := client.NewProofBuilder(ctx, last.Size, f.ReadTile)
	if err != nil {
		return err
	}
	for _, at := range []uint64{0, last.Size / 2, last.Size - 1} {
		bundle, err := client.GetEntryBundle(ctx, f.ReadEntryBundle, at/256, last.Size)
		if err != nil {
			return err
		}
		path, err := b.InclusionProof(ctx, at)
		if err != nil {
			return err
		}
		leaf := rfc6962.DefaultHasher.HashLeaf(bundle.Entries[at%256])
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, at, last.Size, leaf, path, last.Hash); err != nil {
			return fmt.Errorf("record %d: %w", at, err)
		}
	}
	fmt.Printf("%s: %d records\n", verifier.Name(), last.Size)
	return nil
}

func leafHashes(data []byte) (hashes [][]byte, err error) {
	var bundle api.EntryBundle
	if err := bundle.UnmarshalText(data); err != nil {
		return nil, err
	}
	for _, e := range bundle.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return hashes, nil
}
