package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// tookOver is the JSON output of a take-over.
type tookOver struct {
	Venue    string `json:"venue_id"`
	Epoch    int64  `json:"epoch"`
	Location string `json:"place"` // location of the log
}

// TakeOver moves the fence to the venue in a data folder or on the named brokers, and returns when that venue may act. The
// previous holder reads the new fence and stops, if it uses the same key store. Neither venue needs to run.
func TakeOver(ctx context.Context, args []string, std settings.IO) error {
	var asJSON, lost bool
	s, err := settings.Parse("admin take-over", args, std, func(fs *flag.FlagSet) {
		settings.JSONFlag(fs, &asJSON)
		fs.BoolVar(&lost, "fence-lost", false, "create the fence if the key store has none, because it was lost with the owners' keys")
	})
	if err != nil {
		return err
	}
	if keysOfFollower(s) {
		return errors.New("the node on the data folder follows a venue, and only a venue has a fence: name the venue's key store with --key-url")
	}
	facts := std
	if asJSON {
		std.Out = io.Discard // only messages for humans are written to it
	}
	id, location, err := locationOf(ctx, s)
	if err != nil {
		return err
	}
	url, err := s.KeyStoreURL()
	if err != nil {
		return err
	}
	keys, err := seal.OpenKeyStore(ctx, url)
	if err != nil {
		return err
	}
	defer keys.Close()
	take := fence.TakeOver
	if lost {
		if err := checkLostStore(ctx, s, keys); err != nil {
			return err
		}
		take = fence.TakeOverLost
	}
	f, err := take(ctx, keys, id, location, fence.Settle, func(f fence.Fence, damage error) { printTakeOver(std, f, damage, s.Stores.KeyURL == "") })
	if errors.Is(err, fence.ErrNone) {
		return fmt.Errorf("%w: name the key store of the venue with --key-url; one that was never started has no fence and needs no take-over. "+
			"If this is the venue's key store, and the fence was lost with the owners' keys, add --fence-lost", err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return facts.PrintJSON(tookOver{f.Venue, f.Epoch, f.Location})
	}
	fmt.Fprintf(std.Out, "the venue %s acts here, at epoch %d\n", f.Venue, f.Epoch)
	return nil
}

// printTakeOver prints the take-over of a fence before the wait. damage is the error of the former fence, or nil. inFolder
// reports whether the fence is in the data folder.
func printTakeOver(std settings.IO, f fence.Fence, damage error, inFolder bool) {
	switch {
	case errors.Is(damage, fence.ErrNone):
		fmt.Fprintln(std.Err, "the key store had no fence of this venue: it was created. Owners whose keys are missing can't be read")
	case damage != nil:
		fmt.Fprintf(std.Err, "%v: it was replaced. If the venue was moved or taken over before, holds under its former id stay in the key store, and keep their keys\n", damage)
	}
	if inFolder {
		fmt.Fprintln(std.Err, "the fence lies in the data folder. If the folder is a copy of another venue's, with its keys, that venue has a fence of its own: it does not stop by itself, so stop it first")
	}
	fmt.Fprintf(std.Out, "the fence is this venue's, at epoch %d; it acts in %v, once the one before must have stopped\n", f.Epoch, fence.Settle)
}

// errEmptyStore reports a key store with nothing that shows that it is the venue's.
var errEmptyStore = errors.New("the key store has neither the master key nor the first secret of record roots, which a backup has: " +
	"restore " + seal.File + ", commitment/, and tlog/ into it, or look at --key-url, and whether its file system is mounted")

// checkLostStore returns an error if a key store without a fence may not be the venue's. An empty folder, where a file system is not
// mounted, has nothing of the venue. The environment may hold the master key, so finding that key proves nothing of the store.
func checkLostStore(ctx context.Context, s *settings.Settings, keys *seal.KeyStore) error {
	box, err := s.FindMaster(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{seal.File, seal.WrappedFile} {
		if _, err := keys.Read(ctx, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err = seal.NewGenerations(keys, box).Get(ctx, 1)
	if errors.Is(err, seal.ErrNoSecret) {
		return errEmptyStore
	}
	return err
}

// locationOf returns the journal id of the venue that the settings name, and the location of the venue's log. The embedded
// broker of a data folder runs only while placeOf does. An empty log is an error.
func locationOf(ctx context.Context, s *settings.Settings) (id scalar.ID, location string, err error) {
	brokers := s.Brokers()
	if len(brokers) == 0 {
		embedded, stop, err := folderBrokers(ctx, s.Data, s.Progress)
		if err != nil {
			return id, "", err
		}
		defer stop()
		brokers = embedded
	}
	client, err := s.NewClient(brokers, slog.New(slog.DiscardHandler))
	if err != nil {
		return id, "", err
	}
	defer client.Close()
	if err := addFolderBases(s, client); err != nil {
		return id, "", err
	}
	id, location, founded, err := fence.Locate(ctx, client)
	if err != nil {
		return id, "", err
	}
	if !founded {
		return id, "", errors.New("there is no venue yet: the log is empty")
	}
	return id, location, nil
}
